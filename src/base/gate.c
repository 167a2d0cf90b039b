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
#include "base/gate_own.h"

#include <stdlib.h>

/* "No limit" is a limit that nobody reaches, so that it can be lowered. */
#define UNLIMITED	(INT64_C(1) << 62)

static mail_fn	on_mail;
static int64_t	permits(uint64_t limit);
static void	set_queue(struct gate *g, const struct gate_spec *spec);
static void	hand_over(struct gate *g, unsigned worker, nsec_t now);

static void
side_init(struct gate_side *s, struct gate *g)
{
	s->gate = g;
	mail_init(&s->mail, on_mail);
	for (unsigned class = 0; class < GATE_CLASSES; class++) {
		struct gate_queue *q = &s->queues[class];

		q->shortest = NSEC_NEVER;
		atomic_init(&q->key, UINT64_MAX);
		lineup_init(&q->line, class);
	}
}

struct gate *
gate_new(const struct gate_spec *spec, unsigned workers, gate_wake_fn *wake,
    void *arg)
{
	ASSERT(workers >= 1 && workers <= GATE_WORKERS);

	struct gate *g = xcalloc_lines(gate_memory(workers));

	g->workers = workers;
	g->wake = wake;
	g->arg = arg;
	atomic_init(&g->limit, permits(spec->limit));
	atomic_init(&g->free, permits(spec->limit));
	atomic_init(&g->lowest, permits(spec->limit));
	atomic_init(&g->lowest_before, permits(spec->limit));
	set_queue(g, spec);
	for (unsigned i = 0; i < workers; i++)
		side_init(&g->sides[i], g);
	return g;
}

