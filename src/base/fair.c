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
 */
#include "base/fair.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/keytable.h"

struct fair {
	struct keytable		*table;		/* row r of it is r + 1 here */
	_Atomic uint32_t	 shared;	/* wait in FAIR_SHARED */
	_Atomic uint64_t	 round[FAIR_CLASSES];	/* being served */
	_Atomic uint64_t	 next[FAIR_ROWS][FAIR_CLASSES];
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

/* --- who waits --------------------------------------------------------- */

uint32_t
fair_join(struct fair *f, uint64_t key)
{
	uint32_t row;

	if (keytable_enter(f->table, key, &nobody_enters, &row) == KEY_WAITS &&
	    row + 1 < FAIR_ROWS)
		return row + 1;
	atomic_fetch_add_explicit(&f->shared, 1, memory_order_relaxed);
	return FAIR_SHARED;
}

void
fair_quit(struct fair *f, uint32_t row)
{
	if (row == FAIR_SHARED)
		atomic_fetch_sub_explicit(&f->shared, 1, memory_order_relaxed);
	else
		(void)keytable_quit(f->table, row - 1);
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
	uint32_t longest = keytable_longest(f->table, row);

	if (shared > longest) {
		*row = FAIR_SHARED;
		return shared;
	}
	*row += 1;
	return longest;
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
