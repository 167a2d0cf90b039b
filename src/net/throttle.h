/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * throttle.h - what may be read from a stream, by all paces that count.
 *
 * Whoever wants a stream read no faster gives it a throttle with
 * stream_set_throttle().  The stream then asks before it reads, and says what
 * came; while nothing may be read it leaves its reader alone, until the
 * throttle's timer tells it that it is time to ask again.
 *
 * What doesn't count, like a head in front of a body, may have to be looked at
 * to know where it ends.  While a throttle `peeks`, all may be read, but stays
 * in the kernel until the caller has taken what doesn't count from it, with
 * stream_take_shown().
 *
 * Owner:    the caller, who embeds the struct and takes it from its stream
 *           before either ends.  The paces are the caller's, and outlive it.
 * Threads:  the loop's.
 * Promise:  a throttle without a stream neither waits nor has a timer.
 */
#ifndef PENSTOCK_NET_THROTTLE_H
#define PENSTOCK_NET_THROTTLE_H

#include <sys/types.h>

#include "base/pace.h"
#include "net/loop.h"

enum { THROTTLE_PACES = 8 };

struct stream;
struct throttle;

/* It is time to ask again, once a second at least; or reading is held up. */
typedef void throttle_fn(struct throttle *t);

struct throttle {
	struct wheel_timer	 timer;
	struct loop		*loop;
	struct stream		*stream;	/* or NULL */
	throttle_fn		*due;
	throttle_fn		*holds;		/* the owner's, or NULL */
	counter_t		*waiting;	/* a gauge */
	nsec_t			 since;		/* when it began to wait */
	nsec_t			 held;		/* when the last wait ended */
	nsec_t			 waited;	/* in all waits together */
	size_t			 shown;		/* by the last peek */
	uint64_t		 early;		/* charged, not passed yet */
	uint64_t		 latest;	/* that came, not counted yet */
	unsigned		 count;
	unsigned		 at;		/* the pace that it waits for */
	bool			 waits;
	bool			 counts_late;	/* some may be given back */
	bool			 peeks;		/* both: the owner's to set */
	struct pace_use		 uses[THROTTLE_PACES];
};

/* Without paces: everything may be read. */
void throttle_init(struct throttle *t);

/* One more pace, of THROTTLE_PACES at most; key: see pace_use_init(). */
struct pace_use *throttle_add(struct throttle *t, struct pace *p, uint64_t key);

/*
 * n bytes came before there was a stream to be throttled; the caller holds them
 * until they may pass: by pace i for waits[i].  False: that is more than
 * max_wait (PACE_MAX_DEPTH at most) for some, and nothing was charged.
 */
bool throttle_charge(struct throttle *t, uint64_t n, nsec_t max_wait,
    nsec_t now, nsec_t waits[THROTTLE_PACES]) MUST_USE;

/* What was charged so goes on; or never will, and is given back. */
void throttle_early_passes(struct throttle *t, nsec_t now);
void throttle_early_dropped(struct throttle *t);

/* The last n of the bytes that came last don't count, after all. */
void throttle_give_back(struct throttle *t, uint64_t n);

/* --- for streams --- */

/* t->stream, t->due and t->waiting are set; or nothing is read any more. */
void throttle_begin(struct throttle *t, struct loop *loop);
void throttle_end(struct throttle *t);

/* May something be read?  If not, `due` will be called. */
bool throttle_is_open(struct throttle *t);

/* How much of `want` may be read now; 0: nothing, and `due` will be called. */
size_t throttle_take(struct throttle *t, size_t want) MUST_USE;

/* That many were allowed; `came` of them came, or it is negative: none. */
void throttle_came(struct throttle *t, size_t allowed, ssize_t came);

/* When reading was last held up: now, if it is; 0: never. */
nsec_t throttle_held(const struct throttle *t);

#endif
