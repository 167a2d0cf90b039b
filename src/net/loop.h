/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop.h - one thread's event loop: descriptors, timers, and mail.
 *
 * The only file that knows libev.  A turn of the loop is:
 *
 *	poll -> time is read once -> ready descriptors, what loop_turn
 *	     gathered of them -> timers, mail -> `again` list, once
 *	     -> `later` list until empty -> loop_turn's end -> poll
 *
 * Descriptors come before timers: after a long stop, bytes that have arrived
 * count before the timeouts that have passed.
 *
 * A watch says which events of a descriptor are wanted and whom to call.
 * Reading stays wanted for a descriptor's life where possible: changing what
 * is wanted costs a system call.
 *
 * Owner:    loop_new() gives a handle, the thread's that runs it.  Watches,
 *           timers and mail are embedded in their owners, who stop them
 *           before they are freed.
 * Threads:  one, except loop_post(), loop_stop(), loop_spent() and the figures.
 * Promise:  no function of a watch, timer or mail runs inside loop_arm(),
 *           loop_later() or any watch_ function; nor after it was stopped.
 */
#ifndef PENSTOCK_NET_LOOP_H
#define PENSTOCK_NET_LOOP_H

#include <time.h>

#include "base/defs.h"
#include "base/hist.h"
#include "base/list.h"
#include "base/mail.h"
#include "base/stats.h"
#include "base/wheel.h"

struct blocks;
struct loop;
struct spent;
struct watch;

enum { WATCH_READ = 1, WATCH_WRITE = 2, WATCH_ERROR = 4 };

/*
 * `ready`: a set of the above.  An error of the connection counts as all that
 * was wanted.  WATCH_ERROR comes besides when the kernel refuses to watch the
 * descriptor (limits); then the watch has been stopped.
 */
typedef void watch_fn(struct watch *w, unsigned ready);

/*
 * What many watches have in common: whoever owns them owns one of these too,
 * and finds itself by it.  Stays where it is while there is a watch of it.
 */
struct watch_kind {
	struct loop	*loop;
	watch_fn	*fn;
	const char	*name;		/* of fn; NULL: nobody knows */
};

#define WATCH_KIND(loop, fn) \
	((struct watch_kind){ loop, fn, CALLBACK_NAME(fn) })

/*
 * libev's own struct, so that a watch needs no more room than that; loop.c
 * checks that it is the same.
 */
struct MAY_ALIAS watch {
	int		 active;
	int		 pending;
	int		 priority;
	void		*kind;
	void		*rest[2];
	int		 fd;
	int		 events;
};

/*
 * On the `again` list: called once a turn until list_remove() of its link,
 * which the owner makes with list_init().
 */
struct loop_again {
	struct list	 link;
	void		(*fn)(struct loop_again *a);
	const char	*name;		/* of fn; NULL: nobody knows */
};

/*
 * What a loop feels; one writer, any readers.  The lag of a turn is how long
 * something could have waited for it: the longer of the turn's own length
 * (whatever came meanwhile waits for its end) and the lateness of the oldest
 * timer that was due when it began.
 */
struct loop_stats {
	struct hist		 lag;		/* a sample a turn */
	counter_t		 lag_recent;	/* worst of the last second */
	counter_t		 busy;		/* nsec outside poll */
	counter_t		 idle;		/* nsec inside poll */
	counter_t		 longest;	/* nsec, longest turn so far */
	_Atomic(const char *)	 longest_by;	/* what took longest in it */
	counter_t		 turns;
	counter_t		 turns_late;	/* see loop_set_max_lag() */
	counter_t		 turn_began;	/* 0 while polling; watchdog */
	counter_t		 ready;		/* calls of watches */
	counter_t		 readers;	/* with WATCH_READ */
	counter_t		 writers;	/* with WATCH_WRITE */
	counter_t		 timers;	/* fired */
	counter_t		 timers_linked;	/* as of the last turn */
};

enum {
	LOOP_SCRATCH = 64 * 1024,
	LOOP_BULK = 256 * 1024,
	LOOP_CALLS = 10000,
};

/* NULL if the kernel gives no descriptor for it. */
struct loop *loop_new(void) MUST_USE;
/* Most bytes that one takes while no descriptor is as high as that. */
uint64_t loop_memory(uint64_t descriptors);
void loop_free(struct loop **loop);

