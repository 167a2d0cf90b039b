/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reload.h - another configuration, while everything runs on.
 *
 *	IDLE --> (read, checked, bound) --> ASKING --> PUBLISHING --> IDLE
 *	  ^           |                        names       workers
 *	  +-----------+ something is wrong: nothing has changed
 *
 * The file is read and checked whole, as at a start; what needs a restart is
 * found; and what it listens on is bound.  Whatever is wrong is said, all of
 * it, and nothing has changed.  From there on nothing can go wrong: limits get
 * their numbers, the names of new servers are asked for once, and the workers
 * go by the new setup (crew.h, doors.h).
 *
 * A request to reload that comes meanwhile is done when that is over, however
 * many there were: the last one reads what the file says then.
 *
 * Owner:    reload_new() gives a handle; it owns all setups there are.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_RELOAD_H
#define PENSTOCK_DAEMON_RELOAD_H

#include <stdio.h>

#include "proxy/setup.h"

struct blocks;
struct crew;
struct loop;
struct names;
struct reload;
struct sockets;

struct reload_opts {
	const char	*file;		/* NULL: the built-in configuration */
	struct shared	*shared;
	struct sockets	*sockets;
	struct loop	*loop;		/* main's */
	struct blocks	*blocks;	/* also */
	/* A reload begins, or is over, well or not; either may be NULL. */
	void		(*began)(void *arg);
	void		(*over)(void *arg, bool ok);
	void		*arg;
};

/* With the configuration of the start, which it takes over. */
struct reload *reload_new(const struct reload_opts *opts,
    struct config *config);

/* Its setups go too: no worker and nothing of main may have one. */
void reload_free(struct reload **r);

/* Whom to tell; before the first reload. */
void reload_use(struct reload *r, struct crew *crew, struct names *names);

/* The setup in use. */
struct setup *reload_setup(const struct reload *r);

/* Read the file again, now or when the reload that runs is over. */
void reload_start(struct reload *r);

/* What would that say?  True if nothing is wrong; else `out` says what is. */
bool reload_check(struct reload *r, FILE *out);

/* The process ends: none begins any more. */
void reload_end(struct reload *r);

/* How the last one went; the start counts as one. */
struct reload_result {
	bool		ok;
	double		when;		/* the last that was, since 1970 */
};
struct reload_result reload_last(const struct reload *r);

/* --- for names and the crew: `arg` is the struct reload --- */

void reload_on_asked(void *arg);
void reload_on_published(void *arg);
void reload_on_unserved(void *arg);

#endif
