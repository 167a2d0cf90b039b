/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics.c - gather what is counted; see metrics.h.
 */
#include "daemon/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "daemon/logs.h"
#include "daemon/metrics_limits.h"
#include "daemon/process.h"
#include "daemon/watchdog.h"
#include "net/batch.h"
#include "net/handover.h"
#include "proxy/setup.h"
#include "proxy/worker.h"

/* --- by the tables of base/counters.def -------------------------------- */

static void
add_batches(struct worker_stats *sum, const struct batch *b)
{
	if (b == NULL)
		return;

	const struct batch_stats *s = batch_stats(b);

	stat_add(&sum->batches, stat_read(&s->calls));
	stat_add(&sum->batched, stat_read(&s->done));
	stat_add(&sum->io_uring, stat_read(&s->works));
}

/* Bytes are counted by streams and pipes; the rest by whoever does it. */
static void
gather_worker(struct metrics *m, const struct metrics_source *from)
{
	struct worker_stats sum = { 0 };
	struct stats_item item = { .stats = &sum };

	for (unsigned i = 0; i < from->count; i++) {
		const struct worker *w = from->workers[i];
		const struct stream_totals *client = &w->client_totals;
		const struct stream_totals *upstream = &w->upstream_totals;

		stats_merge(STATS_WORKER, &sum, &w->stats);
		stat_add(&sum.client_received, stat_read(&client->received));
		stat_add(&sum.client_sent, stat_read(&client->sent));
		stat_add(&sum.paused_client, stat_read(&client->awaited));
		stat_add(&sum.throttled_client,
		    stat_read(&client->throttled));
		stat_add(&sum.throttled_upstream,
		    stat_read(&upstream->throttled));
		stat_add(&sum.upstream_received,
		    stat_read(&upstream->received));
		stat_add(&sum.upstream_sent, stat_read(&upstream->sent));
		stat_add(&sum.paused_upstream, stat_read(&upstream->awaited));
		stat_add(&sum.spliced, stat_read(&w->pipes.moved));
		stat_add(&sum.pipes, stat_read(&w->pipes.taken));
		add_batches(&sum, w->batch);
	}
	stats_print(m, STATS_WORKER, &item, 1);
}

/* Fill items[], whose sums lie one after the other at `sums`, all zero. */
typedef void fill_fn(struct stats_item *items, void *sums,
    const struct metrics_source *from);

/* Without memory the page says so; a scrape must not end the process. */
static void
gather_items(struct metrics *m, const struct metrics_source *from,
    enum stats_scope scope, size_t n, fill_fn *fill)
{
	static const size_t sizes[] = {
		[STATS_WORKER] = sizeof(struct worker_stats),
		[STATS_LISTENER] = sizeof(struct listener_stats),
		[STATS_UPSTREAM] = sizeof(struct upstream_stats),
		[STATS_SERVER] = sizeof(struct server_stats),
	};
	struct stats_item *items = calloc(n + 1, sizeof *items);
	void *sums = calloc(n + 1, sizes[scope]);

	if (items != NULL && sums != NULL) {
		fill(items, sums, from);
		stats_print(m, scope, items, n);
	} else
		m->failed = true;
	free(items);
	free(sums);
}

static void
fill_listeners(struct stats_item *items, void *sums,
    const struct metrics_source *from)
{
	struct listener_stats *sum = sums;

	for (unsigned i = 0; i < from->setup->service_count; i++) {
		const struct listener_state *s =
		    from->setup->services[i].state;

		for (unsigned w = 0; w < from->count; w++)
			stats_merge(STATS_LISTENER, &sum[i], &s->stats[w]);
		items[i] = (struct stats_item){ .name = s->name,
		    .stats = &sum[i] };
	}
}

