/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_size.c - how long /metrics gets; see metrics_size.h.
 *
 * Names and numbers are what makes a line longer or shorter, so the lines of
 * what there is once for each listener, server and so on are written, with
 * its name and the highest numbers, and measured.
 */
#include "daemon/metrics_size.h"

#include <stdlib.h>

#include "base/stats.h"

enum {
	/* Heads of metrics, and lines that are there once. */
	FIXED = 32 * 1024,
	/* Lines of a worker, besides its histogram; they are short. */
	WORKER_LINES = 18 * 88,
	/* Lines of a limit, besides its histogram and those by reason. */
	LIMIT_LINES = 16,
	/* Reasons for which one limit refuses. */
	LIMIT_REASONS = 8,
};

#define MOST	(UINT64_MAX / 2)

/* With the same in every byte, so that each counter has a high number. */
union most {
	struct listener_stats	listener;
	struct upstream_stats	upstream;
	struct server_stats	server;
	struct hist		hist;
};

static void
add_listeners(struct metrics *m, const struct config *c,
    const union most *most)
{
	for (size_t i = 0; i < c->listener_count; i++)
		stats_print(m, STATS_LISTENER, &(struct stats_item){
			.name = c->listener[i].name_, .stats = most,
		}, 1);
}

static void
add_upstream(struct metrics *m, const struct conf_upstream *u,
    const union most *most)
{
	stats_print(m, STATS_UPSTREAM, &(struct stats_item){
		.name = u->name_, .stats = most,
	}, 1);
	for (size_t i = 0; i < u->server.count; i++) {
		const char *text = u->server.at[i].text;

		stats_print(m, STATS_SERVER, &(struct stats_item){
			.name = u->name_, .server = text, .stats = most,
		}, 1);
		metric_line(m, "server_up", LABELS({ "upstream", u->name_ },
		    { "server", text }), 1);
	}
}

static void
add_limit(struct metrics *m, const char *name, const union most *most)
{
	metric_hist(m, "limit_wait_seconds", LABELS({ "limit", name }),
	    &most->hist);
	for (int i = 0; i < LIMIT_LINES; i++)
		metric_line(m, "limit_bandwidth_bytes_total", LABELS(
		    { "limit", name }, { "direction", "out" }), MOST);
	for (int i = 0; i < 2 * LIMIT_REASONS; i++)
		metric_line(m, "limit_would_refuse_total", LABELS(
		    { "limit", name }, { "reason", "connection_limit" }),
		    MOST);
}

/* The length of what is in *m, which is empty then. */
static size_t
take_length(struct metrics *m)
{
	size_t n = m->len;

	m->len = 0;
	return n;
}

size_t
metrics_size(const struct config *c, unsigned workers)
{
	union most *most = xcalloc(1, sizeof *most);
	size_t n = FIXED + workers * WORKER_LINES;
	struct metrics m;

	memset(most, 0x7f, sizeof *most);
	metrics_init(&m);
	add_listeners(&m, c, most);
	n += take_length(&m);
	for (size_t i = 0; i < c->upstream_count; i++) {
		add_upstream(&m, &c->upstream[i], most);
		n += take_length(&m);
	}
	for (size_t i = 0; i < c->limit_count; i++) {
		add_limit(&m, c->limit[i].name_, most);
		n += take_length(&m);
	}
	for (unsigned i = 0; i < workers; i++)
		metric_hist(&m, "loop_lag_seconds",
		    LABELS({ "worker", "63" }), &most->hist);
	n += take_length(&m);
	metrics_fini(&m);
	free(most);
	return n;
}
