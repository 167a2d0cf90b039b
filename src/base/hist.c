/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hist.c - histogram of durations; see hist.h.
 */
#include "base/hist.h"

#define USEC	UINT64_C(1000)
#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

const nsec_t hist_bounds[HIST_BUCKETS] = {
	100 * USEC,	200 * USEC,	500 * USEC,
	1 * MSEC,	2 * MSEC,	5 * MSEC,
	10 * MSEC,	20 * MSEC,	50 * MSEC,
	100 * MSEC,	200 * MSEC,	500 * MSEC,
	1 * SEC,	2 * SEC,	5 * SEC,
	10 * SEC,	20 * SEC,	30 * SEC,
	60 * SEC,	NSEC_NEVER,
};

/*
 * The first bucket that a value with this highest bit can be in.  It is in
 * that one or one of the next two: no octave has more than two bounds.
 */
static const uint8_t first_bucket[64] = {
	[17] = 1,  [18] = 2,  [19] = 3,  [20] = 4,  [21] = 5,  [22] = 5,
	[23] = 6,  [24] = 7,  [25] = 8,  [26] = 9,  [27] = 10, [28] = 11,
	[29] = 12, [30] = 13, [31] = 14, [32] = 14, [33] = 15, [34] = 16,
	[35] = 18, [36] = 19, [37] = 19, [38] = 19, [39] = 19, [40] = 19,
	[41] = 19, [42] = 19, [43] = 19, [44] = 19, [45] = 19, [46] = 19,
	[47] = 19, [48] = 19, [49] = 19, [50] = 19, [51] = 19, [52] = 19,
	[53] = 19, [54] = 19, [55] = 19, [56] = 19, [57] = 19, [58] = 19,
	[59] = 19, [60] = 19, [61] = 19, [62] = 19, [63] = 19,
};

/* Only one thread writes, so no locked instruction is needed. */
static void
add(_Atomic uint64_t *c, uint64_t by)
{
	atomic_store_explicit(c,
	    atomic_load_explicit(c, memory_order_relaxed) + by,
	    memory_order_relaxed);
}

static uint64_t
get(const _Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static inline size_t
bucket_of(nsec_t v)
{
	size_t i = first_bucket[63 - __builtin_clzll(v | 1)];

	while (v > hist_bounds[i])
		i++;
	return i;
}

size_t
hist_bucket(nsec_t v)
{
	return bucket_of(v);
}

void
hist_add(struct hist *h, nsec_t v)
{
	size_t i = bucket_of(v);

	add(&h->sum, v);
	add(&h->count[i], 1);
}

void
hist_merge(struct hist *to, const struct hist *from)
{
	for (size_t i = 0; i < HIST_BUCKETS; i++)
		add(&to->count[i], get(&from->count[i]));
	add(&to->sum, get(&from->sum));
}

uint64_t
hist_total(const struct hist *h)
{
	uint64_t total = 0;

	for (size_t i = 0; i < HIST_BUCKETS; i++)
		total += get(&h->count[i]);
	return total;
}

nsec_t
hist_quantile(const struct hist *h, double q)
{
	struct hist copy = { 0 };

	/* Counts that move on meanwhile would not add up. */
	hist_merge(&copy, h);

	uint64_t total = hist_total(&copy);
	uint64_t below = 0;

	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		below += get(&copy.count[i]);
		if (below > 0 && (double)below >= q * (double)total)
			return hist_bounds[i];
	}
	return 0;
}

nsec_t
hist_estimate(const struct hist *h, double q)
{
	struct hist copy = { 0 };

	hist_merge(&copy, h);

	double wanted = q * (double)hist_total(&copy), below = 0;

	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		double n = (double)get(&copy.count[i]);
		nsec_t from = i == 0 ? 0 : hist_bounds[i - 1];

		if (n == 0 || below + n < wanted) {
			below += n;
			continue;
		}
		if (hist_bounds[i] == NSEC_NEVER)
			return from;
		return from + (nsec_t)((double)(hist_bounds[i] - from) *
		    (wanted - below) / n);
	}
	return 0;
}

static uint64_t
grown(const _Atomic uint64_t *now, const _Atomic uint64_t *before)
{
	uint64_t is = get(now), was = get(before);

	return is < was ? 0 : is - was;
}

void
hist_since(struct hist *out, const struct hist *now, const struct hist *before)
{
	*out = (struct hist){ 0 };
	for (size_t i = 0; i < HIST_BUCKETS; i++)
		add(&out->count[i], grown(&now->count[i], &before->count[i]));
	add(&out->sum, grown(&now->sum, &before->sum));
}
