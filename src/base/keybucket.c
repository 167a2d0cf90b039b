/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keybucket.c - token buckets for keys; see keybucket.h.
 *
 * As in keytable.c, a tag is only changed under the lock of its line, so that
 * a key never has two buckets; charging one is a compare-and-swap.
 *
 * Times are compared by their difference modulo 2^40 units, which is 203 days
 * where there is a clock.  A time further ahead than any bucket has been
 * allowed to be in debt (`most`), and than clocks may differ, is one long past.
 */
#include "base/keybucket.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/bucket.h"

enum {
	PLACES = 7,			/* in a line */
	TIME_BITS = 40,
	SPINS = 64,
};

#define TIME_MASK	((UINT64_C(1) << TIME_BITS) - 1)
/* The time of one loop may be behind that of another by a turn; in units. */
#define CLOCKS_DIFFER	(2 * NSEC_PER_SEC / KEYBUCKET_UNIT)
#define METERS_DIFFER	(UINT64_C(1) << 28)
#define MAX_AHEAD	(KEYBUCKET_MAX_DEPTH / KEYBUCKET_UNIT)

struct line {
	_Alignas(CACHE_LINE) atomic_bool locked;
	_Atomic uint64_t	 places[PLACES];
};

struct keybuckets {
	uint64_t		 count;		/* of lines */
	nsec_t			 unit;
	uint64_t		 differ;	/* times of threads, in units */
	struct line		*lines;
	_Atomic uint32_t	*waiting;	/* by place; or NULL */
	_Atomic uint64_t	 most;		/* debt under any spec yet */
	_Atomic uint64_t	 evicted;
};

void
keybucket_spec_init(struct keybucket_spec *s, uint64_t rate, nsec_t span,
    uint64_t burst, nsec_t wait)
{
	ASSERT(rate >= 1 && span >= 1 && burst >= 1);

	/* Per token first, so that nothing overflows; rounded up both times. */
	nsec_t each = (span - 1) / rate + 1;
	uint64_t longest = MAX_AHEAD / 2;

	s->gap = MIN((each - 1) / KEYBUCKET_UNIT + 1, longest);
	s->depth = s->gap * MIN(burst, longest / s->gap);
	s->wait = MIN(wait / KEYBUCKET_UNIT, longest);
}

static uint64_t
lines_for(uint64_t rows)
{
	return (rows + PLACES - 1) / PLACES;
}

struct keybuckets *
keybuckets_new(uint64_t rows)
{
	ASSERT(rows >= 1 && rows <= KEYBUCKET_MAX_ROWS);

	struct keybuckets *t = xcalloc(1, sizeof *t);

	t->count = lines_for(rows);
	t->unit = KEYBUCKET_UNIT;
	t->differ = CLOCKS_DIFFER;
	t->lines = xcalloc_lines(t->count * sizeof *t->lines);
	return t;
}

struct keybuckets *
keybuckets_new_metered(uint64_t rows)
{
	struct keybuckets *t = keybuckets_new(rows);

	t->unit = 1;
	t->differ = METERS_DIFFER;
	t->waiting = xcalloc(t->count * PLACES, sizeof *t->waiting);
	return t;
}

void
keybuckets_free(struct keybuckets **t)
{
	if (*t == NULL)
		return;
	free((*t)->waiting);
	free((*t)->lines);
	free(*t);
	*t = NULL;
}

size_t
keybuckets_memory(uint64_t rows)
{
	return sizeof(struct keybuckets) +
	    lines_for(rows) * sizeof(struct line);
}

size_t
keybuckets_memory_metered(uint64_t rows)
{
	return keybuckets_memory(rows) +
	    lines_for(rows) * PLACES * sizeof(uint32_t);
}

uint64_t
keybuckets_evicted(const struct keybuckets *t)
{
	return atomic_load_explicit(&t->evicted, memory_order_relaxed);
}

/* --- words ------------------------------------------------------------- */

static uint64_t
tag_of(uint64_t key)
{
	return key >> TIME_BITS << TIME_BITS;
}

/* How long until the bucket is full: 0 when it is. */
static uint64_t
debt(const struct keybuckets *t, uint64_t word, uint64_t units)
{
	uint64_t ahead = (word - units) & TIME_MASK;
	uint64_t most = atomic_load_explicit(&t->most, memory_order_relaxed);

	return ahead <= most + t->differ ? ahead : 0;
}

/* More debt than there could be before: once or twice a life. */
static void
note_most(struct keybuckets *t, uint64_t debt)
{
	uint64_t most = atomic_load_explicit(&t->most, memory_order_relaxed);

	while (most < debt)
		if (atomic_compare_exchange_weak(&t->most, &most, debt))
			return;
}

static uint64_t
word_with(uint64_t tag, uint64_t units, uint64_t owed)
{
	return tag | ((units + owed) & TIME_MASK);
}

/* --- lines ------------------------------------------------------------- */

static struct line *
line_of(const struct keybuckets *t, uint64_t key)
{
	return &t->lines[(key & UINT32_MAX) * t->count >> 32];
}

static void
lock(struct line *l)
{
	for (unsigned n = 0; atomic_exchange_explicit(&l->locked, true,
	    memory_order_acquire); n++)
		if (n % SPINS == SPINS - 1)
			sched_yield();
}

static void
unlock(struct line *l)
{
	atomic_store_explicit(&l->locked, false, memory_order_release);
}