static void
fill_upstreams(struct stats_item *items, void *sums,
    const struct metrics_source *from)
{
	struct upstream_stats *sum = sums;

	for (size_t i = 0; i < from->setup->config->upstream_count; i++) {
		const struct upstream *u = from->setup->upstreams[i];

		for (unsigned w = 0; w < from->count; w++)
			stats_merge(STATS_UPSTREAM, &sum[i], &u->stats[w]);
		items[i] = (struct stats_item){ .name = u->name,
		    .stats = &sum[i] };
	}
}

static void
fill_server(struct stats_item *item, struct server_stats *sum,
    const struct server *s, unsigned workers)
{
	for (unsigned w = 0; w < workers; w++)
		stats_merge(STATS_SERVER, sum, &s->local[w].stats);
	*item = (struct stats_item){ .name = s->upstream,
	    .server = s->text, .stats = sum };
}

static void
fill_servers(struct stats_item *items, void *sums,
    const struct metrics_source *from)
{
	struct server_stats *sum = sums;

	for (size_t i = 0; i < from->setup->config->upstream_count; i++) {
		const struct upstream *u = from->setup->upstreams[i];

		for (unsigned j = 0; j < u->count; j++)
			fill_server(items++, sum++, u->servers[j].server,
			    from->count);
	}
}

static size_t
count_servers(const struct setup *setup)
{
	size_t n = 0;

	for (size_t i = 0; i < setup->config->upstream_count; i++)
		n += setup->upstreams[i]->count;
	return n;
}

static void
gather_up(struct metrics *m, const struct setup *setup)
{
	metric_head(m, "server_up", METRIC_GAUGE,
	    "Whether a server has an address and is used.");
	for (size_t i = 0; i < setup->config->upstream_count; i++) {
		const struct upstream *u = setup->upstreams[i];

		for (unsigned j = 0; j < u->count; j++) {
			const struct server *s = u->servers[j].server;

			metric_line(m, "server_up",
			    LABELS({ "upstream", u->name },
			    { "server", s->text }),
			    atomic_load(&s->addr_count) > 0);
		}
	}
}

/* --- workers, their loops and memory ------------------------------------ */

static void
label_of(char text[12], const struct worker *w)
{
	snprintf(text, 12, "%u", w->id);
}

static void
print_busy(struct metrics *m, const char *id, const struct worker *w)
{
	const struct loop_stats *s = loop_stats(w->loop);
	uint64_t busy = stat_read(&s->busy), idle = stat_read(&s->idle);

	metric_real(m, "loop_busy_ratio", LABELS({ "worker", id }),
	    busy + idle == 0 ? 0 : (double)busy / (double)(busy + idle));
}

