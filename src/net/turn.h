/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn.h - what a turn of a loop is spent on: which function took longest.
 *
 * The loop marks whom it is about to call; that also ends what was called
 * before.  A mark costs no clock, but the processor's counter: what its ticks
 * are worth is only asked where somebody wants to hear of slow functions.
 *
 *	begin      mark      mark    mark       end
 *	  |-- loop --|-- a() --|- b() -|--- c() --|	c() took longest
 *
 * Owner:    the loop, which embeds the struct.
 * Threads:  the loop's, except turn_running() and turn_set_slow().
 */
#ifndef PENSTOCK_NET_TURN_H
#define PENSTOCK_NET_TURN_H

#include <stdatomic.h>

#include "base/defs.h"
#include "base/wheel.h"
#include "net/clock.h"

/* Ticks of some microseconds: what takes less isn't looked at. */
#if defined(__aarch64__)
enum { TURN_BAR = 200 };
#else
enum { TURN_BAR = 20000 };
#endif

/* In the loop's thread, once a function that took `took` has returned. */
typedef void turn_slow_fn(void *arg, const char *name, nsec_t took);

struct turn {
	_Atomic(const char *)	 running;	/* NULL: the loop polls */
	uint64_t		 marked;	/* when that began, ticks */
	int64_t			 bar;		/* more are looked at */
	int64_t			 most;		/* ticks of the longest */
	const char		*longest;	/* of this turn */
	_Atomic nsec_t		 slow;		/* NSEC_NEVER: nobody asks */
	turn_slow_fn		*fn;
	void			*arg;
	uint64_t		 first_tick;	/* when it was made, */
	nsec_t			 first;		/* by both clocks */
};

void turn_init(struct turn *t);

/* Whom to tell of functions over turn_set_slow(); before the loop runs. */
void turn_on_slow(struct turn *t, turn_slow_fn *fn, void *arg);

/* From any thread; NSEC_NEVER, as at first, costs nothing. */
void turn_set_slow(struct turn *t, nsec_t slow);

/* turn_mark() for wheels_on_fire(); arg is the struct turn. */
wheel_mark_fn	turn_mark_timer;

/* What runs has taken so many ticks; out of line. */
void turn_look(struct turn *t, int64_t ticks);

static inline uint64_t
turn_ticks(void)
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
turn_running(const struct turn *t)
{
	return atomic_load_explicit(&t->running, memory_order_relaxed);
}

/* The next is `name`, a literal.  Counters of two processors may differ. */
static inline void
turn_mark(struct turn *t, const char *name)
{
	uint64_t now = turn_ticks();
	int64_t took = (int64_t)(now - t->marked);

	if (UNLIKELY(took > t->bar))
		turn_look(t, took);
	t->marked = now;
	atomic_store_explicit(&t->running, name, memory_order_relaxed);
}

static inline void
turn_begin(struct turn *t, const char *name)
{
	t->bar = t->most = TURN_BAR;
	t->longest = name;
	t->marked = turn_ticks();
	atomic_store_explicit(&t->running, name, memory_order_relaxed);
}

/* Note the one that took longest, unless `longest` is NULL. */
static inline void
turn_end(struct turn *t, _Atomic(const char *) *longest)
{
	turn_mark(t, NULL);
	if (longest != NULL)
		atomic_store_explicit(longest, t->longest,
		    memory_order_relaxed);
}

#endif
