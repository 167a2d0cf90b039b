/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fair.h - turns by key: round robin over all workers.
 *
 * Of many who wait, each key gets one turn a round, however many it has
 * waiting and on whatever workers.  A worker draws a round for the first of
 * its waiters of a key, and serves those of the lowest round first:
 *
 *	       row of the key [ waiting | next round ]
 *	            |                          |
 *	worker 0: its first has round 7    worker 1: its first has 8
 *
 * A key that has had no turn in the round that is being served gets one:
 * nobody of any other key has a second one before that.  This is start-time
 * fair queueing (Goyal, Vin, Cheng 1996) of equal packets, drawn when a waiter
 * becomes its worker's first, so that who leaves takes no turn with it.
 *
 * A key is a hash that nobody outside can steer (siphash.h); see keytable.h
 * for how they are told apart.  When more than FAIR_KEYS wait, those without
 * a place of their own share one: FAIR_SHARED.
 *
 * Owner:    fair_new() gives a handle.
 * Threads:  any.
 */
#ifndef PENSTOCK_BASE_FAIR_H
#define PENSTOCK_BASE_FAIR_H

#include "base/defs.h"

enum { FAIR_KEYS = 4096, FAIR_CLASSES = 2 };

/* Rows are less than FAIR_ROWS; the first is that of all who have none. */
enum { FAIR_SHARED = 0, FAIR_ROWS = FAIR_KEYS + 8 };

struct fair;

struct fair *fair_new(void);
void fair_free(struct fair **f);

/* Bytes that one takes. */
size_t fair_memory(void);

/* One more waits for the key: its row.  And one less of that row. */
uint32_t fair_join(struct fair *f, uint64_t key) MUST_USE;
void fair_quit(struct fair *f, uint32_t row);

/* Waiting in the row of a key; 0 if it has none. */
uint32_t fair_waiting(const struct fair *f, uint64_t key);

/* The row in which most wait, and how many: known, not searched for. */
uint32_t fair_longest(const struct fair *f, uint32_t *row);

/* The round of the row's next turn in a class, which is one's own then. */
uint64_t fair_draw(struct fair *f, uint32_t row, unsigned class) MUST_USE;

/* It was taken; or it was not, since nobody of the row waits here now. */
void fair_taken(struct fair *f, unsigned class, uint64_t round);
void fair_undo(struct fair *f, uint32_t row, unsigned class, uint64_t round);

#endif
