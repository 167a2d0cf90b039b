/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * supervisor.h - what the service manager is told in the course of a life: that
 * it serves, reloads or ends, what it does just now, and that it isn't stuck.
 *
 * NOTIFY_SOCKET says whom to tell; without it nothing is told, and all of this
 * does nothing.  If WATCHDOG_USEC asks for a sign of life, it is given as long
 * as main and every worker make progress: a call is sent round, and one that
 * hasn't come back by the next time holds the sign back.
 *
 * Owner:    supervisor_new() gives a handle.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_SUPERVISOR_H
#define PENSTOCK_DAEMON_SUPERVISOR_H

#include <sys/types.h>

#include "base/defs.h"

struct figures;
struct log;
struct loop;
struct supervisor;
struct worker;

struct supervisor_opts {
	struct loop		*loop;
	struct log		*log;
	void			(*figures)(void *arg, struct figures *out);
	void			*arg;
};

struct supervisor *supervisor_new(const struct supervisor_opts *opts);

/* End what it does on the loop; and when no worker's loop runs any more. */
void supervisor_stop(struct supervisor *s);
void supervisor_free(struct supervisor **s);

/* It serves, with these workers: from now on signs of life are given. */
void supervisor_ready(struct supervisor *s, struct worker *const *workers,
    unsigned count);

/*
 * A reload begins; and has ended, well or not, which `outcome` says in a few
 * words.
 */
void supervisor_reloading(struct supervisor *s);
void supervisor_reloaded(struct supervisor *s, const char *outcome);

/* It ends, within so much time. */
void supervisor_stopping(struct supervisor *s, nsec_t within);

/* Another process goes on with it, and tells from now on. */
void supervisor_succeeded(struct supervisor *s, pid_t by);

#endif
