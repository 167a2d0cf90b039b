/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * setup.c - a configuration ready for use; see setup.h.
 */
#include "proxy/setup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/access.h"
#include "proxy/doors.h"
#include "proxy/router.h"
#include "proxy/shared.h"
#include "proxy/throttling.h"

/* --- limits ------------------------------------------------------------ */

static struct limit_by
by_of(const struct conf_key *key, const struct conf_limit *l)
{
	struct limit_by by = {
		.what = key->what,
		.ip4_bits = (uint8_t)l->key_ipv4,
		.ip6_bits = (uint8_t)l->key_ipv6,
	};

	ASSERT(strlen(key->header) < sizeof by.header);
	strcpy(by.header, key->header);
	return by;
}

static_assert((int)LOOP_SCRATCH <= (int)CONF_BANDWIDTH_BURST,
    "what comes with a head is charged at once");

/* As much as comes in a second. */
static void
set_bandwidth(struct limit_spec *spec, const struct conf_limit *l)
{
	spec->bandwidth[LIMIT_IN] = l->bandwidth_in;
	spec->bandwidth[LIMIT_OUT] = l->bandwidth_out;
	for (int way = 0; way < LIMIT_WAYS; way++)
		spec->bandwidth_burst[way] = l->bandwidth_burst != 0 ?
		    l->bandwidth_burst :
		    MAX(spec->bandwidth[way], (uint64_t)CONF_BANDWIDTH_BURST);
}

struct limit_spec
setup_limit_spec(const struct conf_limit *l)
{
	struct limit_spec spec = {
		.name = l->name_,
		.key = by_of(&l->key, l),
		.turns = by_of(&l->queue_fair_by, l),
		.rate = l->rate.count,
		.rate_span = l->rate.span,
		.burst = l->burst,
		.wait = l->wait,
		.rate_headers = l->rate_headers,
		.gate = {
			.limit = l->concurrency.count,
			.queue = l->queue,
			.queue_timeout = l->queue_timeout,
			.adaptive = l->queue_order == QUEUE_ORDER_ADAPTIVE,
			.queue_target = l->queue_target,
			.by_key = l->queue_fair_by.what != LIMIT_KEY_NONE,
			.dry = l->dry_run,
		},
		.connections = l->connections,
		.keys = l->keys,
		.allow_when_full = l->table_full == TABLE_FULL_ALLOW,
		.dry_run = l->dry_run,
	};

	set_bandwidth(&spec, l);
	if (l->concurrency.adaptive)
		spec.adapt = (struct adapt_bounds){
			l->concurrency_min, l->concurrency_max,
		};
	/* As many as the rate lets through in a second. */
	if (spec.rate != 0 && spec.burst == 0)
		spec.burst = MAX(spec.rate * NSEC_PER_SEC / spec.rate_span, 1);
	return spec;
}

/* Where the limit is first met: the narrowest place decides its rank. */
static enum limit_site
site_of(const struct config *c, size_t index)
{
	for (size_t i = 0; i < c->upstream_count; i++)
		if (conf_refs_have(&c->upstream[i].limits, index))
			return LIMIT_AT_UPSTREAM;
	for (size_t i = 0; i < c->route_count; i++)
		if (conf_refs_have(&c->route[i].limits, index))
			return LIMIT_AT_ROUTE;
	return LIMIT_AT_LISTENER;
}

static void
make_limits(struct setup *s, nsec_t now)
{
	const struct config *c = s->config;

	s->limit_count = c->limit_count;
	s->limits = xcalloc(c->limit_count, sizeof *s->limits);
	for (size_t i = 0; i < c->limit_count; i++) {
		struct limit_spec spec = setup_limit_spec(&c->limit[i]);

		s->limits[i] = limits_get(s->registry, &spec, site_of(c, i),
		    s->shared->workers, now);
	}
}

/* --- routes ------------------------------------------------------------ */

/* What the road of a request must look at only if any limit asks for it. */
static void
note_spec(struct route *r, const struct limit_spec *spec)
{
	if (spec->dry_run)
		r->dry_run = true;
	else
		r->rate_headers = MAX(r->rate_headers, spec->rate_headers);
}

/* Each limit once, in order of rank; met wider than upstream, kept longer. */
static void
add_limits(struct setup *s, struct route *r, const struct conf_refs *refs,
    bool of_upstream)
{
	for (size_t i = 0; i < refs->count; i++) {
		struct limit *l = s->limits[refs->at[i]];
		unsigned at = r->limit_count;
		bool known = false;

		for (unsigned j = 0; j < r->limit_count; j++)
			known = known || r->limits[j].limit == l;
		if (known)
			continue;
		ASSERT(r->limit_count < ROUTE_LIMITS);
		while (at > 0 &&
		    limit_rank(r->limits[at - 1].limit) > limit_rank(l)) {
			r->limits[at] = r->limits[at - 1];
			at--;
		}
		r->limits[at] = (struct route_limit){ l, of_upstream };
		r->limit_count++;
		note_spec(r, limit_spec(l));
		r->paced = r->paced || limit_pace(l, LIMIT_IN) != NULL ||
		    limit_pace(l, LIMIT_OUT) != NULL;
	}
}

