/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_limits.c - the rules of limits; see check.h.
 */
#include <assert.h>

#include "base/bucket.h"
#include "base/keybucket.h"
#include "config/check_own.h"
#include "config/types.h"

enum { KEYED_RATE_MAX = 1000 };	/* a second: keyed buckets count in 16 us */

/* A burst comes back in so many days: they count so far ahead, and no more. */
enum { KEYED_BURST_DAYS = 25 };
#define DAY	(UINT64_C(86400) * NSEC_PER_SEC)
static_assert(KEYED_BURST_DAYS * DAY / 62 * 63 <= KEYBUCKET_MAX_DEPTH / 2,
    "a gap of 62 units that is rounded up fits as often");

/* Bytes a second; a burst comes in 20 ms (timers are 8 ms wide) to an hour. */
enum { BANDWIDTH_MIN = 1024, BURSTS_PER_SEC = 50, BURST_MAX_SECONDS = 3600 };

/* --- a limit ------------------------------------------------------------ */

static void
check_rate(struct checking *k, const struct conf_limit *l)
{
	const struct conf_rate *rate = &l->rate;

	if (rate->count == 0)
		return;
	if (l->key.what != LIMIT_KEY_NONE &&
	    rate->count > KEYED_RATE_MAX * (rate->span / NSEC_PER_SEC))
		check_wrong(k, "rate", "rate: with a key, at most %d/s",
		    KEYED_RATE_MAX);
	if (l->key.what != LIMIT_KEY_NONE &&
	    l->burst > KEYED_BURST_DAYS * DAY / rate->span * rate->count)
		check_wrong(k, "burst", "burst: with a key, at most what "
		    "rate lets through in %d days", KEYED_BURST_DAYS);
	if (l->burst > 0 && !bucket_spec_fits(rate->count, rate->span,
	    l->burst))
		check_wrong(k, "burst", "burst: would take more than 146 "
		    "years to come back at this rate");
}

/* Of one way. */
static void
check_bandwidth(struct checking *k, const struct conf_limit *l,
    const char *keyword, uint64_t rate)
{
	uint64_t burst = l->bandwidth_burst;

	if (rate == 0)
		return;
	if (rate < BANDWIDTH_MIN)
		check_wrong(k, keyword, "%s: at least 1k, or 0", keyword);
	if (burst == 0)
		return;
	if (burst < rate / BURSTS_PER_SEC)
		check_wrong(k, "bandwidth_burst", "bandwidth_burst: at least "
		    "what %s lets through in 20ms", keyword);
	if (burst > rate * BURST_MAX_SECONDS)
		check_wrong(k, "bandwidth_burst", "bandwidth_burst: at most "
		    "what %s lets through in an hour", keyword);
}

static void
check_bandwidths(struct checking *k, const struct conf_limit *l)
{
	uint64_t burst = l->bandwidth_burst;

	check_needs(k, "bandwidth_burst", l->bandwidth_in > 0 ||
	    l->bandwidth_out > 0, "bandwidth_in or bandwidth_out");
	if (burst != 0 && burst < CONF_BANDWIDTH_BURST)
		check_wrong(k, "bandwidth_burst", "bandwidth_burst: at least "
		    "64k, as so much may come with the head of a request");
	check_bandwidth(k, l, "bandwidth_in", l->bandwidth_in);
	check_bandwidth(k, l, "bandwidth_out", l->bandwidth_out);
}

/* Is it known as soon as a client has connected? */
static bool
is_known_early(const struct conf_key *key)
{
	return key->what == LIMIT_KEY_NONE ||
	    key->what == LIMIT_KEY_CLIENT_ADDRESS;
}

static void
check_keys(struct checking *k, const struct conf_limit *l, bool is_keyed)
{
	bool by_address = l->key.what == LIMIT_KEY_CLIENT_ADDRESS ||
	    l->queue_fair_by.what == LIMIT_KEY_CLIENT_ADDRESS;

	check_needs(k, "key_ipv4", by_address, "client_address");
	check_needs(k, "key_ipv6", by_address, "client_address");
	if (is_keyed && l->queue_fair_by.what != LIMIT_KEY_NONE)
		check_wrong(k, "queue_fair_by", "queue_fair_by: each key "
		    "has a queue of its own");
	if (is_keyed && l->queue_order != QUEUE_ORDER_FIFO)
		check_wrong(k, "queue_order", "queue_order: the queue of a "
		    "key is fifo");
	if (l->connections > 0 && !is_known_early(&l->key))
		check_wrong(k, "connections", "connections: of a client "
		    "that has connected only its address is known");
}

