/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h - the addresses of upstream servers that are given by name.
 *
 * Main asks for each name again and again; the resolver's cache makes that
 * cheap until the answer's time is over.  What comes is published to all
 * workers.  A name that has no address leaves its server passed over, and
 * never stops the start.
 *
 * Owner:    names_start() gives a handle; the setup outlives it.
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
	const struct setup	*setup;
	struct log		*log;
};

struct names *names_start(const struct names_opts *opts);
void names_stop(struct names **n);

#endif
