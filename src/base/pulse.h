/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pulse.h - how often something happened lately, told by who did it.
 *
 * Time is cut into parts of 2^shift ns; of the last PULSES parts in which
 * something happened, each keeps how often and since when.
 *
 * Owner:    the caller, who embeds the struct, zeroed.
 * Threads:  pulses_note() one; pulses_add() any: a snapshot.
 */
#ifndef PENSTOCK_BASE_PULSE_H
#define PENSTOCK_BASE_PULSE_H

#include <stdatomic.h>

#include "base/defs.h"

enum { PULSES = 16 };

struct pulses {
	struct pulse {
		_Atomic nsec_t		 first;
		_Atomic uint64_t	 count;
	} parts[PULSES];
};

/* What happened from `first` on. */
struct pulse_sum {
	uint64_t	count;
	nsec_t		first;
};

/* The shift with which PULSES parts are at least `window` long. */
unsigned pulses_shift(nsec_t window);

/* It happened. */
void pulses_note(struct pulses *p, unsigned shift, nsec_t now);

/* Add what happened in the time from `since` to `now`, by parts. */
void pulses_add(const struct pulses *p, nsec_t since, nsec_t now,
    struct pulse_sum *sum);

#endif
