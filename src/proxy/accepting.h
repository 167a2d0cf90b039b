/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accepting.h - how connections come to a worker.
 *
 * A worker adopts listening sockets.  Before each accept it takes a permit of
 * max_connections; without one its listeners pause until there is one.  What
 * it has accepted it may hand to a worker that has fewer (net/handover).  The
 * permit goes with the connection, and whose session it was gives it back.
 *
 * Owner:    the worker, which embeds the struct.
 * Threads:  the worker's, except accepting_adopt(): before it runs.
 */
#ifndef PENSTOCK_PROXY_ACCEPTING_H
#define PENSTOCK_PROXY_ACCEPTING_H

#include "base/gate.h"
#include "base/list.h"
#include "base/wheel.h"

struct service;
struct worker;

/*
 * A service at one worker: where sessions come in, through whichever socket
 * of whichever worker.  There is one for each of the worker's setup.
 */
struct door {
	struct worker		*worker;
	struct service		*service;
};

struct accepting {
	struct worker		*worker;
	struct door		*doors;		/* by index of the service */
	struct list		 sockets;	/* adopted, not closed yet */
	struct gate_waiter	 permit;	/* for one more session */
	bool			 has_permit;	/* one in hand, unused */
	struct wheel_timer	 permit_timer;	/* gives it back */
	nsec_t			 said_shortage;	/* when it was last said */
};

/* For a worker that has its setup. */
void accepting_init(struct accepting *a, struct worker *w);
void accepting_fini(struct accepting *a);

/* Adopt a listening socket of that service; false without memory. */
bool accepting_adopt(struct accepting *a, const struct service *service,
    int fd) MUST_USE;

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
