/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fair.c - turns by key; see fair.h.
 *
 * Rounds only decide who is first.  So nothing here is ordered against
 * anything else: a worker that reads an old round gives one key a turn too
 * early or too late, once.
 *
 * A row that nobody waits in keeps its next round, as keytable keeps its tag:
 * a key that comes back within the round in which it was served has to wait
 * for the next, or those who ask one by one would starve those who ask for
 * much.  Another key that gets the row may so be a round late.
 *
 * Which row is the longest is asked by everyone who comes to a full queue, and
 * that is when it must cost least.  So rows stand in groups, and each group's
 * longest is kept: who changes a row looks at it, and at the whole group only
 * if that may have changed.
 */
#include "base/fair.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/keytable.h"

enum {
	GROUP = 64,			/* rows; near the root of all */
	GROUPS = (FAIR_ROWS + GROUP - 1) / GROUP,
	WAITING_SHIFT = 32,		/* in a word of `longest` */
};

struct fair {
	struct keytable		*table;		/* row r of it is r + 1 here */
	_Atomic uint32_t	 shared;	/* wait in FAIR_SHARED */
	_Atomic uint64_t	 round[FAIR_CLASSES];	/* being served */
	_Atomic uint64_t	 next[FAIR_ROWS][FAIR_CLASSES];
	_Atomic uint64_t	 longest[GROUPS];	/* [ waiting | row ] */
};

static const struct key_bounds nobody_enters = { .queue = UINT64_MAX };

struct fair *
fair_new(void)
{
	struct fair *f = xcalloc(1, sizeof *f);

	f->table = keytable_new(FAIR_KEYS);
	return f;
}

void
fair_free(struct fair **f)
{
	if (*f == NULL)
		return;
	keytable_free(&(*f)->table);
	free(*f);
	*f = NULL;
}

size_t
fair_memory(void)
{
	return sizeof(struct fair) + keytable_memory(FAIR_KEYS);
}

/* --- the longest ------------------------------------------------------- */

static uint32_t
row_of(uint64_t longest)
{
	return (uint32_t)longest;
}

static uint32_t
waiting_of(uint64_t longest)
{
	return (uint32_t)(longest >> WAITING_SHIFT);
}

static uint64_t
look_at_group(const struct fair *f, uint32_t group)
{
	uint32_t row;
	uint64_t n = keytable_longest(f->table, group * GROUP, GROUP, &row);

	return n << WAITING_SHIFT | row;
}

/*
 * So many wait in a row of the table, where it was one more or fewer.  Whoever
 * writes looks once more until that is what stands there: what others change
 * meanwhile they compare to what was written, or see it being written.  So
 * once all have finished it is right.
 */
static void
note(struct fair *f, uint32_t row, uint32_t waiting)
{
	_Atomic uint64_t *longest = &f->longest[row / GROUP];
	uint64_t known = atomic_load(longest);
	uint64_t found;

	if (row_of(known) != row && waiting_of(known) >= waiting)
		return;
	while ((found = look_at_group(f, row / GROUP)) != known)
		if (atomic_compare_exchange_weak(longest, &known, found))
			known = found;
}

/* --- who waits --------------------------------------------------------- */

uint32_t
fair_join(struct fair *f, uint64_t key)
{
	uint32_t row;

	if (keytable_enter(f->table, key, &nobody_enters, &row) == KEY_WAITS) {
		ASSERT(row + 1 < FAIR_ROWS);
		note(f, row, keytable_look(f->table, row).waiting);
		return row + 1;
	}
	atomic_fetch_add_explicit(&f->shared, 1, memory_order_relaxed);
	return FAIR_SHARED;
}

void
fair_quit(struct fair *f, uint32_t row)
{
	if (row == FAIR_SHARED)
		atomic_fetch_sub_explicit(&f->shared, 1, memory_order_relaxed);
	else
		note(f, row - 1, keytable_quit(f->table, row - 1).waiting);
}

uint32_t
fair_waiting(const struct fair *f, uint64_t key)
{
	uint32_t row;

	return keytable_find(f->table, key, &row) ?
	    keytable_look(f->table, row).waiting : 0;
}

uint32_t
fair_longest(const struct fair *f, uint32_t *row)
{
	uint32_t shared = atomic_load_explicit(&f->shared,
	    memory_order_relaxed);
	uint64_t longest = 0;

	for (int i = 0; i < GROUPS; i++) {
		uint64_t l = atomic_load_explicit(&f->longest[i],
		    memory_order_relaxed);

		if (waiting_of(l) > waiting_of(longest))
			longest = l;
	}
	*row = shared > waiting_of(longest) ? FAIR_SHARED :
	    row_of(longest) + 1;
	return MAX(shared, waiting_of(longest));
}

/* --- turns ------------------------------------------------------------- */

uint64_t
fair_draw(struct fair *f, uint32_t row, unsigned class)
{
	_Atomic uint64_t *next = &f->next[row][class];
	uint64_t n = atomic_load_explicit(next, memory_order_relaxed);
	uint64_t round = atomic_load_explicit(&f->round[class],
	    memory_order_relaxed);
	uint64_t drawn;

	do
		drawn = MAX(n, round);
	while (!atomic_compare_exchange_weak_explicit(next, &n, drawn + 1,
	    memory_order_relaxed, memory_order_relaxed));
	return drawn;
}

void
fair_taken(struct fair *f, unsigned class, uint64_t round)
{
	uint64_t now = atomic_load_explicit(&f->round[class],
	    memory_order_relaxed);

	while (now < round &&
	    !atomic_compare_exchange_weak_explicit(&f->round[class], &now,
	    round, memory_order_relaxed, memory_order_relaxed))
		;
}

void
fair_undo(struct fair *f, uint32_t row, unsigned class, uint64_t round)
{
	uint64_t next = round + 1;

	/* Fails if another worker has drawn a later one; that one stays. */
	(void)atomic_compare_exchange_strong_explicit(&f->next[row][class],
	    &next, round, memory_order_relaxed, memory_order_relaxed);
}
