/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hangup.c - who is at the other end of a socket goes; see hangup.h.
 *
 * An epoll descriptor of our own inside the loop's.  It is edge-triggered: a
 * FIN stays there until it is read, and a reset may yet come after it.
 */
#include "net/hangup.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net/loop.h"

/* More wait for the next turn. */
enum { TURN = 64 };

struct hangups {
	struct watch_kind	 kind;
	struct watch		 watch;
};

static watch_fn	on_ready;

struct hangups *
hangups_new(struct loop *loop)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd == -1)
		return NULL;

	struct hangups *hs = xcalloc(1, sizeof *hs);

	hs->kind = WATCH_KIND(loop, on_ready);
	watch_init(&hs->watch, &hs->kind, fd);
	watch_want(&hs->watch, WATCH_READ);
	return hs;
}

void
hangups_free(struct hangups **h)
{
	if (*h == NULL)
		return;
	watch_stop(&(*h)->watch);
	close(watch_fd(&(*h)->watch));
	free(*h);
	*h = NULL;
}

void
hangups_add(struct hangups *hs, int fd, struct hangup *h)
{
	struct epoll_event e = {
		.events = EPOLLRDHUP | EPOLLET,
		.data.ptr = h,
	};

	(void)epoll_ctl(watch_fd(&hs->watch), EPOLL_CTL_ADD, fd, &e);
}

void
hangups_remove(struct hangups *hs, int fd)
{
	(void)epoll_ctl(watch_fd(&hs->watch), EPOLL_CTL_DEL, fd, NULL);
}

/* One at a time: what one does may remove another, and free it. */
static void
on_ready(struct watch *w, unsigned ready)
{
	struct epoll_event e;

	(void)ready;
	for (int i = 0; i < TURN; i++) {
		if (epoll_wait(watch_fd(w), &e, 1, 0) != 1)
			return;

		struct hangup *h = e.data.ptr;

		h->fn(h);
	}
}
