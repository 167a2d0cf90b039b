/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adapt.c - a limit that follows its upstream; see adapt.h.
 *
 * All of it is about noise: times differ, and the mean of fifty may be a
 * quarter off.  So means are of several steps, the limit goes only part of the
 * way, what would be a large change has to be seen twice, and what the base is
 * decided by is a difference of two, not of a tenth.
 */
#include "base/adapt.h"

#define STEP_LEAST	(100 * NSEC_PER_MSEC)
#define TIME_MOST	(60.0 * NSEC_PER_SEC)

/* How long a step is, in times of a response. */
#define STEP_TIMES	2.0
#define SETTLE_TIMES	3.0	/* until those asked before are over */

/* What a step makes of base / time. */
#define MOST_RATIO	1.20	/* above 1 by chance, as below */
#define HEADROOM	0.06	/* over what is worked on, */
#define HEADROOM_LEAST	0.6
#define ROOM		0.98	/* from here on nothing queues */
#define SAME		0.90	/* as the base: it may be chance */
#define CALM		0.80	/* below, it queues, or is slower */
#define MET		0.72	/* below, the limit is surely too high */
#define QUICK		1.50	/* from here on the base is none any more */
#define GROWTH		1.50	/* of the limit, while nothing ever queued, */
#define ROOM_GROWTH	1.20	/* and when nothing does any more */
#define SEEN_HALF	100.0	/* with so many it goes half of the way, */
#define MOST_PART	0.40	/* but no more than that, */
#define FLOOR		0.85	/* nor below, until a dip says so */

/* Dips: when, and how far. */
#define DIP_EVERY	(5 * NSEC_PER_SEC)
#define DIP_SOONEST	NSEC_PER_SEC
#define LOOK_LONG	(NSEC_PER_SEC / 2)
#define DIP_SHARE	3	/* of that time at most a third */
#define DIP_TO		0.75
#define DIP_UNDER	0.80	/* of what is worked on */
#define DIP_LEAST	0.55
#define DIP_TELLS	0.65	/* from here on the time tells */
#define LONGER		1.25	/* than the base: to be looked into */

enum {
	SAMPLES = 100,			/* fewer say nothing */
	LOOK_SAMPLES = 400,		/* in a dip */
	ROOM_SAMPLES = 200,		/* say that there is room */
	NOW_SAMPLES = 500,		/* are what a mean is of */
	BASE_SAMPLES = 800,
	SEEN_TIMES = 3,			/* or so many times the latest */
	ROOM_LIMIT = 10,		/* below, one more is much */
	ROOM_STEPS = 2,
	AGAIN = 2			/* chance doesn't come twice */
};

static double
bounded(const struct adapt *a, double limit)
{
	return MIN(MAX(limit, (double)a->bounds.min), (double)a->bounds.max);
}

static double
with_headroom(const struct adapt *a, double worked_on)
{
	return bounded(a, worked_on + MAX(worked_on * HEADROOM,
	    HEADROOM_LEAST));
}

void
adapt_init(struct adapt *a, const struct adapt_bounds *bounds, uint64_t first,
    nsec_t now)
{
	*a = (struct adapt){
		.limit = (double)first, .grows = true,
		.stepped = now, .dipped = now,
	};
	adapt_set(a, bounds);
}

void
adapt_set(struct adapt *a, const struct adapt_bounds *bounds)
{
	ASSERT(bounds->min >= 1 && bounds->min <= bounds->max);
	a->bounds = *bounds;
	a->limit = bounded(a, a->limit);
	a->floor = MIN(a->floor, a->limit);
	a->dip = bounded(a, a->dip);
	/* Of the first requests after it the short ones are over first. */
	a->settles = true;
}

uint64_t
adapt_limit(const struct adapt *a)
{
	return (uint64_t)(a->dips ? a->dip : a->limit);
}

