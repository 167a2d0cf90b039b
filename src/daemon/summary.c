/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * summary.c - a line in the log now and then; see summary.h.
 */
#include "daemon/summary.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/stats.h"
#include "daemon/reload.h"
#include "net/loop.h"
#include "proxy/setup.h"

struct totals {
	uint64_t	active;		/* now */
	uint64_t	errors;		/* responses of 500 and more */
	struct hist	duration;	/* of what is over */
};

struct summary {
	struct summary_opts	 opts;
	struct wheel_timer	 timer;
	struct totals		 last;
	nsec_t			 since;
	nsec_t			 every;		/* 0: never */
};

static wheel_fn	on_time;

/* --- counting ----------------------------------------------------------- */

static void
add_listener(struct totals *t, const struct listener_stats *s)
{
	t->active += stat_read(&s->exchanges);
	for (int code = 500; code < STATS_CODES; code++)
		t->errors += stat_read(&s->codes[code]);
	hist_merge(&t->duration, &s->duration);
}

static void
count(const struct summary *s, struct totals *t)
{
	const struct setup *setup = reload_setup(s->opts.reload);

	*t = (struct totals){ .active = 0 };
	for (unsigned i = 0; i < setup->service_count; i++)
		for (unsigned w = 0; w < s->opts.workers; w++)
			add_listener(t, &setup->services[i].state->stats[w]);
}

/* A listener that is gone takes its counts along: then there is no less. */
static uint64_t
growth(uint64_t now, uint64_t then)
{
	return now >= then ? now - then : 0;
}

static void
hist_growth(struct hist *out, const struct hist *now, const struct hist *then)
{
	for (size_t i = 0; i < HIST_BUCKETS; i++)
		out->count[i] = growth(now->count[i], then->count[i]);
	out->sum = growth(now->sum, then->sum);
}

/* --- saying ------------------------------------------------------------- */

/* "under 5 ms", as far as the bounds of a histogram tell. */
static void
put_bound(char *text, size_t size, const struct hist *h)
{
	nsec_t bound = hist_quantile(h, 0.99);

	if (bound == NSEC_NEVER)
		snprintf(text, size, "over %g s",
		    (double)hist_bounds[HIST_BUCKETS - 2] / 1e9);
	else if (bound < NSEC_PER_SEC)
		snprintf(text, size, "under %g ms", (double)bound / 1e6);
	else
		snprintf(text, size, "under %g s", (double)bound / 1e9);
}

static void
say(const struct summary *s, const struct totals *now, nsec_t time)
{
	uint64_t errors = growth(now->errors, s->last.errors);
	struct hist h = { 0 };
	char p99[32];

	hist_growth(&h, &now->duration, &s->last.duration);
	uint64_t n = hist_total(&h);
	if (n == 0 && now->active == 0 && s->last.active == 0)
		return;
	put_bound(p99, sizeof p99, &h);
	if (n == 0)
		log_say(s->opts.log, SAY_INFO, "in %.0f s: no request is "
		    "over, %llu active", (double)time / 1e9,
		    (unsigned long long)now->active);
	else
		log_say(s->opts.log, SAY_INFO, "in %.0f s: %llu requests, "
		    "%llu active, %llu errors (%.2f %%), mean %.3f ms, "
		    "p99 %s", (double)time / 1e9, (unsigned long long)n,
		    (unsigned long long)now->active,
		    (unsigned long long)errors,
		    100 * (double)errors / (double)n,
		    (double)h.sum / (double)n / 1e6, p99);
}

static void
on_time(struct wheel_timer *t)
{
	struct summary *s = container_of(t, struct summary, timer);
	struct totals now;

	count(s, &now);
	say(s, &now, loop_now(s->opts.loop) - s->since);
	s->last = now;
	s->since = loop_now(s->opts.loop);
	loop_arm(s->opts.loop, t, s->every);
}

/* --- the handle --------------------------------------------------------- */

struct summary *
summary_start(const struct summary_opts *opts)
{
	struct summary *s = xcalloc(1, sizeof *s);

	s->opts = *opts;
	wheel_timer_init(&s->timer, on_time);
	return s;
}

void
summary_set(struct summary *s, nsec_t every)
{
	if (every != 0 && every == s->every &&
	    wheel_is_armed(&s->timer))
		return;
	s->every = every;
	loop_cancel(s->opts.loop, &s->timer);
	if (every == 0)
		return;
	count(s, &s->last);
	s->since = loop_now(s->opts.loop);
	loop_arm(s->opts.loop, &s->timer, every);
}

void
summary_stop(struct summary **s)
{
	if (*s == NULL)
		return;
	loop_cancel((*s)->opts.loop, &(*s)->timer);
	free(*s);
	*s = NULL;
}
