/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate_own.h - what a gate consists of; for gate.c and gate_queue.c alone.
 *
 * gate.c has the permits, and to which worker they go; gate_queue.c has who
 * waits there: who gets a place, whose turn it is, who must leave.
 */
#ifndef PENSTOCK_BASE_GATE_OWN_H
#define PENSTOCK_BASE_GATE_OWN_H

#include <stdatomic.h>

#include "base/gate.h"
#include "base/lineup.h"
#include "base/pulse.h"

enum {
	GATE_HIGH_SHIFT = 32,		/* of the high class in `waiting` */
	GATE_LOOKS_BACK = 4,		/* timeouts, for the prediction */
};

/* Waiters of one worker and class. */
struct gate_queue {
	_Atomic uint64_t	 count;
	_Atomic uint64_t	 key;		/* of who is next: lineup.h */
	nsec_t			 shortest;	/* wait in this interval */
	nsec_t			 interval_end;
	bool			 overloaded;	/* in the last interval */
	struct lineup		 line;
};

struct gate_side {
	/* Read and written by all. */
	_Alignas(CACHE_LINE) _Atomic uint64_t grants[GATE_CLASSES];
	_Atomic nsec_t		 told;		/* time of the last grant */
	_Atomic uint64_t	 evictions;	/* that newcomers are owed */
	atomic_bool		 called;	/* mail is under way */

	/* Written by the worker alone. */
	_Alignas(CACHE_LINE) struct gate_queue queues[GATE_CLASSES];
	struct gate		*gate;
	struct mail		 mail;
	nsec_t			 paced_at;	/* when `pace` was worked out */
	double			 pace;		/* nsec a release; 0: unknown */
	_Alignas(CACHE_LINE) struct pulses pulses;
};

/* Memory for turns by key; made when a spec first asks for them. */
struct gate_fair {
	struct fair		*fair;
	struct lineup_lane	 lanes[][FAIR_ROWS];	/* a queue each */
};

struct gate {
	_Alignas(CACHE_LINE) _Atomic int64_t free;
	/* All, and above GATE_HIGH_SHIFT those of the high class. */
	_Alignas(CACHE_LINE) _Atomic uint64_t waiting;
	_Atomic uint64_t	 mails;		/* under way or being read */
	_Atomic uint64_t	 turns;		/* that both classes wanted */

	/* Seldom written. */
	_Alignas(CACHE_LINE) _Atomic int64_t limit;
	_Atomic uint64_t	 queue;
	_Atomic nsec_t		 queue_timeout;
	_Atomic unsigned	 pulse_shift;
	atomic_bool		 adaptive;
	atomic_bool		 by_key;	/* newcomers get lanes */
	atomic_bool		 dry;
	_Atomic nsec_t		 queue_target;
	_Atomic(struct gate_fair *) fair;	/* NULL: never asked for */
	_Atomic int64_t		 lowest;	/* `free` since lowest_since */
	_Atomic int64_t		 lowest_before;	/* in the span before that */
	nsec_t			 lowest_since;
	unsigned		 workers;
	gate_wake_fn		*wake;
	void			*arg;
	struct gate_side	 sides[];
};

/* Of the word `waiting`: how many of both classes. */
static inline uint64_t
gate_in_all(uint64_t waiting)
{
	return waiting & ((UINT64_C(1) << GATE_HIGH_SHIFT) - 1);
}

/* Have the worker read its mail soon. */
void gate_call(struct gate *g, struct gate_side *s);

/* Get *w a place in the queue and join it, or say why not. */
enum failure gate_queue_join(struct gate *g, struct gate_side *s,
    struct gate_waiter *w, nsec_t now);

/* *w, which waits, leaves: served, or not. */
void gate_queue_leave(struct gate *g, struct gate_side *s,
    struct gate_waiter *w, bool served);

/*
 * Whose turn it is in a class, after those have been thrown out whom nobody
 * waits for any more; NULL: nobody waits here.
 */
struct gate_waiter *gate_queue_next(struct gate *g, struct gate_side *s,
    unsigned class, nsec_t now);

/* Make room for newcomers who came though there was none. */
void gate_queue_evict(struct gate *g, struct gate_side *s, nsec_t now);

/*
 * Time from one release to the next, by what has been released lately on all
 * workers, in ns; 0 if that says nothing.
 */
double gate_pace(const struct gate *g, nsec_t now);

/* How long a newcomer waits at that pace. */
nsec_t gate_wait_at(const struct gate *g, unsigned class, double pace);

/* By the clock of the worker that gave the permit, which may lag. */
static inline nsec_t
gate_waited(const struct gate_waiter *w, nsec_t now)
{
	return now > w->arrived ? now - w->arrived : 0;
}

#endif