void
gate_free(struct gate **g)
{
	if (*g == NULL)
		return;
	ASSERT(atomic_load(&(*g)->waiting) == 0);
	struct gate_fair *f = atomic_load(&(*g)->fair);
	if (f != NULL)
		fair_free(&f->fair);
	free(f);
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
permits(uint64_t limit)
{
	if (limit == 0 || limit >= (uint64_t)UNLIMITED)
		return UNLIMITED;
	return (int64_t)limit;
}

static size_t
fair_size(unsigned workers)
{
	return sizeof(struct gate_fair) + workers * GATE_CLASSES *
	    FAIR_ROWS * sizeof(struct lineup_lane);
}

size_t
gate_memory(unsigned workers)
{
	return sizeof(struct gate) + workers * sizeof(struct gate_side);
}

size_t
gate_fair_memory(unsigned workers)
{
	return fair_size(workers) + fair_memory();
}

static void
make_fair(struct gate *g)
{
	if (atomic_load(&g->fair) != NULL)
		return;

	struct gate_fair *f = xcalloc(1, fair_size(g->workers));
	f->fair = fair_new();
	atomic_store(&g->fair, f);
}

/*
 * Each field is read by itself, by newcomers; that one of them meets an old
 * one beside a new one during a reload does no harm.
 */
static void
set_queue(struct gate *g, const struct gate_spec *spec)
{
	nsec_t timeout = MIN(spec->queue_timeout, UINT64_MAX >> 8);

	atomic_store(&g->pulse_shift, pulses_shift(GATE_LOOKS_BACK * timeout));
	atomic_store(&g->queue_timeout, timeout);
	atomic_store(&g->queue, spec->queue);
	atomic_store(&g->queue_target, spec->queue_target);
	atomic_store(&g->adaptive, spec->adaptive);
	if (spec->by_key)
		make_fair(g);
	atomic_store(&g->by_key, spec->by_key);
	atomic_store(&g->dry, spec->dry);
}

/* --- taking ------------------------------------------------------------ */

/* So many are free: seldom fewer than ever. */
static inline void
note_lowest(struct gate *g, int64_t n)
{
	int64_t low = atomic_load_explicit(&g->lowest, memory_order_relaxed);

	while (UNLIKELY(n < low) && !atomic_compare_exchange_weak_explicit(
	    &g->lowest, &low, n, memory_order_relaxed, memory_order_relaxed))
		;
}

/* Take one as long as more than `floor` are free. */
static bool
take_above(struct gate *g, int64_t floor)
{
	int64_t n = atomic_load(&g->free);

	while (n > floor)
		if (atomic_compare_exchange_weak(&g->free, &n, n - 1)) {
			note_lowest(g, n - 1);
			return true;
		}
	return false;
}

static bool
take_free(struct gate *g)
{
	return take_above(g, 0);
}

/*
 * Relaxed is enough: who joined before gate_set() changed `free` is seen by
 * it, and who reads `free` after that sees what it had stored before.
 */
bool
gate_is_dry(const struct gate *g)
{
	return atomic_load_explicit(&g->dry, memory_order_relaxed);
}

/* Count before grants: see above. */
static bool
is_owed(const struct gate_side *s, unsigned class)
{
	uint64_t count = atomic_load(&s->queues[class].count);

	return count != 0 && count > atomic_load(&s->grants[class]);
}

/* Waits somebody for whom no permit is on its way? */
static bool
is_anybody_owed(const struct gate *g)
{
	if (atomic_load(&g->waiting) == 0)
		return false;
	for (unsigned i = 0; i < g->workers; i++)
		for (unsigned class = 0; class < GATE_CLASSES; class++)
			if (is_owed(&g->sides[i], class))
				return true;
	return false;
}

HOT enum gate_result
gate_take(struct gate *g, unsigned worker, struct gate_waiter *w, nsec_t now,
    enum failure *why)
{
	ASSERT(worker < g->workers && !gate_is_waiting(w));

	struct gate_side *s = &g->sides[worker];

	if (!is_anybody_owed(g) && take_free(g)) {
		s->queues[w->class].shortest = 0;
		return GATE_TAKEN;
	}
	if (UNLIKELY(gate_is_dry(g))) {
		*why = FAIL_QUEUE_FULL;
		return GATE_REFUSED;
	}
	*why = gate_queue_join(g, s, w, now);
	if (*why != FAIL_NONE)
		return GATE_REFUSED;
	/* What was released before we were seen is still to be given. */
	hand_over(g, worker, now);
	return GATE_WAITS;
}

bool
gate_try(struct gate *g)
{
	return take_free(g);
}

bool
gate_take_dry(struct gate *g)
{
	uint64_t queue = atomic_load(&g->queue);

	return queue != 0 &&
	    take_above(g, -(int64_t)MIN(queue, (uint64_t)UNLIMITED));
}

/* --- releasing --------------------------------------------------------- */

/* Who is next of a class: the lowest key, `worker`'s own with a lead. */
static HOT struct gate_side *
choose_side(struct gate *g, unsigned class, unsigned worker)
{
	uint64_t lead = atomic_load_explicit(&g->by_key,
	    memory_order_relaxed) ? 0 : GATE_OWN_FIRST;
	struct gate_side *best = NULL;
	uint64_t best_key = 0;

	for (unsigned n = 0; n < g->workers; n++) {
		/* The own one first: it keeps what others are equal in. */
		unsigned i = (worker + n) % g->workers;
		struct gate_side *s = &g->sides[i];
		uint64_t key = atomic_load_explicit(&s->queues[class].key,
		    memory_order_relaxed);

		if (!is_owed(s, class))
			continue;
		if (i == worker)
			key -= MIN(key, lead);
		if (best == NULL || key < best_key) {
			best = s;
			best_key = key;
		}
	}
	return best;
}

/*
 * Who gets the next permit; NULL: nobody is owed one.  *turn: how it counts
 * when both classes want it.
 */
static HOT struct gate_side *
choose(struct gate *g, unsigned worker, unsigned *class, uint64_t *turn)
{
	struct gate_side *high = NULL, *normal;

	if (atomic_load(&g->waiting) >> GATE_HIGH_SHIFT != 0)
		high = choose_side(g, GATE_HIGH, worker);
	normal = choose_side(g, GATE_NORMAL, worker);
	*turn = high != NULL && normal != NULL;
	bool others = *turn != 0 && atomic_load_explicit(&g->turns,
	    memory_order_relaxed) % GATE_TURNS == GATE_TURNS - 1;
	*class = high == NULL || others ? GATE_NORMAL : GATE_HIGH;
	return *class == GATE_HIGH ? high : normal;
}

/* Mail is counted until it has been read, for gate_is_idle(). */
void
gate_call(struct gate *g, struct gate_side *s)
{
	if (atomic_exchange(&s->called, true))
		return;
	atomic_fetch_add(&g->mails, 1);
	g->wake(g->arg, (unsigned)(s - g->sides), &s->mail);
}

/* For who waits; nobody may in dry run. */
static bool
take_for_waiter(struct gate *g)
{
	return take_free(g) || (gate_is_dry(g) && take_above(g, INT64_MIN));
}

static HOT void
hand_over(struct gate *g, unsigned worker, nsec_t now)
{
	struct gate_side *s;
	unsigned class;
	uint64_t turn;

	while ((s = choose(g, worker, &class, &turn)) != NULL &&
	    take_for_waiter(g)) {
		atomic_fetch_add_explicit(&g->turns, turn,
		    memory_order_relaxed);
		atomic_store_explicit(&s->told, now, memory_order_relaxed);
		atomic_fetch_add(&s->grants[class], 1);
		gate_call(g, s);
	}
}

static void
give(struct gate *g, unsigned worker, uint64_t n, nsec_t now)
{
	atomic_fetch_add(&g->free, (int64_t)n);
	if (atomic_load(&g->waiting) != 0)
		hand_over(g, worker, now);
}

HOT void
gate_release(struct gate *g, unsigned worker, nsec_t now)
{
	ASSERT(worker < g->workers);
	pulses_note(&g->sides[worker].pulses, atomic_load_explicit(
	    &g->pulse_shift, memory_order_relaxed), now);
	give(g, worker, 1, now);
}

/* --- being served ------------------------------------------------------ */

/* A permit on its way to w finds another, or comes back: see on_mail(). */
void
gate_leave(struct gate *g, unsigned worker, struct gate_waiter *w, nsec_t now)
{
	(void)now;
	ASSERT(worker < g->workers);
	if (gate_is_waiting(w))
		gate_queue_leave(g, &g->sides[worker], w, false);
}

/* Permits have come for waiters of this class here, perhaps too many. */
static void
serve(struct gate *g, struct gate_side *s, unsigned class)
{
	nsec_t now = atomic_load_explicit(&s->told, memory_order_relaxed);

	while (atomic_load(&s->grants[class]) != 0) {
		struct gate_waiter *w = gate_queue_next(g, s, class, now);

		/* Before the waiter goes: see above. */
		atomic_fetch_sub(&s->grants[class], 1);
		if (w == NULL) {
			give(g, (unsigned)(s - g->sides), 1, now);
			continue;
		}
		w->waited = gate_waited(w, now);
		gate_queue_leave(g, s, w, true);
		w->fn(w, FAIL_NONE);
	}
}

static HOT void
on_mail(struct mail *m)
{
	struct gate_side *s = container_of(m, struct gate_side, mail);
	struct gate *g = s->gate;

	/* Cleared first: what is granted from now on calls again. */
	atomic_exchange(&s->called, false);
	if (atomic_load(&s->evictions) != 0)
		gate_queue_evict(g, s, atomic_load_explicit(&s->told,
		    memory_order_relaxed));
	for (unsigned class = 0; class < GATE_CLASSES; class++)
		serve(g, s, class);
	/* From here on the gate may be gone. */
	atomic_fetch_sub(&g->mails, 1);
}

/* --- changing and looking ---------------------------------------------- */

/*
 * The limit moves, and `free` with it.  Of `free` the change comes later when
 * it grows, and earlier when it shrinks, so that nobody takes the one for the
 * other: who takes meanwhile is rather left out of the peak.
 */
static void
shift_lowest(struct gate *g, int64_t by)
{
	atomic_fetch_add_explicit(&g->lowest, by, memory_order_relaxed);
	atomic_fetch_add_explicit(&g->lowest_before, by,
	    memory_order_relaxed);
	note_lowest(g, atomic_load_explicit(&g->free, memory_order_relaxed));
}

/* There are as many permits from now on. */
static void
resize(struct gate *g, int64_t limit, unsigned worker, nsec_t now)
{
	ASSERT(worker < g->workers);

	int64_t more = limit - atomic_exchange(&g->limit, limit);

	if (more < 0)
		shift_lowest(g, more);
	give(g, worker, (uint64_t)more, now);
	if (more > 0)
		shift_lowest(g, more);
}

void
gate_set(struct gate *g, const struct gate_spec *spec, unsigned worker,
    nsec_t now)
{
	set_queue(g, spec);
	resize(g, permits(spec->limit), worker, now);
}

void
gate_resize(struct gate *g, uint64_t limit, unsigned worker, nsec_t now)
{
	ASSERT(limit != 0);
	resize(g, permits(limit), worker, now);
}

uint64_t
gate_taken(const struct gate *g)
{
	int64_t limit = atomic_load_explicit(&g->limit, memory_order_relaxed);
	int64_t n = limit - atomic_load_explicit(&g->free,
	    memory_order_relaxed);

	return (uint64_t)MAX(n, 0);
}

uint64_t
gate_peak(struct gate *g, nsec_t now)
{
	int64_t free_now = atomic_load(&g->free);
	int64_t low = MIN(atomic_load(&g->lowest), free_now);

	if (now - g->lowest_since >= GATE_PEAK_SPAN) {
		g->lowest_since = now;
		atomic_store(&g->lowest_before,
		    atomic_exchange(&g->lowest, free_now));
	} else
		low = MIN(low, atomic_load(&g->lowest_before));
	return (uint64_t)MAX(atomic_load(&g->limit) - low, 0);
}

uint64_t
gate_count(const struct gate *g)
{
	int64_t n = atomic_load(&g->limit) - atomic_load(&g->free);

	for (unsigned i = 0; i < g->workers; i++)
		for (unsigned class = 0; class < GATE_CLASSES; class++)
			n -= (int64_t)atomic_load(&g->sides[i].grants[class]);
	return (uint64_t)MAX(n, 0);
}

void
gate_look(const struct gate *g, nsec_t now, struct gate_state *out)
{
	int64_t limit = atomic_load(&g->limit);

	*out = (struct gate_state){
		.limit = limit == UNLIMITED ? 0 : (uint64_t)limit,
		.in_use = gate_count(g),
		.waiting = gate_in_all(atomic_load(&g->waiting)),
	};
	if (atomic_load(&g->free) <= 0 || is_anybody_owed(g))
		out->wait_estimate = gate_wait_at(g, GATE_NORMAL,
		    gate_pace(g, now));
}

/* A worker's waiters of a class are as the others are told. */
static uint64_t
validate_queue(const struct gate_side *s, unsigned class)
{
	const struct gate_queue *q = &s->queues[class];
	uint64_t n = 0;

	LIST_FOR_EACH(l, &q->line.waiters)
		n++;
	ASSERT(atomic_load(&q->count) == n);
	ASSERT(atomic_load(&q->key) == lineup_key(&q->line));
	ASSERT(atomic_load(&s->grants[class]) == 0 ||
	    atomic_load(&s->called));
	return n;
}

void
gate_validate(const struct gate *g, uint64_t in_use)
{
	int64_t sum = (int64_t)in_use + atomic_load(&g->free);
	uint64_t waiting = 0;

	for (unsigned i = 0; i < g->workers; i++) {
		for (unsigned class = 0; class < GATE_CLASSES; class++) {
			const struct gate_side *s = &g->sides[i];

			waiting += validate_queue(s, class);
			sum += (int64_t)atomic_load(&s->grants[class]);
		}
	}
	ASSERT(sum == atomic_load(&g->limit));
	ASSERT(waiting == gate_in_all(atomic_load(&g->waiting)));
	ASSERT(atomic_load(&g->free) <= 0 || !is_anybody_owed(g));
}
