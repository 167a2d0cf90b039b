/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bucket.h - token bucket: how often something may happen.
 *
 * A bucket lets `burst` events through at once, and `rate` a span in the long
 * run.  bucket_take() takes tokens, or says how long to wait for them;
 * bucket_take_late() takes them before they are there, for a caller who then
 * holds its event.  Neither sleeps nor reads a clock: the caller says what
 * time it is, so a test needs no real time.
 *
 * The whole state is one time: when the bucket will be full again (GCRA,
 * ITU-T I.371).  That far in the future, the bucket is empty; further, and
 * tokens are owed to events that are held; in the past, it is full:
 *
 *	now             full_at                 now + depth
 *	 |-- tokens gone --|------ tokens held ------|
 *
 * Owner:    the caller, who embeds the struct; there is nothing to free.
 * Threads:  any; a refusal writes nothing, so those over their limit
 *           don't slow the others down.
 * Promise:  events that happen at their time (at once, or after the hold) are
 *           at most burst + rate * W in any time W, whoever asks in whatever
 *           order, as long as nothing is given back.
 * Limits:   `now` up to 2^63.  It may lag a little from one caller to the
 *           next.
 */
#ifndef PENSTOCK_BASE_BUCKET_H
#define PENSTOCK_BASE_BUCKET_H

#include <stdatomic.h>

#include "base/defs.h"

/* A bucket fills in this time at most, 146 years; so no sum overflows. */
#define BUCKET_MAX_DEPTH	(UINT64_C(1) << 62)

/* What a limit's buckets have in common. */
struct bucket_spec {
	nsec_t		gap;		/* between two tokens, rounded up */
	nsec_t		depth;		/* burst * gap */
	uint64_t	burst;
};

struct bucket {
	_Atomic nsec_t	full_at;	/* 0: full since ever */
};

/*
 * Can there be a bucket of `burst` tokens, refilled with `rate` tokens per
 * `span`?  Requires 1 <= rate <= span, span <= 1 h, 1 <= burst <= 2^32, and
 * burst * gap <= BUCKET_MAX_DEPTH.  Any burst will do from 1 token a second
 * on; at 1 an hour it is 1,281,023 at most.
 */
bool bucket_spec_fits(uint64_t rate, nsec_t span, uint64_t burst) MUST_USE;

/* Set *s up for what bucket_spec_fits(). */
void bucket_spec_init(struct bucket_spec *s, uint64_t rate, nsec_t span,
    uint64_t burst);

/*
 * Take n tokens, 1 <= n <= burst.  Returns 0 when they were taken.  Otherwise
 * takes none, and returns the time after which a retry can succeed.
 */
nsec_t bucket_take(struct bucket *b, const struct bucket_spec *s, uint64_t n,
    nsec_t now) MUST_USE;

/*
 * Take n tokens, 1 <= n <= burst, of which some may come as late as max_wait
 * from now.  Returns the time until all are there:
 *
 *	0			taken; go ahead
 *	up to max_wait		taken; hold the event that long
 *	more			none taken; also the time after which a retry
 *				succeeds without a hold
 *
 * One who gives up during the hold calls bucket_give_back().
 */
nsec_t bucket_take_late(struct bucket *b, const struct bucket_spec *s,
    uint64_t n, nsec_t max_wait, nsec_t now) MUST_USE;

/*
 * Undo one taking of n, whose event did not happen after all.  If the bucket
 * has been full meanwhile, it had no room for them; then up to n that others
 * took since come back instead, but never more than burst are in it.
 */
void bucket_give_back(struct bucket *b, const struct bucket_spec *s,
    uint64_t n);

/*
 * From now on by other numbers, `to`: as many tokens are in it as before, or
 * are owed, but no more than it can hold; and it will be full after `most` at
 * the latest.
 */
void bucket_change(struct bucket *b, const struct bucket_spec *from,
    const struct bucket_spec *to, nsec_t most, nsec_t now);

/* The arithmetic of that, in any unit: the time from now until it is full. */
uint64_t bucket_owed(int64_t owed, const struct bucket_spec *from,
    const struct bucket_spec *to);

#endif
