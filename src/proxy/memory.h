/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h - how much memory the process takes in the worst case.
 *
 * Computed from the configuration before anything is made of it: as if every
 * bound were reached at once, at every worker.  A worker keeps what it has
 * once needed for sessions, exchanges and connections, so each counts with
 * all of them, though at any one time they share them.
 *
 * What the kernel keeps isn't in it: sockets' buffers and pipes.  Neither is
 * the configuration itself, which a file may make as large as it likes.
 */
#ifndef PENSTOCK_PROXY_MEMORY_H
#define PENSTOCK_PROXY_MEMORY_H

#include <stdint.h>

struct config;

enum { MEMORY_ROWS = 9 };

struct memory_row {
	const char	*what;
	uint64_t	 bytes;
	const char	*bound;		/* what it depends on */
};

struct memory_opts {
	const struct config	*config;
	unsigned		 workers;
	uint64_t		 sessions;	/* at most at once */
	uint64_t		 descriptors;
	uint64_t		 admin;		/* bytes: the caller's own */
	uint64_t		 logs;
};

/* Fill in the rows; their sum. */
uint64_t memory_worst(const struct memory_opts *o,
    struct memory_row rows[MEMORY_ROWS]);

#endif