/* `route` may be NULL, for a listener's own. */
static void
make_route(struct setup *s, struct route *r,
    const struct conf_listener *listener, const struct conf_route *route)
{
	int index = route != NULL ? route->upstream : listener->upstream;
	const struct conf_upstream *upstream = NULL;

	r->name = "";
	if (index != CONF_NO_REF) {
		upstream = &s->config->upstream[index];
		r->upstream = s->upstreams[index];
	}
	config_timeouts(&r->timeouts, s->config, listener, upstream);
	r->class = listener->priority == PRIORITY_HIGH ||
	    (route != NULL && route->priority == PRIORITY_HIGH) ?
	    GATE_HIGH : GATE_NORMAL;
	add_limits(s, r, &listener->limits, false);
	if (route != NULL) {
		add_limits(s, r, &route->limits, false);
		if (route->host_header[0] != '\0')
			r->host_header = route->host_header;
	}
	if (upstream != NULL)
		add_limits(s, r, &upstream->limits, true);
}

/* Any exchange of the service may pass those of this route. */
static void
note_limits(struct service *service, const struct route *r)
{
	service->most_limits = MAX(service->most_limits, r->limit_count);
	service->paced = service->paced || r->paced;
	service->pass_bytes = throttling_pass_bytes(service);
}

/*
 * A route may belong to several listeners, whose limits and times differ:
 * one struct route for each pair.
 */
static void
make_routes(struct setup *s)
{
	const struct config *c = s->config;
	size_t count = 0;

	for (size_t i = 0; i < c->route_count; i++)
		count += c->route[i].listener.count;
	s->routes = xcalloc(count, sizeof *s->routes);
	s->route_count = count;

	struct route *r = s->routes;
	for (size_t i = 0; i < c->route_count; i++)
		for (size_t j = 0; j < c->route[i].listener.count; j++) {
			uint32_t at = c->route[i].listener.at[j];
			struct service *service = &s->services[at];

			make_route(s, r, &c->listener[at], &c->route[i]);
			r->name = xstrdup(c->route[i].name_);
			if (service->router == NULL)
				service->router = router_new();
			router_add(service->router, &c->route[i], r);
			note_limits(service, r);
			r++;
		}
	for (unsigned i = 0; i < s->service_count; i++)
		if (s->services[i].router != NULL)
			router_build(s->services[i].router);
}

/* --- upstreams ---------------------------------------------------------- */

static const struct upstream *
find_upstream(const struct setup *s, size_t at, const char *name)
{
	size_t count = s != NULL ? s->upstream_count : 0;

	/* Most stay where they are. */
	for (size_t i = 0; i < count; i++) {
		const struct upstream *u = s->upstreams[(at + i) % count];

		if (strcmp(u->name, name) == 0)
			return u;
	}
	return NULL;
}

static void
make_upstreams(struct setup *s, const struct setup *before)
{
	const struct config *c = s->config;

	s->upstream_count = c->upstream_count;
	s->upstreams = xcalloc(c->upstream_count, sizeof *s->upstreams);
	for (size_t i = 0; i < c->upstream_count; i++)
		s->upstreams[i] = upstream_new(&c->upstream[i],
		    s->shared->workers,
		    find_upstream(before, i, c->upstream[i].name_));
}

/* --- services ---------------------------------------------------------- */

static struct listener_state *
new_state(const char *name, unsigned workers)
{
	struct listener_state *state = xcalloc(1, sizeof *state);

	state->name = xstrdup(name);
	state->stats = xcalloc(workers, sizeof *state->stats);
	return state;
}

static void
release_state(struct listener_state *state)
{
	if (--state->refs > 0)
		return;
	free(state->stats);
	free(state->name);
	free(state);
}

static struct listener_state *
find_state(const struct setup *s, unsigned at, const char *name)
{
	unsigned count = s != NULL ? s->service_count : 0;

	for (unsigned i = 0; i < count; i++) {
		struct listener_state *state =
		    s->services[(at + i) % count].state;

		if (strcmp(state->name, name) == 0)
			return state;
	}
	return NULL;
}

static void
make_session_limits(struct setup *s, struct service *service)
{
	const struct conf_refs *refs = &service->conf->limits;

	for (size_t i = 0; i < refs->count; i++)
		if (s->config->limit[refs->at[i]].connections != 0)
			service->session_limits[
			    service->session_limit_count++] =
			    s->limits[refs->at[i]];
}

