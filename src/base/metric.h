/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metric.h - a writer of Prometheus text (exposition format 0.0.4), or of
 * OpenMetrics 1.0.0 where `open` was set behind metrics_init().
 *
 * For each metric metric_head() comes first, then all its lines; metrics_end()
 * when all are there.  Names are given without "penstock_", which is put in
 * front of all but "process_".  OpenMetrics differs in what a counter's family
 * is called, in how whole bounds are written, and has exemplars.
 *
 * Owner:    the caller, of the struct; metrics_fini() frees its text.
 * Threads:  one.
 * Errors:   without memory nothing more is written; metrics_text() says so.
 */
#ifndef PENSTOCK_BASE_METRIC_H
#define PENSTOCK_BASE_METRIC_H

#include "base/defs.h"
#include "base/str.h"

struct exemplar;
struct hist;

/* The last one is for metric_head() itself. */
enum metric_type {
	METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_UNKNOWN,
};

struct metric_label {
	const char	*name;		/* NULL ends an array of them */
	const char	*value;		/* any bytes */
};

/* A constant array: LABELS({ "listener", name }, { "code", "200" }). */
#define LABELS(...) \
	((const struct metric_label[]){ __VA_ARGS__, { NULL, NULL } })
#define NO_LABELS	((const struct metric_label[]){ { NULL, NULL } })

struct metrics {
	char	*text;
	size_t	 len;
	size_t	 size;
	bool	 failed;
	bool	 open;		/* OpenMetrics */
	const char *before;	/* the metric before this one */
};

void metrics_init(struct metrics *m);
void metrics_fini(struct metrics *m);

/* What was written, in *text; false if memory ran out on the way. */
bool metrics_text(const struct metrics *m, struct str *text);

/* What stands at the end of all metrics, if anything. */
void metrics_end(struct metrics *m);

/* Text that is no metric: for pages made with the same memory. */
void metric_text(struct metrics *m, struct str text);

void metric_head(struct metrics *m, const char *name, enum metric_type type,
    const char *help);

/* A line with a whole number, a span of time in seconds, or a real number. */
void metric_line(struct metrics *m, const char *name,
    const struct metric_label *labels, uint64_t value);
void metric_seconds(struct metrics *m, const char *name,
    const struct metric_label *labels, nsec_t value);
void metric_real(struct metrics *m, const char *name,
    const struct metric_label *labels, double value);

/* All lines of a histogram of durations: _bucket, _sum and _count. */
void metric_hist(struct metrics *m, const char *name,
    const struct metric_label *labels, const struct hist *h);

/* The same, with exemplars[] of its buckets where the format has them. */
void metric_hist_exemplars(struct metrics *m, const char *name,
    const struct metric_label *labels, const struct hist *h,
    const struct exemplar *exemplars);

#endif
