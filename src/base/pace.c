/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pace.c - a bucket of bytes; see pace.h.
 *
 * Relaxed order is enough, as for a token bucket.  That somebody waits is a
 * hint: it spreads the wakes, and protects who has waited; what may pass is
 * decided by one word.
 *
 * No product overflows: what is worked out is PACE_MOST times CROWD bytes at
 * most, 2^33, in nanoseconds a byte; and a time that is shorter than so many
 * bytes take, times the rate, is no more than that.
 */
#include "base/pace.h"

#include <assert.h>

#include "base/keybucket.h"

/* More that wait count as so many. */
enum { CROWD = 4096 };
static_assert((uint64_t)PACE_MOST * CROWD <= UINT64_MAX / NSEC_PER_SEC,
    "a product would overflow");

enum { QUANTUM_LEAST = 1024, QUANTUM_MOST = 65536 };
enum { QUANTA_LEAST = 4 };	/* in a burst */

#define QUANTUM_TIME	(8 * NSEC_PER_MSEC)
#define LOOK_AGAIN	NSEC_PER_SEC

void
pace_spec_init(struct pace_spec *s, uint64_t rate, uint64_t burst)
{
	ASSERT(rate >= 1 && rate <= PACE_MAX_RATE && burst >= 1);

	uint64_t longest = rate * (PACE_MAX_DEPTH / NSEC_PER_SEC);
	uint64_t most = MIN(burst, longest);
	uint64_t quantum = rate / (NSEC_PER_SEC / QUANTUM_TIME);

	s->rate = rate;
	s->dry = false;
	/* Rounded down: never more than asked. */
	s->depth = (nsec_t)((unsigned __int128)most * NSEC_PER_SEC / rate);
	quantum = MAX(quantum, (uint64_t)QUANTUM_LEAST);
	quantum = MIN(quantum, (uint64_t)QUANTUM_MOST);
	/* The rest of a burst is for timers that are late. */
	s->quantum = MAX(MIN(quantum, most / QUANTA_LEAST), 1);
}

void
pace_init(struct pace *p)
{
	static const struct pace_spec any = { .rate = 0 };

	*p = (struct pace){ .spec = &any };
}

void
pace_make_table(struct pace *p, uint64_t rows)
{
	if (p->table == NULL)
		p->table = keybuckets_new_fine(rows);
}

void
pace_fini(struct pace *p)
{
	keybuckets_free(&p->table);
}

size_t
pace_memory(uint64_t rows)
{
	return keybuckets_memory_fine(rows);
}

void
pace_set(struct pace *p, const struct pace_spec *spec)
{
	atomic_store_explicit(&p->spec, spec, memory_order_release);
}

static const struct pace_spec *
spec_of(const struct pace_use *u)
{
	return atomic_load_explicit(&u->pace->spec, memory_order_acquire);
}

uint64_t
pace_passed(const struct pace *p)
{
	return atomic_load_explicit(&p->passed, memory_order_relaxed);
}

uint64_t
pace_would_wait(const struct pace *p)
{
	return atomic_load_explicit(&p->would_wait, memory_order_relaxed);
}

void
pace_use_init(struct pace_use *u, struct pace *p, uint64_t key)
{
	*u = (struct pace_use){ .pace = p, .key = key };
}

/* Nobody is held. */
static bool
is_free(const struct pace_spec *s)
{
	return s->rate == 0 || s->dry;
}

/* --- bytes and time ----------------------------------------------------- */

/* Rounded up: never faster than asked. */
static nsec_t
time_of(const struct pace_spec *s, uint64_t n)
{
	return (n * NSEC_PER_SEC + s->rate - 1) / s->rate;
}

static uint64_t
units_of(const struct pace_spec *s, uint64_t n)
{
	return (time_of(s, n) + KEYBUCKET_FINE - 1) / KEYBUCKET_FINE;
}

/*
 * One less than there are, since the time is looked at in whole units: a span
 * may seem longer than it is by one.
 */
static uint64_t
depth_units(const struct pace_spec *s)
{
	uint64_t units = s->depth / KEYBUCKET_FINE;

	return MAX(units, 2) - 1;
}

