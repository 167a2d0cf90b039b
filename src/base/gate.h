/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate.h - a semaphore over all workers, with a bounded, timed queue.
 *
 * A gate has `limit` permits.  gate_take() takes one, or joins the queue, or
 * says why not.  A waiter is served on its own worker: its function runs from
 * gate_serve(), which the worker calls when it gets the gate's mail.  The
 * gate keeps no timer: a waiter whose time is up leaves with gate_leave().
 *
 *	            free (negative: debt)
 *	              |
 *	  worker 0    |    worker 1         a cache line each
 *	 [ grants ]<--+-->[ grants ]        permits on their way to waiters
 *	 [ count  ]       [ count  ]        waiters
 *	 [ key    ]       [ key    ]        of who is next: arrival, or round
 *	   waiters          waiters         the worker's own: lineup.h
 *
 * Taking: publish `count` and `key`, then try `free` once more.  Releasing:
 * add to `free`, then look at every worker.  Both are sequentially consistent,
 * so one of the two always sees the other: no wake-up is lost.  A newcomer
 * passes by waiters only if there is a permit for each of them.
 *
 * Who is next:
 *	- the high class before the normal, but for one turn in GATE_TURNS that
 *	  both want;
 *	- of a class the oldest, or the releasing worker's own if that is
 *	  younger by less than 5 ms (GATE_OWN_FIRST), since waking another
 *	  worker costs a switch;
 *	- or, with `by_key`, each key in its turn (fair.h), the own worker's
 *	  first only among equals.  Of one key, those of one worker are served
 *	  in order of arrival.
 *
 * Who must leave a full queue: nobody, the newcomer is refused.  With `by_key`
 * it is the newest of the key that has most waiting, if that is more than the
 * newcomer's would be; without, the newest of the normal class, if the
 * newcomer is of the high.  It leaves when its worker reads the gate's mail,
 * so that a few more than `queue` may wait for a moment.
 *
 * Without waiters, taking is one read-modify-write, and so is releasing.
 *
 * In dry run nobody waits: whoever finds no free permit is REFUSED, and the
 * caller, who lets it go on all the same, may have it counted with
 * gate_take_dry().  Changing to dry run lets in all who wait; changing back
 * leaves a debt, as lowering does.
 *
 * Owner:    gate_new() gives a handle; gate_free() when nobody holds or waits,
 *           and no mail is under way: gate_is_idle().
 * Threads:  every worker, each with its own number below `workers`; gate_set()
 *           and gate_resize() one at a time.
 * Promise:  in use + free + grants = limit, always.  A waiter's function runs
 *           at most once, on its worker, never inside gate_take() or
 *           gate_release(), and not after gate_leave().
 * Limits:   GATE_WORKERS workers.
 */
#ifndef PENSTOCK_BASE_GATE_H
#define PENSTOCK_BASE_GATE_H

#include "base/defs.h"
#include "base/failure.h"
#include "base/list.h"
#include "base/mail.h"

enum { GATE_WORKERS = 65 };		/* 64, and main */

#define GATE_OWN_FIRST	(5 * NSEC_PER_MSEC)

enum gate_result { GATE_TAKEN, GATE_WAITS, GATE_REFUSED };

struct gate;
struct gate_waiter;

/*
 * The waiter has left the queue after w->waited.  With FAIL_NONE it holds a
 * permit; otherwise it was thrown out for that reason and holds none.
 */
typedef void gate_fn(struct gate_waiter *w, enum failure why);

/* Who goes first; of every GATE_TURNS turns one is the others'. */
enum gate_class { GATE_HIGH, GATE_NORMAL, GATE_CLASSES };

enum { GATE_TURNS = 8 };

#define GATE_NO_ROW	UINT32_MAX

struct gate_waiter {
	struct list	 link;		/* in its worker's queue */
	struct list	 lane;		/* of its key there */
	nsec_t		 arrived;
	nsec_t		 waited;	/* how long, when fn is called */
	gate_fn		*fn;
	uint64_t	 key;		/* a hash; for spec.fair */
	uint32_t	 row;		/* of the key */
	uint8_t		 class;		/* enum gate_class */
};

