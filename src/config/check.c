/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.c - rules between keywords; see check.h.
 */
#include "config/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bucket.h"
#include "config/table.h"
#include "config/types.h"

enum {
	KEYED_RATE_MAX = 1000,	/* a second: keyed buckets count in 16 us */

	/* Routes times listeners, hosts and paths, to be compared. */
	ROUTE_POINTS_MAX = 1000000,

	BINDS_MAX = 4096	/* each is compared with each */
};

struct checking {
	const struct config	*config;
	const char		*file;
	struct problems		*problems;
	const struct section	*section;	/* the one looked at, */
	size_t			 index;		/* and which of them */
};

/* --- helpers ------------------------------------------------------------ */

static void
look_at(struct checking *k, enum conf_section_id id, size_t index)
{
	k->section = &conf_sections[id];
	k->index = index;
}

static bool
is_broken(const struct checking *k, enum conf_section_id id, size_t index)
{
	return section_broken(k->config, &conf_sections[id])[index];
}

/* Where the keyword was given in the section looked at; file NULL: nowhere. */
static struct conf_origin
origin_of(const struct checking *k, const char *keyword)
{
	struct place p = { k->section, k->index,
	    keyword_find(k->section, keyword) };

	ASSERT(p.keyword != NULL);
	return *place_origin(k->config, &p);
}

static bool
is_given(const struct checking *k, const char *keyword)
{
	return origin_of(k, keyword).file != NULL;
}

/*
 * Report with the line of the keyword, or of the section if the keyword is
 * not given or NULL.
 */
