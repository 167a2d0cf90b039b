/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rng.h - random numbers for tests: the same ones in every run.
 */
#ifndef PENSTOCK_TESTS_BASE_RNG_H
#define PENSTOCK_TESTS_BASE_RNG_H

#include <stdint.h>

/* xorshift64*; the state is anything but 0. */
static inline uint64_t
rng_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* At least 0, less than n. */
static inline uint64_t
rng_below(uint64_t *state, uint64_t n)
{
	return (rng_next(state) >> 16) % n;
}

#endif
