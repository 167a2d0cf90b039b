/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.h - run pieces of code interleaved, one atomic access at a time.
 *
 * A test includes this and then the .c file under test.  Each sequentially
 * consistent access in it then first calls steps_pause(), which may switch to
 * another actor, as a seeded random number says.  So a race of two workers
 * that takes two threads hours to lose is lost within a second, and again
 * with the same seed.
 */
#ifndef PENSTOCK_TESTS_STEPS_H
#define PENSTOCK_TESTS_STEPS_H

#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "base/crew.h"

enum { STEPS_ACTORS = 3, STEPS_STACK = 128 * 1024 };

typedef void steps_fn(unsigned actor);

static struct {
	ucontext_t	 back;
	ucontext_t	 actors[STEPS_ACTORS];
	bool		 ended[STEPS_ACTORS];
	unsigned	 at;
	unsigned	 left;
	bool		 on;
	uint64_t	*seed;
	steps_fn	*fn;
} steps;

static char steps_stacks[STEPS_ACTORS][STEPS_STACK]
    __attribute__((aligned(64)));

static inline void
steps_switch(void)
{
	if (steps.on)
		swapcontext(&steps.actors[steps.at], &steps.back);
}

static inline void
steps_pause(void)
{
	if (steps.on && crew_random(steps.seed, 3) == 0)
		steps_switch();
}

static inline void
steps_act(void)
{
	unsigned actor = steps.at;

	steps.fn(actor);
	steps.ended[actor] = true;
}

static inline void
steps_make(unsigned actor)
{
	ucontext_t *u = &steps.actors[actor];

	steps.ended[actor] = false;
	getcontext(u);
	u->uc_stack.ss_sp = steps_stacks[actor];
	u->uc_stack.ss_size = STEPS_STACK;
	u->uc_link = &steps.back;
	makecontext(u, steps_act, 0);
}

/* Run fn(0) to fn(actors - 1) interleaved, until all have ended. */
static inline void
steps_run(unsigned actors, steps_fn *fn, uint64_t *seed)
{
	steps.left = actors;
	steps.fn = fn;
	steps.seed = seed;
	for (unsigned i = 0; i < actors; i++)
		steps_make(i);
	while (steps.left > 0) {
		do
			steps.at = crew_random(seed, actors);
		while (steps.ended[steps.at]);
		steps.on = true;
		swapcontext(&steps.back, &steps.actors[steps.at]);
		steps.on = false;
		steps.left -= steps.ended[steps.at];
	}
}

#define STEPS_SEQ	memory_order_seq_cst

#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_fetch_add
#undef atomic_fetch_sub
#undef atomic_fetch_or
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_strong
#define atomic_load(p) \
	(steps_pause(), atomic_load_explicit(p, STEPS_SEQ))
#define atomic_store(p, v) \
	(steps_pause(), atomic_store_explicit(p, v, STEPS_SEQ))
#define atomic_exchange(p, v) \
	(steps_pause(), atomic_exchange_explicit(p, v, STEPS_SEQ))
#define atomic_fetch_add(p, v) \
	(steps_pause(), atomic_fetch_add_explicit(p, v, STEPS_SEQ))
#define atomic_fetch_sub(p, v) \
	(steps_pause(), atomic_fetch_sub_explicit(p, v, STEPS_SEQ))
#define atomic_fetch_or(p, v) \
	(steps_pause(), atomic_fetch_or_explicit(p, v, STEPS_SEQ))
#define atomic_compare_exchange_weak(p, e, v) (steps_pause(),		\
	atomic_compare_exchange_weak_explicit(p, e, v, STEPS_SEQ, STEPS_SEQ))
#define atomic_compare_exchange_strong(p, e, v) (steps_pause(),		\
	atomic_compare_exchange_strong_explicit(p, e, v, STEPS_SEQ, STEPS_SEQ))

/* A spinning lock yields: then surely. */
#define sched_yield()	steps_switch()

#endif
