/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_parts.c - listeners, limits, upstreams, workers; see status.h.
 */
#include "daemon/status_parts.h"

#include <stdlib.h>

#include "config/types.h"
#include "proxy/setup.h"
#include "proxy/worker.h"

/* Seconds that the slowest request is of. */
enum { SLOW_LATELY = 600 };

/* --- pieces ------------------------------------------------------------- */

static void
put_hist(struct json *j, const char *name, const struct hist *h)
{
	json_open_array(j, name);
	for (size_t i = 0; i < HIST_BUCKETS; i++)
		json_number(j, NULL, stat_read(&h->count[i]));
	json_close_array(j);
}

/* A reader may see a level between two workers' updates; never below zero. */
static uint64_t
level_of(const counter_t *c)
{
	uint64_t v = stat_read(c);

	return v > INT64_MAX ? 0 : v;
}

static void
put_reasons(struct json *j, const char *name, const uint64_t *counts)
{
	json_open_object(j, name);
	for (enum failure why = FAIL_NONE + 1; why < FAIL_COUNT; why++)
		if (counts[why] != 0)
			json_number(j, failure_row(why)->token, counts[why]);
	json_close_object(j);
}

/* --- listeners ---------------------------------------------------------- */

static void
put_addresses(struct json *j, const struct sockets *s, int listener)
{
	char text[ADDR_TEXT + 108];

	json_open_array(j, "bind");
	FOR_EACH_SOCKET_SET(set, s)
		if (set->listener == listener)
			json_text(j, NULL, str_of(addr_print(&set->addr,
			    text, sizeof text)));
	json_close_array(j);
}

static void
put_codes(struct json *j, const struct listener_stats *s)
{
	char code[8];

	json_open_object(j, "codes");
	for (unsigned i = 100; i < STATS_CODES; i++) {
		uint64_t n = stat_read(&s->codes[i]);

		if (n == 0)
			continue;
		snprintf(code, sizeof code, "%u", i);
		json_number(j, code, n);
	}
	json_close_object(j);
}

/* The slowest request that is known of, among those that ended lately. */
static void
put_slowest(struct json *j, const struct exemplar *buckets, double now)
{
	struct exemplar_copy c;
	char id[16];
	struct out o;

	for (size_t i = HIST_BUCKETS; i-- > 0;) {
		if (!exemplar_read(&buckets[i], &c) ||
		    (double)c.at / 1e9 < now - SLOW_LATELY)
			continue;
		out_init(&o, id, sizeof id);
		out_hex_padded(&o, c.id, sizeof id);
		json_open_object(j, "slowest");
		json_text(j, "id", out_text(&o));
		json_seconds(j, "time", c.value);
		json_real(j, "at", (double)c.at / 1e9);
		json_close_object(j);
		return;
	}
}

static void
put_listener_stats(struct json *j, const struct listener_stats *s)
{
	uint64_t failed[FAIL_COUNT];

	for (int i = 0; i < FAIL_COUNT; i++)
		failed[i] = stat_read(&s->failed[i]);
	json_number(j, "sessions", level_of(&s->sessions));
	json_number(j, "sessions_total", stat_read(&s->sessions_total));
	json_number(j, "sessions_refused", stat_read(&s->sessions_refused));
	json_number(j, "exchanges", level_of(&s->exchanges));
	json_number(j, "tunnels", level_of(&s->tunnels));
	json_number(j, "tunnels_total", stat_read(&s->tunnels_total));
	put_hist(j, "duration", &s->duration);
	put_codes(j, s);
	json_number(j, "own_5xx", stat_read(&s->own_5xx));
	put_reasons(j, "failures", failed);
}

static void
put_listener(struct json *j, const struct status_source *from, unsigned i,
    struct listener_stats *sum)
{
	const struct service *service = &from->metrics->setup->services[i];

	memset(sum, 0, sizeof *sum);
	for (unsigned w = 0; w < from->metrics->count; w++)
		stats_merge(STATS_LISTENER, sum, &service->state->stats[w]);
	json_open_object(j, NULL);
	json_text(j, "name", str_of(service->state->name));
	json_text(j, "mode", str_of(mode_words[service->conf->mode]));
	put_addresses(j, from->sockets, (int)i);
	put_listener_stats(j, sum);
	put_slowest(j, sum->slow, from->wall);
	json_close_object(j);
}

void
status_listeners(struct json *j, const struct status_source *from)
{
	struct listener_stats *sum = calloc(1, sizeof *sum);

	if (sum == NULL) {
		j->to->failed = true;
		return;
	}
	json_open_array(j, "listeners");
	for (unsigned i = 0; i < from->metrics->setup->service_count; i++)
		put_listener(j, from, i, sum);
	json_close_array(j);
	free(sum);
}

/* --- limits ------------------------------------------------------------- */

