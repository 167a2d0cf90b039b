/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.c - the registry of limits; see limit.h.
 *
 * A lock guards the list: main changes it in a reload while another worker
 * walks it for the metrics.  Passing a limit does not touch it.
 *
 * A limit without references may still have mail under way to a worker, about
 * a permit that nobody waits for any more; so it is freed by the first look
 * at the list that finds it idle.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/limit_own.h"
#include "base/random.h"
#include "base/siphash.h"

enum { RANK_BITS = 28 };		/* for the number within a class */

struct limits {
	pthread_mutex_t	 lock;
	struct list	 all;
	uint32_t	 made;
	unsigned	 workers;
	gate_wake_fn	*wake;
	void		*arg;
	uint8_t		 secret[SIPHASH_KEY];
};

static struct limit *
limit_at(const struct list *link)
{
	return container_of(link, struct limit, link);
}

struct limits *
limits_new(unsigned workers, gate_wake_fn *wake, void *arg)
{
	struct limits *r = xcalloc(1, sizeof *r);

	ASSERT(workers >= 1 && workers <= GATE_WORKERS);
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->all);
	r->workers = workers;
	r->wake = wake;
	r->arg = arg;
	random_fill(r->secret, sizeof r->secret);
	return r;
}

static void
limit_free(struct limit *l)
{
	struct limit_numbers *n = l->numbers;
	struct gate *g = l->gate;
	struct keygate *kg = l->keygate;
	struct keybuckets *kb = l->keybuckets;
	struct keytable *ks = l->keysessions;

	list_remove(&l->link);
	while (n != NULL) {
		struct limit_numbers *before = n->before;

		free(n);
		n = before;
	}
	gate_free(&g);
	limit_adapt_free(l);
	keygate_free(&kg);
	keybuckets_free(&kb);
	keytable_free(&ks);
	for (int way = 0; way < LIMIT_WAYS; way++)
		pace_fini(&l->pace[way]);
	free(l->name);
	free(l);
}

void
limits_free(struct limits **l)
{
	if (*l == NULL)
		return;
	LIST_FOR_EACH(link, &(*l)->all)
		limit_free(limit_at(link));
	pthread_mutex_destroy(&(*l)->lock);
	free(*l);
	*l = NULL;
}

static bool
is_idle(const struct limit *l)
{
	return (l->gate == NULL || gate_is_idle(l->gate)) &&
	    (l->keygate == NULL || keygate_is_idle(l->keygate));
}

/* Under the lock. */
static void
free_unused(struct limits *r)
{
	LIST_FOR_EACH(link, &r->all) {
		struct limit *l = limit_at(link);

		if (atomic_load(&l->refs) == 0 && is_idle(l))
			limit_free(l);
	}
}

/* --- making and changing ----------------------------------------------- */

static uint64_t
rows_for(const struct limit_spec *spec)
{
	return MIN(MAX(spec->keys, 1), KEYTABLE_MAX_ROWS);
}

/* Numbered or adaptive; at its first number. */
static void
make_gate(struct limits *r, struct limit *l, const struct limit_spec *spec)
{
	struct gate_spec first = spec->gate;

	if (l->gate != NULL)
		return;
	if (limit_is_adaptive(spec))
		first.limit = limit_adapt_first(l);
	if (first.limit != 0)
		l->gate = gate_new(&first, r->workers, r->wake, r->arg);
}

/* What this spec asks for and no earlier one did. */
static void
make_parts(struct limits *r, struct limit *l, const struct limit_spec *spec,
    nsec_t now)
{
	bool keyed = limit_is_keyed(spec);
	uint64_t rows = rows_for(spec);

	ASSERT(!keyed || !limit_is_adaptive(spec));
	limit_adapt_set(l, spec, now);
	if (!keyed) {
		make_gate(r, l, spec);
		return;
	}
	if (spec->gate.limit != 0 && l->keygate == NULL)
		l->keygate = keygate_new(&spec->gate, rows, r->workers,
		    r->wake, r->arg);
	if (spec->rate != 0 && l->keybuckets == NULL)
		l->keybuckets = keybuckets_new(rows);
	if (spec->connections != 0 && l->keysessions == NULL)
		l->keysessions = keytable_new(rows);
	for (int way = 0; way < LIMIT_WAYS; way++)
		if (spec->bandwidth[way] != 0)
			pace_make_table(&l->pace[way], rows);
}

static uint32_t
rank_of(const struct limits *r, const struct limit_spec *spec,
    enum limit_site site)
{
	uint32_t class = limit_is_keyed(spec) ? 0 : 1 + (uint32_t)site;

	ASSERT(r->made < UINT32_C(1) << RANK_BITS);
	return class << RANK_BITS | r->made;
}

static size_t
own_size(unsigned workers)
{
	return sizeof(struct limit) + workers * sizeof(struct limit_side);
}

static struct limit *
limit_new(struct limits *r, const struct limit_spec *spec,
    enum limit_site site, nsec_t now)
{
	struct limit *l = xcalloc_lines(own_size(r->workers));

