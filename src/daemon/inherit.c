/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inherit.c - descriptors that came with the start; see inherit.h.
 */
#include "daemon/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/config.h"
#include "net/loop.h"

enum { FIRST = 3, MOST = 4096 };

struct heirloom {
	int		 fd;		/* -1: it was taken, or closed */
	char		*name;
	bool		 is_socket;
	bool		 taken;
	bool		 both;		/* IPv6 that takes IPv4, too */
	struct addr	 addr;
	char		 path[sizeof ((struct sockaddr_un *)0)->sun_path + 1];
};

struct inherit {
	struct heirloom		*at;
	unsigned		 count;
	struct watch_kind	 kind;		/* until told to go on */
	struct watch		 watch;
	int			 ready;		/* or -1 */
	void			(*alone)(void *arg);
	void			*arg;
};

static watch_fn	on_understood;

/* --- what there is ----------------------------------------------------- */

/* An unsigned number of the environment, within `most`; else 0. */
static unsigned long
number_of(const char *name, unsigned long most)
{
	const char *text = getenv(name);
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return 0;

	unsigned long n = strtoul(text, &end, 10);

	return *end == '\0' && n <= most ? n : 0;
}

static int
option(int fd, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof value;

	return getsockopt(fd, level, name, &value, &len) == 0 ? value : -1;
}

