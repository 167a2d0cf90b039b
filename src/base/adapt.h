/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adapt.h - how many requests an upstream takes at once, by how long it takes
 * for them.
 *
 * While an upstream has room, a response takes as long as ever, its base; when
 * more are in it than it works on, they queue there, and each takes longer by
 * as much as they are too many.  So limit * base / time is what it works on
 * (Little's law), and the limit is moved to that and a little more, so that
 * more room is noticed.
 *
 *	 limit   ___      ___      __
 *	    ____/   |____/   |____/   dips: the queue drains, the base is seen
 *	   /
 *
 * The base is seen in dips: now and then the limit is lowered by a quarter for
 * a moment.  That is enough, as the limit is hardly above what is worked on.
 * If even so a response takes longer than the base, the limit goes down by
 * nearly half, and the answer is in what becomes of the time: if it falls as
 * much, there still is a queue, and an even lower limit is tried; if not,
 * nothing queues and the upstream is slower than it was, so that time is the
 * base.  So it goes no further down than about half of what is worked on, and
 * is never pinned to a few.
 *
 * It begins low, and grows fast until a dip has shown that there is a queue;
 * so again when there was room for long.
 *
 * Sources: L. Brakmo and L. Peterson, TCP Vegas, 1995 (a queue from base and
 * time); N. Cardwell et al., BBR, 2016 (drain, to see the base again; less in
 * flight makes no difference to what comes out); Netflix, concurrency-limits,
 * 2018 (steps by a gradient, none while less than half is used).
 *
 * Limits:   a step needs 100 responses.  Of simulated upstreams of 4 to 400
 *           servers the limit was off by more than a fifth after half a minute,
 *           where responses took up to 20 ms, never if all took as long or
 *           times were exponential, and in 6 % if a tenth of them took most of
 *           the time; where they took 200 ms in 3, 20 and 58 %.  Half a minute
 *           after a change those were 0, 1 and 14 %, and 15, 32 and 78 %, at
 *           worst 0.15 and 7 times what is right.
 * Owner:    the caller, who embeds the struct; nothing is allocated.
 * Threads:  one at a time.
 */
#ifndef PENSTOCK_BASE_ADAPT_H
#define PENSTOCK_BASE_ADAPT_H

#include "base/defs.h"

enum { ADAPT_FIRST = 5 };	/* a limit to begin with */

struct adapt_bounds {
	uint64_t	min;		/* 1 <= min <= max; both 0: none */
	uint64_t	max;
};

/* What was seen since the last step. */
struct adapt_seen {
	uint64_t	count;		/* of responses */
	nsec_t		time;		/* theirs, together */
	uint64_t	in_use;		/* how many there were at the end of */
					/* each, together */
};

/* The mean of what was seen, of which the latest counts most. */
struct adapt_mean {
	double		time;		/* nsec; 0: nothing was */
	double		count;
};

struct adapt {
	struct adapt_bounds bounds;
	double		 limit;		/* when it doesn't dip */
	double		 floor;		/* of it, until the next dip */
	struct adapt_mean base;
	struct adapt_mean now;		/* at the limit */
	double		 usual;		/* nsec a response, just now */
	nsec_t		 stepped;	/* when */
	bool		 settles;	/* what comes now is of before */
	bool		 grows;		/* fast: no queue was met yet */
	unsigned	 steps;		/* at about this limit */
	unsigned	 slow;		/* of them in a row with a queue */
	unsigned	 quick;		/* or far quicker than the base */
	unsigned	 room;		/* times in a row that there was room */
	bool		 dips;
	double		 dip;		/* the limit in it */
	double		 above;		/* and before it went there, */
	double		 above_time;	/* with the time at that */
	nsec_t		 dip_began;
	nsec_t		 dipped;	/* when the last was over */
	nsec_t		 dip_lasted;
};

/* Begin with `first`, or what the bounds allow. */
void adapt_init(struct adapt *a, const struct adapt_bounds *bounds,
    uint64_t first, nsec_t now);

/* Other bounds, from now on; what was learned stays. */
void adapt_set(struct adapt *a, const struct adapt_bounds *bounds);

/* The limit now. */
uint64_t adapt_limit(const struct adapt *a);

/* Is it time for a step, and is what was seen enough for one? */
bool adapt_is_due(const struct adapt *a, const struct adapt_seen *seen,
    nsec_t now);

/* Make it; the limit from now on. */
uint64_t adapt_step(struct adapt *a, const struct adapt_seen *seen,
    nsec_t now);

#endif
