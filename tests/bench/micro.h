/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * micro.h - what the parts of the micro-benchmark share.
 *
 * A part times its work with micro_time(), which runs it several times and
 * takes the quickest, and prints a row with micro_row().
 */
#ifndef PENSTOCK_BENCH_MICRO_H
#define PENSTOCK_BENCH_MICRO_H

#include <stdint.h>

/* Do the work n times over. */
typedef void micro_fn(void *arg, uint64_t n);

/* Nanoseconds of CPU for each of n. */
double micro_time(micro_fn *fn, void *arg, uint64_t n);

/* Two threads do it n times each at once; nanoseconds until both have, by n. */
double micro_time_two(micro_fn *fn, void *arg, uint64_t n);

/* A row: what, and how long it may take at most, or 0. */
void micro_row(const char *what, double nsec, double most);

/* The compiler thinks that somebody reads it. */
static inline void
micro_use(uint64_t value)
{
	__asm__ volatile ("" : : "r" (value) : "memory");
}

void micro_timers(uint64_t timers);
void micro_limits(void);
void micro_http(void);
void micro_pool(void);

#endif