/* Of a dip much depends: longer, unless that costs much. */
static bool
is_enough(const struct adapt *a, uint64_t count, nsec_t lasted)
{
	if (a->settles)
		return count > 0;
	return count >= (a->dips && lasted < LOOK_LONG ? LOOK_SAMPLES :
	    SAMPLES);
}

bool
adapt_is_due(const struct adapt *a, const struct adapt_seen *seen, nsec_t now)
{
	nsec_t lasted = now - MIN(now, a->stepped);
	double times = a->settles ? SETTLE_TIMES : STEP_TIMES;

	return is_enough(a, seen->count, lasted) &&
	    lasted >= MAX(STEP_LEAST, (nsec_t)(times * a->usual));
}

/* --- means ------------------------------------------------------------- */

static void
see(struct adapt_mean *m, double time, double count, double most)
{
	m->count = MIN(m->count, most) + count;
	m->time += (time - m->time) * count / m->count;
}

static void
see_only(struct adapt_mean *m, double time, double count)
{
	*m = (struct adapt_mean){ time, count };
}

/* From another limit on, or another base. */
static void
forget(struct adapt *a)
{
	a->now = (struct adapt_mean){ .count = 0 };
	a->slow = a->quick = a->steps = 0;
}

static void
settle(struct adapt *a)
{
	forget(a);
	a->settles = true;
}

/* Below it, it queues or is slower; surely, where it grows. */
static double
calm(const struct adapt *a)
{
	return a->grows ? MET : CALM;
}

/* --- dips -------------------------------------------------------------- */

static bool
is_dip_due(const struct adapt *a, nsec_t now)
{
	nsec_t since = now - MIN(now, a->dipped);

	if (a->limit <= (double)a->bounds.min)
		return false;
	if (a->slow >= AGAIN)
		return since >= DIP_SOONEST || a->grows;
	return !a->grows && since >= MAX(DIP_EVERY,
	    DIP_SHARE * a->dip_lasted);
}

static void
dip_to(struct adapt *a, double share, double time)
{
	a->above = a->dips ? a->dip : a->limit;
	a->above_time = time;
	a->dip = bounded(a, MAX(a->above * share, 1));
	a->dips = a->settles = true;
}

static void
begin_dip(struct adapt *a, double time, nsec_t now)
{
	double ratio = a->base.time / time;

	/* What is slow now was not before. */
	if (a->slow >= AGAIN)
		a->now.time = time;
	a->dip_began = now;
	dip_to(a, MIN(MAX(ratio * DIP_UNDER, DIP_LEAST), DIP_TO), time);
}

/* With so much less of a limit, is the time less, too? */
static bool
still_queues(const struct adapt *a, double time)
{
	return time < a->above_time * (1 + a->dip / a->above) / 2;
}

/*
 * Would less of a limit tell whether it queues or is slower?  Or whether there
 * always was a queue, if it is quicker than ever?
 */
static bool
dip_deeper(struct adapt *a, double time)
{
	bool queues = still_queues(a, time);
	bool slower = time > a->base.time * LONGER;
	bool quicker = time * LONGER < a->base.time;
	bool tells = a->dip / a->above <= DIP_TELLS;
	double share = MAX(a->base.time / time * DIP_UNDER, DIP_LEAST);

	if (a->dip <= (double)a->bounds.min ||
	    (slower ? tells && !queues : !quicker || !queues))
		return false;
	dip_to(a, MIN(share, DIP_TELLS), time);
	return true;
}

/* What a dip says of the base; more, if that was wrong. */
static void
see_in_dip(struct adapt *a, double time, double count)
{
	double usual = MAX(BASE_SAMPLES, SEEN_TIMES * count);
	double base = a->base.time;
	bool tells = a->dip / a->above <= DIP_TELLS;

	if (time > base * LONGER || (tells && time * LONGER < base))
		see_only(&a->base, time, count);
	else if (time < base * SAME ||
	    (time * SAME > base && !still_queues(a, time)))
		see(&a->base, time, count, 2 * count);
	else
		see(&a->base, time, count, usual);
}

