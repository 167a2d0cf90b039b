/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * announce.h - what a start says of what there will be.
 *
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_ANNOUNCE_H
#define PENSTOCK_DAEMON_ANNOUNCE_H

#include <stdbool.h>
#include <stdio.h>

struct config;
struct log;
struct setup;
struct sockets;

struct announce_opts {
	struct log		*log;
	const struct setup	*setup;
	const struct sockets	*sockets;
	bool			 is_builtin;	/* there is no file */
};

/* On stdout, where it can be reached; in the log, how large it may grow. */
void announce_start(const struct announce_opts *o);

/* How large it may grow, and by what. */
void announce_memory(FILE *out, const struct config *c);

#endif
