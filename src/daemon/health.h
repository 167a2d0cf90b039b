/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health.h - what the log says of how the process feels: workers that are
 * stuck, functions that are slow, and a summary of what was served.
 *
 * Owner:    health_start() gives a handle; health_stop() while the loops are
 *           still there.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_HEALTH_H
#define PENSTOCK_DAEMON_HEALTH_H

#include "config/config.h"

struct crew;
struct health;
struct log;
struct loop;
struct reload;
struct watchdog;

struct health_opts {
	struct loop		*loop;		/* main's */
	struct crew		*crew;		/* which runs */
	struct reload		*reload;	/* knows the setup in use */
	unsigned		 workers;
	struct log		*log;
};

struct health *health_start(const struct health_opts *opts,
    const struct conf_log *conf);
void health_stop(struct health **h);

/* Go by another configuration. */
void health_set(struct health *h, const struct conf_log *conf);

const struct watchdog *health_watchdog(const struct health *h);

#endif
