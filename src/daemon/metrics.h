/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics.h - gather what workers, limits and upstreams count, for /metrics.
 *
 * Nothing is stopped for it: every figure is read as it is, so two of one
 * scrape may be a moment apart.
 *
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_METRICS_H
#define PENSTOCK_DAEMON_METRICS_H

#include "base/metric.h"
#include "base/log_writer.h"

struct setup;
struct worker;

struct metrics_source {
	struct worker *const	*workers;
	unsigned		 count;
	const struct setup	*setup;
	const struct log_writer	*access_log;	/* or NULL */
	nsec_t			 now;
	double			 started;	/* seconds since 1970 */
	double			 loaded;	/* when the configuration was */
	bool			 reloaded;	/* and none was refused since */
};

void metrics_gather(struct metrics *m, const struct metrics_source *from);

#endif
