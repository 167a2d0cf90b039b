/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admin.h - the admin listener: what operators and their tools read.
 *
 *	/metrics	Prometheus text
 *	/healthz	200 as long as the process is alive
 *	/readyz		200 while it accepts clients, 503 while it drains
 *	/reload?check	POST, over a unix socket: what a reload would say; 200
 *			if nothing is wrong, else 422 and a line for each
 *
 * It runs on main's loop with memory of its own, so it answers while every
 * worker is saturated, and no limit applies to it.
 *
 * Owner:    admin_start() gives a handle.
 * Threads:  main's.
 * Limits:   ADMIN_CLIENTS connections; others wait.  A client for whose page
 *           there is no memory, as others don't read theirs, is cut.
 */
#ifndef PENSTOCK_DAEMON_ADMIN_H
#define PENSTOCK_DAEMON_ADMIN_H

#include <stdio.h>

#include "base/metric.h"
#include "net/loop.h"

struct admin;

enum { ADMIN_CLIENTS = 64 };

struct admin_opts {
	struct loop	*loop;
	/* Write /metrics. */
	void		(*metrics)(void *arg, struct metrics *m);
	/* Are clients accepted? */
	bool		(*is_ready)(void *arg);
	/* Would a reload go well?  Else `out` says what is wrong. */
	bool		(*check)(void *arg, FILE *out);
	void		*arg;
};

/*
 * The budget of the loop's blocks with which some clients that don't read may
 * each have a page of at most so many bytes, and others are still served.
 */
uint64_t admin_budget(size_t page);

/* Most bytes that it takes, that budget and the page in the making included. */
uint64_t admin_memory(size_t page);

struct admin *admin_start(const struct admin_opts *opts);

/* Serve on a listening socket; false without memory. */
bool admin_listen(struct admin *a, int fd) MUST_USE;

/* Accept nobody any more. */
void admin_leave(struct admin *a);

/* Close everything at once. */
void admin_stop(struct admin **a);

#endif
