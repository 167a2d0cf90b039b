/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keybucket.h - a fixed table of token buckets, one for each key.
 *
 * A key is a hash that nobody outside can steer (see siphash.h).  Its low
 * bits choose a line of seven buckets, the others are the bucket's tag:
 *
 *	 line, 64 bytes            bucket, 64 bits
 *	[ lock | 7 buckets ]      [ tag 24 | when it will be full 40 ]
 *
 * A bucket that is full again is as good as none, so its place is free, and
 * nothing need be swept.  When all places of a line are in use, the newcomer
 * gets that of the one least in debt: many who come once push each other out,
 * and never the one who is deep in debt.  That one, who has no token left, is
 * only pushed out if, in the time of one token, about as many others come to
 * their limit as the table has places; then it has its burst again.
 *
 * The time is in units of 16 us, so a bucket's tokens may come at most 1,000
 * a second (KEYBUCKET_MAX_RATE) if it is to be precise to 2 %, and always
 * rounded so that it is slower than asked.  A table by the meter has no clock:
 * the caller says what his meter says (bytes: see pace.h), for a time, and the
 * unit is one of these; and it counts who waits for a key's bucket.
 *
 * Owner:    keybuckets_new() gives a handle.
 * Threads:  any; a refusal writes nothing.
 * Limits:   a depth, with the longest wait added, up to KEYBUCKET_MAX_DEPTH:
 *           50 days; by a meter, 2^38.  A bucket that nobody asked for as long
 *           as its time is wide (203 days, or 2^40) may be found empty for as
 *           long as it took to be filled.  The meters of two threads may
 *           differ by 2^28, and their clocks by 2 s.
 */
#ifndef PENSTOCK_BASE_KEYBUCKET_H
#define PENSTOCK_BASE_KEYBUCKET_H

#include "base/defs.h"

enum {
	KEYBUCKET_MAX_RATE = 1000,	/* tokens a second */
	KEYBUCKET_MAX_ROWS = 1 << 27,
};

#define KEYBUCKET_UNIT		UINT64_C(16000)	/* ns */
#define KEYBUCKET_MAX_DEPTH	(KEYBUCKET_UNIT << 38)

struct bucket_spec;
struct keybuckets;

/* What all keys' buckets have in common. */
struct keybucket_spec {
	uint64_t	gap;		/* units between two tokens, or for what
					   is taken now, which may differ */
	uint64_t	depth;		/* burst * gap */
	uint64_t	wait;		/* units that a token may be late */
};

/*
 * `rate` tokens per `span`, `burst` at once; each may come up to `wait` late.
 * All but `wait` at least 1.  What is more than the limits is cut to them.
 */
void keybucket_spec_init(struct keybucket_spec *s, uint64_t rate, nsec_t span,
    uint64_t burst, nsec_t wait);

/* A table of at least `rows` buckets, 1 <= rows <= KEYBUCKET_MAX_ROWS. */
struct keybuckets *keybuckets_new(uint64_t rows);
struct keybuckets *keybuckets_new_metered(uint64_t rows);
void keybuckets_free(struct keybuckets **t);

/* Bytes that such a table takes. */
size_t keybuckets_memory(uint64_t rows);
size_t keybuckets_memory_metered(uint64_t rows);

/*
 * Take a token of `key`.  Returns the time until it is there: 0, or up to the
 * spec's wait; then the caller holds its event that long.  If it is more, no
 * token was taken, and after that time one can be had without a hold.
 */
nsec_t keybucket_take(struct keybuckets *t, uint64_t key,
    const struct keybucket_spec *s, nsec_t now) MUST_USE;

/* Undo one taking, whose event did not happen after all. */
void keybucket_give_back(struct keybuckets *t, uint64_t key,
    const struct keybucket_spec *s);

/*
 * From now on by other numbers, in units: bucket_change() for each key.  Looks
 * at each row.
 */
void keybuckets_change(struct keybuckets *t, const struct bucket_spec *from,
    const struct bucket_spec *to, uint64_t most, nsec_t now);

/* The time until there is a token without a hold; takes none. */
nsec_t keybucket_due(const struct keybuckets *t, uint64_t key,
    const struct keybucket_spec *s, nsec_t now);

/* The time until the bucket of `key` is full. */
nsec_t keybucket_gone(const struct keybuckets *t, uint64_t key, nsec_t now);

/*
 * Of a table by the meter: one more waits for the bucket of `key`, until the
 * call with the number that is returned.  How many do is a hint, as the place
 * of a bucket that is full, or pushed out, becomes another key's.
 */
uint32_t keybucket_wait_begin(struct keybuckets *t, uint64_t key, nsec_t now);
void keybucket_wait_end(struct keybuckets *t, uint32_t number);
uint32_t keybucket_waiting(const struct keybuckets *t, uint64_t key);

/* Buckets that were pushed out though they were not full. */
uint64_t keybuckets_evicted(const struct keybuckets *t);

#endif
