/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate.c - a semaphore over all workers; see gate.h.
 *
 * Why no wake-up is lost.  Call a worker owed while it has more waiters
 * (`count`) than permits on their way (`grants`).  In the end no permit may be
 * free while a worker is owed.
 *
 *  - Whoever adds to `free` looks at all workers afterwards, and whoever adds
 *    to `count` tries `free` afterwards.  In the one order of all sequentially
 *    consistent accesses, the later of the two sees the earlier.
 *  - on_mail() takes a grant first and then the waiter off `count`.  So a
 *    looker who reads `count` and then `grants` may count a worker as owed
 *    that is not, and send one grant too many, which comes back; but never the
 *    other way round.
 *
 * `waiting`, the sum of all counts, goes up before a count and down after it;
 * if it is 0, nobody need be looked at.
 */
#include "base/gate.h"

#include <stdatomic.h>
#include <stdlib.h>

/* "No limit" is a limit that nobody reaches, so that it can be lowered. */
#define UNLIMITED	(INT64_C(1) << 62)

/* folly's Codel.cpp: how long a shortest wait is looked for. */
#define INTERVAL	(100 * NSEC_PER_MSEC)

enum {
	PULSES = 16,			/* what the prediction looks back on */
	PULSES_TIMEOUTS = 4,		/* in all at least that many timeouts */
	MIN_RELEASES = 8,		/* fewer predict nothing */
	LATE_TIMEOUTS = 2,		/* a longer wait is refused at once */
	SHED_TARGETS = 2,		/* a longer wait is shed in overload */
};

/* Releases that fell into one part of the time. */
struct pulse {
	_Atomic nsec_t		 first;
	_Atomic uint64_t	 count;
};

struct gate_side {
	/* Read and written by all. */
	_Alignas(CACHE_LINE) _Atomic uint64_t grants;
	_Atomic nsec_t		 told;		/* time of the last grant */
	atomic_bool		 called;	/* mail is under way */

	/* Written by the worker alone. */
	_Alignas(CACHE_LINE) _Atomic uint64_t count;
	_Atomic nsec_t		 oldest;	/* NSEC_NEVER: none */
	struct list		 waiters;
	nsec_t			 shortest;	/* wait in this interval */
	nsec_t			 interval_end;
	bool			 overloaded;	/* in the last interval */
	struct gate		*gate;
	struct mail		 mail;
	_Alignas(CACHE_LINE) struct pulse pulses[PULSES];
};

struct gate {
	_Alignas(CACHE_LINE) _Atomic int64_t free;
	_Alignas(CACHE_LINE) _Atomic uint64_t waiting;
	_Atomic uint64_t	 mails;		/* under way or being read */

	/* Seldom written. */
	_Alignas(CACHE_LINE) _Atomic int64_t limit;
	_Atomic uint64_t	 queue;
	_Atomic nsec_t		 queue_timeout;
	_Atomic unsigned	 pulse_shift;	/* a pulse is 2^shift ns */
	atomic_bool		 adaptive;
	_Atomic nsec_t		 queue_target;
	unsigned		 workers;
	gate_wake_fn		*wake;
	void			*arg;
	struct gate_side	 sides[];
};

static mail_fn	on_mail;
static int64_t	limit_of(const struct gate_spec *spec);
static void	set_queue(struct gate *g, const struct gate_spec *spec);
static void	hand_over(struct gate *g, unsigned worker, nsec_t now);
static bool	estimate(const struct gate *g, nsec_t now, nsec_t *wait);

struct gate *
gate_new(const struct gate_spec *spec, unsigned workers, gate_wake_fn *wake,
    void *arg)
{
	ASSERT(workers >= 1 && workers <= GATE_WORKERS);

	struct gate *g = xcalloc_lines(sizeof *g +
	    workers * sizeof g->sides[0]);

	g->workers = workers;
	g->wake = wake;
	g->arg = arg;
	atomic_init(&g->limit, limit_of(spec));
	atomic_init(&g->free, limit_of(spec));
	set_queue(g, spec);
	for (unsigned i = 0; i < workers; i++) {
		struct gate_side *s = &g->sides[i];

		s->gate = g;
		s->shortest = NSEC_NEVER;
		atomic_init(&s->oldest, NSEC_NEVER);
		list_init(&s->waiters);
		mail_init(&s->mail, on_mail);
	}
	return g;
}

void
gate_free(struct gate **g)
{
	if (*g == NULL)
		return;
	ASSERT(atomic_load(&(*g)->waiting) == 0);
	free(*g);
	*g = NULL;
}

