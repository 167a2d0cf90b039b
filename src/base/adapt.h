/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adapt.h - how many requests an upstream takes at once, by how long it takes
 * for them.
 *
 * While an upstream has room, a response takes as long as ever, its base; when
 * more are in it than it works on, they queue there, and each takes longer by
 * as much as they are too many.  So its time is a line with a knee, and the
 * limit belongs right of the knee, as near as lets more room be noticed:
 *
 *	 time          /
 *	              /		in proportion to what is in use
 *	 base  ______/
 *	           knee   in use
 *
 * What was seen with how many in use is kept, the latest counts most, and the
 * line that fits it best is looked for.  If that could as well have no queue
 * anywhere, more is tried by a third, until a queue is certain; if it could
 * have a queue everywhere, less is, by a quarter, for a third of the responses
 * at most.  It is tried for as long as chance needs to be ruled out: seldom
 * where the answer is known, and longer where few come or their times differ
 * much.  When times have surely changed, what was seen is forgotten.
 *
 * Where requests are lost, since the upstream is so late that nobody waits for
 * it any more, the times of those that are not have an end that looks like
 * room; and so have those of an upstream that turns away what it doesn't take.
 * So the time of the lost, and of what was turned away, counts as that of the
 * others, which is what each takes by Little's law: as many as are in use, by
 * how many come out.  While all are lost the limit is lowered.
 *
 * Sources: L. Brakmo and L. Peterson, TCP Vegas, 1995 (a queue from base and
 * time); N. Cardwell et al., BBR, 2016 (rate times base, each seen where the
 * other can't be); Netflix, concurrency-limits, 2018 (none of it while less
 * than half is used).
 *
 * Limits:   to rule out chance takes responses.  Of simulated upstreams (4 to
 *           400 servers of 2 to 200 ms, 6 changes) with 100 responses a second
 *           or more, the limit was off by more than a fifth 30 s after a
 *           change never if all responses took as long, in 2 % of cases, by
 *           at most 1.3, if times were exponential, and in 12 %, by up to 3.4,
 *           if a tenth of them took most of the time.  With 5 to 100 a second
 *           those were 10, 30 and 47 %, by a fifth to thrice of what is right.
 *           Those upstreams had a sharp knee.  With a soft one the limit errs
 *           low: of the most that was possible 72 to 89 % was served, and half
 *           where each more takes longer from the first on.
 * Owner:    the caller, who embeds the struct; nothing is allocated.
 * Threads:  one at a time.
 */
#ifndef PENSTOCK_BASE_ADAPT_H
#define PENSTOCK_BASE_ADAPT_H

#include "base/defs.h"

enum {
	ADAPT_FIRST = 5,	/* a limit to begin with */
	ADAPT_POINTS = 140,	/* ten per cent each, up to a million */
};

struct adapt_bounds {
	uint64_t	min;		/* 1 <= min <= max; both 0: none */
	uint64_t	max;
};

/* What was seen since the last step. */
struct adapt_seen {
	uint64_t	count;		/* of requests that are over */
	uint64_t	lost;		/* of them, without a response */
	nsec_t		time;		/* that all took, together, and what */
					/* was turned away */
	uint64_t	in_use;		/* how many there were at the end of */
					/* each, together */
};

/* What was seen with about so many in use; later responses count more. */
struct adapt_point {
	double		count;		/* 0: nothing was */
	double		in_use;
	double		time;		/* nsec */
};

struct adapt {
	struct adapt_bounds bounds;
	double		 limit;
	double		 right;		/* the knee, or what was most in use */
	double		 base;		/* nsec; 0: nothing was seen */
	double		 noise;		/* variance of times by their mean */
	double		 slower;	/* log likelihoods that times */
	double		 quicker;	/* have changed */
	bool		 lower;		/* is tried first after that */
	bool		 settles;	/* what comes now is of before */
	nsec_t		 stepped;	/* when */
	struct adapt_point points[ADAPT_POINTS];	/* by in_use */
};

/* Begin with `first`, or what the bounds allow. */
void adapt_init(struct adapt *a, const struct adapt_bounds *bounds,
    uint64_t first, nsec_t now);

/* Other bounds, from now on; what was learned stays. */
void adapt_set(struct adapt *a, const struct adapt_bounds *bounds);

/* The limit now. */
uint64_t adapt_limit(const struct adapt *a);

/* How long a response takes without a queue; 0: nothing was seen. */
nsec_t adapt_base(const struct adapt *a);

/* Is it time for a step, and is what was seen enough for one? */
bool adapt_is_due(const struct adapt *a, const struct adapt_seen *seen,
    nsec_t now);

/* Make it; the limit from now on. */
uint64_t adapt_step(struct adapt *a, const struct adapt_seen *seen,
    nsec_t now);

#endif