/* Run until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Monotonic time of this turn. */
nsec_t loop_now(const struct loop *loop);

/* Time of day of this turn; follows jumps of the clock within a second. */
struct timespec loop_wall(const struct loop *loop);

/* Read the clock again, after something slow. */
void loop_now_update(struct loop *loop);

/*
 * LOOP_BULK bytes for what is read, valid until the callback returns; and
 * LOOP_SCRATCH for what is built.  More than LOOP_SCRATCH is read only where
 * much comes: what is beyond that isn't in the cache.  Whoever is called runs
 * alone, so there is never more than one user.
 */
uint8_t *loop_scratch(struct loop *loop);
uint8_t *loop_scratch_out(struct loop *loop);

/* Where the thread's buffers come from; set once by who made the loop. */
void loop_set_blocks(struct loop *loop, struct blocks *blocks);
struct blocks *loop_blocks(const struct loop *loop);

/*
 * More than LOOP_BUSY descriptors were ready in the last turn: who has much to
 * do does a little, since others wait for it.  Or LOOP_CALM at most, and it
 * may do more at once, which saves turns.
 */
enum { LOOP_CALM = 4, LOOP_BUSY = 16 };
bool loop_is_busy(const struct loop *loop);
bool loop_is_calm(const struct loop *loop);

/*
 * Late is a loop of which a turn that ended within the last LOOP_LATE lagged
 * more than `most`, or whose present turn begins so late.  It need not run to
 * be late no more.  With NSEC_NEVER, as at first, it never is.
 */
#define LOOP_LATE	(100 * NSEC_PER_MSEC)
void loop_set_max_lag(struct loop *loop, nsec_t most);
bool loop_is_late(const struct loop *loop);

/*
 * Called in every turn: `ready` when what was ready has been called, before
 * timers; `over` last before the poll.
 */
struct loop_turn {
	void	(*ready)(struct loop_turn *t);
	void	(*over)(struct loop_turn *t);
};

/* Or NULL: none. */
void loop_set_turn(struct loop *loop, struct loop_turn *t);

/* --- descriptors --- */

/* Ready to be started; `fd` stays the caller's. */
void watch_init(struct watch *w, struct watch_kind *kind, int fd);

/* What is wanted from now on; 0 stops. */
void watch_want(struct watch *w, unsigned events);

/* What is wanted now; and what it was made with. */
static inline unsigned
watch_wanted(const struct watch *w)
{
	return w->active != 0 ? (unsigned)w->events &
	    (WATCH_READ | WATCH_WRITE) : 0;
}

static inline int
watch_fd(const struct watch *w)
{
	return w->fd;
}

static inline struct watch_kind *
watch_kind(const struct watch *w)
{
	return w->kind;
}

/* Is it ready in this turn, and its function will be called yet? */
static inline bool
watch_is_due(const struct watch *w)
{
	return w->pending != 0;
}

/* Before the descriptor is closed. */
static inline void
watch_stop(struct watch *w)
{
	watch_want(w, 0);
}

/* --- timers --- */

/* Fire in `after` from now, at the earliest; see wheel.h. */
void loop_arm(struct loop *loop, struct wheel_timer *t, nsec_t after);
void loop_arm_at(struct loop *loop, struct wheel_timer *t, nsec_t due);
void loop_cancel(struct loop *loop, struct wheel_timer *t);

/* --- calls --- */

/* Once more in every turn, without blocking in poll, until removed. */
void loop_again(struct loop *loop, struct loop_again *a);

/*
 * Call m before the next poll, or after it if LOOP_CALLS others come first;
 * the loop's own thread only.
 */
void loop_later(struct loop *loop, struct mail *m);

/*
 * Forget mail given to loop_later() or loop_post() that has not been called,
 * so that its owner may be freed; harmless if there is none.  The loop's own
 * thread only, and no other may be posting m meanwhile.  Walks the list.
 */
void loop_later_cancel(struct loop *loop, struct mail *m);

/*
 * Call m in the loop's thread, from any thread; in its own, the same as
 * loop_later().  Costs a system call only when the loop sleeps.
 */
void loop_post(struct loop *loop, struct mail *m);

const struct loop_stats *loop_stats(const struct loop *loop);

/* What its turns are spent on. */
struct spent *loop_spent(struct loop *loop);

#endif
