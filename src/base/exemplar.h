/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exemplar.h - one sample of a bucket of a histogram, and whose it was.
 *
 * A slow request leads to its line in the access log.  What is kept is the
 * latest of those that are worth it: exemplar_is_due() says which, so cheaply
 * that it may be asked for each.
 *
 * Owner:    the caller, who embeds HIST_BUCKETS of them; all zero is none.
 * Threads:  one writer; any readers, who may find it being written: then they
 *           have none.
 */
#ifndef PENSTOCK_BASE_EXEMPLAR_H
#define PENSTOCK_BASE_EXEMPLAR_H

#include <stdatomic.h>

#include "base/defs.h"

struct exemplar {
	_Atomic uint64_t	turn;	/* odd: it is being written */
	_Atomic uint64_t	id;
	_Atomic nsec_t		value;
	_Atomic nsec_t		at;	/* since 1970 */
};

struct exemplar_copy {
	uint64_t	id;
	nsec_t		value;
	nsec_t		at;
};

/* Each that took so long is noted, and of the others one in so many. */
#define EXEMPLAR_SLOW	(50 * NSEC_PER_MSEC)
enum { EXEMPLAR_SHARE = 256 };

static inline bool
exemplar_is_due(uint64_t id, nsec_t value)
{
	return UNLIKELY(value >= EXEMPLAR_SLOW) ||
	    UNLIKELY(id % EXEMPLAR_SHARE == 0);
}

/* Note it in that of its bucket. */
void exemplar_note(struct exemplar *buckets, const struct exemplar_copy *c);

/* False if there is none. */
bool exemplar_read(const struct exemplar *e, struct exemplar_copy *out);

/* Of each bucket the later one, in *to, which nobody else writes. */
void exemplars_merge(struct exemplar *to, const struct exemplar *from);

#endif