bool
gate_is_idle(const struct gate *g)
{
	return atomic_load(&g->waiting) == 0 && atomic_load(&g->mails) == 0 &&
	    atomic_load(&g->free) == atomic_load(&g->limit);
}

static int64_t
limit_of(const struct gate_spec *spec)
{
	if (spec->limit == 0 || spec->limit >= (uint64_t)UNLIMITED)
		return UNLIMITED;
	return (int64_t)spec->limit;
}

/*
 * Each field is read by itself, by newcomers; that one of them meets an old
 * one beside a new one during a reload does no harm.
 */
static void
set_queue(struct gate *g, const struct gate_spec *spec)
{
	unsigned shift = 0;

	while (PULSES * (UINT64_C(1) << shift) <
	    PULSES_TIMEOUTS * MIN(spec->queue_timeout, UINT64_MAX >> 8))
		shift++;
	atomic_store(&g->pulse_shift, shift);
	atomic_store(&g->queue_timeout, spec->queue_timeout);
	atomic_store(&g->queue, spec->queue);
	atomic_store(&g->queue_target, spec->queue_target);
	atomic_store(&g->adaptive, spec->adaptive);
}

/* --- taking ------------------------------------------------------------ */

static bool
take_free(struct gate *g)
{
	int64_t n = atomic_load(&g->free);

	while (n > 0)
		if (atomic_compare_exchange_weak(&g->free, &n, n - 1))
			return true;
	return false;
}

/* Count before grants: see above. */
static bool
is_owed(const struct gate_side *s)
{
	uint64_t count = atomic_load(&s->count);

	return count != 0 && count > atomic_load(&s->grants);
}

/* Waits somebody for whom no permit is on its way? */
static bool
is_anybody_owed(const struct gate *g)
{
	if (atomic_load(&g->waiting) == 0)
		return false;
	for (unsigned i = 0; i < g->workers; i++)
		if (is_owed(&g->sides[i]))
			return true;
	return false;
}

/* Get a place in the queue, or say why not. */
static enum failure
reserve(struct gate *g, nsec_t now)
{
	uint64_t waiting = atomic_load(&g->waiting);
	uint64_t queue = atomic_load_explicit(&g->queue,
	    memory_order_relaxed);
	nsec_t timeout = atomic_load_explicit(&g->queue_timeout,
	    memory_order_relaxed);
	nsec_t wait;

	if (waiting >= queue)
		return FAIL_QUEUE_FULL;
	if (estimate(g, now, &wait) && wait / LATE_TIMEOUTS > timeout)
		return FAIL_QUEUE_LATE;
	do
		if (waiting >= queue)
			return FAIL_QUEUE_FULL;
	while (!atomic_compare_exchange_weak(&g->waiting, &waiting,
	    waiting + 1));
	return FAIL_NONE;
}

/* Tell the others who waits here now: `by` more or fewer, after a change. */
static void
publish(struct gate_side *s, uint64_t by)
{
	const struct list *first = s->waiters.next;
	nsec_t oldest = list_is_empty(&s->waiters) ? NSEC_NEVER :
	    container_of(first, const struct gate_waiter, link)->arrived;

	atomic_store_explicit(&s->oldest, oldest, memory_order_relaxed);
	atomic_store(&s->count, atomic_load_explicit(&s->count,
	    memory_order_relaxed) + by);
}

enum gate_result
gate_take(struct gate *g, unsigned worker, struct gate_waiter *w, nsec_t now,
    enum failure *why)
{
	ASSERT(worker < g->workers && !gate_is_waiting(w));

	struct gate_side *s = &g->sides[worker];

	if (!is_anybody_owed(g) && take_free(g)) {
		s->shortest = 0;
		return GATE_TAKEN;
	}
	*why = reserve(g, now);
	if (*why != FAIL_NONE)
		return GATE_REFUSED;
	w->arrived = now;
	list_add_last(&s->waiters, &w->link);
	publish(s, 1);
	/* What was released before we were seen is still to be given. */
	hand_over(g, worker, now);
	return GATE_WAITS;
}

bool
gate_try(struct gate *g)
{
	return take_free(g);
}

/* --- releasing --------------------------------------------------------- */

/* One writer a side, so no read-modify-write. */
static void
note_release(struct gate *g, struct gate_side *s, nsec_t now)
{
	unsigned shift = atomic_load_explicit(&g->pulse_shift,
	    memory_order_relaxed);
	struct pulse *p = &s->pulses[(now >> shift) % PULSES];
	uint64_t count = atomic_load_explicit(&p->count,
	    memory_order_relaxed);
	nsec_t first = atomic_load_explicit(&p->first, memory_order_relaxed);

	if (count == 0 || first >> shift != now >> shift) {
		atomic_store_explicit(&p->first, now, memory_order_relaxed);
		count = 0;
	}
	atomic_store_explicit(&p->count, count + 1, memory_order_relaxed);
}

