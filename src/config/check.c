/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.c - rules between keywords; see check.h.
 */
#include "config/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config/check_own.h"
#include "config/types.h"

enum {
	/* Routes times listeners, hosts and paths, to be compared. */
	ROUTE_POINTS_MAX = 1000000,

	BINDS_MAX = 4096	/* each is compared with each */
};

/* --- helpers ------------------------------------------------------------ */

void
check_look_at(struct checking *k, enum conf_section_id id, size_t index)
{
	k->section = &conf_sections[id];
	k->index = index;
}

bool
check_is_broken(const struct checking *k, enum conf_section_id id, size_t index)
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

bool
check_is_given(const struct checking *k, const char *keyword)
{
	return origin_of(k, keyword).file != NULL;
}

void
check_wrong(struct checking *k, const char *keyword, const char *fmt, ...)
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
	const char *name = section_name(k->config, k->section, k->index);

	problem(k->problems, &at, "[%s%s%s] %s", k->section->name,
	    name[0] != '\0' ? " " : "", name, text);
}

void
check_needs(struct checking *k, const char *keyword, bool other_is_there,
    const char *other)
{
	if (!other_is_there && check_is_given(k, keyword))
		check_wrong(k, keyword, "%s: means nothing without %s",
		    keyword, other);
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
		    check_is_given(k, only_for[i].keyword))
			check_wrong(k, only_for[i].keyword,
			    "%s: means nothing in mode = %s",
			    only_for[i].keyword, mode_words[mode]);
}

static bool
is_local(const struct conf_addrs *binds)
{
	for (size_t i = 0; i < binds->count; i++)
		if (!addr_is_loopback(&binds->at[i]))
			return false;
	return true;
}

/* A route leads from the listener, or may: one of them could not be read. */
static bool
has_route(const struct checking *k, size_t listener)
{
	const struct config *c = k->config;

	for (size_t i = 0; i < c->route_count; i++)
		if (check_is_broken(k, SECTION_route, i) ||
		    conf_refs_have(&c->route[i].listener, listener))
			return true;
	return false;
}

static void
check_where_to(struct checking *k, const struct conf_listener *l)
{
	if (l->mode == MODE_TCP && l->upstream == CONF_NO_REF)
		check_wrong(k, "mode", "upstream is missing");
	if (l->mode == MODE_GATEWAY && l->upstream == CONF_NO_REF &&
	    !has_route(k, k->index))
		check_wrong(k, "mode",
		    "needs an upstream, or a [route NAME] with listener = %s",
		    l->name_);
	if (l->mode == MODE_FORWARD && l->access == CONF_NO_REF &&
	    !is_local(&l->bind))
		check_wrong(k, "bind", "access is missing: others than this "
		    "machine could use the proxy");
}

static void
check_listener(struct checking *k, const struct conf_listener *l)
{
	if (l->bind.count == 0)
		check_wrong(k, "bind", "bind is missing");
	if (check_is_given(k, "mode")) {
		check_modes(k, l->mode);
		check_where_to(k, l);
	} else
		check_wrong(k, NULL,
		    "mode is missing: forward, gateway or tcp");
	if (l->low_watermark > l->high_watermark)
		check_wrong(k, "low_watermark", "low_watermark is above "
		    "high_watermark");
	if (l->request_line > l->head_size)
		check_wrong(k, "request_line",
		    "request_line is above head_size");
}

/* --- the admin listener ------------------------------------------------- */

static void
check_admin(struct checking *k)
{
	const struct conf_admin *a = &k->config->admin;

	check_look_at(k, SECTION_admin, 0);
	if (!check_is_broken(k, SECTION_admin, 0) &&
	    !is_local(&a->bind) && a->allow.count == 0)
		check_wrong(k, "bind", "allow is missing: others than this "
		    "machine could look at it");
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
	check_look_at(k, b->id, b->index);
	addr_print(a->addr, text[0], sizeof text[0]);
	addr_print(b->addr, text[1], sizeof text[1]);
	if (a->id == SECTION_admin)
		check_wrong(k, "bind", "bind: %s clashes with %s of [admin]",
		    text[1], text[0]);
	else
		check_wrong(k, "bind",
		    "bind: %s clashes with %s of [listener %s]",
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
		check_wrong(k, "listener", "listener is missing");
	if (r->upstream == CONF_NO_REF)
		check_wrong(k, "upstream", "upstream is missing");
	for (size_t i = 0; i < r->listener.count; i++) {
		uint32_t to = r->listener.at[i];

		if (!check_is_broken(k, SECTION_listener, to) &&
		    c->listener[to].mode != MODE_GATEWAY)
			check_wrong(k, "listener",
			    "listener: [listener %s] is no gateway",
			    c->listener[to].name_);
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
		check_look_at(k, SECTION_route, is->route);
		check_wrong(k, NULL,
		    "takes host %s and path %s, as [route %s] does",
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
			check_look_at(k, SECTION_route, i);
			check_wrong(k, NULL,
			    "routes have more than %d hosts and paths",
			    ROUTE_POINTS_MAX);
			return;
		}
	}
	struct route_point *all = xcalloc(n, sizeof *all);
	n = 0;
	for (size_t i = 0; i < c->route_count; i++)
		if (!check_is_broken(k, SECTION_route, i))
			n += collect_points(&c->route[i], i, all + n);
	compare_routes(k, all, n);
	free(all);
}

/* --- upstreams ------------------------------------------------------ */

static void
check_upstream_time(struct checking *k, const char *keyword)
{
	if (check_is_given(k, keyword))
		check_wrong(k, keyword,
		    "%s: is over when the upstream is chosen; it belongs to a "
		    "listener", keyword);
}

static void
check_upstream(struct checking *k, const struct conf_upstream *u)
{
	bool all_are_backups = true;

	for (size_t i = 0; i < u->server.count; i++)
		all_are_backups = all_are_backups && u->server.at[i].backup;
	if (u->server.count == 0)
		check_wrong(k, "server", "server is missing");
	else if (all_are_backups)
		check_wrong(k, "server",
		    "all servers are backups; one must not be");
	check_upstream_time(k, "timeout_request_head");
	check_upstream_time(k, "timeout_keepalive");
}

/* --- logs --------------------------------------------------------------- */

/* Two threads that write to one file would tear each other's lines. */
static void
check_log(struct checking *k, const struct conf_log *l)
{
	if (strcmp(l->access, l->error) == 0 && l->error[0] == '/')
		check_wrong(k, "error",
		    "error: %s is the file of access already", l->error);
}

/* --- all ---------------------------------------------------------------- */

#define CHECK_EACH(k, s)						\
	for (size_t i = 0; i < (k)->config->s##_count; i++) {		\
		check_look_at(k, SECTION_##s, i);			\
		if (!check_is_broken(k, SECTION_##s, i))		\
			check_##s(k, &(k)->config->s[i]);		\
	}

void
check_config(const struct config *c, const char *file, struct problems *p)
{
	struct checking k = { .config = c, .file = file, .problems = p };

	if (c->listener_count == 0)
		problem(p, &(struct conf_origin){ file, 0 },
		    "there is no [listener NAME], so there is nothing to do");
	check_look_at(&k, SECTION_log, 0);
	if (!check_is_broken(&k, SECTION_log, 0))
		check_log(&k, &c->log);
	CHECK_EACH(&k, listener)
	CHECK_EACH(&k, route)
	CHECK_EACH(&k, upstream)
	CHECK_EACH(&k, limit)
	check_admin(&k);
	check_binds(&k);
	check_ambiguity(&k);
	check_limits_passed(&k);
}
