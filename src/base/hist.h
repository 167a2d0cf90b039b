/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hist.h - histogram of durations, with fixed buckets.
 *
 * The bounds are those of `hist_bounds`, from 100 us to 60 s, three to a
 * decade: fine enough for an operator, few enough for a scrape.  Adding finds
 * the bucket by the position of the highest bit: no search, no lock.
 *
 * Owner:    the caller, who embeds the struct; all zero is empty.
 * Threads:  one writer; any readers, who may see a sum one sample ahead.
 */
#ifndef PENSTOCK_BASE_HIST_H
#define PENSTOCK_BASE_HIST_H

#include <stdatomic.h>

#include "base/defs.h"

enum { HIST_BUCKETS = 20 };		/* the last one is without bound */

struct hist {
	_Atomic uint64_t	count[HIST_BUCKETS];
	_Atomic uint64_t	sum;	/* nsec */
};

/* Upper bounds, in nsec; the last is NSEC_NEVER. */
extern const nsec_t hist_bounds[HIST_BUCKETS];

void hist_add(struct hist *h, nsec_t v);

/* The bucket that v is counted in. */
size_t hist_bucket(nsec_t v);

/* Add what `from` counted to *to, which nobody else writes. */
void hist_merge(struct hist *to, const struct hist *from);

uint64_t hist_total(const struct hist *h);

/* The bound below which a share q of the samples lies; 0 when empty. */
nsec_t hist_quantile(const struct hist *h, double q);

/*
 * The same, guessed within its bucket as if samples were spread evenly there:
 * what Prometheus's histogram_quantile() says.  Of those in the last bucket
 * only its lower bound is known.
 */
nsec_t hist_estimate(const struct hist *h, double q);

/*
 * What *now counted that *before, a copy of it from then, had not; nothing
 * where it counted less, as when one of those it was merged from has gone.
 */
void hist_since(struct hist *out, const struct hist *now,
    const struct hist *before);

#endif
