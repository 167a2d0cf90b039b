/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn.c - what a turn of a loop is spent on; see turn.h.
 */
#include "net/turn.h"

#include <string.h>

void
turn_init(struct turn *t)
{
	memset(t, 0, sizeof *t);
	atomic_init(&t->look, UINT64_MAX);
	atomic_init(&t->slow, NSEC_NEVER);
	t->first_tick = t->marked = turn_ticks();
	t->first = read_clock(CLOCK_MONOTONIC);
}

void
turn_on_slow(struct turn *t, turn_slow_fn *fn, void *arg)
{
	t->fn = fn;
	t->arg = arg;
}

/* With anyone to tell, each function is looked at. */
void
turn_set_slow(struct turn *t, nsec_t slow)
{
	bool any = slow != NSEC_NEVER && t->fn != NULL;

	atomic_store_explicit(&t->slow, slow, memory_order_relaxed);
	atomic_store_explicit(&t->look, any ? 0 : UINT64_MAX,
	    memory_order_relaxed);
}

void
turn_mark_timer(void *arg, const char *name)
{
	turn_mark(arg, name);
}

/*
 * A tick is worth what it was on average since the start, which these ticks
 * are part of: the longer they are, the better that is known.
 */
void
turn_look(struct turn *t, uint64_t ticks)
{
	nsec_t slow = atomic_load_explicit(&t->slow, memory_order_relaxed);
	nsec_t time = read_clock(CLOCK_MONOTONIC) - t->first;
	uint64_t all = turn_ticks() - t->first_tick;
	double took = (double)ticks * (double)time / (double)MAX(all, 1u);

	if (took > (double)slow)
		t->fn(t->arg, turn_running(t), (nsec_t)took);
}
