/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.h - signals, taken from main's loop as any other event.
 *
 * A table says which are caught and what is called for each.  They are blocked
 * in every thread and read from a descriptor, so nothing is ever interrupted,
 * and what is called may do whatever a callback may.
 *
 * Owner:    signals_new() gives a handle.
 * Threads:  main's; signals_new() before any other is started.
 */
#ifndef PENSTOCK_DAEMON_SIGNALS_H
#define PENSTOCK_DAEMON_SIGNALS_H

#include "base/defs.h"

struct loop;
struct signals;

typedef void signals_fn(void *arg, int signo);

struct signals_row {
	int		 signo;
	signals_fn	*fn;
};

/*
 * Catch those of the table's n rows from now on, and call for them while the
 * loop runs; SIGPIPE is ignored.  The table stays the caller's, as does arg.
 * 0 and a handle in *out; or -errno and NULL.
 */
int signals_new(struct signals **out, struct loop *loop,
    const struct signals_row *rows, size_t n, void *arg) MUST_USE;

/* Before the loop is freed.  What comes now stays blocked. */
void signals_free(struct signals **s);

/*
 * In a child, before it becomes another program: have what it may get be what
 * this process could get when it was started.
 */
void signals_undo(const struct signals *s);

#endif