static void
read_address(struct heirloom *h)
{
	union {
		struct sockaddr_storage	 ss;
		struct sockaddr_un	 un;
	} a = { 0 };
	socklen_t len = sizeof a;

	if (getsockname(h->fd, (struct sockaddr *)&a.ss, &len) == -1)
		return;
	addr_from_sockaddr(&h->addr, (const struct sockaddr *)&a.ss, len);
	if (h->addr.family == ADDR_UNIX) {
		/* Its NUL may be missing. */
		memcpy(h->path, a.un.sun_path, MIN(sizeof a.un.sun_path,
		    len - offsetof(struct sockaddr_un, sun_path)));
		h->addr.path = h->path;
	}
	h->both = h->addr.family == ADDR_IP6 && addr_is_any(&h->addr) &&
	    option(h->fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0;
}

/* As one that listener.c has bound. */
static void
make_ready(struct heirloom *h)
{
	int on = 1;

	if (fcntl(h->fd, F_SETFL, fcntl(h->fd, F_GETFL) | O_NONBLOCK) == -1 ||
	    h->addr.family == ADDR_UNIX)
		return;
	(void)setsockopt(h->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(h->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void
look_at(struct heirloom *h, FILE *errors)
{
	(void)fcntl(h->fd, F_SETFD, FD_CLOEXEC);
	if (strcmp(h->name, "@ready") == 0 || strcmp(h->name, "@pid") == 0)
		return;
	h->is_socket = option(h->fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM &&
	    option(h->fd, SOL_SOCKET, SO_ACCEPTCONN) == 1;
	if (h->is_socket)
		read_address(h);
	if (h->addr.family != ADDR_NONE) {
		make_ready(h);
		return;
	}
	fprintf(errors, "penstock: descriptor %d (%s) is no listening stream "
	    "socket, and is closed\n", h->fd, h->name);
	close(h->fd);
	h->fd = -1;
	h->is_socket = false;
}

struct inherit *
inherit_new(FILE *errors)
{
	struct inherit *h = xcalloc(1, sizeof *h);
	const char *names = getenv("LISTEN_FDNAMES");
	struct str rest = str_of(names != NULL ? names : "");

	h->ready = -1;
	if (number_of("LISTEN_PID", ULONG_MAX) == (unsigned long)getpid())
		h->count = (unsigned)number_of("LISTEN_FDS", MOST);
	h->at = xcalloc(h->count, sizeof *h->at);
	for (unsigned i = 0; i < h->count; i++) {
		size_t n = str_find(rest, ':');

		h->at[i].fd = FIRST + (int)i;
		h->at[i].name = xcalloc(n + 1, 1);
		memcpy(h->at[i].name, rest.at, n);
		rest = str_skip(rest, MIN(n + 1, rest.len));
		look_at(&h->at[i], errors);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return h;
}

static void
stop_waiting(struct inherit *h)
{
	if (h->ready == -1)
		return;
	watch_stop(&h->watch);
	close(h->ready);
	h->ready = -1;
}

void
inherit_free(struct inherit **inherit)
{
	struct inherit *h = *inherit;

	if (h == NULL)
		return;
	*inherit = NULL;
	stop_waiting(h);
	for (unsigned i = 0; i < h->count; i++) {
		if (h->at[i].fd != -1)
			close(h->at[i].fd);
		free(h->at[i].name);
	}
	free(h->at);
	free(h);
}

/* --- taking ------------------------------------------------------------ */

static bool
has_name(const struct heirloom *h, const char *listener)
{
	return h->is_socket && strcmp(h->name, listener) == 0;
}

static bool
is_in(const struct conf_addrs *addrs, const struct addr *a)
{
	for (size_t i = 0; i < addrs->count; i++)
		if (addr_equal(&addrs->at[i], a))
			return true;
	return false;
}

/* All of IPv6, and it takes IPv4, too. */
static bool
covers(const struct heirloom *h, const struct addr *at)
{
	return h->both && at->family == ADDR_IP4 && addr_is_any(at) &&
	    h->addr.port == at->port;
}

/* Is this one for that address? */
static bool
fits(const struct heirloom *h, const struct inherit_wish *w)
{
	if (addr_equal(&h->addr, w->at))
		return true;
	if (is_in(w->binds, &h->addr))
		return false;		/* it is for another of them */
	return covers(h, w->at) || has_name(h, w->listener);
}

static void
take(struct heirloom *h, const struct inherit_wish *w,
    struct inherit_got *got)
{
	got->fds[got->count++] = h->fd;
	h->fd = -1;
	h->taken = true;
	if (strcmp(h->name, "@own") != 0)
		got->kept = true;
	if (has_name(h, w->listener))
		got->named = true;
}

bool
inherit_take(struct inherit *inherit, const struct inherit_wish *w,
    struct inherit_got *got)
{
	bool served = false;

	got->count = 0;
	got->kept = got->named = false;
	if (inherit == NULL)
		return false;
	for (unsigned i = 0; i < inherit->count; i++) {
		struct heirloom *h = &inherit->at[i];

		if (!h->is_socket)
			continue;
		if (covers(h, w->at) || (has_name(h, w->listener) &&
		    !is_in(w->binds, &h->addr)))
			served = true;
		if (h->fd != -1 && got->count < got->max && fits(h, w))
			take(h, w, got);
	}
	return served || got->count > 0;
}

int
inherit_take_file(struct inherit *inherit, const char *name)
{
	for (unsigned i = 0; i < inherit->count; i++) {
		struct heirloom *h = &inherit->at[i];
		int fd = h->fd;

		if (fd == -1 || strcmp(h->name, name) != 0)
			continue;
		h->fd = -1;
		return fd;
	}
	return -1;
}

void
inherit_close_rest(struct inherit *inherit, FILE *errors)
{
	char text[ADDR_TEXT + 108];

	for (unsigned i = 0; i < inherit->count; i++) {
		struct heirloom *h = &inherit->at[i];

		if (h->fd == -1 || !h->is_socket)
			continue;
		/* A predecessor's own it sees to itself. */
		if (strcmp(h->name, "@own") != 0)
			fprintf(errors, "penstock: no listener has the "
			    "inherited socket %s (%s), it is closed\n",
			    addr_print(&h->addr, text, sizeof text), h->name);
		close(h->fd);
		h->fd = -1;
	}
}

/* --- the predecessor --------------------------------------------------- */

/* A 1 for each that was taken, in their order, else a 0; and a newline. */
static bool
send_taken(const struct inherit *h)
{
	char *text = xcalloc(h->count + 1, 1);
	bool sent;

	for (unsigned i = 0; i < h->count; i++)
		text[i] = h->at[i].taken ? '1' : '0';
	text[h->count] = '\n';
	/* It fits into any socket's buffer. */
	sent = send(h->ready, text, h->count + 1, MSG_NOSIGNAL) ==
	    (ssize_t)h->count + 1;
	free(text);
	return sent;
}

static void
on_understood(struct watch *w, unsigned ready)
{
	struct inherit *h = container_of(w, struct inherit, watch);

	(void)ready;
	stop_waiting(h);
	h->alone(h->arg);
}

void
inherit_tell(struct inherit *h, struct loop *loop, void (*alone)(void *arg),
    void *arg)
{
	h->alone = alone;
	h->arg = arg;
	h->ready = inherit_take_file(h, "@ready");
	if (h->ready == -1) {
		alone(arg);
		return;
	}
	h->kind = (struct watch_kind){ loop, on_understood, "upgrade" };
	watch_init(&h->watch, &h->kind, h->ready);
	watch_want(&h->watch, WATCH_READ);
	/* If it is gone already, its end is read at once. */
	(void)send_taken(h);
}