struct gate_spec {
	uint64_t	 limit;		/* permits; 0: no limit */
	uint64_t	 queue;		/* most that may wait, all workers */
	nsec_t		 queue_timeout;	/* for the prediction */
	bool		 adaptive;	/* newest first while waits are long */
	nsec_t		 queue_target;	/* adaptive: what counts as short */
	bool		 by_key;	/* who waits gets turns by key */
	bool		 dry;		/* nobody waits */
};

/*
 * Have `worker` run m->fn soon; called with m put nowhere else.  From the
 * worker's own thread too: then before its next poll.
 */
typedef void gate_wake_fn(void *arg, unsigned worker, struct mail *m);

/* A gate for workers 0 to workers - 1, whom wake(arg, ...) wakes. */
struct gate *gate_new(const struct gate_spec *spec, unsigned workers,
    gate_wake_fn *wake, void *arg);

/* Free it; mail that is under way must never be delivered then. */
void gate_free(struct gate **g);

/* Bytes that it takes with `workers` workers, and those of turns by key. */
size_t gate_memory(unsigned workers);
size_t gate_fair_memory(unsigned workers);

/* Nobody holds or waits, and no mail is under way; so gate_free() is safe. */
bool gate_is_idle(const struct gate *g);

static inline void
gate_waiter_init(struct gate_waiter *w, gate_fn *fn)
{
	list_init(&w->link);
	list_init(&w->lane);
	w->arrived = 0;
	w->waited = 0;
	w->fn = fn;
	w->key = 0;
	w->row = GATE_NO_ROW;
	w->class = GATE_NORMAL;
}

static inline bool
gate_is_waiting(const struct gate_waiter *w)
{
	return !list_is_empty(&w->link);
}

/* Take a permit, or queue *w (initialised), or say in *why why not. */
enum gate_result gate_take(struct gate *g, unsigned worker,
    struct gate_waiter *w, nsec_t now, enum failure *why) MUST_USE;

/* Take a permit without ever waiting, whoever else waits; false if none. */
bool gate_try(struct gate *g) MUST_USE;

bool gate_is_dry(const struct gate *g);

/*
 * Of one whom gate_take() refused in dry run: take one of as many permits
 * more as the queue has places, as if it could wait for it inside.  False if
 * there is none: it would have been refused.
 */
bool gate_take_dry(struct gate *g) MUST_USE;

/*
 * Give back what gate_take(), gate_try(), gate_take_dry() or a waiter's
 * function gave.
 */
void gate_release(struct gate *g, unsigned worker, nsec_t now);

/* Leave the queue; does nothing if *w waits no more. */
void gate_leave(struct gate *g, unsigned worker, struct gate_waiter *w,
    nsec_t now);

/*
 * Change what the gate allows.  Raised: the new permits go out at once.
 * Lowered: a debt that releases pay first.  Nobody is thrown out.
 */
void gate_set(struct gate *g, const struct gate_spec *spec, unsigned worker,
    nsec_t now);

/* The same for the number alone; `limit` at least 1. */
void gate_resize(struct gate *g, uint64_t limit, unsigned worker, nsec_t now);

/* Permits that are not free, those on their way to waiters with them. */
uint64_t gate_taken(const struct gate *g);

/* What it feels, each a snapshot; may be off by what is under way. */
struct gate_state {
	uint64_t	limit;		/* 0: none */
	uint64_t	in_use;
	uint64_t	waiting;
	nsec_t		wait_estimate;	/* for a newcomer; 0: unknown */
};
void gate_look(const struct gate *g, nsec_t now, struct gate_state *out);

/* In use, without the rest. */
uint64_t gate_count(const struct gate *g);

/*
 * The most permits that were given out at once, since the call before this one
 * and for GATE_PEAK_SPAN at least; so whoever calls as often as that misses
 * none, however many others call.  After a change of the limit: as if the
 * debt or the permits that it made had always been.  Callers one at a time.
 */
#define GATE_PEAK_SPAN	(60 * NSEC_PER_SEC)
uint64_t gate_peak(struct gate *g, nsec_t now);

/*
 * Assert the promise, with in_use permits held, and that nobody was forgotten;
 * only while nobody else uses the gate.
 */
void gate_validate(const struct gate *g, uint64_t in_use);

#endif
