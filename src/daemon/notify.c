/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notify.c - tell the service manager; see notify.h.
 */
#include "daemon/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct notify {
	int			 fd;
	struct sockaddr_un	 to;
	socklen_t		 to_len;
	char			 kept[NOTIFY_KEPT][NOTIFY_TEXT];
	unsigned		 first, count;	/* of what is kept: a ring */
};

/* 0, or -errno: of another kind than systemd's, or too long. */
static int
read_address(struct notify *n, const char *to)
{
	size_t len = strlen(to);

	if ((to[0] != '/' && to[0] != '@') || to[1] == '\0')
		return -EAFNOSUPPORT;
	if (len >= sizeof n->to.sun_path)
		return -ENAMETOOLONG;
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, to, len);
	/* An abstract name is as long as it is; a path ends with a NUL. */
	if (to[0] == '@')
		n->to.sun_path[0] = '\0';
	n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len +
	    (to[0] == '/'));
	return 0;
}

int
notify_new(struct notify **out, const char *to)
{
	struct notify *n = xcalloc(1, sizeof *n);
	int err = read_address(n, to);

	*out = NULL;
	if (err != 0)
		goto free_notify;
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->fd == -1) {
		err = -errno;
		goto free_notify;
	}
	*out = n;
	return 0;

free_notify:
	free(n);
	return err;
}

void
notify_free(struct notify **notify)
{
	struct notify *n = *notify;

	if (n == NULL)
		return;
	*notify = NULL;
	notify_retry(n);
	close(n->fd);
	free(n);
}

/* False: later, perhaps.  Nobody there counts as sent: nobody is to know. */
static bool
send_now(struct notify *n, const char *text)
{
	ssize_t sent;

	do
		sent = sendto(n->fd, text, strlen(text),
		    MSG_NOSIGNAL | MSG_DONTWAIT,
		    (const struct sockaddr *)&n->to, n->to_len);
	while (sent == -1 && errno == EINTR);
	return sent != -1 || (errno != EAGAIN && errno != ENOBUFS);
}

void
notify_retry(struct notify *n)
{
	if (n == NULL)
		return;
	while (n->count > 0 && send_now(n, n->kept[n->first])) {
		n->first = (n->first + 1) % NOTIFY_KEPT;
		n->count--;
	}
}

void
notify_state(struct notify *n, const char *fmt, ...)
{
	va_list args;
	char *text;

	if (n == NULL)
		return;
	notify_retry(n);
	if (n->count == NOTIFY_KEPT) {
		n->first = (n->first + 1) % NOTIFY_KEPT;
		n->count--;
	}
	text = n->kept[(n->first + n->count++) % NOTIFY_KEPT];
	va_start(args, fmt);
	vsnprintf(text, NOTIFY_TEXT, fmt, args);
	va_end(args);
	notify_retry(n);
}

void
notify_news(struct notify *n, const char *fmt, ...)
{
	char text[NOTIFY_TEXT];
	va_list args;

	if (n == NULL)
		return;
	notify_retry(n);
	if (n->count > 0)
		return;			/* not before what is older */
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	(void)send_now(n, text);
}

unsigned
notify_kept(const struct notify *n)
{
	return n == NULL ? 0 : n->count;
}
