/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wheel.h - timer wheels: many timeouts that are moved often and rarely fire.
 *
 * A struct wheels is two flat wheels of buckets, 8 ms and 128 ms wide.  A
 * timer is embedded in its owner; arming it puts it into the bucket where it
 * will be looked at, and moving it to a later time only stores the time: the
 * look finds out and puts it on.  So the usual re-arming touches one word.
 *
 *	fine    8 ms x 256	for what is due within 2 s
 *	coarse	128 ms x 512	for the rest; looked at every 65 s at least
 *
 * It never reads a clock: wheels_advance() is told the time, and
 * wheels_next() says when it wants to be told again.
 *
 * Owner:    the caller, who embeds wheels and timers; wheel_cancel() before
 *           the owner of a timer is freed.
 * Threads:  one.
 * Promise:  a timer fires once per arming, never before its time, and at most
 *           one bucket after it, plus the delay of wheels_advance().  Inside
 *           its function any timer may be armed, cancelled or freed, itself
 *           included.
 * Limits:   WHEEL_MAX_FIRES fires and WHEEL_MAX_LOOKS looks a call.
 *
 * Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", 1987.
 */
#ifndef PENSTOCK_BASE_WHEEL_H
#define PENSTOCK_BASE_WHEEL_H

#include "base/defs.h"
#include "base/list.h"

struct wheel_timer;

typedef void wheel_fn(struct wheel_timer *t);

/* What many timers have in common. */
struct wheel_kind {
	wheel_fn	*fn;
	const char	*name;		/* of fn; see CALLBACK_NAME() */
};

struct wheel_timer {
	struct list	 link;
	nsec_t		 due;		/* NSEC_NEVER: not armed */
	const struct wheel_kind *kind;
	nsec_t		 look;		/* when its bucket comes up */
};

enum {
	WHEEL_MAX_FIRES = 128,
	WHEEL_MAX_LOOKS = 4096,
	WHEEL_FINE_BUCKETS = 256,
	WHEEL_COARSE_BUCKETS = 512,
};

#define WHEEL_FINE_WIDTH	(8 * NSEC_PER_MSEC)
#define WHEEL_COARSE_WIDTH	(128 * NSEC_PER_MSEC)

struct wheels;

/* Bytes that they take. */
size_t wheels_memory(void);
struct wheels *wheels_new(nsec_t now);
void wheels_free(struct wheels **w);

/* Called before each function of a timer, with its name. */
typedef void wheel_mark_fn(void *arg, const char *name);
void wheels_on_fire(struct wheels *w, wheel_mark_fn *fn, void *arg);

/* Not armed, on no wheel; `kind` must last. */
static inline void
wheel_timer_init_kind(struct wheel_timer *t, const struct wheel_kind *kind)
{
	list_init(&t->link);
	t->due = NSEC_NEVER;
	t->kind = kind;
	t->look = 0;
}

/* The same for a function that is named here. */
#define wheel_timer_init(t, function) do {				\
	static const struct wheel_kind kind_ = { function,		\
	    CALLBACK_NAME(function) };					\
	wheel_timer_init_kind(t, &kind_);				\
} while (0)

/* Out of line: put t where it will be looked at. */
void wheel_link(struct wheels *w, struct wheel_timer *t);

/* Fire at `due`, or soon if that has passed; in place of an earlier arming. */
static inline void
wheel_arm(struct wheels *w, struct wheel_timer *t, nsec_t due)
{
	t->due = due;
	if (list_is_empty(&t->link) || due < t->look)
		wheel_link(w, t);
}

/* Don't fire.  Cheap: the timer stays linked until it is next looked at. */
static inline void
wheel_disarm(struct wheel_timer *t)
{
	t->due = NSEC_NEVER;
}

static inline bool
wheel_is_armed(const struct wheel_timer *t)
{
	return t->due != NSEC_NEVER;
}

/* Don't fire, and forget the timer at once: its owner may be freed. */
void wheel_cancel(struct wheels *w, struct wheel_timer *t);

/*
 * When wheels_advance() should be called next: 0 for as soon as possible
 * because the last call left work over, NSEC_NEVER for not before something
 * is armed.  Cheap enough to ask once a turn.
 */
nsec_t wheels_next(const struct wheels *w);

/*
 * Fire what is due at `now`, which never goes back; the number fired.  Call it
 * once a turn, even when nothing is due, which is cheap: what is armed is put
 * where it belongs as seen from the last `now`.  If that was long ago, a short
 * time may land on the coarse wheel.
 */
unsigned wheels_advance(struct wheels *w, nsec_t now);

/* Timers linked now, armed or waiting to be forgotten. */
size_t wheels_count(const struct wheels *w);

/* Assert every invariant; for tests. */
void wheels_validate(const struct wheels *w);

#endif