static int
find_tag(const struct line *l, uint64_t tag)
{
	for (int i = 0; i < PLACES; i++)
		if (tag_of(atomic_load(&l->places[i])) == tag)
			return i;
	return -1;
}

/* Under the lock: give the place of the one least in debt to the tag. */
static int
claim(struct keybuckets *t, struct line *l, uint64_t tag, uint64_t units)
{
	uint64_t least = UINT64_MAX;
	uint64_t word = 0;
	int victim = 0;

	for (int i = 0; i < PLACES && least != 0; i++) {
		uint64_t w = atomic_load(&l->places[i]);

		if (debt(t, w, units) < least) {
			least = debt(t, w, units);
			word = w;
			victim = i;
		}
	}
	/* Charged meanwhile: it is more in debt now, so look again. */
	if (!atomic_compare_exchange_strong(&l->places[victim], &word,
	    word_with(tag, units, 0)))
		return -1;
	if (least != 0)
		atomic_fetch_add_explicit(&t->evicted, 1,
		    memory_order_relaxed);
	return victim;
}

/* The key's place, made if need be. */
static int
place_of(struct keybuckets *t, struct line *l, uint64_t tag, uint64_t units)
{
	int i = find_tag(l, tag);

	if (i != -1)
		return i;
	lock(l);
	i = find_tag(l, tag);
	while (i == -1)
		i = claim(t, l, tag, units);
	unlock(l);
	return i;
}

/* The time in units for one more token: what is owed beyond the depth. */
static uint64_t
late_by(uint64_t owed, const struct keybucket_spec *s)
{
	return owed + s->gap > s->depth ? owed + s->gap - s->depth : 0;
}

nsec_t
keybucket_take(struct keybuckets *t, uint64_t key,
    const struct keybucket_spec *s, nsec_t now)
{
	struct line *l = line_of(t, key);
	uint64_t tag = tag_of(key);
	uint64_t units = now / t->unit;

	note_most(t, s->depth + s->wait);
	for (;;) {
		int i = place_of(t, l, tag, units);
		uint64_t word = atomic_load(&l->places[i]);

		/* Unless it has become another's meanwhile. */
		while (tag_of(word) == tag) {
			uint64_t owed = debt(t, word, units);
			uint64_t late = late_by(owed, s);

			if (late > s->wait || atomic_compare_exchange_weak(
			    &l->places[i], &word,
			    word_with(tag, units, owed + s->gap)))
				return late * t->unit;
		}
	}
}

void
keybucket_give_back(struct keybuckets *t, uint64_t key,
    const struct keybucket_spec *s)
{
	struct line *l = line_of(t, key);
	uint64_t tag = tag_of(key);
	int i = find_tag(l, tag);

	if (i == -1)
		return;

	uint64_t word = atomic_load(&l->places[i]);
	while (tag_of(word) == tag)
		if (atomic_compare_exchange_weak(&l->places[i], &word,
		    word_with(tag, word, -s->gap)))
			return;
}

void
keybuckets_change(struct keybuckets *t, const struct bucket_spec *from,
    const struct bucket_spec *to, uint64_t most, nsec_t now)
{
	uint64_t units = now / t->unit, owed;

	note_most(t, most);
	for (uint64_t i = 0; i < t->count * PLACES; i++) {
		_Atomic uint64_t *p =
		    &t->lines[i / PLACES].places[i % PLACES];
		uint64_t word = atomic_load(p);

		/* What is full stays so: nobody may have this place. */
		while ((owed = debt(t, word, units)) != 0) {
			owed = bucket_owed((int64_t)owed, from, to);
			owed = MIN(owed, most);
			if (atomic_compare_exchange_weak(p, &word,
			    word_with(tag_of(word), units, owed)))
				break;
		}
	}
}

static uint64_t
debt_of(const struct keybuckets *t, uint64_t key, nsec_t now)
{
	const struct line *l = line_of(t, key);
	int i = find_tag(l, tag_of(key));

	return i == -1 ? 0 : debt(t, atomic_load(&l->places[i]),
	    now / t->unit);
}

nsec_t
keybucket_due(const struct keybuckets *t, uint64_t key,
    const struct keybucket_spec *s, nsec_t now)
{
	return late_by(debt_of(t, key, now), s) * t->unit;
}

nsec_t
keybucket_gone(const struct keybuckets *t, uint64_t key, nsec_t now)
{
	return debt_of(t, key, now) * t->unit;
}

/* --- who waits ---------------------------------------------------------- */

static uint32_t
number_of(const struct keybuckets *t, const struct line *l, int place)
{
	return (uint32_t)((l - t->lines) * PLACES + place);
}

uint32_t
keybucket_wait_begin(struct keybuckets *t, uint64_t key, nsec_t now)
{
	struct line *l = line_of(t, key);
	int place = place_of(t, l, tag_of(key), now / t->unit);
	uint32_t number = number_of(t, l, place);

	atomic_fetch_add_explicit(&t->waiting[number], 1,
	    memory_order_relaxed);
	return number;
}

void
keybucket_wait_end(struct keybuckets *t, uint32_t number)
{
	atomic_fetch_sub_explicit(&t->waiting[number], 1,
	    memory_order_relaxed);
}

uint32_t
keybucket_waiting(const struct keybuckets *t, uint64_t key)
{
	const struct line *l = line_of(t, key);
	int place = find_tag(l, tag_of(key));

	return place == -1 ? 0 : atomic_load_explicit(
	    &t->waiting[number_of(t, l, place)], memory_order_relaxed);
}
