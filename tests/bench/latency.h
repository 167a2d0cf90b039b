/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * latency.h - how long requests took, to 3 %, in buckets.
 */
#ifndef PENSTOCK_BENCH_LATENCY_H
#define PENSTOCK_BENCH_LATENCY_H

#include <stdint.h>

enum {
	LATENCY_BITS = 5,
	LATENCY_BUCKETS = (65 - LATENCY_BITS) << LATENCY_BITS,
};

/* All zero to begin with. */
struct latency {
	uint64_t	count;
	uint64_t	buckets[LATENCY_BUCKETS];
};

/* Five bits below the highest one of a time choose its bucket. */
static inline void
latency_add(struct latency *l, uint64_t nsec)
{
	unsigned shift = 0;

	if (nsec >> (LATENCY_BITS + 1) != 0)
		shift = 63 - LATENCY_BITS - (unsigned)__builtin_clzll(nsec);
	l->buckets[((uint64_t)shift << LATENCY_BITS) + (nsec >> shift)]++;
	l->count++;
}

static inline double
latency_usec_of_bucket(unsigned i)
{
	unsigned shift = i >> LATENCY_BITS;
	uint64_t nsec = i;

	if (shift > 0) {
		shift--;
		nsec = (uint64_t)(i - (shift << LATENCY_BITS)) << shift;
	}
	return (double)nsec / 1e3;
}

/* What a share of them stays below, in microseconds; 0 if there are none. */
static inline double
latency_quantile(const struct latency *l, double share)
{
	uint64_t most = (uint64_t)((double)l->count * share), sum = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		sum += l->buckets[i];
		if (sum > most)
			return latency_usec_of_bucket(i + 1);
	}
	return 0;
}

#endif
