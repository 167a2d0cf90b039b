/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keytable.c - counts for keys; see keytable.h.
 *
 * A free row keeps its tag.  A key that comes back finds it and needs no
 * lock; one that has no row looks again under the lock, and if there still is
 * none, puts its tag and its count into a free row by one compare-and-swap:
 * others may take that row for its old tag at the same time.
 *
 * The lock spins, since it is held for some ten instructions; it yields for
 * the case that its holder has been scheduled away.
 */
#include "base/keytable.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
	ROWS = 7,			/* in a line */
	COUNT_BITS = 20,
	TAG_SHIFT = 2 * COUNT_BITS,
	SPINS = 64,
};

#define COUNT_MASK	((UINT64_C(1) << COUNT_BITS) - 1)
#define ONE_WAITING	UINT64_C(1)
#define ONE_IN_USE	(UINT64_C(1) << COUNT_BITS)

static_assert(KEYTABLE_MAX_COUNT == COUNT_MASK, "a count fills its bits");

struct line {
	_Alignas(CACHE_LINE) atomic_bool locked;
	_Atomic uint64_t	 rows[ROWS];
};

struct keytable {
	uint64_t	 count;		/* of lines */
	struct line	*lines;
};

static uint64_t
lines_for(uint64_t rows)
{
	return (rows + ROWS - 1) / ROWS;
}

struct keytable *
keytable_new(uint64_t rows)
{
	ASSERT(rows >= 1 && rows <= KEYTABLE_MAX_ROWS);

	struct keytable *t = xcalloc(1, sizeof *t);

	t->count = lines_for(rows);
	t->lines = xcalloc_lines(t->count * sizeof *t->lines);
	return t;
}

void
keytable_free(struct keytable **t)
{
	if (*t == NULL)
		return;
	free((*t)->lines);
	free(*t);
	*t = NULL;
}

size_t
keytable_memory(uint64_t rows)
{
	return sizeof(struct keytable) +
	    lines_for(rows) * sizeof(struct line);
}

/* --- words ------------------------------------------------------------- */

static uint64_t
tag_of(uint64_t key)
{
	return key >> TAG_SHIFT << TAG_SHIFT;
}

static struct key_count
count_of(uint64_t word)
{
	return (struct key_count){
		.in_use = word >> COUNT_BITS & COUNT_MASK,
		.waiting = word & COUNT_MASK,
	};
}

static bool
is_free(uint64_t word)
{
	return word << (64 - TAG_SHIFT) == 0;
}

/* What one more makes of a row's word; the word itself when it is refused. */
static uint64_t
one_more(uint64_t word, const struct key_bounds *b)
{
	struct key_count c = count_of(word);

	if (c.in_use < KEYTABLE_MAX_COUNT &&
	    c.in_use + c.waiting < MIN(b->limit, KEYTABLE_MAX_COUNT))
		return word + ONE_IN_USE;
	if (c.waiting < MIN(b->queue, KEYTABLE_MAX_COUNT))
		return word + ONE_WAITING;
	return word;
}

static enum key_result
result_of(uint64_t before, uint64_t after)
{
	if (before == after)
		return KEY_REFUSED;
	return after - before == ONE_IN_USE ? KEY_TAKEN : KEY_WAITS;
}

/* --- lines ------------------------------------------------------------- */

/* By multiplying, so that any number of lines will do. */
static struct line *
line_of(const struct keytable *t, uint64_t key)
{
	return &t->lines[(key & UINT32_MAX) * t->count >> 32];
}

static uint32_t
row_number(const struct keytable *t, const struct line *l, int i)
{
	return (uint32_t)((size_t)(l - t->lines) * ROWS + (size_t)i);
}

