/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pace.c - a bucket of bytes; see pace.h.
 *
 * Relaxed order is enough, as for a token bucket.  That somebody waits is a
 * hint: it spreads the wakes, and protects who has waited; what may pass is
 * decided by one word.
 *
 * What is owed is counted in bytes, not in time, so that other numbers need not
 * find whoever owes, nor can they be in between: they change how fast the meter
 * runs.  That it is looked at in whole bytes must not make a span seem longer
 * than it is: one that begins with a full bucket begins at the next byte.
 */
#include "base/pace.h"

#include <assert.h>

#include "base/keybucket.h"

/* More that wait count as so many. */
enum { CROWD = 4096 };
enum { QUANTUM_LEAST = 1024, QUANTUM_MOST = 65536 };
enum { QUANTA_LEAST = 4 };	/* in a burst */

#define QUANTUM_TIME	(8 * NSEC_PER_MSEC)
#define LOOK_AGAIN	NSEC_PER_SEC

void
pace_spec_init(struct pace_spec *s, uint64_t rate, uint64_t burst)
{
	ASSERT(rate >= 1 && rate <= PACE_MAX_RATE && burst >= 1);

	uint64_t longest = rate * (PACE_MAX_DEPTH / NSEC_PER_SEC);
	uint64_t most = MIN(MIN(burst, longest), (uint64_t)PACE_MAX_BURST);
	uint64_t quantum = rate / (NSEC_PER_SEC / QUANTUM_TIME);

	quantum = MAX(quantum, (uint64_t)QUANTUM_LEAST);
	quantum = MIN(quantum, (uint64_t)QUANTUM_MOST);
	*s = (struct pace_spec){
		.rate = rate,
		.burst = most,
		/* The rest of a burst is for timers that are late. */
		.quantum = MAX(MIN(quantum, most / QUANTA_LEAST), 1),
	};
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
		p->table = keybuckets_new_metered(rows);
}

void
pace_fini(struct pace *p)
{
	keybuckets_free(&p->table);
}

size_t
pace_memory(uint64_t rows)
{
	return keybuckets_memory_metered(rows);
}

/* Since it has these numbers: in bytes * NSEC_PER_SEC. */
static unsigned __int128
since(const struct pace_spec *s, nsec_t now)
{
	nsec_t time = now > s->since ? now - s->since : 0;

	return (unsigned __int128)time * s->rate;
}

/* The meter at that time: bytes that could have come since ever. */
static uint64_t
meter(const struct pace_spec *s, nsec_t now)
{
	return s->from + (uint64_t)(since(s, now) / NSEC_PER_SEC);
}

