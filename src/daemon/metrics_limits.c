/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_limits.c - what limits feel; see metrics_limits.h.
 */
#include "daemon/metrics_limits.h"

#include "proxy/setup.h"

/* Prometheus wants the lines of one metric together: a pass for each. */
struct limits_pass {
	struct metrics	*m;
	const char	*name;
	uint64_t	(*value)(const struct limit_state *s);
};

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
print_value(void *arg, const struct limit_state *s)
{
	struct limits_pass *pass = arg;

	metric_line(pass->m, pass->name, LABELS({ "limit", s->name }),
	    pass->value(s));
}

static void
print_unaccounted(void *arg, const struct limit_state *s)
{
	int64_t permits;

	if (limit_unaccounted(s->limit, &permits))
		metric_real(arg, "limit_unaccounted",
		    LABELS({ "limit", s->name }), (double)permits);
}

static void
print_base(void *arg, const struct limit_state *s)
{
	if (s->adapts)
		metric_seconds(arg, "limit_base_seconds",
		    LABELS({ "limit", s->name }), s->base);
}

static void
print_waits(void *arg, const struct limit_state *s)
{
	metric_hist(arg, "limit_wait_seconds", LABELS({ "limit", s->name }),
	    s->waits);
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
print_refused(void *arg, const struct limit_state *s)
{
	print_reasons(arg, "limit_refused_total", s->name, s->refused);
}

static void
print_would_refuse(void *arg, const struct limit_state *s)
{
	print_reasons(arg, "limit_would_refuse_total", s->name,
	    s->would_refuse);
}

static void
print_would_wait(void *arg, const struct limit_state *s)
{
	metric_line(arg, "limit_would_wait_total",
	    LABELS({ "limit", s->name }), s->would_wait);
}

static void
print_passed(void *arg, const struct limit_state *s)
{
	static const char *const ways[LIMIT_WAYS] = {
		[LIMIT_IN] = "in", [LIMIT_OUT] = "out",
	};

	for (int way = 0; way < LIMIT_WAYS; way++)
		metric_line(arg, "limit_bandwidth_bytes_total",
		    LABELS({ "limit", s->name },
		    { "direction", ways[way] }), s->passed[way]);
}

void
metrics_gather_limits(struct metrics *m, const struct metrics_source *from)
{
	static const struct {
		const char	*name;
		const char	*help;
		uint64_t	(*value)(const struct limit_state *s);
	} gauges[] = {
		{ "limit_permits",
		    "Exchanges that a limit lets in at once; 0: any.",
		    permits },
		{ "limit_in_use", "Exchanges that a limit has let in.",
		    in_use },
		{ "limit_in_use_peak", "The most of them at once, since the "
		    "last scrape and for a minute at least.", peak },
		{ "limit_holders", "The same as limit_in_use, counted by "
		    "those who were let in.", holders },
		{ "limit_waiting", "Exchanges that wait to be let in.",
		    waiting },
	};
	struct limits *limits = from->setup->registry;

	for (size_t i = 0; i < ARRAY_LEN(gauges); i++) {
		struct limits_pass pass = {
			m, gauges[i].name, gauges[i].value,
		};

		metric_head(m, gauges[i].name, METRIC_GAUGE, gauges[i].help);
		limits_look(limits, from->now, print_value, &pass);
	}
	metric_head(m, "limit_unaccounted", METRIC_GAUGE,
	    "What limit_in_use has more than limit_holders: 0 but for a "
	    "moment, or permits are lost.");
	limits_look(limits, from->now, print_unaccounted, m);
	metric_head(m, "limit_base_seconds", METRIC_GAUGE,
	    "Adaptive: how long a response takes while nothing queues; 0: not "
	    "known yet.");
	limits_look(limits, from->now, print_base, m);
	metric_head(m, "limit_wait_seconds", METRIC_HISTOGRAM,
	    "How long exchanges waited for a token or to be let in.");
	limits_look(limits, from->now, print_waits, m);
	metric_head(m, "limit_refused_total", METRIC_COUNTER,
	    "Exchanges that a limit refused.");
	limits_look(limits, from->now, print_refused, m);
	metric_head(m, "limit_would_refuse_total", METRIC_COUNTER,
	    "Exchanges that a limit in dry run would have refused.");
	limits_look(limits, from->now, print_would_refuse, m);
	metric_head(m, "limit_would_wait_total", METRIC_COUNTER,
	    "Exchanges that a limit in dry run would have made to wait.");
	limits_look(limits, from->now, print_would_wait, m);
	metric_head(m, "limit_bandwidth_bytes_total", METRIC_COUNTER,
	    "Bytes that passed the bandwidth of a limit.");
	limits_look(limits, from->now, print_passed, m);
}
