/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listener.h - take connections from a listening socket.
 *
 * An address has a fixed number of listening sockets, made by bind_address()
 * when it is first bound, and workers adopt them round robin: listener_start()
 * once for each socket, on the loop that adopted it.
 *
 * Before each accept the owner is asked for leave (`admit`).  If it says no,
 * the listener pauses until listener_resume(); so a session without a permit
 * is left in the kernel's queue instead of being accepted and refused.
 *
 * Owner:    listener_start() gives a handle; the sockets stay the caller's.
 * Threads:  the loop's.
 * Limits:   LISTENER_BATCH accepts per event.
 * Errors:   without descriptors or memory it pauses for 100 ms and tells
 *           `shortage`, which may log; other errors of accept(2) are the
 *           client's and are passed over.
 */
#ifndef PENSTOCK_NET_LISTENER_H
#define PENSTOCK_NET_LISTENER_H

#include "base/addr.h"
#include "net/loop.h"

enum { LISTENER_BATCH = 16 };

struct listener;

struct listener_opts {
	int		fd;
	/* May one more be accepted?  True takes the leave. */
	bool		(*admit)(void *arg);
	/* The leave was not used after all. */
	void		(*unadmit)(void *arg);
	/* A connection, non-blocking: fd is the callee's. */
	void		(*accepted)(void *arg, int fd, const struct addr *from);
	/* accept(2) said err (positive): nothing for 100 ms. */
	void		(*shortage)(void *arg, int err);
	/* Draining is over; or NULL. */
	void		(*drained)(void *arg);
	void		*arg;
};

/*
 * Bind `count` listening sockets with SO_REUSEPORT to `at` (one for a unix
 * address), with TCP_NODELAY and SO_KEEPALIVE for accepted ones to inherit.
 * Binds once without SO_REUSEPORT first, so that a second instance is
 * -EADDRINUSE; but not if `beside` others of our own, which are about to leave
 * an address that this one is a part of.  With port 0, all sockets get the same
 * free one.  0 and fds[], or -errno and none.  A stale unix socket that nobody
 * listens on is removed; the new one has mode 0660.
 */
int bind_address(const struct addr *at, int fds[], unsigned count,
    bool beside) MUST_USE;

/* NULL only without memory. */
struct listener *listener_start(struct loop *loop,
    const struct listener_opts *opts) MUST_USE;

/* Accept nothing until listener_resume(), and go on. */
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);

/*
 * Accept what the kernel has queued already, a batch a turn, then stop: when
 * `drained` is called and listener_is_drained() says so.  Whoever stops
 * listening to an address calls listener_refuse_new() before, or it may never
 * end.
 */
void listener_drain(struct listener *l);
bool listener_is_drained(const struct listener *l);

/*
 * Have the kernel drop new connections to fd, so that clients try again and
 * find another socket.  For the socket's life, in whatever process: not when a
 * successor inherits it.  0 or -errno; does nothing for a unix socket.
 */
int listener_refuse_new(int fd);

/* Have it take them again. */
void listener_take_new(int fd);

/*
 * Have the kernel refuse new connections to fd, and forget those it queued.
 * For all who have the socket, so not when a successor does.
 */
void listener_close(int fd);

/* Clears *l; NULL in it is fine.  May be called by any of its functions. */
void listener_stop(struct listener **l);

#endif
