/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate_queue.c - who waits for a gate; see gate.h and gate_own.h.
 */
#include "base/gate_own.h"

/* folly's Codel.cpp: how long a shortest wait is looked for. */
#define INTERVAL	(100 * NSEC_PER_MSEC)

enum {
	MIN_RELEASES = 8,		/* fewer predict nothing */
	LATE_TIMEOUTS = 2,		/* a longer wait is refused at once */
	SHED_TARGETS = 2,		/* a longer wait is shed in overload */
	EVICTIONS = 1024,		/* at once, over what may wait */
};

static void ask_to_evict(struct gate *g, uint64_t n, nsec_t now);

/* --- getting a place --------------------------------------------------- */

static uint64_t
one_of(const struct gate_waiter *w)
{
	return w->class == GATE_HIGH ? 1 + (UINT64_C(1) << GATE_HIGH_SHIFT) : 1;
}

/*
 * May a newcomer have a place in a full queue?  Where turns go by key, if
 * another key has more waiting; else in the high class, if others wait.
 */
static bool
may_displace(const struct gate *g, const struct gate_waiter *w,
    uint64_t waiting)
{
	uint32_t row;

	if (atomic_load_explicit(&g->by_key, memory_order_relaxed)) {
		struct fair *f = atomic_load(&g->fair)->fair;

		return fair_longest(f, &row) > fair_waiting(f, w->key) + 1;
	}
	return w->class == GATE_HIGH &&
	    waiting >> GATE_HIGH_SHIFT < gate_in_all(waiting);
}

HOT double
gate_pace(const struct gate *g, nsec_t now)
{
	nsec_t window = GATE_LOOKS_BACK * atomic_load_explicit(
	    &g->queue_timeout, memory_order_relaxed);
	struct pulse_sum sum = { .first = now };

	for (unsigned i = 0; i < g->workers; i++)
		pulses_add(&g->sides[i].pulses, now - MIN(now, window), now,
		    &sum);
	return sum.count < MIN_RELEASES ? 0 :
	    MAX((double)(now - sum.first), 1) / (double)sum.count;
}

nsec_t
gate_wait_at(const struct gate *g, unsigned class, double pace)
{
	uint64_t waiting = atomic_load(&g->waiting);
	uint64_t high = waiting >> GATE_HIGH_SHIFT;
	double ahead = class == GATE_NORMAL ? (double)gate_in_all(waiting) :
	    (double)high * GATE_TURNS / (GATE_TURNS - 1);
	double all = pace * (ahead + 1);

	return all < (double)(NSEC_NEVER / 2) ? (nsec_t)all : NSEC_NEVER / 2;
}

/* Would it be too late?  Many ask in one turn, to whom time stands still. */
static bool
is_too_late(struct gate *g, struct gate_side *s, unsigned class, nsec_t now)
{
	nsec_t timeout = atomic_load_explicit(&g->queue_timeout,
	    memory_order_relaxed);

	if (s->paced_at != now) {
		s->pace = gate_pace(g, now);
		s->paced_at = now;
	}
	return s->pace > 0 &&
	    gate_wait_at(g, class, s->pace) / LATE_TIMEOUTS > timeout;
}

/* Get a place in the queue, or say why not; *displaces: another's. */
static enum failure
reserve(struct gate *g, struct gate_side *s, const struct gate_waiter *w,
    nsec_t now, bool *displaces)
{
	uint64_t waiting = atomic_load(&g->waiting);
	uint64_t queue = atomic_load_explicit(&g->queue,
	    memory_order_relaxed);

	*displaces = queue > 0 && gate_in_all(waiting) >= queue &&
	    may_displace(g, w, waiting);
	if (*displaces)
		queue += EVICTIONS;
	else if (gate_in_all(waiting) < queue &&
	    is_too_late(g, s, w->class, now))
		return FAIL_QUEUE_LATE;
	do
		if (gate_in_all(waiting) >= queue)
			return FAIL_QUEUE_FULL;
	while (!atomic_compare_exchange_weak(&g->waiting, &waiting,
	    waiting + one_of(w)));
	return FAIL_NONE;
}

/* Tell the others who waits here now: `by` more or fewer, after a change. */
static HOT void
publish(struct gate_queue *q, uint64_t by)
{
	atomic_store_explicit(&q->key, lineup_key(&q->line),
	    memory_order_relaxed);
	atomic_store(&q->count, atomic_load_explicit(&q->count,
	    memory_order_relaxed) + by);
}

enum failure
gate_queue_join(struct gate *g, struct gate_side *s, struct gate_waiter *w,
    nsec_t now)
{
	struct gate_queue *q = &s->queues[w->class];
	bool displaces;
	enum failure why = reserve(g, s, w, now, &displaces);

	if (why != FAIL_NONE)
		return why;
	w->arrived = now;
	w->row = GATE_NO_ROW;
	if (atomic_load_explicit(&g->by_key, memory_order_relaxed)) {
		struct gate_fair *f = atomic_load(&g->fair);

		if (q->line.fair == NULL)
			lineup_set_fair(&q->line, f->fair, f->lanes[
			    (size_t)(s - g->sides) * GATE_CLASSES + w->class]);
		w->row = fair_join(f->fair, w->key);
	}
	lineup_add(&q->line, w);
	publish(q, 1);
	if (displaces)
		ask_to_evict(g, 1, now);
	return FAIL_NONE;
}

