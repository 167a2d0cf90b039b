/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adapt.c - a limit that follows its upstream; see adapt.h.
 *
 * Points and the line are in logarithms: there a queue is a slope of one, and
 * chance is the same share of every time.  A point's weight is one by its
 * variance; that of the mean of `count` times is their variance by count, and
 * no upstream is quite as the line has it.
 */
#include <math.h>

#include "base/adapt.h"

#define STEP_LEAST	(100 * NSEC_PER_MSEC)
#define STEP_SAMPLES	20.0
#define SETTLE_TURNS	1.5	/* all in use once, and who came after */
#define TIME_MOST	(60.0 * NSEC_PER_SEC)

/* Above what is worked on, so that more room is noticed. */
#define HEADROOM	1.05
#define HEADROOM_LEAST	0.6
#define PROBE		1.30	/* as much more is tried, or less */
#define DIP_SHARE	2.0	/* so many times what is seen below is above */

/* Twice the difference of log likelihoods from where on one is ruled out. */
#define SURE		6.0
#define TELLS		0.01	/* less is no difference */

/* Variance of times with a mean of one; of exponential ones it is 1. */
#define NOISE_FIRST	2.0
#define NOISE_LEAST	0.3
#define NOISE_MOST	10.0
#define NOISE_PART	0.1	/* of it is from the latest */
#define OUTLIER		9.0	/* times what was expected */
#define MISFIT		0.0009	/* variance of an upstream from the line */

/* Times that are other by e^0.4, thus half as long again, are a change. */
#define CHANGE		0.4
#define ALARM		7.0	/* log likelihood that there was one */

/* How long what was seen counts: the longer of both. */
#define KEEP_TIME	(5.0 * NSEC_PER_SEC)
#define KEEP_COUNT	400.0

#define POINT_WIDTH	0.1

static double
bounded(const struct adapt *a, double limit)
{
	return MIN(MAX(limit, (double)a->bounds.min), (double)a->bounds.max);
}

void
adapt_init(struct adapt *a, const struct adapt_bounds *bounds, uint64_t first,
    nsec_t now)
{
	*a = (struct adapt){
		.limit = (double)first, .noise = NOISE_FIRST, .stepped = now,
	};
	adapt_set(a, bounds);
}

void
adapt_set(struct adapt *a, const struct adapt_bounds *bounds)
{
	ASSERT(bounds->min >= 1 && bounds->min <= bounds->max);
	a->bounds = *bounds;
	a->limit = bounded(a, a->limit);
	/* Of the first requests after it the short ones are over first. */
	a->settles = true;
}

uint64_t
adapt_limit(const struct adapt *a)
{
	return (uint64_t)a->limit;
}

nsec_t
adapt_base(const struct adapt *a)
{
	return (nsec_t)(a->base + 0.5);
}

bool
adapt_is_due(const struct adapt *a, const struct adapt_seen *seen, nsec_t now)
{
	double count = (double)seen->count;
	/* As many as are in use: each of them is over once, in the mean. */
	double turn = (double)seen->in_use / MAX(count, 1);

	if (a->settles)
		return count > SETTLE_TURNS * turn;
	return count >= MAX(STEP_SAMPLES, turn) &&
	    now - MIN(now, a->stepped) >= STEP_LEAST;
}

/* --- what was seen ------------------------------------------------------ */

static double
weight(const struct adapt *a, double count)
{
	return 1 / (MAX(a->noise, NOISE_LEAST) / count + MISFIT);
}

/* Outside of what was seen, nothing is known that could have changed. */
static bool
is_known(const struct adapt *a, unsigned at)
{
	bool less = false, more = false;

	for (unsigned i = 0; i < ADAPT_POINTS; i++) {
		less = less || (i <= at && a->points[i].count > 0);
		more = more || (i >= at && a->points[i].count > 0);
	}
	return less && more;
}

/*
 * Is it other than what was seen before?  Steps that say so add up (a CUSUM,
 * after E. S. Page, 1954): one of few responses proves nothing.
 */
static bool
has_changed(struct adapt *a, const struct adapt_point *seen)
{
	double expected = a->base * MAX(1, seen->in_use / a->right);
	double longer = log(seen->time / expected);
	double w = weight(a, seen->count) * CHANGE;

	a->slower = MAX(0, a->slower + w * (longer - CHANGE / 2));
	a->quicker = MAX(0, a->quicker + w * (-longer - CHANGE / 2));
	return MAX(a->slower, a->quicker) >= ALARM;
}

static void
forget_all(struct adapt *a)
{
	for (unsigned i = 0; i < ADAPT_POINTS; i++)
		a->points[i].count = 0;
	a->lower = a->slower > a->quicker;
	a->slower = a->quicker = 0;
}

static void
fade(struct adapt *a, double count, double elapsed)
{
	double keep = exp(-MIN(count / KEEP_COUNT, elapsed / KEEP_TIME));

	for (unsigned i = 0; i < ADAPT_POINTS; i++) {
		struct adapt_point *p = &a->points[i];

		p->count = p->count * keep < 1 ? 0 : p->count * keep;
	}
}

/* By how much steps differ that should not. */
static void
learn_noise(struct adapt *a, const struct adapt_point *p,
    const struct adapt_point *seen)
{
	double off = log(seen->time / p->time);
	double noise = off * off / (1 / seen->count + 1 / p->count);

	a->noise += (MIN(noise, OUTLIER * a->noise) - a->noise) * NOISE_PART;
	a->noise = MIN(a->noise, NOISE_MOST);
}