/*
 * Who gets the next permit: the one whose waiter is the oldest, with a lead
 * for `worker`'s own.  NULL: nobody is owed one.
 */
static struct gate_side *
choose(struct gate *g, unsigned worker)
{
	struct gate_side *best = NULL;
	nsec_t best_since = 0;

	for (unsigned i = 0; i < g->workers; i++) {
		struct gate_side *s = &g->sides[i];
		nsec_t since = atomic_load_explicit(&s->oldest,
		    memory_order_relaxed);

		if (!is_owed(s))
			continue;
		if (i == worker)
			since -= MIN(since, GATE_OWN_FIRST);
		if (best == NULL || since < best_since) {
			best = s;
			best_since = since;
		}
	}
	return best;
}

/* Mail is counted until it has been read, for gate_is_idle(). */
static void
call(struct gate *g, struct gate_side *s)
{
	if (atomic_exchange(&s->called, true))
		return;
	atomic_fetch_add(&g->mails, 1);
	g->wake(g->arg, (unsigned)(s - g->sides), &s->mail);
}

static void
hand_over(struct gate *g, unsigned worker, nsec_t now)
{
	struct gate_side *s;

	while ((s = choose(g, worker)) != NULL && take_free(g)) {
		atomic_store_explicit(&s->told, now, memory_order_relaxed);
		atomic_fetch_add(&s->grants, 1);
		call(g, s);
	}
}

static void
give(struct gate *g, unsigned worker, uint64_t n, nsec_t now)
{
	atomic_fetch_add(&g->free, (int64_t)n);
	if (atomic_load(&g->waiting) != 0)
		hand_over(g, worker, now);
}

void
gate_release(struct gate *g, unsigned worker, nsec_t now)
{
	ASSERT(worker < g->workers);
	note_release(g, &g->sides[worker], now);
	give(g, worker, 1, now);
}

/* --- being served ------------------------------------------------------ */

static void
remove_waiter(struct gate *g, struct gate_side *s, struct gate_waiter *w)
{
	list_remove(&w->link);
	publish(s, (uint64_t)-1);
	atomic_fetch_sub(&g->waiting, 1);
}

/* A permit on its way to w finds another, or comes back: see on_mail(). */
void
gate_leave(struct gate *g, unsigned worker, struct gate_waiter *w, nsec_t now)
{
	(void)now;
	ASSERT(worker < g->workers);
	if (gate_is_waiting(w))
		remove_waiter(g, &g->sides[worker], w);
}

static struct gate_waiter *
waiter_at(struct list *link)
{
	return container_of(link, struct gate_waiter, link);
}

/* The clock of the worker that gave the permit may lag behind ours. */
static nsec_t
waited(const struct gate_waiter *w, nsec_t now)
{
	return now > w->arrived ? now - w->arrived : 0;
}

/*
 * The rule of folly's Codel: overloaded when even the shortest wait of an
 * interval was over the target.  What counts is how long the first in line
 * has waited, whoever is served.
 */
static void
watch_waits(struct gate_side *s, nsec_t target, nsec_t now)
{
	if (now >= s->interval_end) {
		s->overloaded = s->shortest != NSEC_NEVER &&
		    s->shortest > target;
		s->shortest = NSEC_NEVER;
		s->interval_end = now + INTERVAL;
	}
	s->shortest = MIN(s->shortest,
	    waited(waiter_at(s->waiters.next), now));
}

/* In overload: throw out whom nobody waits for any more, oldest first. */
static void
shed(struct gate *g, struct gate_side *s, nsec_t limit, nsec_t now)
{
	while (!list_is_empty(&s->waiters)) {
		struct gate_waiter *w = waiter_at(s->waiters.next);

		w->waited = waited(w, now);
		if (w->waited <= limit)
			return;
		remove_waiter(g, s, w);
		w->fn(w, FAIL_QUEUE_SHED);
	}
}

/* Whose turn it is; NULL: nobody waits here. */
static struct gate_waiter *
next_waiter(struct gate *g, struct gate_side *s, nsec_t now)
{
	bool newest = false;

	if (list_is_empty(&s->waiters))
		return NULL;
	if (atomic_load_explicit(&g->adaptive, memory_order_relaxed)) {
		nsec_t target = atomic_load_explicit(&g->queue_target,
		    memory_order_relaxed);

		watch_waits(s, target, now);
		newest = s->overloaded;
		if (newest)
			shed(g, s, SHED_TARGETS * target, now);
		if (list_is_empty(&s->waiters))
			return NULL;
	}
	return waiter_at(newest ? s->waiters.prev : s->waiters.next);
}