/* --- leaving ----------------------------------------------------------- */

void
gate_queue_leave(struct gate *g, struct gate_side *s, struct gate_waiter *w,
    bool served)
{
	struct gate_queue *q = &s->queues[w->class];

	if (served)
		lineup_serve(&q->line, w);
	else
		lineup_remove(&q->line, w);
	if (w->row != GATE_NO_ROW)
		fair_quit(atomic_load(&g->fair)->fair, w->row);
	publish(q, (uint64_t)-1);
	atomic_fetch_sub(&g->waiting, one_of(w));
}

/* --- whose turn it is -------------------------------------------------- */

static void
throw_out(struct gate *g, struct gate_side *s, struct gate_waiter *w,
    nsec_t now, enum failure why)
{
	w->waited = gate_waited(w, now);
	gate_queue_leave(g, s, w, false);
	w->fn(w, why);
}

/*
 * The rule of folly's Codel: overloaded when even the shortest wait of an
 * interval was over the target.  What counts is how long the first in line
 * has waited, whoever is served.
 */
static void
watch_waits(struct gate_queue *q, nsec_t target, nsec_t now)
{
	if (now >= q->interval_end) {
		q->overloaded = q->shortest != NSEC_NEVER &&
		    q->shortest > target;
		q->shortest = NSEC_NEVER;
		q->interval_end = now + INTERVAL;
	}

	nsec_t longest = gate_waited(lineup_oldest(&q->line), now);
	q->shortest = MIN(q->shortest, longest);
}

struct gate_waiter *
gate_queue_next(struct gate *g, struct gate_side *s, unsigned class,
    nsec_t now)
{
	struct gate_queue *q = &s->queues[class];
	nsec_t target = atomic_load_explicit(&g->queue_target,
	    memory_order_relaxed);

	if (lineup_is_empty(&q->line) ||
	    !atomic_load_explicit(&g->adaptive, memory_order_relaxed))
		return lineup_next(&q->line, false);
	watch_waits(q, target, now);
	if (!q->overloaded)
		return lineup_next(&q->line, false);
	/* Whom nobody waits for any more goes, oldest first. */
	while (!lineup_is_empty(&q->line) &&
	    gate_waited(lineup_oldest(&q->line), now) > SHED_TARGETS * target)
		throw_out(g, s, lineup_oldest(&q->line), now,
		    FAIL_QUEUE_SHED);
	return lineup_next(&q->line, true);
}

/* --- a full queue ------------------------------------------------------ */

/* Who must go for a newcomer: a worker's newest in a row. */
struct victim {
	struct gate_side	*side;
	unsigned		 class;
	uint32_t		 row;
};

/*
 * The newest of the key of which most wait; without keys, the newest of the
 * normal class.  False: nobody.
 */
static bool
find_victim(struct gate *g, struct victim *v)
{
	struct gate_fair *f = atomic_load(&g->fair);
	unsigned class = GATE_HIGH;
	nsec_t newest = 0;

	if (f == NULL || fair_longest(f->fair, &v->row) == 0) {
		v->row = GATE_NO_ROW;
		class = GATE_NORMAL;
	}
	for (; class < GATE_CLASSES; class++) {
		for (unsigned i = 0; i < g->workers; i++) {
			const _Atomic nsec_t *at = v->row == GATE_NO_ROW ?
			    &g->sides[i].queues[class].line.newest :
			    &f->lanes[i * GATE_CLASSES + class][v->row].newest;
			nsec_t its = atomic_load_explicit(at,
			    memory_order_relaxed);

			if (its <= newest)
				continue;
			newest = its;
			v->side = &g->sides[i];
			v->class = class;
		}
	}
	return newest != 0;
}

/* The worker who has the next victim is asked; it looks again. */
static void
ask_to_evict(struct gate *g, uint64_t n, nsec_t now)
{
	struct victim v;

	if (!find_victim(g, &v))
		return;
	atomic_fetch_add(&v.side->evictions, n);
	atomic_store_explicit(&v.side->told, now, memory_order_relaxed);
	gate_call(g, v.side);
}

void
gate_queue_evict(struct gate *g, struct gate_side *s, nsec_t now)
{
	uint64_t n = atomic_exchange(&s->evictions, 0);
	struct victim v;

	for (; n > 0 && gate_in_all(atomic_load(&g->waiting)) >
	    atomic_load(&g->queue) && find_victim(g, &v); n--) {
		if (v.side != s) {
			ask_to_evict(g, n, now);
			return;
		}
		struct gate_waiter *w = lineup_newest(
		    &s->queues[v.class].line, v.row);
		throw_out(g, s, w, now, FAIL_QUEUE_FULL);
	}
}
