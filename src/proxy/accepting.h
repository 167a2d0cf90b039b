/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accepting.h - how connections come to a worker.
 *
 * A worker adopts listening sockets.  Before each accept it takes a permit of
 * max_connections; without one its listeners pause until there is one.  What
 * it has accepted it may hand to a worker that has fewer (net/handover).  The
 * permit goes with the connection, and whose session it was gives it back.
 *
 * A socket that a reload takes away leaves: the kernel drops new connections to
 * it, those it has begun are given ACCEPTING_LEAVES to come, and what is queued
 * then is still served.  Main closes it, once told that nobody serves it.
 *
 * Owner:    the worker, which embeds the struct.
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_ACCEPTING_H
#define PENSTOCK_PROXY_ACCEPTING_H

#include "base/gate.h"
#include "base/list.h"
#include "base/mail.h"
#include "base/wheel.h"

struct doors;
struct worker;

/* Longer than a handshake takes, and shorter than a client's next try. */
#define ACCEPTING_LEAVES	(500 * NSEC_PER_MSEC)

struct accepting {
	struct worker		*worker;
	struct mail		*unserved;	/* main's: look at `served` */
	struct list		 sockets;	/* adopted, not closed yet */
	struct gate_waiter	 permit;	/* for one more session */
	bool			 has_permit;	/* one in hand, unused */
	struct wheel_timer	 permit_timer;	/* gives it back */
	nsec_t			 said_shortage;	/* when it was last said */
};

/* `unserved` is put to main when a socket that left isn't served any more. */
void accepting_init(struct accepting *a, struct worker *w,
    struct mail *unserved);
void accepting_fini(struct accepting *a);

/* ENTER and OPEN of doors.h; the latter is false without memory. */
void accepting_change(struct accepting *a, struct doors *to);
bool accepting_open(struct accepting *a, struct doors *to) MUST_USE;

/*
 * Accept what the kernel has queued, then no more; or no more at once.  When
 * nothing will come any more, accepting_is_over() is true; of that
 * worker_stop_if_empty() is told, if it comes later.
 */
void accepting_drain(struct accepting *a);
void accepting_stop(struct accepting *a);
bool accepting_is_over(const struct accepting *a);

/* A session is over: its permit is free. */
void accepting_give_back(struct accepting *a);

#endif
