/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.h - run pieces of code interleaved, one atomic access at a time.
 *
 * A test includes this and then the .c file under test.  Each sequentially
 * consistent access in it then first calls steps_pause(), which may switch to
 * another actor, as a seeded random number says.  So a race of two workers
 * that takes two threads hours to lose is lost within a second, and again
 * with the same seed.
 *
 * steps_explore() tries every order in which actors are switched up to a
 * number of times in the middle of what they do, instead of random ones.
 */
#ifndef PENSTOCK_TESTS_STEPS_H
#define PENSTOCK_TESTS_STEPS_H

#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "base/crew.h"

enum { STEPS_ACTORS = 3, STEPS_STACK = 128 * 1024 };

typedef void steps_fn(unsigned actor);

enum { TRAIL_MOST = 4096 };

/* The choices of an exploration; the last one is varied first. */
static struct {
	uint8_t		 chosen[TRAIL_MOST];
	uint8_t		 of[TRAIL_MOST];
	unsigned	 known;
	unsigned	 made;
} trail;

static inline unsigned
trail_choose(unsigned of)
{
	if (trail.made == trail.known) {
		CREW_ASSERT(trail.known < TRAIL_MOST);
		trail.chosen[trail.known] = 0;
		trail.of[trail.known++] = (uint8_t)of;
	}
	CREW_ASSERT(trail.of[trail.made] == of);
	return trail.chosen[trail.made++];
}

/* On to the next one; false: that was the last. */
static inline bool
trail_advance(void)
{
	while (trail.known > 0 && trail.chosen[trail.known - 1] + 1 ==
	    trail.of[trail.known - 1])
		trail.known--;
	trail.made = 0;
	if (trail.known == 0)
		return false;
	trail.chosen[trail.known - 1]++;
	return true;
}

static struct {
	ucontext_t	 back;
	ucontext_t	 actors[STEPS_ACTORS];
	bool		 ended[STEPS_ACTORS];
	unsigned	 at;
	unsigned	 left;
	bool		 on;
	bool		 explores;
	unsigned	 switches;	/* it may still make */
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
	if (!steps.on)
		return;
	if (!steps.explores) {
		if (crew_random(steps.seed, 3) == 0)
			steps_switch();
	} else if (steps.switches > 0 && steps.left > 1 &&
	    trail_choose(2) == 1) {
		steps.switches--;
		steps_switch();
	}
}

/* Of those who have not ended, when one was switched from or has ended. */
static inline unsigned
steps_next(unsigned actors)
{
	unsigned n = steps.at, others = 0;

	if (!steps.explores) {
		do
			n = crew_random(steps.seed, actors);
		while (steps.ended[n]);
		return n;
	}
	for (unsigned i = 0; i < actors; i++)
		others += !steps.ended[i] && i != steps.at;
	unsigned skip = others > 1 ? trail_choose(others) : 0;
	if (others == 0)
		return n;
	do
		n = (n + 1) % actors;
	while (steps.ended[n] || n == steps.at || skip-- > 0);
	return n;
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
		steps.at = steps_next(actors);
		steps.on = true;
		swapcontext(&steps.back, &steps.actors[steps.at]);
		steps.on = false;
		steps.left -= steps.ended[steps.at];
	}
}

/*
 * Begin with exploring orders of up to so many switches; steps_explore_more()
 * after each steps_run() until it is false.
 */
static inline void
steps_explore(unsigned actors, unsigned switches)
{
	if (trail.made == 0 && trail.known == 0)
		steps.explores = true;
	steps.switches = switches;
	steps.at = trail_choose(actors);
}

static inline bool
steps_explore_more(void)
{
	bool more = trail_advance();

	steps.explores = more;
	return more;
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
