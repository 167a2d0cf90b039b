/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * summary.h - a line in the log now and then: what was served, and how fast.
 *
 * It is made of counters that are there anyway, by what they have grown since
 * the last one.  Nothing is said of a time in which nothing happened.
 *
 * Owner:    summary_start() gives a handle; summary_stop() before what it
 *           reads is freed.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_SUMMARY_H
#define PENSTOCK_DAEMON_SUMMARY_H

#include "base/log.h"

struct loop;
struct reload;
struct summary;

struct summary_opts {
	struct loop		*loop;
	struct reload		*reload;	/* knows the setup in use */
	unsigned		 workers;
	struct log		*log;
};

/* With nothing to say until summary_set(). */
struct summary *summary_start(const struct summary_opts *opts);
void summary_stop(struct summary **s);

/* So often from now on; 0: never. */
void summary_set(struct summary *s, nsec_t every);

#endif
