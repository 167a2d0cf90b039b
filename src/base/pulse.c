/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pulse.c - how often something happened lately; see pulse.h.
 */
#include "base/pulse.h"

unsigned
pulses_shift(nsec_t window)
{
	unsigned shift = 0;

	while (PULSES * (UINT64_C(1) << shift) < window)
		shift++;
	return shift;
}

/* One writer, so no read-modify-write. */
void
pulses_note(struct pulses *p, unsigned shift, nsec_t now)
{
	struct pulse *part = &p->parts[(now >> shift) % PULSES];
	uint64_t count = atomic_load_explicit(&part->count,
	    memory_order_relaxed);
	nsec_t first = atomic_load_explicit(&part->first,
	    memory_order_relaxed);

	if (count == 0 || first >> shift != now >> shift) {
		atomic_store_explicit(&part->first, now, memory_order_relaxed);
		count = 0;
	}
	atomic_store_explicit(&part->count, count + 1, memory_order_relaxed);
}

void
pulses_add(const struct pulses *p, nsec_t since, nsec_t now,
    struct pulse_sum *sum)
{
	for (unsigned i = 0; i < PULSES; i++) {
		uint64_t count = atomic_load_explicit(&p->parts[i].count,
		    memory_order_relaxed);
		nsec_t first = atomic_load_explicit(&p->parts[i].first,
		    memory_order_relaxed);

		if (count == 0 || first < since || first > now)
			continue;
		sum->count += count;
		sum->first = MIN(sum->first, first);
	}
}