/* In so much time come so many bytes, or `most` if that is less. */
static uint64_t
bytes_in(const struct pace_spec *s, nsec_t time, uint64_t most)
{
	return time >= time_of(s, most) ? most : time * s->rate / NSEC_PER_SEC;
}

static uint64_t
others(const struct pace_use *u)
{
	const struct pace *p = u->pace;
	uint64_t n = p->table != NULL ? keybucket_waiting(p->table, u->key) :
	    atomic_load_explicit(&p->waiting, memory_order_relaxed);

	return MIN(n, CROWD - 1);
}

/* How long until it is full. */
static nsec_t
owed(const struct pace_use *u, const struct pace_spec *s, nsec_t now)
{
	const struct pace *p = u->pace;
	struct keybucket_spec ks;
	nsec_t full_at;

	if (p->table == NULL) {
		full_at = atomic_load_explicit(&p->full_at,
		    memory_order_relaxed);
		return full_at > now ? full_at - now : 0;
	}
	ks = (struct keybucket_spec){ depth_units(s), depth_units(s), 0 };
	/* A whole burst is there when nothing is owed. */
	return keybucket_due(p->table, u->key, &ks, now);
}

static nsec_t
depth_of(const struct pace_use *u, const struct pace_spec *s)
{
	return u->pace->table == NULL ? s->depth :
	    depth_units(s) * KEYBUCKET_FINE;
}

/* The time in which what may still be taken has come. */
static nsec_t
room(const struct pace_use *u, const struct pace_spec *s, nsec_t now)
{
	nsec_t depth = depth_of(u, s), gone = owed(u, s, now);

	return gone < depth ? depth - gone : 0;
}

/* Its own quantum, or `want` if that is less, after those of the others. */
static uint64_t
needed(const struct pace_use *u, const struct pace_spec *s, uint64_t want)
{
	uint64_t least = MIN(want, s->quantum);

	return u->turn ? least : least + s->quantum * others(u);
}

/* Of so much room, how much is for this one? */
static uint64_t
portion(const struct pace_use *u, const struct pace_spec *s, nsec_t time,
    uint64_t want)
{
	uint64_t crowd = others(u) + 1;
	uint64_t there = bytes_in(s, time, MAX(want, s->quantum) * crowd);

	if (there < needed(u, s, want))
		return 0;
	return MIN(want, MAX(s->quantum, there / crowd));
}

/* --- taking ------------------------------------------------------------- */

bool
pace_is_open(const struct pace_use *u, nsec_t now)
{
	const struct pace_spec *s = spec_of(u);

	return is_free(s) || portion(u, s, room(u, s, now), s->quantum) > 0;
}

/* If it is still there. */
static bool
take_exactly(struct pace_use *u, const struct pace_spec *s, uint64_t n,
    nsec_t now)
{
	struct pace *p = u->pace;
	nsec_t cost = time_of(s, n);
	nsec_t was, base;

	if (p->table != NULL)
		return keybucket_take(p->table, u->key,
		    &(struct keybucket_spec){ units_of(s, n), depth_units(s),
		    0 }, now) == 0;
	was = atomic_load_explicit(&p->full_at, memory_order_relaxed);
	do {
		base = MAX(was, now);
		if (base - now + cost > s->depth)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&p->full_at, &was,
	    base + cost, memory_order_relaxed, memory_order_relaxed));
	return true;
}

uint64_t
pace_take(struct pace_use *u, uint64_t want, nsec_t now)
{
	const struct pace_spec *s = spec_of(u);
	uint64_t n;

	ASSERT(want >= 1 && !u->waits);
	if (s->rate == 0)
		return want;
	want = MIN(want, (uint64_t)PACE_MOST);
	if (s->dry)
		return want;
	do {
		n = portion(u, s, room(u, s, now), want);
		if (n == 0)
			return 0;
	} while (!take_exactly(u, s, n, now));
	u->turn = false;
	u->due = 0;
	return n;
}

static void
give_back_time(struct pace *p, nsec_t cost)
{
	nsec_t was = atomic_load_explicit(&p->full_at, memory_order_relaxed);

	/* A reload may have changed the rate, so stop at 0. */
	while (!atomic_compare_exchange_weak_explicit(&p->full_at, &was,
	    was - MIN(was, cost), memory_order_relaxed, memory_order_relaxed))
		;
}