static void
check_adaptive(struct checking *k, const struct conf_limit *l, bool is_keyed)
{
	bool adaptive = l->concurrency.adaptive;

	check_needs(k, "concurrency_min", adaptive, "concurrency = adaptive");
	check_needs(k, "concurrency_max", adaptive, "concurrency = adaptive");
	if (adaptive && l->concurrency_min > l->concurrency_max)
		check_wrong(k, "concurrency_min", "concurrency_min: above "
		    "concurrency_max");
	if (adaptive && is_keyed)
		check_wrong(k, "concurrency", "concurrency: adaptive finds "
		    "one number, not one for each key");
	if (adaptive && l->dry_run)
		check_wrong(k, "dry_run", "dry_run: adaptive finds its "
		    "number by holding exchanges back");
}

void
check_limit(struct checking *k, const struct conf_limit *l)
{
	bool has_gate = l->concurrency.adaptive || l->concurrency.count > 0;
	bool has_queue = has_gate && l->queue > 0;
	bool is_keyed = l->key.what != LIMIT_KEY_NONE;

	check_needs(k, "burst", l->rate.count > 0, "rate");
	check_needs(k, "wait", l->rate.count > 0, "rate");
	check_needs(k, "rate_headers", l->rate.count > 0, "rate");
	check_needs(k, "queue", has_gate, "concurrency");
	check_needs(k, "queue_timeout", has_queue, "concurrency and queue");
	check_needs(k, "queue_order", has_queue, "concurrency and queue");
	check_needs(k, "queue_target", has_queue &&
	    l->queue_order == QUEUE_ORDER_ADAPTIVE, "queue_order = adaptive");
	check_needs(k, "queue_fair_by", has_queue, "concurrency and queue");
	check_needs(k, "keys", is_keyed, "key");
	check_needs(k, "table_full", is_keyed, "key");
	check_keys(k, l, is_keyed);
	check_adaptive(k, l, is_keyed);
	check_rate(k, l);
	check_bandwidths(k, l);
}

/* --- who passes them ---------------------------------------------------- */

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

		if (p->count > CONF_LIMITS_PASSED || conf_refs_have(&known,
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

/* A tcp listener reads no head. */
static void
check_tcp_limits(struct checking *k, const struct conf_listener *l)
{
	const struct config *c = k->config;
	struct passed p = { .count = 0 };

	if (l->mode != MODE_TCP)
		return;
	pass(&p, &l->limits);
	if (l->upstream != CONF_NO_REF)
		pass(&p, &c->upstream[l->upstream].limits);
	for (size_t i = 0; i < MIN(p.count, (size_t)CONF_LIMITS_PASSED); i++) {
		const struct conf_limit *limit = &c->limit[p.at[i]];

		if (!is_known_early(&limit->key) ||
		    !is_known_early(&limit->queue_fair_by))
			check_wrong(k, "limits", "limit %s asks for what "
			    "only a request has, and tcp has none",
			    limit->name_);
		if (limit->concurrency.adaptive)
			check_wrong(k, "limits", "limit %s is adaptive, and "
			    "of tcp nothing tells how long a response takes",
			    limit->name_);
	}
}

/* Of a route or an upstream: connections are counted as they come. */
static void
check_no_connections(struct checking *k, const struct conf_refs *refs)
{
	const struct config *c = k->config;

	for (size_t i = 0; i < refs->count; i++) {
		bool counts = c->limit[refs->at[i]].connections == 0;

		for (size_t j = 0; j < c->listener_count && !counts; j++)
			counts = conf_refs_have(&c->listener[j].limits,
			    refs->at[i]);
		if (!counts)
			check_wrong(k, "limits", "limit %s counts connections "
			    "of listeners, and none has it in its limits",
			    c->limit[refs->at[i]].name_);
	}
}

void
check_limits_passed(struct checking *k)
{
	const struct config *c = k->config;
	static const char text[] = "an exchange would pass more than %d "
	    "limits: those of listener, route and upstream together";

	for (size_t i = 0; i < c->upstream_count; i++) {
		check_look_at(k, SECTION_upstream, i);
		check_no_connections(k, &c->upstream[i].limits);
	}
	for (size_t i = 0; i < c->listener_count; i++) {
		check_look_at(k, SECTION_listener, i);
		if (are_too_many(c, &c->listener[i], NULL))
			check_wrong(k, "limits", text, CONF_LIMITS_PASSED);
		check_tcp_limits(k, &c->listener[i]);
	}
	for (size_t i = 0; i < c->route_count; i++) {
		const struct conf_route *r = &c->route[i];
		bool bad = false;

		for (size_t j = 0; j < r->listener.count; j++)
			bad = bad || are_too_many(c,
			    &c->listener[r->listener.at[j]], r);
		check_look_at(k, SECTION_route, i);
		if (bad)
			check_wrong(k, "limits", text, CONF_LIMITS_PASSED);
		check_no_connections(k, &r->limits);
	}
}