/* False: all is other now, and the step was of before and after. */
static bool
learn(struct adapt *a, const struct adapt_point *seen, double elapsed)
{
	unsigned at = (unsigned)MIN(log(seen->in_use) / POINT_WIDTH,
	    ADAPT_POINTS - 1);
	struct adapt_point *p = &a->points[at];

	if (is_known(a, at) && has_changed(a, seen)) {
		forget_all(a);
		return false;
	}
	fade(a, seen->count, elapsed);
	if (p->count > 0)
		learn_noise(a, p, seen);
	p->count += seen->count;
	double part = seen->count / p->count;
	p->in_use += (seen->in_use - p->in_use) * part;
	p->time += (seen->time - p->time) * part;
	return true;
}

/* --- the line ----------------------------------------------------------- */

struct dot {
	double	in_use, time;	/* logs */
	double	weight;
};

struct line {
	double	knee, base;	/* logs */
	double	misfit;		/* sum of weighted squares */
};

/* The best line whose knee is behind `below` dots. */
static struct line
line_of(const struct dot *d, unsigned count, unsigned below)
{
	double all = 0, sum = 0, low = 0, times = 0, high = 0, rates = 0;
	struct line l = { .knee = d[0].in_use };

	for (unsigned i = 0; i < below; i++) {
		low += d[i].weight;
		times += d[i].weight * d[i].time;
	}
	for (unsigned i = below; i < count; i++) {
		high += d[i].weight;
		rates += d[i].weight * (d[i].in_use - d[i].time);
	}
	/* Little's law: a rate, times how long each takes. */
	if (below == count)
		l.knee = d[count - 1].in_use;
	else if (below > 0)
		l.knee = MIN(MAX(times / low + rates / high,
		    d[below - 1].in_use), d[below].in_use);
	all = low + high;
	sum = times - rates + high * l.knee;
	l.base = sum / all;
	for (unsigned i = 0; i < count; i++) {
		double off = d[i].time - l.base - MAX(0, d[i].in_use - l.knee);

		l.misfit += d[i].weight * off * off;
	}
	return l;
}

struct fit {
	struct line	best;
	double		least, most;	/* that was in use */
	bool		all_queues;	/* it may be that it does at all */
	bool		none_queues;	/* or at none of them */
};

static unsigned
get_dots(const struct adapt *a, struct dot *d)
{
	unsigned count = 0;

	for (unsigned i = 0; i < ADAPT_POINTS; i++) {
		const struct adapt_point *p = &a->points[i];

		if (p->count > 0)
			d[count++] = (struct dot){ log(p->in_use),
			    log(p->time), weight(a, p->count) };
	}
	return count;
}

static struct fit
fit(const struct adapt *a)
{
	struct dot d[ADAPT_POINTS];
	unsigned count = get_dots(a, d);

	/* The latest step is one. */
	ASSERT(count > 0);
	struct line all = line_of(d, count, 0);
	struct line none = line_of(d, count, count);
	struct line best = all.misfit <= none.misfit ? all : none;

	for (unsigned below = 1; below < count; below++) {
		struct line l = line_of(d, count, below);

		if (l.misfit < best.misfit - TELLS)
			best = l;
	}
	return (struct fit){
		.best = best,
		.least = d[0].in_use, .most = d[count - 1].in_use,
		.all_queues = all.misfit - best.misfit < SURE,
		.none_queues = none.misfit - best.misfit < SURE,
	};
}

/* --- the limit ---------------------------------------------------------- */

/* Has little been seen below? */
static bool
may_dip(const struct adapt *a)
{
	double low = 0, high = 0;

	for (unsigned i = 0; i < ADAPT_POINTS; i++) {
		const struct adapt_point *p = &a->points[i];

		if (p->in_use < a->right / sqrt(PROBE))
			low += p->count;
		else
			high += p->count;
	}
	return low * DIP_SHARE < high;
}

/* To lower, to learn how long it takes without a queue? */
static bool
shall_sink(const struct adapt *a, const struct fit *f)
{
	if (a->limit <= (double)a->bounds.min || !f->all_queues)
		return false;
	if (f->least == f->most)
		return a->lower;
	if (f->best.knee == f->least)
		return true;
	return f->best.knee < f->most && may_dip(a);
}

static double
choose(struct adapt *a, double in_use)
{
	struct fit f = fit(a);

	a->base = exp(f.best.base);
	a->right = exp(f.best.knee);
	if (shall_sink(a, &f))
		return MIN(a->right / PROBE, a->right - 1);
	if (!f.none_queues)
		return MAX(a->right * HEADROOM, a->right + HEADROOM_LEAST);
	/* Who comes in bursts has less in use than the limit, in the mean. */
	double from = f.best.knee == f.most ? a->limit : MAX(a->right, in_use);
	return MAX(from * PROBE, from + 1);
}

uint64_t
adapt_step(struct adapt *a, const struct adapt_seen *seen, nsec_t now)
{
	double count = (double)MAX(seen->count, 1);
	double came = MAX(count - (double)seen->lost, 1);
	struct adapt_point p = {
		.count = count,
		.in_use = MAX((double)seen->in_use / count, 1),
		.time = MIN(MAX((double)seen->time / came, 1.0), TIME_MOST),
	};
	uint64_t was = adapt_limit(a);

	if (a->settles) {
		a->settles = false;
	} else if (seen->lost != 0 && seen->lost >= seen->count) {
		/* Nothing came: how few that is for, nobody can tell. */
		a->limit = bounded(a, a->limit / PROBE);
		a->settles = adapt_limit(a) != was;
	} else if (p.in_use >= a->limit / 2) {
		if (learn(a, &p, (double)(now - MIN(now, a->stepped))))
			a->limit = bounded(a, choose(a, p.in_use));
		else
			a->settles = true;
		a->settles = a->settles || adapt_limit(a) != was;
	}
	a->stepped = now;
	return adapt_limit(a);
}