static _Atomic uint64_t *
row_at(const struct keytable *t, uint32_t row)
{
	ASSERT(row / ROWS < t->count);
	return &t->lines[row / ROWS].rows[row % ROWS];
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

/*
 * Which row has this tag; -1: none.  A row never used has tag 0, and may
 * pass for one of that tag: it is free, so that is right.
 */
static int
find_tag(const struct line *l, uint64_t tag)
{
	for (int i = 0; i < ROWS; i++)
		if (tag_of(atomic_load(&l->rows[i])) == tag)
			return i;
	return -1;
}

/* Count one more in row i, as long as it has this tag. */
static bool
count_one(struct line *l, int i, uint64_t tag, const struct key_bounds *b,
    enum key_result *r)
{
	uint64_t word = atomic_load(&l->rows[i]);
	uint64_t next;

	do {
		if (tag_of(word) != tag)
			return false;
		next = one_more(word, b);
	} while (!atomic_compare_exchange_weak(&l->rows[i], &word, next));
	*r = result_of(word, next);
	return true;
}

/* Make a free row the tag's, and count one; under the lock. */
static bool
claim_one(struct line *l, int i, uint64_t tag, const struct key_bounds *b,
    enum key_result *r)
{
	uint64_t word = atomic_load(&l->rows[i]);

	while (is_free(word)) {
		uint64_t next = one_more(tag, b);

		if (!atomic_compare_exchange_weak(&l->rows[i], &word, next))
			continue;
		*r = result_of(tag, next);
		return true;
	}
	return false;
}

static int
claim(struct line *l, uint64_t tag, const struct key_bounds *b,
    enum key_result *r)
{
	int i;

	lock(l);
	/* No tag changes now, so a row that is found stays. */
	i = find_tag(l, tag);
	if (i == -1) {
		for (i = ROWS - 1; i >= 0; i--)
			if (claim_one(l, i, tag, b, r))
				break;
	} else if (!count_one(l, i, tag, b, r)) {
		i = -1;
	}
	unlock(l);
	return i;
}

enum key_result
keytable_enter(struct keytable *t, uint64_t key, const struct key_bounds *b,
    uint32_t *row)
{
	struct line *l = line_of(t, key);
	uint64_t tag = tag_of(key);
	enum key_result r = KEY_NO_ROW;
	int i = find_tag(l, tag);

	if (i == -1 || !count_one(l, i, tag, b, &r))
		i = claim(l, tag, b, &r);
	if (i == -1)
		return KEY_NO_ROW;
	*row = row_number(t, l, i);
	return r;
}

/* --- rows -------------------------------------------------------------- */

bool
keytable_promote(struct keytable *t, uint32_t row, uint64_t limit)
{
	_Atomic uint64_t *at = row_at(t, row);
	uint64_t word = atomic_load(at);

	do {
		ASSERT(count_of(word).waiting > 0);
		if (count_of(word).in_use >= MIN(limit, KEYTABLE_MAX_COUNT))
			return false;
	} while (!atomic_compare_exchange_weak(at, &word,
	    word + ONE_IN_USE - ONE_WAITING));
	return true;
}

struct key_count
keytable_leave(struct keytable *t, uint32_t row)
{
	uint64_t word = atomic_fetch_sub(row_at(t, row), ONE_IN_USE);

	ASSERT(count_of(word).in_use > 0);
	return count_of(word - ONE_IN_USE);
}

struct key_count
keytable_quit(struct keytable *t, uint32_t row)
{
	uint64_t word = atomic_fetch_sub(row_at(t, row), ONE_WAITING);

	ASSERT(count_of(word).waiting > 0);
	return count_of(word - ONE_WAITING);
}

struct key_count
keytable_look(const struct keytable *t, uint32_t row)
{
	return count_of(atomic_load(row_at(t, row)));
}

bool
keytable_find(const struct keytable *t, uint64_t key, uint32_t *row)
{
	const struct line *l = line_of(t, key);
	int i = find_tag(l, tag_of(key));

	if (i == -1)
		return false;
	*row = row_number(t, l, i);
	return true;
}

uint32_t
keytable_longest(const struct keytable *t, uint32_t first, uint32_t count,
    uint32_t *row)
{
	uint32_t end = MIN(first + count, (uint32_t)(t->count * ROWS));
	const struct line *l = &t->lines[first / ROWS];
	uint32_t place = first % ROWS;
	uint32_t longest = 0;

	*row = first;
	for (uint32_t i = first; i < end; i++) {
		uint32_t n = count_of(atomic_load(&l->rows[place])).waiting;

		if (n > longest) {
			longest = n;
			*row = i;
		}
		if (++place == ROWS) {
			place = 0;
			l++;
		}
	}
	return longest;
}

uint64_t
keytable_in_use(const struct keytable *t)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < t->count; i++)
		for (int j = 0; j < ROWS; j++)
			n += count_of(atomic_load_explicit(
			    &t->lines[i].rows[j],
			    memory_order_relaxed)).in_use;
	return n;
}

uint64_t
keytable_used(const struct keytable *t)
{
	uint64_t used = 0;

	for (uint64_t i = 0; i < t->count; i++)
		for (int j = 0; j < ROWS; j++)
			used += !is_free(atomic_load_explicit(
			    &t->lines[i].rows[j], memory_order_relaxed));
	return used;
}
