/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * figures.h - what the process does, in a few numbers, for one line of text.
 *
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_FIGURES_H
#define PENSTOCK_DAEMON_FIGURES_H

#include "base/defs.h"

struct setup;

struct figures {
	uint64_t	clients;	/* connected now */
	uint64_t	requests;	/* exchanges and tunnels, over */
	uint64_t	failures;	/* of them, whatever the reason */
};

/* Sum up over all listeners and workers. */
void figures_read(struct figures *f, const struct setup *setup,
    unsigned workers);

#endif