/* The same, with a byte that has come in part. */
static uint64_t
meter_up(const struct pace_spec *s, nsec_t now)
{
	return s->from +
	    (uint64_t)((since(s, now) + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
}

/*
 * A shorter burst moves the meter on by what it is shorter, and a longer one
 * back: so an empty bucket is empty, though it be of another size.  After a
 * time without a rate all are full.
 */
void
pace_set(struct pace *p, struct pace_spec *spec, nsec_t now)
{
	const struct pace_spec *was = atomic_load_explicit(&p->spec,
	    memory_order_relaxed);

	spec->since = now;
	spec->from = meter(was, now);
	if (was->rate != 0)
		spec->from += was->burst - spec->burst;
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
pace_waited(const struct pace *p)
{
	return atomic_load_explicit(&p->waited, memory_order_relaxed);
}

uint64_t
pace_would_wait(const struct pace *p)
{
	return atomic_load_explicit(&p->would_wait, memory_order_relaxed);
}

void
pace_use_init(struct pace_use *u, struct pace *p, uint64_t key)
{
	*u = (struct pace_use){ .pace = p, .key = key, .free = true };
}

/* Nobody is held. */
static bool
is_free(const struct pace_spec *s)
{
	return s->rate == 0 || s->dry;
}

/* --- bytes and time ----------------------------------------------------- */

/* In which so many bytes come; rounded up: never faster than asked. */
static nsec_t
time_of(const struct pace_spec *s, uint64_t n)
{
	return (nsec_t)(((unsigned __int128)n * NSEC_PER_SEC + s->rate - 1) /
	    s->rate);
}

/* In that time; at most PACE_MAX_DEPTH, so it fits. */
static uint64_t
bytes_in(const struct pace_spec *s, nsec_t time)
{
	return (uint64_t)((unsigned __int128)time * s->rate / NSEC_PER_SEC);
}

static uint64_t
others(const struct pace_use *u)
{
	const struct pace *p = u->pace;
	uint64_t n = p->table != NULL ? keybucket_waiting(p->table, u->key) :
	    atomic_load_explicit(&p->waiting, memory_order_relaxed);

	return MIN(n, CROWD - 1);
}

/* By how much a bucket that is full at `full_at` isn't yet. */
static uint64_t
ahead(uint64_t full_at, uint64_t at)
{
	uint64_t n = full_at - at;

	return n <= INT64_MAX ? n : 0;
}

/* How many bytes are missing. */
static uint64_t
owed(const struct pace_use *u, const struct pace_spec *s, nsec_t now)
{
	const struct pace *p = u->pace;
	uint64_t at = meter(s, now);

	if (p->table != NULL)
		return keybucket_gone(p->table, u->key, at);
	return ahead(atomic_load_explicit(&p->full_at, memory_order_relaxed),
	    at);
}

/* A key's is one less than the burst, as its table knows no next byte. */
static uint64_t
depth_of(const struct pace_use *u, const struct pace_spec *s)
{
	return u->pace->table == NULL ? s->burst : MAX(s->burst, 2) - 1;
}

/* How many may still be taken. */
static uint64_t
room(const struct pace_use *u, const struct pace_spec *s, nsec_t now)
{
	uint64_t depth = depth_of(u, s), gone = owed(u, s, now);

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
portion(const struct pace_use *u, const struct pace_spec *s, uint64_t there,
    uint64_t want)
{
	uint64_t crowd = others(u) + 1;

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

/* How many bytes n of them are late: 0, or up to late_most; or not taken. */
static uint64_t
take_shared(struct pace *p, const struct pace_spec *s, uint64_t n,
    uint64_t late_most, nsec_t now)
{
	uint64_t was = atomic_load_explicit(&p->full_at, memory_order_relaxed);
	uint64_t at = meter(s, now);
	uint64_t gone, late, base;

	do {
		gone = ahead(was, at);
		base = gone > 0 ? was : meter_up(s, now);
		gone += n;
		late = gone > s->burst ? gone - s->burst : 0;
		if (late > late_most)
			return late;
	} while (!atomic_compare_exchange_weak_explicit(&p->full_at, &was,
	    base + n, memory_order_relaxed, memory_order_relaxed));
	return late;
}

static uint64_t
take_late(struct pace_use *u, const struct pace_spec *s, uint64_t n,
    uint64_t late_most, nsec_t now)
{
	struct pace *p = u->pace;

	if (p->table == NULL)
		return take_shared(p, s, n, late_most, now);
	return keybucket_take(p->table, u->key, &(struct keybucket_spec){
	    n, depth_of(u, s), MIN(late_most, (uint64_t)PACE_MAX_BURST) },
	    meter(s, now));
}

uint64_t
pace_take(struct pace_use *u, uint64_t want, nsec_t now)
{
	const struct pace_spec *s = spec_of(u);
	uint64_t n;

	ASSERT(want >= 1 && !u->waits);
	u->free = is_free(s);
	if (s->rate == 0)
		return want;
	want = MIN(want, (uint64_t)PACE_MOST);
	if (s->dry)
		return want;
	do {
		n = portion(u, s, room(u, s, now), want);
		if (n == 0)
			return 0;
	} while (take_late(u, s, n, 0, now) > 0);
	u->turn = false;
	u->due = 0;
	return n;
}

void
pace_give_back(struct pace_use *u, uint64_t n)
{
	struct pace *p = u->pace;

	if (u->free || n == 0)
		return;
	if (p->table == NULL)
		atomic_fetch_sub_explicit(&p->full_at, n,
		    memory_order_relaxed);
	else
		keybucket_give_back(p->table, u->key,
		    &(struct keybucket_spec){ .gap = n });
}

nsec_t
pace_charge(struct pace_use *u, uint64_t n, nsec_t max_wait, nsec_t now)
{
	const struct pace_spec *s = spec_of(u);

	ASSERT(n <= PACE_MOST && max_wait <= PACE_MAX_DEPTH);
	u->free = is_free(s);
	if (u->free || n == 0)
		return 0;
	return time_of(s, take_late(u, s, n, bytes_in(s, max_wait), now));
}

void
pace_count(struct pace_use *u, uint64_t n, nsec_t now)
{
	const struct pace_spec *s = spec_of(u);
	struct pace *p = u->pace;

	atomic_fetch_add_explicit(&p->passed, n, memory_order_relaxed);
	if (LIKELY(!s->dry) || take_late(u, s, n, 0, now) == 0 || u->would)
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
	uint64_t least, depth = depth_of(u, s);
	nsec_t due = now + 1;

	if (!is_free(s)) {
		least = owed(u, s, now) + needed(u, s, s->quantum);
		if (least > depth)
			due = now + time_of(s, least - depth);
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
	if (!u->waited)
		atomic_fetch_add_explicit(&p->waited, 1,
		    memory_order_relaxed);
	u->waited = true;
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