static void
print_callbacks(struct metrics *m, const char *id, const struct worker *w)
{
	const struct loop_stats *s = loop_stats(w->loop);
	const struct {
		const char	*kind;
		uint64_t	 count;
	} kinds[] = {
		{ "ready", stat_read(&s->ready) },
		{ "timers", stat_read(&s->timers) },
		{ "readers", stat_read(&s->readers) },
		{ "writers", stat_read(&s->writers) },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		metric_line(m, "loop_callbacks_total",
		    LABELS({ "worker", id }, { "kind", kinds[i].kind }),
		    kinds[i].count);
}

static void
print_lag(struct metrics *m, const char *id, const struct worker *w)
{
	const struct loop_stats *s = loop_stats(w->loop);

	metric_hist(m, "loop_lag_seconds", LABELS({ "worker", id }), &s->lag);
}

static void
print_late(struct metrics *m, const char *id, const struct worker *w)
{
	const struct loop_stats *s = loop_stats(w->loop);

	metric_line(m, "loop_late_turns_total", LABELS({ "worker", id }),
	    stat_read(&s->turns_late));
}

static void
print_longest(struct metrics *m, const char *id, const struct worker *w)
{
	const struct loop_stats *s = loop_stats(w->loop);

	metric_seconds(m, "loop_longest_turn_seconds", LABELS(
	    { "worker", id },
	    { "callback", callback_name(atomic_load(&s->longest_by)) }),
	    stat_read(&s->longest));
}

static void
print_timers(struct metrics *m, const char *id, const struct worker *w)
{
	const struct loop_stats *s = loop_stats(w->loop);

	metric_line(m, "timers", LABELS({ "worker", id }),
	    stat_read(&s->timers_linked));
}

static void
print_buffers(struct metrics *m, const char *id, const struct worker *w)
{
	metric_line(m, "buffer_bytes", LABELS({ "worker", id }),
	    stat_read(&w->blocks.used));
}

static void
print_sessions(struct metrics *m, const char *id, const struct worker *w)
{
	metric_line(m, "worker_sessions", LABELS({ "worker", id }),
	    stat_read(&w->client_totals.open));
}

static void
print_handovers(struct metrics *m, const char *id, const struct worker *w)
{
	const struct handover *h = w->shared->handover;

	metric_line(m, "handovers_total", LABELS({ "worker", id },
	    { "way", "given" }), handover_given(h, w->id));
	metric_line(m, "handovers_total", LABELS({ "worker", id },
	    { "way", "taken" }), handover_taken(h, w->id));
}

static void
gather_workers(struct metrics *m, const struct metrics_source *from)
{
	static const struct {
		const char	*name;
		enum metric_type type;
		const char	*help;
		void		(*print)(struct metrics *m, const char *id,
				    const struct worker *w);
	} rows[] = {
		{ "worker_sessions", METRIC_GAUGE,
		    "Client connections that a worker has.",
		    print_sessions },
		{ "handovers_total", METRIC_COUNTER,
		    "Client connections that a worker gave to one that had "
		    "fewer, or took from one that had more.",
		    print_handovers },
		{ "loop_lag_seconds", METRIC_HISTOGRAM,
		    "How late a worker's loop was.", print_lag },
		{ "loop_late_turns_total", METRIC_COUNTER,
		    "Turns of a worker's loop that lagged more than "
		    "max_loop_lag.", print_late },
		{ "loop_busy_ratio", METRIC_GAUGE,
		    "Share of its life that a worker's loop was busy.",
		    print_busy },
		{ "loop_longest_turn_seconds", METRIC_GAUGE,
		    "Longest turn of a worker's loop, and the function that "
		    "took longest in it.", print_longest },
		{ "loop_callbacks_total", METRIC_COUNTER,
		    "Functions called by a worker's loop.", print_callbacks },
		{ "timers", METRIC_GAUGE,
		    "Timers on a worker's wheels.", print_timers },
		{ "buffer_bytes", METRIC_GAUGE,
		    "Bytes in blocks for what waits.", print_buffers },
	};
	char id[12];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		metric_head(m, rows[i].name, rows[i].type, rows[i].help);
		for (unsigned w = 0; w < from->count; w++) {
			label_of(id, from->workers[w]);
			rows[i].print(m, id, from->workers[w]);
		}
	}
}

static void
gather_stuck(struct metrics *m, const struct metrics_source *from)
{
	char id[12];

	metric_head(m, "loop_stuck_total", METRIC_COUNTER,
	    "Turns of a worker's loop that took over 250 ms, each of which the "
	    "log tells.");
	for (unsigned w = 0; w < from->count; w++) {
		label_of(id, from->workers[w]);
		metric_line(m, "loop_stuck_total", LABELS({ "worker", id }),
		    watchdog_times(from->watchdog, w));
	}
}

/* What fragments cost is not in what workers have in use, so it is here. */
static void
gather_held(struct metrics *m, const struct metrics_source *from)
{
	metric_head(m, "buffer_held_bytes", METRIC_GAUGE,
	    "Memory that blocks hold, used or not, but for the first piece of "
	    "each size and worker; at twice the buffers keyword they get no "
	    "more.");
	metric_line(m, "buffer_held_bytes", NO_LABELS, stat_read(
	    &from->setup->shared->budget.held));
}

