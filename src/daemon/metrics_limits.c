/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_limits.c - what limits feel; see metrics_limits.h.
 */
#include "daemon/metrics_limits.h"

#include <stdlib.h>

#include "proxy/setup.h"

/*
 * Prometheus wants the lines of one metric together, a limit's come from all
 * over the memory: so each is looked at once, and kept for all metrics.
 */
struct gathered {
	struct limit_state	*at;
	size_t			 count;
	size_t			 room;
};

/* --- what a line says --------------------------------------------------- */

static uint64_t
permits(const struct limit_state *s)
{
	return s->gate.limit;
}

static uint64_t
in_use(const struct limit_state *s)
{
	return s->gate.in_use;
}

static uint64_t
peak(const struct limit_state *s)
{
	return s->peak;
}

static uint64_t
holders(const struct limit_state *s)
{
	return s->holders;
}

static uint64_t
waiting(const struct limit_state *s)
{
	return s->gate.waiting;
}

static void
print_unaccounted(struct metrics *m, const struct limit_state *s)
{
	int64_t n;

	if (limit_unaccounted(s->limit, &n))
		metric_real(m, "limit_unaccounted",
		    LABELS({ "limit", s->name }), (double)n);
}

static void
print_base(struct metrics *m, const struct limit_state *s)
{
	if (s->adapts)
		metric_seconds(m, "limit_base_seconds",
		    LABELS({ "limit", s->name }), s->base);
}

static void
print_waits(struct metrics *m, const struct limit_state *s)
{
	metric_hist(m, "limit_wait_seconds", LABELS({ "limit", s->name }),
	    &s->waits);
}

static void
print_reasons(struct metrics *m, const char *name, const char *limit,
    const uint64_t *counts)
{
	for (enum failure why = FAIL_NONE + 1; why < FAIL_COUNT; why++)
		if (counts[why] != 0)
			metric_line(m, name, LABELS({ "limit", limit },
			    { "reason", failure_row(why)->token }),
			    counts[why]);
}

static void
print_refused(struct metrics *m, const struct limit_state *s)
{
	print_reasons(m, "limit_refused_total", s->name, s->refused);
}

static void
print_would_refuse(struct metrics *m, const struct limit_state *s)
{
	print_reasons(m, "limit_would_refuse_total", s->name,
	    s->would_refuse);
}

static void
print_would_wait(struct metrics *m, const struct limit_state *s)
{
	metric_line(m, "limit_would_wait_total",
	    LABELS({ "limit", s->name }), s->would_wait);
}

static void
print_ways(struct metrics *m, const char *name, const struct limit_state *s,
    const uint64_t counts[LIMIT_WAYS])
{
	static const char *const ways[LIMIT_WAYS] = {
		[LIMIT_IN] = "in", [LIMIT_OUT] = "out",
	};

	for (int way = 0; way < LIMIT_WAYS; way++)
		if (limit_spec(s->limit)->bandwidth[way] != 0)
			metric_line(m, name, LABELS({ "limit", s->name },
			    { "direction", ways[way] }), counts[way]);
}

static void
print_passed(struct metrics *m, const struct limit_state *s)
{
	print_ways(m, "limit_bandwidth_bytes_total", s, s->passed);
}

static void
print_throttled(struct metrics *m, const struct limit_state *s)
{
	print_ways(m, "limit_throttled_total", s, s->throttled);
}

/* --- all of them --------------------------------------------------------- */

static const struct {
	const char	*name;
	const char	*help;
	uint64_t	(*value)(const struct limit_state *s);
} gauges[] = {
	{ "limit_permits", "Exchanges that a limit lets in at once; 0: any.",
	    permits },
	{ "limit_in_use", "Exchanges that a limit has let in.", in_use },
	{ "limit_in_use_peak", "The most of them at once, since the last "
	    "scrape and for a minute at least.", peak },
	{ "limit_holders", "The same as limit_in_use, counted by those who "
	    "were let in.", holders },
	{ "limit_waiting", "Exchanges that wait to be let in.", waiting },
};

static const struct {
	const char	*name;
	enum metric_type type;
	const char	*help;
	void		(*print)(struct metrics *m,
			    const struct limit_state *s);
} others[] = {
	{ "limit_unaccounted", METRIC_GAUGE,
	    "What limit_in_use has more than limit_holders: 0 but for a "
	    "moment, or permits are lost.", print_unaccounted },
	{ "limit_base_seconds", METRIC_GAUGE,
	    "Adaptive: how long a response takes while nothing queues; 0: not "
	    "known yet.", print_base },
	{ "limit_wait_seconds", METRIC_HISTOGRAM,
	    "How long exchanges waited for a token, to be let in or with what "
	    "came with their head; only those that waited.",
	    print_waits },
	{ "limit_refused_total", METRIC_COUNTER,
	    "Exchanges and connections that a limit refused.",
	    print_refused },
	{ "limit_would_refuse_total", METRIC_COUNTER,
	    "Exchanges and connections that a limit in dry run would have "
	    "refused.",
	    print_would_refuse },
	{ "limit_would_wait_total", METRIC_COUNTER,
	    "Exchanges that a limit in dry run would have made to wait.",
	    print_would_wait },
	{ "limit_bandwidth_bytes_total", METRIC_COUNTER,
	    "Bytes that passed the bandwidth of a limit.", print_passed },
	{ "limit_throttled_total", METRIC_COUNTER,
	    "Exchanges that weren't read for a while, for want of the "
	    "bandwidth of a limit.", print_throttled },
};

static void
print_all(struct metrics *m, const struct gathered *g)
{
	for (size_t i = 0; i < ARRAY_LEN(gauges); i++) {
		metric_head(m, gauges[i].name, METRIC_GAUGE, gauges[i].help);
		for (size_t n = 0; n < g->count; n++)
			metric_line(m, gauges[i].name,
			    LABELS({ "limit", g->at[n].name }),
			    gauges[i].value(&g->at[n]));
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		metric_head(m, others[i].name, others[i].type,
		    others[i].help);
		for (size_t n = 0; n < g->count; n++)
			others[i].print(m, &g->at[n]);
	}
}

/* Its name is needed until it is printed, and so is the limit. */
static void
on_look(void *arg, const struct limit_state *s)
{
	struct gathered *g = arg;

	ASSERT(g->count < g->room);
	limit_ref(s->limit);
	g->at[g->count++] = *s;
}

void
metrics_gather_limits(struct metrics *m, const struct metrics_source *from)
{
	struct limits *limits = from->setup->registry;
	struct gathered g = { .room = limits_count(limits) };

	g.at = calloc(g.room + 1, sizeof *g.at);
	if (g.at == NULL) {
		m->failed = true;
		return;
	}
	limits_look(limits, from->now, on_look, &g);
	print_all(m, &g);
	for (size_t n = 0; n < g.count; n++)
		limit_unref(limits, &g.at[n].limit);
	free(g.at);
}
