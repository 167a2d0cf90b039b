/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spent.c - what a turn of a loop is spent on; see spent.h.
 */
#include "net/spent.h"

#include <string.h>

void
spent_init(struct spent *t)
{
	memset(t, 0, sizeof *t);
	atomic_init(&t->slow, NSEC_NEVER);
	t->first_tick = t->marked = spent_ticks();
	t->first = read_clock(CLOCK_MONOTONIC);
}

void
spent_on_slow(struct spent *t, spent_slow_fn *fn, void *arg)
{
	t->fn = fn;
	t->arg = arg;
}

void
spent_set_slow(struct spent *t, nsec_t slow)
{
	atomic_store_explicit(&t->slow, slow, memory_order_relaxed);
}

void
spent_mark_timer(void *arg, const char *name)
{
	spent_mark(arg, name);
}

/*
 * A tick is worth what it was on average since the start, which these ticks
 * are part of: the longer they are, the better that is known.
 */
static void
tell(const struct spent *t, int64_t ticks, nsec_t slow)
{
	nsec_t time = read_clock(CLOCK_MONOTONIC) - t->first;
	uint64_t all = spent_ticks() - t->first_tick;
	double took = (double)ticks * (double)time / (double)MAX(all, 1u);

	if (took > (double)slow)
		t->fn(t->arg, spent_running(t), (nsec_t)took);
}

/* The bar rises to the longest, unless each that is slow must be told. */
void
spent_look(struct spent *t, int64_t ticks)
{
	nsec_t slow = atomic_load_explicit(&t->slow, memory_order_relaxed);

	if (ticks > t->most) {
		t->most = ticks;
		t->longest = spent_running(t);
	}
	if (slow == NSEC_NEVER || t->fn == NULL)
		t->bar = t->most;
	else
		tell(t, ticks, slow);
}
