/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h - counters: each a row of counters.def, and a metric.
 *
 * A worker has one struct worker_stats, and one of the other structs for each
 * listener, upstream and server.  Only it writes them.  Who wants the sums
 * makes an all-zero struct, adds every worker's with stats_merge(), and prints
 * with stats_print().
 *
 * Owner:    the caller, who embeds or allocates the structs; all zero is none.
 * Threads:  one writer; any readers.
 */
#ifndef PENSTOCK_BASE_STATS_H
#define PENSTOCK_BASE_STATS_H

#include <stdatomic.h>

#include "base/defs.h"
#include "base/exemplar.h"
#include "base/failure.h"
#include "base/hist.h"
#include "base/metric.h"

typedef _Atomic uint64_t counter_t;

enum { STATS_CODES = 600 };		/* statuses 100 to 599 */

struct worker_stats {
#define WORKER_COUNTER(field, kind, metric, label, help)	counter_t field;
#include "base/counters.def"
};

struct listener_stats {
#define LISTENER_COUNTER(field, kind, metric, label, help)	counter_t field;
#define LISTENER_HIST(field, metric, help)	struct hist field;
#include "base/counters.def"
	counter_t	codes[STATS_CODES];	/* by status */
	counter_t	own_5xx;	/* of those: not what a server sent */
	counter_t	failed[FAIL_COUNT];	/* by reason */
	struct exemplar	slow[HIST_BUCKETS];	/* of the duration */
};

struct upstream_stats {
#define UPSTREAM_COUNTER(field, kind, metric, label, help)	counter_t field;
#define UPSTREAM_HIST(field, metric, help)	struct hist field;
#include "base/counters.def"
};

struct server_stats {
#define SERVER_COUNTER(field, kind, metric, label, help)	counter_t field;
#include "base/counters.def"
};

enum stats_scope { STATS_WORKER, STATS_LISTENER, STATS_UPSTREAM, STATS_SERVER };

/* One writer, so a plain load and store will do: no locked instruction. */
static inline void
stat_add(counter_t *c, uint64_t n)
{
	uint64_t v = atomic_load_explicit(c, memory_order_relaxed);

	atomic_store_explicit(c, v + n, memory_order_relaxed);
}

static inline void
stat_increment(counter_t *c)
{
	stat_add(c, 1);
}

/* For a LEVEL only. */
static inline void
stat_decrement(counter_t *c)
{
	stat_add(c, UINT64_MAX);
}

/* For what is no sum. */
static inline void
stat_set(counter_t *c, uint64_t value)
{
	atomic_store_explicit(c, value, memory_order_relaxed);
}

static inline uint64_t
stat_read(const counter_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

/* Count a response with this status; one outside 100 to 599 is not counted. */
static inline void
stat_code(struct listener_stats *s, unsigned status)
{
	if (status >= 100 && status < STATS_CODES)
		stat_increment(&s->codes[status]);
}

/* Count a failure; none for FAIL_NONE. */
static inline void
stat_failure(struct listener_stats *s, enum failure why)
{
	if (why != FAIL_NONE)
		stat_increment(&s->failed[why]);
}

/* Add what *from counted to *to, both structs of that scope. */
void stats_merge(enum stats_scope scope, void *to, const void *from);

/* One thing's sums, and the labels that name it. */
struct stats_item {
	const char	*name;		/* of the listener or upstream */
	const char	*server;	/* STATS_SERVER: its address */
	const void	*stats;
};

/*
 * Write every metric of the scope for all items, each with its HELP and TYPE,
 * even if there is no item.  For STATS_WORKER, one item without names.
 */
void stats_print(struct metrics *m, enum stats_scope scope,
    const struct stats_item *items, size_t n);

#endif