/* Permits have come for this worker's waiters, perhaps too many. */
static void
on_mail(struct mail *m)
{
	struct gate_side *s = container_of(m, struct gate_side, mail);
	struct gate *g = s->gate;
	nsec_t now;

	/* Cleared first: what is granted from now on calls again. */
	atomic_exchange(&s->called, false);
	now = atomic_load_explicit(&s->told, memory_order_relaxed);
	while (atomic_load(&s->grants) != 0) {
		struct gate_waiter *w = next_waiter(g, s, now);

		/* Before the waiter goes: see above. */
		atomic_fetch_sub(&s->grants, 1);
		if (w == NULL) {
			give(g, (unsigned)(s - g->sides), 1, now);
			continue;
		}
		w->waited = waited(w, now);
		remove_waiter(g, s, w);
		w->fn(w, FAIL_NONE);
	}
	/* From here on the gate may be gone. */
	atomic_fetch_sub(&g->mails, 1);
}

/* --- changing and looking ---------------------------------------------- */

void
gate_set(struct gate *g, const struct gate_spec *spec, unsigned worker,
    nsec_t now)
{
	ASSERT(worker < g->workers);

	int64_t limit = limit_of(spec);
	int64_t more = limit - atomic_exchange(&g->limit, limit);

	set_queue(g, spec);
	give(g, worker, (uint64_t)more, now);
}

/*
 * How long a newcomer would wait, from what has been released lately on all
 * workers; false if that says nothing.
 */
static bool
estimate(const struct gate *g, nsec_t now, nsec_t *wait)
{
	nsec_t window = PULSES_TIMEOUTS * MIN(UINT64_MAX >> 8,
	    atomic_load_explicit(&g->queue_timeout, memory_order_relaxed));
	nsec_t since = now - MIN(now, window);
	nsec_t first = now;
	uint64_t releases = 0;

	for (unsigned i = 0; i < g->workers; i++) {
		for (unsigned j = 0; j < PULSES; j++) {
			const struct pulse *p = &g->sides[i].pulses[j];
			uint64_t count = atomic_load_explicit(&p->count,
			    memory_order_relaxed);
			nsec_t began = atomic_load_explicit(&p->first,
			    memory_order_relaxed);

			if (count == 0 || began < since || began > now)
				continue;
			releases += count;
			first = MIN(first, began);
		}
	}
	if (releases < MIN_RELEASES)
		return false;

	double each = (double)(now - first) / (double)releases;
	double all = each * ((double)atomic_load(&g->waiting) + 1);
	*wait = all < (double)(NSEC_NEVER / 2) ? (nsec_t)all : NSEC_NEVER / 2;
	return true;
}

void
gate_look(const struct gate *g, nsec_t now, struct gate_state *out)
{
	int64_t limit = atomic_load(&g->limit);
	int64_t in_use = limit - atomic_load(&g->free);

	for (unsigned i = 0; i < g->workers; i++)
		in_use -= (int64_t)atomic_load(&g->sides[i].grants);
	*out = (struct gate_state){
		.limit = limit == UNLIMITED ? 0 : (uint64_t)limit,
		.in_use = (uint64_t)MAX(in_use, 0),
		.waiting = atomic_load(&g->waiting),
	};
	if (atomic_load(&g->free) <= 0 || is_anybody_owed(g))
		(void)estimate(g, now, &out->wait_estimate);
}

void
gate_validate(const struct gate *g, uint64_t in_use)
{
	int64_t sum = (int64_t)in_use + atomic_load(&g->free);
	uint64_t waiting = 0;

	for (unsigned i = 0; i < g->workers; i++) {
		const struct gate_side *s = &g->sides[i];
		uint64_t n = 0;
		nsec_t oldest = NSEC_NEVER;

		LIST_FOR_EACH(l, &s->waiters) {
			if (n++ == 0)
				oldest = waiter_at(l)->arrived;
		}
		ASSERT(atomic_load(&s->count) == n);
		ASSERT(atomic_load(&s->oldest) == oldest);
		ASSERT(atomic_load(&s->grants) == 0 ||
		    atomic_load(&s->called));
		waiting += n;
		sum += (int64_t)atomic_load(&s->grants);
	}
	ASSERT(sum == atomic_load(&g->limit));
	ASSERT(waiting == atomic_load(&g->waiting));
	ASSERT(atomic_load(&g->free) <= 0 || !is_anybody_owed(g));
}
