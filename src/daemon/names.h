/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h - the addresses of upstream servers that are given by name.
 *
 * Main asks for each name again and again; the resolver's cache makes that
 * cheap until the answer's time is over.  What comes is published to all
 * workers.  A name that has no address leaves its server passed over, and
 * never stops the start.
 *
 * Owner:    names_start() gives a handle; the setup that it was told last
 *           outlives it.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_NAMES_H
#define PENSTOCK_DAEMON_NAMES_H

#include "base/log.h"
#include "net/resolver.h"

struct names;
struct setup;

struct names_opts {
	struct loop		*loop;
	struct resolver		*resolver;
	struct log		*log;
	/* All names have been asked for once: see names_set(). */
	void			(*asked)(void *arg);
	void			*arg;
};

struct names *names_start(const struct names_opts *opts);

/*
 * Ask for the servers of that setup from now on.  True if something is known
 * about each of them, an address or that there is none; otherwise `asked` is
 * called when it is, within NAMES_PATIENCE.
 */
#define NAMES_PATIENCE	(5 * NSEC_PER_SEC)
bool names_set(struct names *n, const struct setup *setup);
void names_stop(struct names **n);

#endif