/* --- names -------------------------------------------------------------- */

static void
gather_resolvers(struct metrics *m, const struct metrics_source *from)
{
	uint64_t found = 0, none = 0, failed = 0, late = 0, cached = 0;
	struct hist time = { 0 };

	for (unsigned i = 0; i < from->count; i++) {
		const struct resolver_stats *s =
		    &from->workers[i]->resolver_stats;

		found += stat_read(&s->found);
		none += stat_read(&s->none);
		failed += stat_read(&s->failed);
		late += stat_read(&s->late);
		cached += stat_read(&s->cached);
		hist_merge(&time, &s->time);
	}

	const struct {
		const char	*result;
		uint64_t	 count;
	} rows[] = {
		{ "found", found }, { "none", none }, { "failed", failed },
		{ "late", late }, { "cached", cached },
	};
	metric_head(m, "dns_lookups_total", METRIC_COUNTER,
	    "Look-ups of names of destinations.");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		metric_line(m, "dns_lookups_total",
		    LABELS({ "result", rows[i].result }), rows[i].count);
	metric_head(m, "dns_seconds", METRIC_HISTOGRAM,
	    "How long name servers took.");
	metric_hist(m, "dns_seconds", NO_LABELS, &time);
}

/* --- the process -------------------------------------------------------- */

static void
gauge(struct metrics *m, const char *name, double value, const char *help)
{
	metric_head(m, name, METRIC_GAUGE, help);
	metric_real(m, name, NO_LABELS, value);
}

static void
gather_process(struct metrics *m, const struct metrics_source *from)
{
	struct process_figures p;

	process_look(&p);
	gauge(m, "process_open_fds", (double)p.descriptors,
	    "Descriptors open.");
	gauge(m, "process_max_fds", (double)p.descriptors_max,
	    "Descriptors there may be.");
	gauge(m, "process_resident_memory_bytes", (double)p.resident,
	    "Memory in use.");
	metric_head(m, "process_cpu_seconds_total", METRIC_COUNTER,
	    "CPU time of all threads.");
	metric_real(m, "process_cpu_seconds_total", NO_LABELS, p.cpu);
	gauge(m, "process_start_time_seconds", from->started,
	    "When the process started, in seconds since 1970.");
}

static void
gather_daemon(struct metrics *m, const struct metrics_source *from)
{
	metric_head(m, "log_dropped_total", METRIC_COUNTER,
	    "Lines of a log that were lost: its file was full, or nobody read "
	    "its pipe.");
	metric_line(m, "log_dropped_total", LABELS({ "log", "access" }),
	    logs_dropped_access(from->logs));
	metric_line(m, "log_dropped_total", LABELS({ "log", "error" }),
	    logs_dropped_errors(from->logs));
	gauge(m, "config_last_reload_success", from->reloaded,
	    "Whether the last configuration that was read is in use.");
	gauge(m, "config_last_reload_timestamp_seconds", from->loaded,
	    "When the configuration in use was read, in seconds since 1970.");
	metric_head(m, "build_info", METRIC_GAUGE, "Always 1.");
	metric_line(m, "build_info", LABELS({ "version", PACKAGE_VERSION }),
	    1);
}

void
metrics_gather(struct metrics *m, const struct metrics_source *from)
{
	const struct setup *setup = from->setup;

	gather_items(m, from, STATS_LISTENER, setup->service_count,
	    fill_listeners);
	gather_worker(m, from);
	metrics_gather_limits(m, from);
	gather_items(m, from, STATS_UPSTREAM, setup->config->upstream_count,
	    fill_upstreams);
	gather_items(m, from, STATS_SERVER, count_servers(setup),
	    fill_servers);
	gather_up(m, setup);
	gather_resolvers(m, from);
	gather_workers(m, from);
	gather_stuck(m, from);
	gather_held(m, from);
	gather_daemon(m, from);
	gather_process(m, from);
}
