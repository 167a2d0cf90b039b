/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_adapt.c - a limit that finds its number itself; see limit_own.h, and
 * adapt.h for how.
 */
#include <stdlib.h>

#include "base/limit_own.h"

/* Tallies are summed so often at most. */
#define LOOK_EVERY	(5 * NSEC_PER_MSEC)

static struct limit_adapt *
adapt_of(const struct limit *l)
{
	return atomic_load_explicit(&l->adapt, memory_order_acquire);
}

/* Of all workers, since ever; each number for itself. */
static struct adapt_seen
sum(const struct limit_adapt *a)
{
	struct adapt_seen all = { .count = 0 };

	for (unsigned i = 0; i < a->workers; i++) {
		const struct limit_tally *t = &a->tallies[i];

		all.count += atomic_load_explicit(&t->count,
		    memory_order_relaxed);
		all.lost += atomic_load_explicit(&t->lost,
		    memory_order_relaxed);
		all.time += atomic_load_explicit(&t->time,
		    memory_order_relaxed);
		all.in_use += atomic_load_explicit(&t->in_use,
		    memory_order_relaxed);
	}
	return all;
}

/* --- making and changing ----------------------------------------------- */

/* The number it has by now, so that a reload changes nothing at once. */
static uint64_t
first_of(const struct limit *l, nsec_t now)
{
	const struct gate *g = l->gate;
	struct gate_state s = { .limit = 0 };

	if (g != NULL)
		gate_look(g, now, &s);
	return s.limit != 0 ? s.limit : MAX(s.in_use, ADAPT_FIRST);
}

static void
make(struct limit *l, const struct limit_spec *spec, nsec_t now)
{
	struct limit_adapt *a = xcalloc_lines(limit_adapt_memory(l->workers));

	pthread_mutex_init(&a->lock, NULL);
	a->workers = l->workers;
	a->on = true;
	adapt_init(&a->adapt, &spec->adapt, first_of(l, now), now);
	atomic_store_explicit(&l->adapt, a, memory_order_release);
}

void
limit_adapt_set(struct limit *l, const struct limit_spec *spec, nsec_t now)
{
	struct limit_adapt *a = adapt_of(l);

	if (a == NULL) {
		if (limit_is_adaptive(spec))
			make(l, spec, now);
		return;
	}
	pthread_mutex_lock(&a->lock);
	a->on = limit_is_adaptive(spec);
	/* What was seen at another number says nothing. */
	a->before = sum(a);
	if (a->on)
		adapt_set(&a->adapt, &spec->adapt);
	pthread_mutex_unlock(&a->lock);
}

uint64_t
limit_adapt_first(const struct limit *l)
{
	return adapt_limit(&adapt_of(l)->adapt);
}

void
limit_adapt_set_gate(struct limit *l, const struct gate_spec *spec,
    unsigned worker, nsec_t now)
{
	struct limit_adapt *a = adapt_of(l);
	struct gate_spec with = *spec;

	if (a == NULL) {
		gate_set(l->gate, spec, worker, now);
		return;
	}
	pthread_mutex_lock(&a->lock);
	if (a->on)
		with.limit = adapt_limit(&a->adapt);
	gate_set(l->gate, &with, worker, now);
	pthread_mutex_unlock(&a->lock);
}

void
limit_adapt_free(struct limit *l)
{
	struct limit_adapt *a = adapt_of(l);

	if (a != NULL)
		pthread_mutex_destroy(&a->lock);
	free(a);
}

/* --- steps ------------------------------------------------------------- */

static void
add(_Atomic uint64_t *to, uint64_t n)
{
	/* One writer, so no read-modify-write. */
	atomic_store_explicit(to, atomic_load_explicit(to,
	    memory_order_relaxed) + n, memory_order_relaxed);
}

/* Under the lock. */
static void
step_if_due(struct limit_adapt *a, struct gate *g, unsigned worker,
    nsec_t now)
{
	struct adapt_seen all = sum(a);
	struct adapt_seen seen = {
		.count = all.count - a->before.count,
		.lost = all.lost - a->before.lost,
		.time = all.time - a->before.time,
		.in_use = all.in_use - a->before.in_use,
	};

	/* As long as nothing comes of it, no load is the right one. */
	if (seen.count == 0)
		a->before = all;
	if (!a->on || !adapt_is_due(&a->adapt, &seen, now))
		return;
	a->before = all;
	uint64_t was = adapt_limit(&a->adapt);
	uint64_t is = adapt_step(&a->adapt, &seen, now);
	if (is != was)
		gate_resize(g, is, worker, now);
}

void
limit_sample(struct limit_pass *p, unsigned worker, enum limit_outcome what,
    nsec_t time, nsec_t now)
{
	struct limit *l = p->limit;
	struct limit_adapt *a = adapt_of(l);
	struct limit_tally *t = &a->tallies[worker];
	struct gate *g = l->gate;

	ASSERT(worker < a->workers && p->inside);
	add(&t->time, time);
	if (what != LIMIT_TURNED_AWAY) {
		add(&t->count, 1);
		add(&t->lost, what == LIMIT_LOST);
		add(&t->in_use, gate_taken(g));
	}
	if (now < atomic_load_explicit(&a->look_at, memory_order_relaxed) ||
	    pthread_mutex_trylock(&a->lock) != 0)
		return;
	atomic_store_explicit(&a->look_at, now + LOOK_EVERY,
	    memory_order_relaxed);
	step_if_due(a, g, worker, now);
	pthread_mutex_unlock(&a->lock);
}

/* --- asking ------------------------------------------------------------ */

size_t
limit_adapt_memory(unsigned workers)
{
	return sizeof(struct limit_adapt) +
	    workers * sizeof(struct limit_tally);
}

bool
limit_adapt_look(struct limit *l, nsec_t *base)
{
	struct limit_adapt *a = adapt_of(l);
	bool on;

	if (a == NULL)
		return false;
	pthread_mutex_lock(&a->lock);
	on = a->on;
	*base = adapt_base(&a->adapt);
	pthread_mutex_unlock(&a->lock);
	return on;
}
