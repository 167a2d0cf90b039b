/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lineup.h - who of one worker's waiters for a gate is next.
 *
 * Either all stand in one line, and the oldest is next; or each key stands in
 * a lane of its own, and the lane of the lowest round is next (fair.h).  Which
 * of the two is said for each waiter when it joins, so that a reload can
 * change it: those who came before are served first, in their order.
 *
 *	arrival:  a1 b1 a2 a3 c1 ...         all of them
 *	rounds:   [7: a b] [8: c]            lanes, by round
 *	lanes:    a: a1 a2 a3, b: b1, c: c1
 *
 * Everything takes the same time whatever the number of waiters and keys.
 *
 * Owner:    the caller, who embeds the struct.  A waiter belongs to whoever
 *           waits.
 * Threads:  one; a lane's `newest` may be read by any.
 */
#ifndef PENSTOCK_BASE_LINEUP_H
#define PENSTOCK_BASE_LINEUP_H

#include <stdatomic.h>

#include "base/fair.h"
#include "base/gate.h"

/*
 * Rounds told apart.  Each worker has one drawn for a key at most, so none is
 * further ahead than there are workers; what is, counts as the last of these.
 */
enum { LINEUP_ROUNDS = 64 };

struct lineup_lane {
	struct list	 waiters;
	struct list	 link;		/* in its round */
	uint64_t	 round;
	_Atomic nsec_t	 newest;	/* its arrival; 0: nobody */
};

struct lineup {
	struct list		 waiters;	/* by arrival */
	_Atomic nsec_t		 newest;	/* of those without a lane */
	struct fair		*fair;		/* NULL: nobody has a lane */
	struct lineup_lane	*lanes;		/* FAIR_ROWS of them */
	unsigned		 class;
	uint64_t		 first;		/* no lane has a lower round */
	uint64_t		 used;		/* rounds that have lanes */
	struct list		 rounds[LINEUP_ROUNDS];
};

/* For waiters of a class of fair.h. */
void lineup_init(struct lineup *l, unsigned class);

/*
 * From now on waiters may have rows of f; their lanes are FAIR_ROWS zeroed
 * ones.  Both outlive the lineup; once, while nobody has a lane.
 */
void lineup_set_fair(struct lineup *l, struct fair *f,
    struct lineup_lane *lanes);

/* Join, in the lane of w->row; or in no lane with GATE_NO_ROW. */
void lineup_add(struct lineup *l, struct gate_waiter *w);

/* Who is next, NULL for nobody; the newest of its lane with `newest`. */
struct gate_waiter *lineup_next(struct lineup *l, bool newest);

/* The waiter leaves: with its lane's turn, or without. */
void lineup_serve(struct lineup *l, struct gate_waiter *w);
void lineup_remove(struct lineup *l, struct gate_waiter *w);

/* What compares the next ones of different workers: lower goes first. */
uint64_t lineup_key(const struct lineup *l);

/* Who came last, of a lane or of those who have none; NULL: nobody. */
struct gate_waiter *lineup_newest(struct lineup *l, uint32_t row);

static inline bool
lineup_is_empty(const struct lineup *l)
{
	return list_is_empty(&l->waiters);
}

/* Who came first; somebody must be there. */
static inline struct gate_waiter *
lineup_oldest(const struct lineup *l)
{
	return container_of(l->waiters.next, struct gate_waiter, link);
}

#endif