	l->name = xstrdup(spec->name);
	l->workers = r->workers;
	l->rank = rank_of(r, spec, site);
	r->made++;
	for (int way = 0; way < LIMIT_WAYS; way++)
		pace_init(&l->pace[way]);
	make_parts(r, l, spec, now);
	limit_publish(l, spec, now);
	list_add_last(&r->all, &l->link);
	return l;
}

static bool
is_same_by(const struct limit_by *a, const struct limit_by *b)
{
	return a->what == b->what && strcmp(a->header, b->header) == 0 &&
	    a->ip4_bits == b->ip4_bits && a->ip6_bits == b->ip6_bits;
}

static bool
is_same_gate(const struct limit_spec *x, const struct limit_spec *y)
{
	const struct gate_spec *a = &x->gate, *b = &y->gate;

	return x->adapt.min == y->adapt.min && x->adapt.max == y->adapt.max &&
	    a->limit == b->limit && a->queue == b->queue &&
	    a->queue_timeout == b->queue_timeout &&
	    a->adaptive == b->adaptive && a->by_key == b->by_key &&
	    a->queue_target == b->queue_target && a->dry == b->dry;
}

static bool
is_same(const struct limit_spec *a, const struct limit_spec *b)
{
	return limit_is_same_rate(a, b) &&
	    a->connections == b->connections &&
	    memcmp(a->bandwidth, b->bandwidth, sizeof a->bandwidth) == 0 &&
	    memcmp(a->bandwidth_burst, b->bandwidth_burst,
	    sizeof a->bandwidth_burst) == 0 &&
	    a->allow_when_full == b->allow_when_full &&
	    a->dry_run == b->dry_run && a->rate_headers == b->rate_headers &&
	    is_same_by(&a->turns, &b->turns) &&
	    is_same_gate(a, b);
}

static void
limit_change(struct limits *r, struct limit *l, const struct limit_spec *spec,
    unsigned worker, nsec_t now)
{
	const struct limit_spec *was = limit_spec(l);

	if (is_same(was, spec))
		return;
	make_parts(r, l, spec, now);
	limit_publish(l, spec, now);
	if (is_same_gate(was, spec))
		return;
	if (l->gate != NULL)
		limit_adapt_set_gate(l, &spec->gate, worker, now);
	if (l->keygate != NULL)
		keygate_set(l->keygate, &spec->gate, now);
}

static bool
has_same_key(const struct limit_spec *a, const struct limit_spec *b)
{
	return is_same_by(&a->key, &b->key) &&
	    (!limit_is_keyed(a) || rows_for(a) == rows_for(b));
}

/* The limit of that name whose counts can be kept; NULL: none. */
static struct limit *
find(struct limits *r, const struct limit_spec *spec)
{
	LIST_FOR_EACH(link, &r->all) {
		struct limit *l = limit_at(link);

		if (l->replaced || strcmp(l->name, spec->name) != 0)
			continue;
		if (atomic_load(&l->refs) != 0 &&
		    has_same_key(limit_spec(l), spec))
			return l;
		l->replaced = true;
	}
	return NULL;
}

struct limit *
limits_get(struct limits *r, const struct limit_spec *spec,
    enum limit_site site, unsigned worker, nsec_t now)
{
	struct limit *l;

	ASSERT(worker < r->workers);
	pthread_mutex_lock(&r->lock);
	free_unused(r);
	l = find(r, spec);
	if (l == NULL)
		l = limit_new(r, spec, site, now);
	else
		limit_change(r, l, spec, worker, now);
	atomic_fetch_add(&l->refs, 1);
	pthread_mutex_unlock(&r->lock);
	return l;
}

void
limits_settle(struct limits *r, nsec_t now)
{
	pthread_mutex_lock(&r->lock);
	LIST_FOR_EACH(link, &r->all)
		limit_settle(limit_at(link), now);
	pthread_mutex_unlock(&r->lock);
}

void
limit_ref(struct limit *limit)
{
	atomic_fetch_add(&limit->refs, 1);
}

