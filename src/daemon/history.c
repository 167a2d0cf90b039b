/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * history.c - the last ten minutes; see history.h.
 */
#include "daemon/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/limit.h"
#include "proxy/setup.h"
#include "proxy/worker.h"

/* Looking takes no more than one part in so many of the time. */
enum { SHARE = 200 };

/* What all workers have counted. */
struct totals {
	nsec_t		at;
	uint64_t	requests, refused, failed, received, sent;
	uint64_t	busy, idle;
	uint64_t	sessions, exchanges, waiting;
	struct hist	duration, lag;
};

struct history {
	struct history_opts	 opts;
	struct wheel_timer	 timer;
	struct totals		 before;
	uint64_t		 looks;
	uint64_t		 count;		/* samples taken */
	struct history_sample	 ring[HISTORY_SAMPLES];
	struct history_trouble	*troubles;
	size_t			 trouble_count;
	size_t			 next;		/* trouble that is likely */
	double			 now;		/* seconds since 1970 */
	struct listener_stats	 sum;		/* of one listener */
};

static wheel_fn	on_time;

/* --- troubles ----------------------------------------------------------- */

static bool
is_of(const struct history_trouble *t, bool of_limit, const char *name,
    enum failure why)
{
	return t->of_limit == of_limit && t->why == why &&
	    strncmp(t->name, name, HISTORY_NAME) == 0;
}

/* They are asked for in the same order each time, so the next is the one. */
static struct history_trouble *
find(struct history *h, bool of_limit, const char *name, enum failure why)
{
	for (size_t i = 0; i < h->trouble_count; i++) {
		size_t at = (h->next + i) % h->trouble_count;

		if (is_of(&h->troubles[at], of_limit, name, why)) {
			h->next = at + 1;
			return &h->troubles[at];
		}
	}
	if (h->trouble_count == HISTORY_TROUBLES)
		return NULL;

	struct history_trouble *t = &h->troubles[h->trouble_count++];
	*t = (struct history_trouble){ .of_limit = of_limit, .why = why };
	strncpy(t->name, name, HISTORY_NAME);
	return t;
}

static uint64_t
minute_of(double now)
{
	return (uint64_t)(now / 60);
}

/* Forget what is older than the ring. */
static void
turn_ring(struct history_trouble *t, uint64_t minute)
{
	if (minute > t->minute + HISTORY_MINUTES)
		t->minute = minute - HISTORY_MINUTES;
	while (t->minute < minute)
		t->minutes[++t->minute % HISTORY_MINUTES] = 0;
}

static void
note(struct history *h, bool of_limit, const char *name, enum failure why,
    uint64_t total)
{
	struct history_trouble *t;

	if (total == 0 || (t = find(h, of_limit, name, why)) == NULL)
		return;
	/* Fewer than before, or none in between: another has its name. */
	bool same = t->look + 1 == h->looks && total >= t->total;
	uint64_t more = same ? total - t->total : total;
	t->look = h->looks;
	t->total = total;
	turn_ring(t, minute_of(h->now));
	if (more == 0)
		return;
	t->minutes[t->minute % HISTORY_MINUTES] += more;
	t->last = h->now;
}

uint64_t
history_trouble_in(const struct history_trouble *t, double now,
    unsigned minutes)
{
	uint64_t minute = minute_of(now), n = 0;

	for (unsigned i = 0; i < MIN(minutes, (unsigned)HISTORY_MINUTES); i++)
		if (minute >= i && minute - i <= t->minute &&
		    minute - i + HISTORY_MINUTES > t->minute)
			n += t->minutes[(minute - i) % HISTORY_MINUTES];
	return n;
}

/* --- looking ------------------------------------------------------------ */

enum trouble_kind
trouble_kind(enum failure why)
{
	int status = failure_row(why)->status;

	if (status == 429 || (status == 503 && why != FAIL_NO_SERVER))
		return TROUBLE_REFUSED;
	return status >= 500 ? TROUBLE_FAILED : TROUBLE_CLIENT;
}

/*
 * A 5xx that is none of ours was a server's.  Reasons don't tell: they are
 * counted when all is over, codes when a response begins.
 */
static void
add_listener(struct history *h, struct totals *t, const char *name)
{
	const struct listener_stats *s = &h->sum;
	uint64_t own = stat_read(&s->own_5xx), sent = 0;

	for (enum failure why = FAIL_NONE + 1; why < FAIL_COUNT; why++) {
		uint64_t n = stat_read(&s->failed[why]);
		enum trouble_kind kind = trouble_kind(why);

		note(h, false, name, why, n);
		if (kind == TROUBLE_REFUSED)
			t->refused += n;
		else if (kind == TROUBLE_FAILED)
			t->failed += n;
	}
	for (size_t code = 100; code < STATS_CODES; code++) {
		t->requests += stat_read(&s->codes[code]);
		sent += code >= 500 ? stat_read(&s->codes[code]) : 0;
	}
	t->failed += sent > own ? sent - own : 0;
	t->exchanges += stat_read(&s->exchanges);
	hist_merge(&t->duration, &s->duration);
}

