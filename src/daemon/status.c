/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status.c - /status.json; see status.h.
 */
#include "daemon/status.h"

#include <unistd.h>

#include "daemon/amounts.h"
#include "daemon/logs.h"
#include "daemon/process.h"
#include "daemon/status_parts.h"
#include "proxy/setup.h"
#include "proxy/shared.h"

enum {
	/* What is there once, and the last reload's text escaped. */
	FIXED = 16 * 1024,
	SAMPLE_SIZE = 14 * 24,
	/* With a name of which each byte is escaped. */
	TROUBLE_SIZE = 6 * HISTORY_NAME + 400,
	ADDRESS_SIZE = ADDR_TEXT + 108 + 3,
};

/* --- what was ----------------------------------------------------------- */

static const char *const sample_fields[] = {
	"number", "at", "requests", "refused", "failed", "received", "sent",
	"busy", "median", "slow", "lag", "sessions", "exchanges", "waiting",
};

/* In the order of sample_fields[]. */
static void
put_sample(struct json *j, const struct history_sample *s)
{
	json_open_array(j, NULL);
	json_number(j, NULL, s->number);
	json_real(j, NULL, (double)(int64_t)(s->at * 1000) / 1000);
	json_real(j, NULL, (double)(int64_t)(s->requests * 10) / 10);
	json_real(j, NULL, (double)(int64_t)(s->refused * 10) / 10);
	json_real(j, NULL, (double)(int64_t)(s->failed * 10) / 10);
	json_real(j, NULL, (double)(int64_t)s->received);
	json_real(j, NULL, (double)(int64_t)s->sent);
	json_real(j, NULL, (double)(int64_t)(s->busy * 1000) / 1000);
	json_seconds(j, NULL, s->median);
	json_seconds(j, NULL, s->slow);
	json_seconds(j, NULL, s->lag);
	json_number(j, NULL, s->sessions);
	json_number(j, NULL, s->exchanges);
	json_number(j, NULL, s->waiting);
	json_close_array(j);
}

static void
put_history(struct json *j, const struct history *h, uint64_t since)
{
	const struct history_sample *s;

	json_open_object(j, "history");
	json_open_array(j, "fields");
	for (size_t i = 0; i < ARRAY_LEN(sample_fields); i++)
		json_text(j, NULL, str_of(sample_fields[i]));
	json_close_array(j);
	json_open_array(j, "samples");
	while ((s = history_after(h, since)) != NULL) {
		put_sample(j, s);
		since = s->number;
	}
	json_close_array(j);
	json_close_object(j);
}

static const char *const kind_words[] = {
	[TROUBLE_REFUSED] = "refused",
	[TROUBLE_FAILED] = "failed",
	[TROUBLE_CLIENT] = "client",
};

static void
put_trouble(struct json *j, const struct history_trouble *t, double now)
{
	const struct failure_row *row = failure_row(t->why);

	json_open_object(j, NULL);
	json_text(j, t->of_limit ? "limit" : "listener", str_of(t->name));
	json_text(j, "reason", str_of(row->token));
	json_text(j, "kind", str_of(kind_words[trouble_kind(t->why)]));
	json_number(j, "status", (uint64_t)row->status);
	json_text(j, "text", str_of(row->text));
	json_number(j, "total", t->total);
	json_real(j, "last", t->last);
	json_number(j, "in_2m", history_trouble_in(t, now, 2));
	json_number(j, "in_10m", history_trouble_in(t, now, 10));
	json_close_object(j);
}

static void
put_troubles(struct json *j, const struct history *h, double now)
{
	const struct history_trouble *t;

	json_open_array(j, "troubles");
	for (size_t i = 0; (t = history_trouble(h, i)) != NULL; i++)
		put_trouble(j, t, now);
	json_close_array(j);
}

/* --- what is ------------------------------------------------------------ */

