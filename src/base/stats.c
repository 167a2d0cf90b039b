/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.c - the rows of counters.def, added up and printed; see stats.h.
 */
#include "base/stats.h"

enum kind { TOTAL, LEVEL, HIST };

struct row {
	const char	*metric;
	const char	*label;		/* "name=value", or "" */
	const char	*help;
	enum kind	 kind;
	size_t		 offset;	/* in the scope's struct */
};

static const enum metric_type types[] = {
	[TOTAL]	= METRIC_COUNTER,
	[LEVEL]	= METRIC_GAUGE,
	[HIST]	= METRIC_HISTOGRAM,
};

#define ROW(scope, field, kind, metric, label, help) \
	{ metric, label, help, kind, offsetof(struct scope##_stats, field) },

static const struct row worker_rows[] = {
#define WORKER_COUNTER(field, kind, metric, label, help) \
	ROW(worker, field, kind, metric, label, help)
#include "base/counters.def"
};

static const struct row listener_rows[] = {
#define LISTENER_COUNTER(field, kind, metric, label, help) \
	ROW(listener, field, kind, metric, label, help)
#define LISTENER_HIST(field, metric, help) \
	ROW(listener, field, HIST, metric, "", help)
#include "base/counters.def"
};

static const struct row upstream_rows[] = {
#define UPSTREAM_COUNTER(field, kind, metric, label, help) \
	ROW(upstream, field, kind, metric, label, help)
#define UPSTREAM_HIST(field, metric, help) \
	ROW(upstream, field, HIST, metric, "", help)
#include "base/counters.def"
};

static const struct row server_rows[] = {
#define SERVER_COUNTER(field, kind, metric, label, help) \
	ROW(server, field, kind, metric, label, help)
#include "base/counters.def"
};

static const struct {
	const struct row	*rows;
	size_t			 n;
	const char		*label;		/* of an item's name, or NULL */
} scopes[] = {
	[STATS_WORKER]	 = { worker_rows, ARRAY_LEN(worker_rows), NULL },
	[STATS_LISTENER] = { listener_rows, ARRAY_LEN(listener_rows),
	    "listener" },
	[STATS_UPSTREAM] = { upstream_rows, ARRAY_LEN(upstream_rows),
	    "upstream" },
	[STATS_SERVER]	 = { server_rows, ARRAY_LEN(server_rows), "upstream" },
};

/* --- adding up ---------------------------------------------------------- */

static void
merge_all(counter_t *to, const counter_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		stat_add(&to[i], stat_read(&from[i]));
}

void
stats_merge(enum stats_scope scope, void *to, const void *from)
{
	for (size_t i = 0; i < scopes[scope].n; i++) {
		const struct row *r = &scopes[scope].rows[i];
		void *t = (char *)to + r->offset;
		const void *f = (const char *)from + r->offset;

		if (r->kind == HIST)
			hist_merge(t, f);
		else
			merge_all(t, f, 1);
	}
	if (scope == STATS_LISTENER) {
		struct listener_stats *t = to;
		const struct listener_stats *f = from;

		/* Counted before its code, so never too few of them. */
		merge_all(t->codes, f->codes, ARRAY_LEN(t->codes));
		merge_all(&t->own_5xx, &f->own_5xx, 1);
		merge_all(t->failed, f->failed, ARRAY_LEN(t->failed));
		exemplars_merge(t->slow, f->slow);
	}
}

/* --- printing ----------------------------------------------------------- */

enum { LABELS_MAX = 3 };

/* Label names in the table are shorter than this. */
enum { NAME_SIZE = 16 };

struct labels {
	struct metric_label	list[LABELS_MAX + 1];
	size_t			n;
	char			name[NAME_SIZE];
};

static void
add_label(struct labels *l, const char *name, const char *value)
{
	ASSERT(l->n < LABELS_MAX);
	l->list[l->n++] = (struct metric_label){ name, value };
	l->list[l->n] = (struct metric_label){ NULL, NULL };
}

static void
init_labels(struct labels *l, enum stats_scope scope,
    const struct stats_item *item)
{
	l->n = 0;
	l->list[0] = (struct metric_label){ NULL, NULL };
	if (scopes[scope].label != NULL)
		add_label(l, scopes[scope].label, item->name);
	if (scope == STATS_SERVER)
		add_label(l, "server", item->server);
}

/* The row's own "name=value". */
static void
add_row_label(struct labels *l, const char *label)
{
	size_t n = str_find(str_of(label), '=');

	if (label[0] == '\0')
		return;
	ASSERT(n < NAME_SIZE && label[n] == '=');
	memcpy(l->name, label, n);
	l->name[n] = '\0';
	add_label(l, l->name, label + n + 1);
}

/* A reader may see a level between two workers' updates; never below zero. */
static uint64_t
level_of(const counter_t *c)
{
	uint64_t v = stat_read(c);

	return v > INT64_MAX ? 0 : v;
}

static void
print_row(struct metrics *m, enum stats_scope scope, const struct row *r,
    const struct labels *l, const void *stats)
{
	const void *field = (const char *)stats + r->offset;
	const struct listener_stats *of = scope == STATS_LISTENER ? stats :
	    NULL;

	/* A listener's only one is of durations of requests. */
	if (r->kind == HIST)
		metric_hist_exemplars(m, r->metric, l->list, field,
		    of == NULL ? NULL : of->slow);
	else if (r->kind == LEVEL)
		metric_line(m, r->metric, l->list, level_of(field));
	else
		metric_line(m, r->metric, l->list, stat_read(field));
}

static void
print_codes(struct metrics *m, const struct stats_item *item)
{
	const struct listener_stats *s = item->stats;
	char code[4] = "";
	struct out o;

	for (size_t i = 0; i < STATS_CODES; i++) {
		uint64_t n = stat_read(&s->codes[i]);

		if (n == 0)
			continue;
		out_init(&o, code, sizeof code - 1);
		out_number(&o, i);
		metric_line(m, "requests_total", LABELS(
		    { "listener", item->name }, { "code", code }), n);
	}
}

static void
print_failures(struct metrics *m, const struct stats_item *item)
{
	const struct listener_stats *s = item->stats;

	for (int i = FAIL_NONE + 1; i < FAIL_COUNT; i++) {
		uint64_t n = stat_read(&s->failed[i]);

		if (n > 0)
			metric_line(m, "failures_total", LABELS(
			    { "listener", item->name },
			    { "reason", failure_row((enum failure)i)->token }),
			    n);
	}
}

static void
print_arrays(struct metrics *m, const struct stats_item *items, size_t n)
{
	metric_head(m, "requests_total", METRIC_COUNTER,
	    "Requests answered, by the status that the client was sent.");
	for (size_t i = 0; i < n; i++)
		print_codes(m, &items[i]);
	metric_head(m, "failures_total", METRIC_COUNTER,
	    "Exchanges and tunnels that failed, by the first cause.");
	for (size_t i = 0; i < n; i++)
		print_failures(m, &items[i]);
}

/*
 * Rows of one metric stand together in the table, and all lines of a metric
 * must in the text; so such rows are printed as one.  How many they are.
 */
static size_t
print_metric(struct metrics *m, enum stats_scope scope, size_t first,
    const struct stats_item *items, size_t n)
{
	const struct row *rows = scopes[scope].rows;
	size_t i = first;
	struct labels l;

	metric_head(m, rows[first].metric, types[rows[first].kind],
	    rows[first].help);
	for (; i < scopes[scope].n && strcmp(rows[i].metric,
	    rows[first].metric) == 0; i++) {
		for (size_t k = 0; k < n; k++) {
			init_labels(&l, scope, &items[k]);
			add_row_label(&l, rows[i].label);
			print_row(m, scope, &rows[i], &l,
			    items[k].stats);
		}
	}
	return i - first;
}

void
stats_print(struct metrics *m, enum stats_scope scope,
    const struct stats_item *items, size_t n)
{
	for (size_t i = 0; i < scopes[scope].n;)
		i += print_metric(m, scope, i, items, n);
	if (scope == STATS_LISTENER)
		print_arrays(m, items, n);
}
