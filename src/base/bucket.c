/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bucket.c - token bucket; see bucket.h.
 *
 * Relaxed order is enough: the word guards nothing but itself.
 *
 * No sum overflows: with now <= 2^63, depth <= 2^62 and waits cut to 2^61,
 * full_at stays below now + 2^62 + 2^61, and one more cost fits above that.
 * This holds for a bucket that was taken from under another spec, too.
 */
#include "base/bucket.h"

#define MAX_NOW		(UINT64_C(1) << 63)
#define MAX_WAIT	(UINT64_C(1) << 61)
#define MAX_SPAN	(3600 * NSEC_PER_SEC)
#define MAX_BURST	(UINT64_C(1) << 32)

/* Rounded up: never faster than asked. */
static nsec_t
gap_of(uint64_t rate, nsec_t span)
{
	return (span + rate - 1) / rate;
}

bool
bucket_spec_fits(uint64_t rate, nsec_t span, uint64_t burst)
{
	if (span > MAX_SPAN || rate < 1 || rate > span)
		return false;
	if (burst < 1 || burst > MAX_BURST)
		return false;
	return burst <= BUCKET_MAX_DEPTH / gap_of(rate, span);
}

void
bucket_spec_init(struct bucket_spec *s, uint64_t rate, nsec_t span,
    uint64_t burst)
{
	ASSERT(bucket_spec_fits(rate, span, burst));
	s->gap = gap_of(rate, span);
	s->depth = burst * s->gap;
	s->burst = burst;
}

nsec_t
bucket_take(struct bucket *b, const struct bucket_spec *s, uint64_t n,
    nsec_t now)
{
	return bucket_take_late(b, s, n, 0, now);
}

nsec_t
bucket_take_late(struct bucket *b, const struct bucket_spec *s, uint64_t n,
    nsec_t max_wait, nsec_t now)
{
	ASSERT(n >= 1 && n <= s->burst && now <= MAX_NOW);

	nsec_t cost = n * s->gap;
	nsec_t reach = s->depth + MIN(max_wait, MAX_WAIT);
	nsec_t was = atomic_load_explicit(&b->full_at, memory_order_relaxed);
	nsec_t base, gone;

	do {
		base = MAX(was, now);
		gone = base - now + cost;
		if (gone > reach)
			return gone - s->depth;
	} while (!atomic_compare_exchange_weak_explicit(&b->full_at, &was,
	    base + cost, memory_order_relaxed, memory_order_relaxed));
	return gone > s->depth ? gone - s->depth : 0;
}

void
bucket_give_back(struct bucket *b, const struct bucket_spec *s, uint64_t n)
{
	nsec_t cost = n * s->gap;
	nsec_t was = atomic_load_explicit(&b->full_at, memory_order_relaxed);

	/*
	 * A reload may have widened the gap since the taking.  Soon after
	 * boot that could be more than there is, so stop at 0.
	 */
	while (!atomic_compare_exchange_weak_explicit(&b->full_at, &was,
	    was - MIN(was, cost), memory_order_relaxed, memory_order_relaxed))
		;
}

/* What is held, beyond the depth, is as many tokens as before, too. */
uint64_t
bucket_owed(int64_t owed, const struct bucket_spec *from,
    const struct bucket_spec *to)
{
	__int128 tokens = (__int128)owed - (__int128)from->depth;
	__int128 by_new = (__int128)to->depth +
	    tokens * (__int128)to->gap / (__int128)from->gap;

	return by_new < 0 ? 0 : (uint64_t)MIN(by_new,
	    (__int128)(BUCKET_MAX_DEPTH + MAX_WAIT));
}

void
bucket_change(struct bucket *b, const struct bucket_spec *from,
    const struct bucket_spec *to, nsec_t most, nsec_t now)
{
	nsec_t was = atomic_load_explicit(&b->full_at, memory_order_relaxed);
	nsec_t owed;

	do {
		owed = bucket_owed((int64_t)(was - now), from, to);
	} while (!atomic_compare_exchange_weak_explicit(&b->full_at, &was,
	    now + MIN(owed, most), memory_order_relaxed,
	    memory_order_relaxed));
}