static void __attribute__((format(printf, 3, 4)))
wrong(struct checking *k, const char *keyword, const char *fmt, ...)
{
	struct conf_origin at = { NULL, 0 };
	char text[500];
	va_list ap;

	if (keyword != NULL)
		at = origin_of(k, keyword);
	if (at.file == NULL) {
		char *s = section_struct(k->config, k->section, k->index);

		at = *(struct conf_origin *)(void *)(s +
		    k->section->origin_at);
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	problem(k->problems, &at, "[%s %s] %s", k->section->name,
	    section_name(k->config, k->section, k->index), text);
}

/* The keyword has no effect unless the other does its part. */
static void
needs(struct checking *k, const char *keyword, bool other_is_there,
    const char *other)
{
	if (!other_is_there && is_given(k, keyword))
		wrong(k, keyword, "%s: means nothing without %s", keyword,
		    other);
}

/* --- listeners ---------------------------------------------------------- */

enum {
	FORWARD = BIT(MODE_FORWARD),
	GATEWAY = BIT(MODE_GATEWAY),
	TCP = BIT(MODE_TCP)
};

/* What isn't for all modes. */
static const struct { const char *keyword; unsigned modes; } only_for[] = {
	{ "access",		FORWARD },
	{ "pool_max",		FORWARD },
	{ "pool_idle",		FORWARD },
	{ "retry_body",		FORWARD },
	{ "upstream",		GATEWAY | TCP },
	{ "trusted",		GATEWAY },
	{ "head_size",		FORWARD | GATEWAY },
	{ "head_fields",	FORWARD | GATEWAY },
	{ "request_line",	FORWARD | GATEWAY },
	{ "body_size",		FORWARD | GATEWAY },
	{ "timeout_request_head", FORWARD | GATEWAY },
	{ "timeout_request_body", FORWARD | GATEWAY },
	{ "timeout_keepalive",	FORWARD | GATEWAY },
	{ "timeout_response",	FORWARD | GATEWAY },
	{ "timeout_idle",	FORWARD | GATEWAY },
};

static void
check_modes(struct checking *k, enum mode mode)
{
	for (size_t i = 0; i < ARRAY_LEN(only_for); i++)
		if ((only_for[i].modes & BIT(mode)) == 0 &&
		    is_given(k, only_for[i].keyword))
			wrong(k, only_for[i].keyword, "%s: means nothing in "
			    "mode = %s", only_for[i].keyword,
			    mode_words[mode]);
}

static bool
is_local(const struct conf_addrs *binds)
{
	for (size_t i = 0; i < binds->count; i++)
		if (binds->at[i].family != ADDR_UNIX &&
		    !addr_is_loopback(&binds->at[i]))
			return false;
	return true;
}

static bool
has_ref(const struct conf_refs *refs, size_t index)
{
	for (size_t i = 0; i < refs->count; i++)
		if (refs->at[i] == index)
			return true;
	return false;
}

/* A route leads from the listener, or may: one of them could not be read. */
static bool
has_route(const struct checking *k, size_t listener)
{
	const struct config *c = k->config;

	for (size_t i = 0; i < c->route_count; i++)
		if (is_broken(k, SECTION_route, i) ||
		    has_ref(&c->route[i].listener, listener))
			return true;
	return false;
}

static void
check_where_to(struct checking *k, const struct conf_listener *l)
{
	if (l->mode == MODE_TCP && l->upstream == CONF_NO_REF)
		wrong(k, "mode", "upstream is missing");
	if (l->mode == MODE_GATEWAY && l->upstream == CONF_NO_REF &&
	    !has_route(k, k->index))
		wrong(k, "mode", "needs an upstream, or a [route NAME] with "
		    "listener = %s", l->name_);
	if (l->mode == MODE_FORWARD && l->access == CONF_NO_REF &&
	    !is_local(&l->bind))
		wrong(k, "bind", "access is missing: others than this "
		    "machine could use the proxy");
}

static void
check_listener(struct checking *k, const struct conf_listener *l)
{
	if (l->bind.count == 0)
		wrong(k, "bind", "bind is missing");
	if (is_given(k, "mode")) {
		check_modes(k, l->mode);
		check_where_to(k, l);
	} else
		wrong(k, NULL, "mode is missing: forward, gateway or tcp");
	if (l->low_watermark > l->high_watermark)
		wrong(k, "low_watermark", "low_watermark is above "
		    "high_watermark");
	if (l->request_line > l->head_size)
		wrong(k, "request_line", "request_line is above head_size");
}

/* --- addresses to listen on --------------------------------------------- */

/* One address, and whose it is. */
struct bound {
	const struct addr	*addr;
	enum conf_section_id	 id;
	size_t			 index;
};

/* The same, or one is all addresses of its family and the other one. */
static bool
do_clash(const struct addr *a, const struct addr *b)
{
	return addr_equal(a, b) || (a->family != ADDR_UNIX &&
	    a->family == b->family && a->port == b->port &&
	    (addr_is_any(a) || addr_is_any(b)));
}

static void
check_pair(struct checking *k, const struct bound *a, const struct bound *b)
{
	char text[2][CONF_WORD_MAX + 1];

	if (!do_clash(a->addr, b->addr))
		return;
	look_at(k, b->id, b->index);
	addr_print(a->addr, text[0], sizeof text[0]);
	addr_print(b->addr, text[1], sizeof text[1]);
	if (a->id == SECTION_admin)
		wrong(k, "bind", "bind: %s clashes with %s of [admin]",
		    text[1], text[0]);
	else
		wrong(k, "bind", "bind: %s clashes with %s of [listener %s]",
		    text[1], text[0], k->config->listener[a->index].name_);
}

/* Those of [admin] are first, so the later of a pair is a listener's. */
static size_t
collect_binds(const struct config *c, struct bound *out)
{
	size_t n = 0;

	for (size_t j = 0; j < c->admin.bind.count; j++)
		out[n++] = (struct bound){ &c->admin.bind.at[j],
		    SECTION_admin, 0 };
	for (size_t i = 0; i < c->listener_count; i++)
		for (size_t j = 0; j < c->listener[i].bind.count; j++)
			out[n++] = (struct bound){ &c->listener[i].bind.at[j],
			    SECTION_listener, i };
	return n;
}

static void
check_binds(struct checking *k)
{
	const struct config *c = k->config;
	size_t n = c->admin.bind.count;

	for (size_t i = 0; i < c->listener_count; i++)
		n += c->listener[i].bind.count;
	if (n > BINDS_MAX) {
		problem(k->problems, &(struct conf_origin){ k->file, 0 },
		    "more than %d addresses to listen on", BINDS_MAX);
		return;
	}
	struct bound *all = xcalloc(n, sizeof *all);
	n = collect_binds(c, all);
	for (size_t i = 1; i < n && !problems_are_many(k->problems); i++)
		for (size_t j = 0; j < i; j++)
			check_pair(k, &all[j], &all[i]);
	free(all);
}

/* --- routes ------------------------------------------------------------- */

static void
check_route(struct checking *k, const struct conf_route *r)
{
	const struct config *c = k->config;

	if (r->listener.count == 0)
		wrong(k, "listener", "listener is missing");
	if (r->upstream == CONF_NO_REF)
		wrong(k, "upstream", "upstream is missing");
	for (size_t i = 0; i < r->listener.count; i++) {
		uint32_t to = r->listener.at[i];

		if (!is_broken(k, SECTION_listener, to) &&
		    c->listener[to].mode != MODE_GATEWAY)
			wrong(k, "listener", "listener: [listener %s] is no "
			    "gateway", c->listener[to].name_);
	}
}

/* What a request is matched with; no two routes may share one. */
struct route_point {
	uint32_t	 listener;
	const char	*host, *path;
	size_t		 route;
};

static int
compare_points(const void *a, const void *b)
{
	const struct route_point *x = a, *y = b;
	int order = x->listener < y->listener ? -1 : x->listener > y->listener;

	if (order == 0)
		order = strcmp(x->host, y->host);
	if (order == 0)
		order = strcmp(x->path, y->path);
	return order;
}

static int
compare_points_and_routes(const void *a, const void *b)
{
	const struct route_point *x = a, *y = b;
	int order = compare_points(a, b);

	return order != 0 ? order : x->route < y->route ? -1 :
	    x->route > y->route;
}

static size_t
count_points(const struct conf_route *r)
{
	return r->listener.count * MAX(r->host.count, (size_t)1) *
	    r->path.count;
}

static size_t
collect_points(const struct conf_route *r, size_t route,
    struct route_point *out)
{
	const struct conf_words *hosts = &r->host;
	size_t n = 0;

	/* No host is any host. */
	for (size_t h = 0; h < MAX(hosts->count, (size_t)1); h++)
		for (size_t i = 0; i < r->listener.count * r->path.count; i++)
			out[n++] = (struct route_point){
			    r->listener.at[i / r->path.count],
			    hosts->count == 0 ? "*" : hosts->at[h],
			    r->path.at[i % r->path.count], route };
	return n;
}

static void
compare_routes(struct checking *k, struct route_point *all, size_t n)
{
	const struct config *c = k->config;

	qsort(all, n, sizeof *all, compare_points_and_routes);
	for (size_t i = 1; i < n; i++) {
		const struct route_point *was = &all[i - 1], *is = &all[i];

		if (compare_points(was, is) != 0)
			continue;
		look_at(k, SECTION_route, is->route);
		wrong(k, NULL, "takes host %s and path %s, as [route %s] does",
		    is->host, is->path, c->route[was->route].name_);
	}
}

static void
check_ambiguity(struct checking *k)
{
	const struct config *c = k->config;
	size_t n = 0;

	for (size_t i = 0; i < c->route_count; i++) {
		n += count_points(&c->route[i]);
		if (n > ROUTE_POINTS_MAX) {
			look_at(k, SECTION_route, i);
			wrong(k, NULL, "routes have more than %d hosts and "
			    "paths", ROUTE_POINTS_MAX);
			return;
		}
	}
	struct route_point *all = xcalloc(n, sizeof *all);
	n = 0;
	for (size_t i = 0; i < c->route_count; i++)
		if (!is_broken(k, SECTION_route, i))
			n += collect_points(&c->route[i], i, all + n);
	compare_routes(k, all, n);
	free(all);
}

/* --- upstreams and limits ----------------------------------------------- */

/* Limits that a way leads through, each once. */
struct passed {
	uint32_t	at[CONF_LIMITS_PASSED];
	size_t		count;		/* at most one more than there are */
};

static void
pass(struct passed *p, const struct conf_refs *refs)
{
	for (size_t i = 0; i < refs->count; i++) {
		struct conf_refs known = { p->at, p->count };

		if (p->count > CONF_LIMITS_PASSED || has_ref(&known,
		    refs->at[i]))
			continue;
		if (p->count < CONF_LIMITS_PASSED)
			p->at[p->count] = refs->at[i];
		p->count++;
	}
}

/* From the listener, by a route or NULL, to where that leads. */
static bool
are_too_many(const struct config *c, const struct conf_listener *l,
    const struct conf_route *r)
{
	int upstream = r != NULL ? r->upstream : l->upstream;
	struct passed p = { .count = 0 };

	pass(&p, &l->limits);
	if (r != NULL)
		pass(&p, &r->limits);
	if (upstream != CONF_NO_REF)
		pass(&p, &c->upstream[upstream].limits);
	return p.count > CONF_LIMITS_PASSED;
}

static void
check_limits_passed(struct checking *k)
{
	const struct config *c = k->config;
	static const char text[] = "an exchange would pass more than %d "
	    "limits: those of listener, route and upstream together";

	for (size_t i = 0; i < c->listener_count; i++) {
		look_at(k, SECTION_listener, i);
		if (are_too_many(c, &c->listener[i], NULL))
			wrong(k, "limits", text, CONF_LIMITS_PASSED);
	}
	for (size_t i = 0; i < c->route_count; i++) {
		const struct conf_route *r = &c->route[i];
		bool bad = false;

		for (size_t j = 0; j < r->listener.count; j++)
			bad = bad || are_too_many(c,
			    &c->listener[r->listener.at[j]], r);
		look_at(k, SECTION_route, i);
		if (bad)
			wrong(k, "limits", text, CONF_LIMITS_PASSED);
	}
}

static void
check_upstream_time(struct checking *k, const char *keyword)
{
	if (is_given(k, keyword))
		wrong(k, keyword, "%s: is over when the upstream is chosen; "
		    "it belongs to a listener", keyword);
}

static void
check_upstream(struct checking *k, const struct conf_upstream *u)
{
	bool all_are_backups = true;

	for (size_t i = 0; i < u->server.count; i++)
		all_are_backups = all_are_backups && u->server.at[i].backup;
	if (u->server.count == 0)
		wrong(k, "server", "server is missing");
	else if (all_are_backups)
		wrong(k, "server", "all servers are backups; one must not be");
	check_upstream_time(k, "timeout_request_head");
	check_upstream_time(k, "timeout_keepalive");
}

static void
check_rate(struct checking *k, const struct conf_limit *l)
{
	const struct conf_rate *rate = &l->rate;

	if (rate->count == 0)
		return;
	if (l->key != LIMIT_KEY_NONE &&
	    rate->count > KEYED_RATE_MAX * (rate->span / NSEC_PER_SEC))
		wrong(k, "rate", "rate: with a key, at most %d/s",
		    KEYED_RATE_MAX);
	if (l->burst > 0 && !bucket_spec_fits(rate->count, rate->span,
	    l->burst))
		wrong(k, "burst", "burst: would take more than 146 years to "
		    "come back at this rate");
}

static void
check_limit(struct checking *k, const struct conf_limit *l)
{
	bool has_queue = l->concurrency > 0 && l->queue > 0;
	bool is_keyed = l->key != LIMIT_KEY_NONE;

	needs(k, "burst", l->rate.count > 0, "rate");
	needs(k, "wait", l->rate.count > 0, "rate");
	needs(k, "queue", l->concurrency > 0, "concurrency");
	needs(k, "queue_timeout", has_queue, "concurrency and queue");
	needs(k, "queue_order", has_queue, "concurrency and queue");
	needs(k, "queue_target", has_queue &&
	    l->queue_order == QUEUE_ORDER_ADAPTIVE, "queue_order = adaptive");
	needs(k, "keys", is_keyed, "key");
	needs(k, "table_full", is_keyed, "key");
	check_rate(k, l);
}

/* --- all ---------------------------------------------------------------- */

#define CHECK_EACH(k, s)						\
	for (size_t i = 0; i < (k)->config->s##_count; i++) {		\
		look_at(k, SECTION_##s, i);				\
		if (!is_broken(k, SECTION_##s, i))			\
			check_##s(k, &(k)->config->s[i]);		\
	}

void
check_config(const struct config *c, const char *file, struct problems *p)
{
	struct checking k = { .config = c, .file = file, .problems = p };

	if (c->listener_count == 0)
		problem(p, &(struct conf_origin){ file, 0 },
		    "there is no [listener NAME], so there is nothing to do");
	CHECK_EACH(&k, listener)
	CHECK_EACH(&k, route)
	CHECK_EACH(&k, upstream)
	CHECK_EACH(&k, limit)
	check_binds(&k);
	check_ambiguity(&k);
	check_limits_passed(&k);
}