static void
make_service(struct setup *s, struct service *service,
    const struct conf_listener *conf, const struct setup *before)
{
	unsigned workers = s->shared->workers;
	unsigned at = (unsigned)(service - s->services);

	service->setup = s;
	service->conf = conf;
	service->state = find_state(before, at, conf->name_);
	if (service->state == NULL)
		service->state = new_state(conf->name_, workers);
	service->state->refs++;
	service->heads = (struct head_limits){
		.size = (uint32_t)conf->head_size,
		.line = (uint32_t)conf->request_line,
		.fields = (uint16_t)conf->head_fields,
	};
	service->pool_max =
	    (unsigned)((conf->pool_max + workers - 1) / workers);
	make_route(s, &service->route, conf, NULL);
	note_limits(service, &service->route);
	if (conf->mode == MODE_FORWARD)
		service->access = access_new(conf->access != CONF_NO_REF ?
		    &s->config->access[conf->access] : NULL);
	make_session_limits(s, service);
}

struct service *
setup_find(const struct setup *s, const struct listener_state *state)
{
	unsigned at = atomic_load_explicit(&state->index,
	    memory_order_relaxed);

	if (at < s->service_count && s->services[at].state == state)
		return &s->services[at];
	for (unsigned i = 0; i < s->service_count; i++)
		if (s->services[i].state == state)
			return &s->services[i];
	return NULL;
}

/* --- the whole --------------------------------------------------------- */

struct setup *
setup_new(struct config *config, struct shared *shared, struct setup *before,
    struct list *all, nsec_t now)
{
	struct setup *s = xcalloc(1, sizeof *s);

	s->config = config;
	s->shared = shared;
	s->registry = shared->limits;
	s->round = before != NULL ? before->round + 1 : 1;
	setup_hold(s);
	list_init(&s->doors);
	list_init(&s->link);
	list_add_last(all, &s->link);
	s->service_count = (unsigned)config->listener_count;
	make_limits(s, now);
	make_upstreams(s, before);
	s->services = xcalloc(s->service_count, sizeof *s->services);
	for (unsigned i = 0; i < s->service_count; i++)
		make_service(s, &s->services[i], &config->listener[i],
		    before);
	make_routes(s);
	return s;
}

static struct addr *
copy_addrs(const struct addr *at, unsigned count)
{
	struct addr *to = xcalloc(count, sizeof *to);

	for (unsigned i = 0; i < count; i++)
		to[i] = at[i];
	return to;
}

void
setup_set_addrs(struct setup *s, const struct own_addrs *addrs)
{
	s->addrs = *addrs;
	s->addrs.own = copy_addrs(addrs->own, addrs->own_count);
	s->addrs.local = copy_addrs(addrs->local, addrs->local_count);
}

void
setup_replace(const struct setup *s, const struct setup *before)
{
	for (unsigned i = 0; i < s->service_count; i++)
		atomic_store_explicit(&s->services[i].state->index, i,
		    memory_order_relaxed);
	for (unsigned i = 0; before != NULL && i < before->service_count; i++) {
		struct listener_state *state = before->services[i].state;

		if (setup_find(s, state) == NULL)
			atomic_store(&state->gone, true);
	}
}

static void
ease(struct setup *s)
{
	for (unsigned i = 0; i < s->service_count; i++) {
		struct service *service = &s->services[i];

		router_free(&service->router);
		if (service->access != NULL)
			access_free(&service->access);
		service->conf = NULL;
	}
	config_free(&s->config);
}

static void
setup_free(struct setup *s)
{
	list_remove(&s->link);
	ease(s);
	for (unsigned i = 0; i < s->service_count; i++)
		release_state(s->services[i].state);
	for (size_t i = 0; i < s->upstream_count; i++)
		upstream_free(&s->upstreams[i]);
	for (size_t i = 0; i < s->limit_count; i++)
		limit_unref(s->registry, &s->limits[i]);
	free(s->addrs.own);
	free(s->addrs.local);
	free(s->services);
	free(s->upstreams);
	free(s->limits);
	for (size_t i = 0; i < s->route_count; i++)
		free((char *)s->routes[i].name);
	free(s->routes);
	free(s);
}

void
setup_hold(struct setup *s)
{
	s->holds++;
	s->holds_whole++;
}

void
setup_ease(struct setup *s)
{
	if (--s->holds_whole == 0)
		ease(s);
}

void
setup_release(struct setup *s)
{
	if (--s->holds == 0)
		setup_free(s);
}

void
setups_free(struct list *all)
{
	LIST_FOR_EACH(l, all) {
		struct setup *s = container_of(l, struct setup, link);

		LIST_FOR_EACH(d, &s->doors)
			doors_free(container_of(d, struct doors, link));
		setup_free(s);
	}
}