static void
add_listeners(struct history *h, struct totals *t,
    const struct metrics_source *from)
{
	for (unsigned i = 0; i < from->setup->service_count; i++) {
		const struct listener_state *s =
		    from->setup->services[i].state;

		memset(&h->sum, 0, sizeof h->sum);
		for (unsigned w = 0; w < from->count; w++)
			stats_merge(STATS_LISTENER, &h->sum, &s->stats[w]);
		add_listener(h, t, s->name);
		t->sessions += atomic_load_explicit(&s->sessions,
		    memory_order_relaxed);
	}
}

static void
add_workers(struct totals *t, const struct metrics_source *from)
{
	for (unsigned i = 0; i < from->count; i++) {
		const struct worker *w = from->workers[i];
		const struct loop_stats *s = loop_stats(w->loop);

		t->received += stat_read(&w->client_totals.received);
		t->sent += stat_read(&w->client_totals.sent);
		t->busy += stat_read(&s->busy);
		t->idle += stat_read(&s->idle);
		hist_merge(&t->lag, &s->lag);
	}
}

struct glance {
	struct history	*history;
	struct totals	*totals;
};

static void
on_limit(void *arg, const struct limit_state *s)
{
	struct glance *g = arg;

	g->totals->waiting += s->gate.waiting;
	for (enum failure why = FAIL_NONE + 1; why < FAIL_COUNT; why++)
		note(g->history, true, s->name, why, s->refused[why]);
}

static double
share(uint64_t part, uint64_t rest)
{
	return part + rest == 0 ? 0 : (double)part / (double)(part + rest);
}

/* A counter may only have fallen if its owner was replaced. */
static double
rate(uint64_t now, uint64_t before, double seconds)
{
	return now <= before ? 0 : (double)(now - before) / seconds;
}

static void
keep(struct history *h, const struct totals *now)
{
	const struct totals *was = &h->before;
	struct history_sample *s = &h->ring[h->count++ % HISTORY_SAMPLES];
	double seconds = (double)MAX(now->at - was->at, (nsec_t)1) / 1e9;
	struct hist duration, lag;

	hist_since(&duration, &now->duration, &was->duration);
	hist_since(&lag, &now->lag, &was->lag);
	*s = (struct history_sample){
		.number = h->count,
		.at = h->now,
		.requests = rate(now->requests, was->requests, seconds),
		.refused = rate(now->refused, was->refused, seconds),
		.failed = rate(now->failed, was->failed, seconds),
		.received = rate(now->received, was->received, seconds),
		.sent = rate(now->sent, was->sent, seconds),
		.busy = share(now->busy - was->busy, now->idle - was->idle),
		.median = hist_estimate(&duration, 0.5),
		.slow = hist_estimate(&duration, 0.99),
		.lag = hist_estimate(&lag, 0.99),
		.sessions = now->sessions,
		.exchanges = now->exchanges > INT64_MAX ? 0 : now->exchanges,
		.waiting = now->waiting,
	};
}

void
history_look(struct history *h)
{
	struct timespec wall = loop_wall(h->opts.loop);
	struct metrics_source from;
	struct totals now = { .at = loop_now(h->opts.loop) };

	h->opts.source(h->opts.arg, &from);
	h->now = (double)wall.tv_sec + (double)wall.tv_nsec / 1e9;
	h->next = 0;
	h->looks++;
	add_listeners(h, &now, &from);
	add_workers(&now, &from);
	limits_glance(from.setup->registry, now.at, on_limit,
	    &(struct glance){ h, &now });
	if (h->before.at != 0)
		keep(h, &now);
	h->before = now;
}

static void
on_time(struct wheel_timer *t)
{
	struct history *h = container_of(t, struct history, timer);
	nsec_t began;

	loop_now_update(h->opts.loop);
	began = loop_now(h->opts.loop);
	history_look(h);
	loop_now_update(h->opts.loop);
	loop_arm(h->opts.loop, t,
	    MAX(HISTORY_STEP, SHARE * (loop_now(h->opts.loop) - began)));
}

/* --- asking ------------------------------------------------------------- */

const struct history_sample *
history_after(const struct history *h, uint64_t number)
{
	uint64_t oldest = h->count > HISTORY_SAMPLES ?
	    h->count - HISTORY_SAMPLES : 0;

	number = MAX(number, oldest);
	return number >= h->count ? NULL : &h->ring[number % HISTORY_SAMPLES];
}

const struct history_trouble *
history_trouble(const struct history *h, size_t i)
{
	return i < h->trouble_count ? &h->troubles[i] : NULL;
}

size_t
history_memory(void)
{
	return sizeof(struct history) +
	    HISTORY_TROUBLES * sizeof(struct history_trouble);
}

struct history *
history_start(const struct history_opts *opts)
{
	struct history *h = xcalloc(1, sizeof *h);

	h->opts = *opts;
	h->troubles = xcalloc(HISTORY_TROUBLES, sizeof *h->troubles);
	wheel_timer_init(&h->timer, on_time);
	history_look(h);
	loop_arm(opts->loop, &h->timer, HISTORY_STEP);
	return h;
}

void
history_stop(struct history **history)
{
	struct history *h = *history;

	if (h == NULL)
		return;
	*history = NULL;
	loop_cancel(h->opts.loop, &h->timer);
	free(h->troubles);
	free(h);
}
