/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * upgrade.h - start the program anew, perhaps a new one, and hand over to it.
 *
 *	NONE --> (started) --> WAITING --> TAKEN OVER: ours may end
 *	  ^                       |
 *	  +-----------------------+ it ended, was late, or is nonsense
 *
 * The successor is run from the path that this process was, with its arguments
 * and environment, and what it needs that it could not open itself: the
 * listening sockets and the pid file (inherit.h).  So it needs no privileges
 * that were dropped.  It reads the configuration, serves, and says which
 * sockets it has taken; then they are its own as well as ours, and `taken' is
 * called.  Until then nothing has changed here; and if it never says so it is
 * ended, and that is said in the log.
 *
 * Owner:    upgrade_new() gives a handle.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_UPGRADE_H
#define PENSTOCK_DAEMON_UPGRADE_H

#include <sys/types.h>

#include "base/defs.h"

struct log;
struct loop;
struct signals;
struct sockets;
struct upgrade;

struct upgrade_opts {
	struct loop		*loop;
	struct log		*log;
	const struct signals	*signals;
	struct sockets		*sockets;
	char *const		*argv;		/* of this process */
	/* The successor serves. */
	void			(*taken)(void *arg, pid_t successor);
	void			*arg;
};

/* Early: from a relative argv[0], the path is what it is now. */
struct upgrade *upgrade_new(const struct upgrade_opts *opts);

/* Ends a successor that has not taken over. */
void upgrade_free(struct upgrade **u);

/*
 * Start one, which has the pid file too (-1: there is none), and give it so
 * much time.  If one is under way, that is said.
 */
void upgrade_start(struct upgrade *u, int pid_file, nsec_t timeout);

/* SIGCHLD: has it ended? */
void upgrade_on_child(struct upgrade *u);

/* The process ends: no successor is wanted any more. */
void upgrade_cancel(struct upgrade *u);

#endif
