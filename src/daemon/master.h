/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * master.h - the life of the process, from start to exit.
 *
 *	STARTING --> SERVING --> DRAINING --> (exit 0)
 *	    |                       |
 *	    v               second signal: at once
 *	 (exit 1)
 *
 * SIGTERM and SIGINT drain; SIGHUP reloads (reload.h); SIGUSR1 and SIGUSR2 are
 * caught and said to be not yet there.
 *
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_MASTER_H
#define PENSTOCK_DAEMON_MASTER_H

#include "config/config.h"

struct master_opts {
	struct config	*config;
	const char	*file;			/* NULL: the built-in one */
};

/*
 * Start, serve until told to stop; the exit status.  The configuration is the
 * master's from here on.
 */
int master_run(const struct master_opts *opts);

/*
 * Say on `out` what a start would say: that every address can be bound and
 * the user found, or which can't.  The exit status; the configuration stays the
 * caller's.
 */
int master_test(const struct master_opts *opts, FILE *out);

#endif