/* Where the limit is low enough, or can't be lower. */
static void
look(struct adapt *a, double time, double count, nsec_t now)
{
	if (dip_deeper(a, time))
		return;
	see_in_dip(a, time, count);
	if (a->base.time < a->now.time * calm(a)) {
		a->limit = with_headroom(a,
		    a->limit * a->base.time / a->now.time);
		a->grows = false;
		a->room = 0;
	}
	a->dips = false;
	a->dipped = now;
	a->dip_lasted = now - MIN(now, a->dip_began);
	a->floor = a->limit * FLOOR;
	settle(a);
}

/* --- steps ------------------------------------------------------------- */

/*
 * No response takes less than the base, so if they do, it isn't that; it may
 * be chance, once.
 */
static bool
is_quick(struct adapt *a, double time, double count)
{
	a->quick = time * QUICK < a->base.time ? a->quick + 1 : 0;
	if (a->quick >= AGAIN) {
		see_only(&a->base, time, count);
		forget(a);
	}
	return a->quick > 0;
}

/* It does not queue at all; if so twice, there is much room. */
static bool
has_room(struct adapt *a, double ratio)
{
	if (a->steps < ROOM_STEPS || a->now.count < ROOM_SAMPLES ||
	    a->limit < ROOM_LIMIT)
		return false;
	a->room = ratio >= ROOM ? a->room + 1 : 0;
	a->grows = a->room >= AGAIN;
	return a->room > 0;
}

/* Part of the way to what is worked on, and a little more. */
static void
move(struct adapt *a, double count)
{
	double ratio = MIN(a->base.time / a->now.time, MOST_RATIO);
	double part = MIN(count / (count + SEEN_HALF), MOST_PART);
	double wanted = with_headroom(a, a->limit * ratio);

	if (a->grows || has_room(a, ratio)) {
		a->limit = bounded(a, a->limit *
		    (a->grows ? GROWTH : ROOM_GROWTH));
		settle(a);
	} else {
		a->limit += (MAX(wanted, a->floor) - a->limit) * part;
	}
}

static void
run(struct adapt *a, double time, double count, nsec_t now)
{
	double ratio = a->base.time / time;

	a->grows = a->grows && a->limit < (double)a->bounds.max;
	a->slow = ratio < calm(a) ? a->slow + 1 : 0;
	a->steps++;
	see(&a->now, time, count, MAX(NOW_SAMPLES, SEEN_TIMES * count));
	if (is_dip_due(a, now))
		begin_dip(a, time, now);
	else if (a->slow == 0)
		move(a, count);
}

/*
 * Without a limit in the way nothing queues, nor at its least; and while it
 * grows from little, nothing does yet.
 */
static void
see_base(struct adapt *a, const struct adapt_seen *seen, double time)
{
	double count = (double)seen->count;
	bool half_used = (double)seen->in_use >= a->limit / 2 * count;

	if (a->base.time == 0 || !half_used ||
	    a->limit <= (double)a->bounds.min ||
	    (a->grows && a->base.time > time * SAME))
		see(&a->base, time, count, BASE_SAMPLES);
}

uint64_t
adapt_step(struct adapt *a, const struct adapt_seen *seen, nsec_t now)
{
	double count = (double)MAX(seen->count, 1);
	double time = MIN(MAX((double)seen->time / count, 1.0), TIME_MOST);

	if (a->settles) {
		a->settles = false;
	} else if (a->dips) {
		look(a, time, count, now);
	} else {
		see_base(a, seen, time);
		if ((double)seen->in_use >= a->limit / 2 * count &&
		    !is_quick(a, time, count))
			run(a, time, count, now);
	}
	a->stepped = now;
	a->usual = time;
	return adapt_limit(a);
}