void
limit_unref(struct limits *r, struct limit **limit)
{
	struct limit *l = *limit;

	if (l == NULL)
		return;
	*limit = NULL;
	ASSERT(atomic_load(&l->refs) != 0);
	if (atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	/* From here on another may have freed it. */
	pthread_mutex_lock(&r->lock);
	free_unused(r);
	pthread_mutex_unlock(&r->lock);
}

/* --- asking ------------------------------------------------------------ */

uint32_t
limit_rank(const struct limit *limit)
{
	return limit->rank;
}

const struct limit_spec *
limit_spec(const struct limit *limit)
{
	return &limit_numbers(limit)->spec;
}

/*
 * With what malloc() adds: its own, lines that are skipped and, to what is
 * large, the rest of a page.
 */
static size_t
allocated(size_t size)
{
	return size + 2 * CACHE_LINE + MIN(size / 32, 4096);
}

size_t
limit_tables(const struct limit_spec *spec, unsigned workers)
{
	uint64_t rows = rows_for(spec);
	size_t n = 0;

	if (!limit_is_keyed(spec))
		return spec->gate.by_key ?
		    allocated(gate_fair_memory(workers)) : 0;
	if (spec->gate.limit != 0)
		n += allocated(keygate_memory(rows, workers));
	if (spec->rate != 0)
		n += allocated(keybuckets_memory(rows));
	if (spec->connections != 0)
		n += allocated(keytable_memory(rows));
	for (int way = 0; way < LIMIT_WAYS; way++)
		if (spec->bandwidth[way] != 0)
			n += allocated(pace_memory(rows));
	return n;
}

size_t
limit_memory(const struct limit_spec *spec, unsigned workers)
{
	size_t n = allocated(own_size(workers)) +
	    allocated(sizeof(struct limit_numbers)) +
	    allocated(strlen(spec->name) + 1);

	if (limit_is_adaptive(spec))
		n += allocated(limit_adapt_memory(workers));
	if (!limit_is_keyed(spec) &&
	    (limit_is_adaptive(spec) || spec->gate.limit != 0))
		n += allocated(gate_memory(workers));
	return n + limit_tables(spec, workers);
}

struct pace *
limit_pace(struct limit *limit, enum limit_way way)
{
	return limit_spec(limit)->bandwidth[way] == 0 ? NULL :
	    &limit->pace[way];
}

/* The first `bits` of an address; whoever has one of these has them all. */
static void
put_prefix(uint8_t *to, const uint8_t *ip, unsigned bits)
{
	memcpy(to, ip, bits / 8);
	if (bits % 8 != 0)
		to[bits / 8] = (uint8_t)(ip[bits / 8] & 0xff00 >> bits % 8);
}

uint64_t
limit_key_of_addr(const struct limits *r, const struct limit_by *by,
    const struct addr *client)
{
	uint8_t text[17] = { client->family };

	if (client->family == ADDR_IP4)
		put_prefix(text + 1, client->ip, by->ip4_bits);
	else if (client->family == ADDR_IP6)
		put_prefix(text + 1, client->ip, by->ip6_bits);
	return limit_key_of_text(r, str_make(text, sizeof text));
}

uint64_t
limit_key_of_text(const struct limits *r, struct str text)
{
	uint64_t key = siphash(r->secret, text.at, text.len);

	return MAX(key, LIMIT_KEY_ABSENT + 1);
}

static void
read_counts(uint64_t to[FAIL_COUNT], const _Atomic uint64_t from[FAIL_COUNT])
{
	for (int i = 0; i < FAIL_COUNT; i++)
		to[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
}

static void
look_at(struct limit *l, nsec_t now, limit_look_fn *fn, void *arg)
{
	struct limit_state s = {
		.name = l->name, .limit = l,
		.holders = limit_holders(l),
		.would_wait = atomic_load_explicit(&l->would_wait,
		    memory_order_relaxed),
	};

	read_counts(s.refused, l->refused);
	read_counts(s.would_refuse, l->would_refuse);
	for (int way = 0; way < LIMIT_WAYS; way++) {
		s.passed[way] = pace_passed(&l->pace[way]);
		s.throttled[way] = pace_waited(&l->pace[way]);
		s.would_wait += pace_would_wait(&l->pace[way]);
	}
	for (unsigned i = 0; i < l->workers; i++)
		hist_merge(&s.waits, &l->sides[i].waits);
	if (l->gate != NULL) {
		gate_look(l->gate, now, &s.gate);
		s.peak = gate_peak(l->gate, now);
	} else if (l->keygate != NULL) {
		keygate_look(l->keygate, &s.gate);
		s.peak = keygate_peak(l->keygate, now);
	}
	s.adapts = limit_adapt_look(l, &s.base);
	fn(arg, &s);
}

typedef void look_fn(struct limit *l, nsec_t now, limit_look_fn *fn,
    void *arg);

/* Those that a newer one has replaced are left out. */
static void
each_in_use(struct limits *r, nsec_t now, limit_look_fn *fn, void *arg,
    look_fn *look)
{
	pthread_mutex_lock(&r->lock);
	LIST_FOR_EACH(link, &r->all) {
		struct limit *l = limit_at(link);

		if (!l->replaced && atomic_load(&l->refs) != 0)
			look(l, now, fn, arg);
	}
	pthread_mutex_unlock(&r->lock);
}

void
limits_look(struct limits *r, nsec_t now, limit_look_fn *fn, void *arg)
{
	each_in_use(r, now, fn, arg, look_at);
}

static void
glance_at(struct limit *l, nsec_t now, limit_look_fn *fn, void *arg)
{
	struct limit_state s = { .name = l->name, .limit = l };

	read_counts(s.refused, l->refused);
	if (l->gate != NULL)
		gate_look(l->gate, now, &s.gate);
	else if (l->keygate != NULL)
		keygate_look(l->keygate, &s.gate);
	fn(arg, &s);
}

void
limits_glance(struct limits *r, nsec_t now, limit_look_fn *fn, void *arg)
{
	each_in_use(r, now, fn, arg, glance_at);
}

size_t
limits_count(struct limits *r)
{
	size_t n = 0;

	pthread_mutex_lock(&r->lock);
	LIST_FOR_EACH(link, &r->all)
		n++;
	pthread_mutex_unlock(&r->lock);
	return n;
}
