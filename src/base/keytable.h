/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keytable.h - a fixed table that counts, for each key, who is in and waits.
 *
 * A key is a hash that nobody outside can steer (see siphash.h).  Its low
 * bits choose a line of seven rows, the others are the row's tag:
 *
 *	 line, 64 bytes        row, 64 bits
 *	[ lock | 7 rows ]     [ tag 24 | in use 20 | waiting 20 ]
 *
 * A row is all there is about a key, so taking, leaving and freeing are one
 * compare-and-swap, and there is nothing to be torn.  A row with 0 in use and
 * 0 waiting is free; a key whose line has neither its row nor a free one has
 * no place.  Two keys that share line and tag share the row: with a full
 * table that is one in two million.
 *
 * Only the tag of a row is changed under the lock of its line, when a key
 * comes that has no row; so a key never has two.
 *
 * Owner:    keytable_new() gives a handle.
 * Threads:  any.
 * Limits:   KEYTABLE_MAX_COUNT in use, and as many waiting, for a key.
 */
#ifndef PENSTOCK_BASE_KEYTABLE_H
#define PENSTOCK_BASE_KEYTABLE_H

#include "base/defs.h"

enum {
	KEYTABLE_MAX_COUNT = (1 << 20) - 1,
	KEYTABLE_MAX_ROWS = 1 << 27,
};

struct keytable;

/* How many are in, and wait, for one key. */
struct key_count {
	uint32_t	in_use;
	uint32_t	waiting;
};

/* How many may.  What is over KEYTABLE_MAX_COUNT counts as that. */
struct key_bounds {
	uint64_t	limit;
	uint64_t	queue;
};

enum key_result { KEY_TAKEN, KEY_WAITS, KEY_REFUSED, KEY_NO_ROW };

/* A table of at least `rows` rows, 1 <= rows <= KEYTABLE_MAX_ROWS. */
struct keytable *keytable_new(uint64_t rows);
void keytable_free(struct keytable **t);

/* Bytes that such a table takes. */
size_t keytable_memory(uint64_t rows);

/*
 * Count one more for `key`, in *row: as in use if there is room for it and
 * all who wait; else as waiting, if the queue has room; else not at all.
 */
enum key_result keytable_enter(struct keytable *t, uint64_t key,
    const struct key_bounds *b, uint32_t *row) MUST_USE;

/* One of the waiting is now in use, unless the limit is reached. */
bool keytable_promote(struct keytable *t, uint32_t row, uint64_t limit)
    MUST_USE;

/* One less in use, one less waiting; what is left. */
struct key_count keytable_leave(struct keytable *t, uint32_t row);
struct key_count keytable_quit(struct keytable *t, uint32_t row);

struct key_count keytable_look(const struct keytable *t, uint32_t row);

/* The row of a key, if it has one. */
bool keytable_find(const struct keytable *t, uint64_t key, uint32_t *row)
    MUST_USE;

/*
 * Of `count` rows from `first` on, that with most waiting, and how many.  Rows
 * that the table doesn't have count as free.
 */
uint32_t keytable_longest(const struct keytable *t, uint32_t first,
    uint32_t count, uint32_t *row);

/* In use of all rows together; looks at each. */
uint64_t keytable_in_use(const struct keytable *t);

/* Rows that aren't free; looks at each. */
uint64_t keytable_used(const struct keytable *t);

#endif
