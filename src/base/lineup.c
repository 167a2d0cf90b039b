/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lineup.c - who is next; see lineup.h.
 *
 * Lanes stand in a ring of lists, one a round, with a bit for each that isn't
 * empty: the lowest round is found by counting zeros.
 */
#include "base/lineup.h"

static struct gate_waiter *
waiter_at(struct list *link)
{
	return container_of(link, struct gate_waiter, link);
}

void
lineup_init(struct lineup *l, unsigned class)
{
	*l = (struct lineup){ .class = class };
	list_init(&l->waiters);
	for (int i = 0; i < LINEUP_ROUNDS; i++)
		list_init(&l->rounds[i]);
}

void
lineup_set_fair(struct lineup *l, struct fair *f, struct lineup_lane *lanes)
{
	ASSERT(l->fair == NULL);
	l->fair = f;
	l->lanes = lanes;
}

/* --- rounds ------------------------------------------------------------ */

/* Bit n: there are lanes of round first + n. */
static uint64_t
used_from_first(const struct lineup *l)
{
	unsigned n = l->first % LINEUP_ROUNDS;

	return l->used >> n | (n != 0 ? l->used << (LINEUP_ROUNDS - n) : 0);
}

static uint64_t
lowest_round(const struct lineup *l)
{
	return l->first + (unsigned)__builtin_ctzll(used_from_first(l));
}

/* The round itself, or the nearest that can be told from those in use. */
static uint64_t
fit(struct lineup *l, uint64_t round)
{
	const uint64_t most = LINEUP_ROUNDS - 1;

	if (l->used == 0) {
		l->first = round;
		return round;
	}
	l->first = lowest_round(l);
	if (round < l->first) {
		uint64_t last = l->first + most -
		    (unsigned)__builtin_clzll(used_from_first(l));

		l->first = MAX(round, last - MIN(last, most));
		return l->first;
	}
	return MIN(round, l->first + most);
}

static void
line_up(struct lineup *l, struct lineup_lane *lane, uint32_t row)
{
	lane->round = fit(l, fair_draw(l->fair, row, l->class));
	list_add_last(&l->rounds[lane->round % LINEUP_ROUNDS], &lane->link);
	l->used |= UINT64_C(1) << lane->round % LINEUP_ROUNDS;
}

static void
step_out(struct lineup *l, struct lineup_lane *lane)
{
	unsigned i = lane->round % LINEUP_ROUNDS;

	list_remove(&lane->link);
	if (list_is_empty(&l->rounds[i]))
		l->used &= ~(UINT64_C(1) << i);
}

/* --- waiters ----------------------------------------------------------- */

/* For others to see, after somebody has come or gone. */
static void
tell_newest(struct lineup *l, uint32_t row)
{
	const struct gate_waiter *w = lineup_newest(l, row);
	_Atomic nsec_t *newest = row == GATE_NO_ROW ? &l->newest :
	    &l->lanes[row].newest;

	atomic_store_explicit(newest, w != NULL ? MAX(w->arrived, 1) : 0,
	    memory_order_relaxed);
}

void
lineup_add(struct lineup *l, struct gate_waiter *w)
{
	list_add_last(&l->waiters, &w->link);
	if (w->row == GATE_NO_ROW) {
		tell_newest(l, GATE_NO_ROW);
		return;
	}

	struct lineup_lane *lane = &l->lanes[w->row];
	if (lane->waiters.next == NULL) {
		list_init(&lane->waiters);
		list_init(&lane->link);
	}
	list_add_last(&lane->waiters, &w->lane);
	tell_newest(l, w->row);
	if (list_is_empty(&lane->link))
		line_up(l, lane, w->row);
}

static struct lineup_lane *
next_lane(const struct lineup *l)
{
	const struct list *round =
	    &l->rounds[lowest_round(l) % LINEUP_ROUNDS];

	return container_of(round->next, struct lineup_lane, link);
}

/* Those without a lane are first in first out among all. */
static bool
is_lanes_turn(const struct lineup *l)
{
	return lineup_oldest(l)->row != GATE_NO_ROW;
}

struct gate_waiter *
lineup_next(struct lineup *l, bool newest)
{
	if (lineup_is_empty(l))
		return NULL;
	if (is_lanes_turn(l)) {
		struct lineup_lane *lane = next_lane(l);

		return container_of(newest ? lane->waiters.prev :
		    lane->waiters.next, struct gate_waiter, lane);
	}
	struct gate_waiter *last = waiter_at(l->waiters.prev);
	return newest && last->row == GATE_NO_ROW ? last : lineup_oldest(l);
}

uint64_t
lineup_key(const struct lineup *l)
{
	if (lineup_is_empty(l))
		return UINT64_MAX;
	return is_lanes_turn(l) ? next_lane(l)->round :
	    lineup_oldest(l)->arrived;
}

/* The lane's turn is over, or nobody is left to take it. */
static HOT void
take_out(struct lineup *l, struct gate_waiter *w, bool served)
{
	list_remove(&w->link);
	if (w->row == GATE_NO_ROW) {
		tell_newest(l, GATE_NO_ROW);
		return;
	}

	struct lineup_lane *lane = &l->lanes[w->row];
	list_remove(&w->lane);
	tell_newest(l, w->row);
	if (served)
		fair_taken(l->fair, l->class, lane->round);
	else if (!list_is_empty(&lane->waiters))
		return;
	else
		fair_undo(l->fair, w->row, l->class, lane->round);
	step_out(l, lane);
	if (!list_is_empty(&lane->waiters))
		line_up(l, lane, w->row);
}

void
lineup_serve(struct lineup *l, struct gate_waiter *w)
{
	take_out(l, w, true);
}

void
lineup_remove(struct lineup *l, struct gate_waiter *w)
{
	take_out(l, w, false);
}

struct gate_waiter *
lineup_newest(struct lineup *l, uint32_t row)
{
	if (lineup_is_empty(l))
		return NULL;
	if (row == GATE_NO_ROW) {
		struct gate_waiter *w = waiter_at(l->waiters.prev);

		return w->row == GATE_NO_ROW ? w : NULL;
	}
	if (l->lanes == NULL || l->lanes[row].waiters.next == NULL ||
	    list_is_empty(&l->lanes[row].waiters))
		return NULL;
	return container_of(l->lanes[row].waiters.prev, struct gate_waiter,
	    lane);
}
