/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spent.h - what a turn of a loop is spent on: which function took longest.
 *
 * The loop marks whom it is about to call; that also ends what was called
 * before.  A mark costs no clock, but the processor's counter: what its ticks
 * are worth is only asked where somebody wants to hear of slow functions.
 *
 *	begin      mark      mark    mark       end
 *	  |-- loop --|-- a() --|- b() -|--- c() --|	c() took longest
 *
 * Owner:    the loop, which embeds the struct.
 * Threads:  the loop's, except spent_running() and spent_set_slow().
 */
#ifndef PENSTOCK_NET_SPENT_H
#define PENSTOCK_NET_SPENT_H

#include <stdatomic.h>

#include "base/defs.h"
#include "base/wheel.h"
#include "net/clock.h"

/* Ticks of some microseconds: what takes less isn't looked at. */
#if defined(__aarch64__)
enum { SPENT_BAR = 200 };
#else
enum { SPENT_BAR = 20000 };
#endif

/* In the loop's thread, once a function that took `took` has returned. */
typedef void spent_slow_fn(void *arg, const char *name, nsec_t took);

struct spent {
	_Atomic(const char *)	 running;	/* NULL: the loop polls */
	uint64_t		 marked;	/* when that began, ticks */
	int64_t			 bar;		/* more are looked at */
	int64_t			 most;		/* ticks of the longest */
	const char		*longest;	/* of this turn */
	_Atomic nsec_t		 slow;		/* NSEC_NEVER: nobody asks */
	spent_slow_fn		*fn;
	void			*arg;
	uint64_t		 first_tick;	/* when it was made, */
	nsec_t			 first;		/* by both clocks */
};

void spent_init(struct spent *t);

/* Whom to tell of functions over spent_set_slow(); before the loop runs. */
void spent_on_slow(struct spent *t, spent_slow_fn *fn, void *arg);

/* From any thread; NSEC_NEVER, as at first, costs nothing. */
void spent_set_slow(struct spent *t, nsec_t slow);

/* spent_mark() for wheels_on_fire(); arg is the struct spent. */
wheel_mark_fn	spent_mark_timer;

/* What runs has taken so many ticks; out of line. */
void spent_look(struct spent *t, int64_t ticks);

static inline uint64_t
spent_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r" (ticks));
	return ticks;
#else
	return read_clock(CLOCK_MONOTONIC);
#endif
}

/* What runs now; by any thread, to whom it may have just ended. */
static inline const char *
spent_running(const struct spent *t)
{
	return atomic_load_explicit(&t->running, memory_order_relaxed);
}

/* The next is `name`, a literal.  Counters of two processors may differ. */
static inline void
spent_mark(struct spent *t, const char *name)
{
	uint64_t now = spent_ticks();
	int64_t took = (int64_t)(now - t->marked);

	if (UNLIKELY(took > t->bar))
		spent_look(t, took);
	t->marked = now;
	atomic_store_explicit(&t->running, name, memory_order_relaxed);
}

/* The same; false, and nothing is done, if the last one is to be looked at. */
static inline bool
spent_mark_short(struct spent *t, const char *name)
{
	uint64_t now = spent_ticks();

	if (UNLIKELY((int64_t)(now - t->marked) > t->bar))
		return false;
	t->marked = now;
	atomic_store_explicit(&t->running, name, memory_order_relaxed);
	return true;
}

static inline void
spent_begin(struct spent *t, const char *name)
{
	t->bar = t->most = SPENT_BAR;
	t->longest = name;
	t->marked = spent_ticks();
	atomic_store_explicit(&t->running, name, memory_order_relaxed);
}

/* Note the one that took longest, unless `longest` is NULL. */
static inline void
spent_end(struct spent *t, _Atomic(const char *) *longest)
{
	spent_mark(t, NULL);
	if (longest != NULL)
		atomic_store_explicit(longest, t->longest,
		    memory_order_relaxed);
}

#endif
