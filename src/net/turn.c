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

void
turn_set_slow(struct turn *t, nsec_t slow)
{
	atomic_store_explicit(&t->slow, slow, memory_order_relaxed);
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
static void
tell(const struct turn *t, int64_t ticks, nsec_t slow)
{
	nsec_t time = read_clock(CLOCK_MONOTONIC) - t->first;
	uint64_t all = turn_ticks() - t->first_tick;
	double took = (double)ticks * (double)time / (double)MAX(all, 1u);

	if (took > (double)slow)
		t->fn(t->arg, turn_running(t), (nsec_t)took);
}

/* The bar rises to the longest, unless each that is slow must be told. */
void
turn_look(struct turn *t, int64_t ticks)
{
	nsec_t slow = atomic_load_explicit(&t->slow, memory_order_relaxed);

	if (ticks > t->most) {
		t->most = ticks;
		t->longest = turn_running(t);
	}
	if (slow == NSEC_NEVER || t->fn == NULL)
		t->bar = t->most;
	else
		tell(t, ticks, slow);
}