static void
put_limit_spec(struct json *j, const struct limit_spec *s)
{
	json_text(j, "key", str_of(limit_key_words[s->key.what]));
	if (s->key.header[0] != '\0')
		json_text(j, "header", str_of(s->key.header));
	json_flag(j, "adaptive", limit_is_adaptive(s));
	json_flag(j, "dry_run", s->dry_run);
	json_number(j, "rate", s->rate);
	json_seconds(j, "rate_span", s->rate_span);
	json_number(j, "burst", s->burst);
	json_number(j, "queue", s->gate.queue);
	json_number(j, "connections", s->connections);
	json_number(j, "bandwidth_in", s->bandwidth[LIMIT_IN]);
	json_number(j, "bandwidth_out", s->bandwidth[LIMIT_OUT]);
}

static void
on_limit(void *arg, const struct limit_state *s)
{
	struct json *j = arg;

	json_open_object(j, NULL);
	json_text(j, "name", str_of(s->name));
	put_limit_spec(j, limit_spec(s->limit));
	json_number(j, "permits", s->gate.limit);
	json_number(j, "in_use", s->gate.in_use);
	json_number(j, "peak", s->peak);
	json_number(j, "waiting", s->gate.waiting);
	if (s->adapts)
		json_seconds(j, "base", s->base);
	put_hist(j, "waits", &s->waits);
	put_reasons(j, "refused", s->refused);
	put_reasons(j, "would_refuse", s->would_refuse);
	json_number(j, "would_wait", s->would_wait);
	json_number(j, "passed_in", s->passed[LIMIT_IN]);
	json_number(j, "passed_out", s->passed[LIMIT_OUT]);
	json_number(j, "throttled",
	    s->throttled[LIMIT_IN] + s->throttled[LIMIT_OUT]);
	json_close_object(j);
}

void
status_limits(struct json *j, const struct status_source *from)
{
	json_open_array(j, "limits");
	limits_look(from->metrics->setup->registry, from->metrics->now,
	    on_limit, j);
	json_close_array(j);
}

/* --- upstreams ---------------------------------------------------------- */

static void
put_server(struct json *j, const struct upstream_server *of, unsigned workers)
{
	const struct server *s = of->server;
	struct server_stats sum = { 0 };

	for (unsigned w = 0; w < workers; w++)
		stats_merge(STATS_SERVER, &sum, &s->local[w].stats);
	json_open_object(j, NULL);
	json_text(j, "server", str_of(s->text));
	json_number(j, "addresses", atomic_load(&s->addr_count));
	json_flag(j, "up", atomic_load(&s->addr_count) > 0);
	json_number(j, "weight", of->weight);
	json_flag(j, "backup", of->backup);
	json_number(j, "in_use", level_of(&sum.in_use));
	json_number(j, "requests", stat_read(&sum.requests));
	json_number(j, "failures", stat_read(&sum.failures));
	json_close_object(j);
}

static void
put_upstream(struct json *j, const struct upstream *u, unsigned workers)
{
	struct upstream_stats sum = { 0 };

	for (unsigned w = 0; w < workers; w++)
		stats_merge(STATS_UPSTREAM, &sum, &u->stats[w]);
	json_open_object(j, NULL);
	json_text(j, "name", str_of(u->name));
	json_text(j, "balance", str_of(balance_words[u->balance]));
	json_number(j, "pool_idle", level_of(&sum.pool_idle));
	json_number(j, "pool_busy", level_of(&sum.pool_busy));
	put_hist(j, "connect", &sum.connect);
	put_hist(j, "response", &sum.response);
	json_open_array(j, "servers");
	for (unsigned i = 0; i < u->count; i++)
		put_server(j, &u->servers[i], workers);
	json_close_array(j);
	json_close_object(j);
}

void
status_upstreams(struct json *j, const struct status_source *from)
{
	const struct setup *setup = from->metrics->setup;

	json_open_array(j, "upstreams");
	for (size_t i = 0; i < setup->config->upstream_count; i++)
		put_upstream(j, setup->upstreams[i], from->metrics->count);
	json_close_array(j);
}

/* --- workers ------------------------------------------------------------ */

static void
put_worker(struct json *j, const struct worker *w)
{
	const struct loop_stats *s = loop_stats(w->loop);

	json_open_object(j, NULL);
	json_number(j, "worker", w->id);
	json_number(j, "sessions", level_of(&w->client_totals.open));
	put_hist(j, "lag", &s->lag);
	json_number(j, "late_turns", stat_read(&s->turns_late));
	json_seconds(j, "busy", stat_read(&s->busy));
	json_seconds(j, "idle", stat_read(&s->idle));
	json_seconds(j, "longest_turn", stat_read(&s->longest));
	json_number(j, "timers", level_of(&s->timers_linked));
	json_number(j, "buffers", level_of(&w->blocks.used));
	json_number(j, "received", stat_read(&w->client_totals.received));
	json_number(j, "sent", stat_read(&w->client_totals.sent));
	json_number(j, "pool_reused", stat_read(&w->stats.pool_reused));
	json_number(j, "pool_dialled", stat_read(&w->stats.pool_dialled));
	json_close_object(j);
}

void
status_workers(struct json *j, const struct status_source *from)
{
	json_open_array(j, "workers");
	for (unsigned i = 0; i < from->metrics->count; i++)
		put_worker(j, from->metrics->workers[i]);
	json_close_array(j);
}