static void
put_process(struct json *j, const struct metrics_source *m)
{
	const struct shared *shared = m->setup->shared;
	struct process_figures p;

	process_look(&p);
	json_open_object(j, "process");
	json_number(j, "pid", (uint64_t)getpid());
	json_real(j, "started", m->started);
	json_real(j, "cpu", p.cpu);
	json_number(j, "resident", p.resident);
	json_number(j, "open_fds", p.descriptors);
	json_number(j, "max_fds", p.descriptors_max);
	json_number(j, "max_sessions", amounts_sessions(m->setup->config,
	    shared->descriptors));
	json_number(j, "buffers", m->setup->config->penstock.buffers);
	json_number(j, "buffers_held", stat_read(&shared->budget.held));
	json_number(j, "log_dropped", logs_dropped_access(m->logs) +
	    logs_dropped_errors(m->logs));
	json_close_object(j);
}

static void
put_reload(struct json *j, const struct status_reload *r)
{
	if (r->at == 0) {
		json_null(j, "reload");
		return;
	}
	json_open_object(j, "reload");
	json_real(j, "at", r->at);
	json_flag(j, "ok", r->ok);
	json_text(j, "text", str_of(r->text));
	json_close_object(j);
}

static void
put_admin(struct json *j, const struct sockets *s)
{
	char text[ADDR_TEXT + 108];

	json_open_array(j, "admin");
	FOR_EACH_SOCKET_SET(set, s)
		if (set->listener == SOCKETS_OF_ADMIN)
			json_text(j, NULL, str_of(addr_print(&set->addr,
			    text, sizeof text)));
	json_close_array(j);
}

/* --- the configuration -------------------------------------------------- */

/* A row for each value: section, its name, keyword, value, origin. */
static void
on_value(void *arg, const struct config_value *v)
{
	struct json *j = arg;

	json_open_array(j, NULL);
	json_text(j, NULL, str_of(v->section));
	json_text(j, NULL, str_of(v->name));
	json_text(j, NULL, str_of(v->keyword));
	json_text(j, NULL, str_of(v->text));
	json_text(j, NULL, str_of(v->origin));
	json_close_array(j);
}

static void
put_config(struct json *j, const struct config *c)
{
	json_open_array(j, "config");
	config_each(c, on_value, j);
	json_close_array(j);
}

/* --- all ---------------------------------------------------------------- */

static void
put_identity(struct json *j, const struct status_source *from, bool held)
{
	const struct metrics_source *m = from->metrics;

	json_text(j, "version", STR(PACKAGE_VERSION));
	json_text(j, "name", m->setup->shared->name);
	json_text(j, "state", str_of(from->state));
	json_flag(j, "held", held);
	json_text(j, "file", str_of(from->file));
	json_real(j, "loaded", m->loaded);
}

void
status_write(struct metrics *out, const struct status_source *from,
    const struct status_ask *ask)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	put_identity(&j, from, ask->held);
	json_real(&j, "now", from->wall);
	put_reload(&j, from->reload);
	put_admin(&j, from->sockets);
	put_process(&j, from->metrics);
	json_open_array(&j, "bounds");
	for (size_t i = 0; i + 1 < HIST_BUCKETS; i++)
		json_seconds(&j, NULL, hist_bounds[i]);
	json_close_array(&j);
	put_history(&j, from->history, ask->since);
	put_troubles(&j, from->history, from->wall);
	status_listeners(&j, from);
	status_limits(&j, from);
	status_upstreams(&j, from);
	status_workers(&j, from);
	if (ask->config)
		put_config(&j, from->metrics->setup->config);
	json_close_object(&j);
}

static size_t
count_binds(const struct config *c)
{
	size_t n = c->admin.bind.count;

	for (size_t i = 0; i < c->listener_count; i++)
		n += c->listener[i].bind.count;
	return n;
}

/*
 * What there is once for each listener, limit and so on is shorter than in
 * /metrics, where each number has a line with its name and labels; but for
 * addresses, which aren't there.
 */
size_t
status_size(const struct config *c, size_t metrics)
{
	struct metrics m;
	struct json j;
	size_t n;

	metrics_init(&m);
	json_init(&j, &m);
	put_config(&j, c);
	n = m.len;
	metrics_fini(&m);
	return n + metrics + FIXED + count_binds(c) * ADDRESS_SIZE +
	    HISTORY_SAMPLES * SAMPLE_SIZE +
	    HISTORY_TROUBLES * TROUBLE_SIZE;
}