/* Rounded down: what is kept costs what it would have cost alone. */
void
pace_give_back(struct pace_use *u, uint64_t n)
{
	const struct pace_spec *s = spec_of(u);
	struct keybucket_spec ks = { .gap = 0 };
	nsec_t cost;

	if (is_free(s) || n == 0)
		return;
	cost = n * NSEC_PER_SEC / s->rate;
	if (u->pace->table == NULL) {
		give_back_time(u->pace, cost);
		return;
	}
	ks.gap = cost / KEYBUCKET_FINE;
	if (ks.gap > 0)
		keybucket_give_back(u->pace->table, u->key, &ks);
}

static nsec_t
charge_shared(struct pace *p, const struct pace_spec *s, nsec_t cost,
    nsec_t max_wait, nsec_t now)
{
	nsec_t was = atomic_load_explicit(&p->full_at, memory_order_relaxed);
	nsec_t base, gone, wait;

	do {
		base = MAX(was, now);
		gone = base - now + cost;
		wait = gone > s->depth ? gone - s->depth : 0;
		if (wait > max_wait)
			return wait;
	} while (!atomic_compare_exchange_weak_explicit(&p->full_at, &was,
	    base + cost, memory_order_relaxed, memory_order_relaxed));
	return wait;
}

static nsec_t
charge(struct pace_use *u, const struct pace_spec *s, uint64_t n,
    nsec_t max_wait, nsec_t now)
{
	if (u->pace->table == NULL)
		return charge_shared(u->pace, s, time_of(s, n), max_wait,
		    now);
	return keybucket_take(u->pace->table, u->key,
	    &(struct keybucket_spec){ units_of(s, n), depth_units(s),
	    max_wait / KEYBUCKET_FINE }, now);
}

nsec_t
pace_charge(struct pace_use *u, uint64_t n, nsec_t max_wait, nsec_t now)
{
	const struct pace_spec *s = spec_of(u);

	ASSERT(n <= PACE_MOST && max_wait <= PACE_MAX_DEPTH);
	return is_free(s) || n == 0 ? 0 : charge(u, s, n, max_wait, now);
}

void
pace_count(struct pace_use *u, uint64_t n, nsec_t now)
{
	const struct pace_spec *s = spec_of(u);
	struct pace *p = u->pace;

	atomic_fetch_add_explicit(&p->passed, n, memory_order_relaxed);
	if (LIKELY(!s->dry) || charge(u, s, n, 0, now) == 0 || u->would)
		return;
	u->would = true;
	atomic_fetch_add_explicit(&p->would_wait, 1, memory_order_relaxed);
}

/* --- waiting ------------------------------------------------------------ */

/*
 * When what it needs will be there.  If that is later than it was before, it is
 * because those who wait behind this one were counted.
 */
static nsec_t
due_at(const struct pace_use *u, nsec_t now)
{
	const struct pace_spec *s = spec_of(u);
	nsec_t full, depth, due = now + 1;

	if (!is_free(s)) {
		full = owed(u, s, now) + time_of(s, needed(u, s, s->quantum));
		depth = depth_of(u, s);
		due = now + (full > depth ? full - depth : 1);
	}
	return u->due > now ? MIN(due, u->due) : due;
}

nsec_t
pace_wait_begin(struct pace_use *u, nsec_t now)
{
	struct pace *p = u->pace;

	ASSERT(!u->waits);
	u->due = due_at(u, now);
	u->turn = false;
	u->waits = true;
	if (p->table != NULL)
		u->number = keybucket_wait_begin(p->table, u->key, now);
	else
		atomic_fetch_add_explicit(&p->waiting, 1,
		    memory_order_relaxed);
	return MIN(u->due, now + LOOK_AGAIN);
}

void
pace_wait_end(struct pace_use *u, nsec_t now)
{
	if (!u->waits)
		return;
	u->waits = false;
	u->turn = now >= u->due;
	if (u->pace->table != NULL)
		keybucket_wait_end(u->pace->table, u->number);
	else
		atomic_fetch_sub_explicit(&u->pace->waiting, 1,
		    memory_order_relaxed);
}
