/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * upstream_sim.h - a gate, an upstream behind it, clients before it, and a
 * clock that stands still while nothing happens.
 *
 * Clients come at random, at a fixed rate whatever becomes of them.  They pass
 * a gate (the real one), wait there up to its timeout, and go to an upstream
 * that works on `servers` of them at once and has the others queue, first in
 * first out, until they lose patience.  The gate's limit is a number or the
 * controller's (base/adapt). Hours take seconds, and the same seed is the same
 * story.
 *
 * Owner:    the test; all of it is static, so there is one at a time.
 */
#ifndef PENSTOCK_TESTS_UPSTREAM_SIM_H
#define PENSTOCK_TESTS_UPSTREAM_SIM_H

#include <math.h>
#include <string.h>

#include "base/adapt.h"
#include "base/gate.h"
#include "base/list.h"
#include "base/rng.h"

enum { SIM_MOST = 1 << 14 };		/* clients at once */

/* How service times differ; their mean is the same. */
enum sim_times { SIM_CONSTANT, SIM_EXPONENTIAL, SIM_HEAVY, SIM_TIMES };

struct sim_opts {
	struct gate_spec	gate;
	struct adapt_bounds	bounds;		/* max 0: the gate's limit */
	enum sim_times		times;
	nsec_t			deadline;	/* from arrival; 0: none */
	nsec_t			patience;	/* once inside; 0: endless */
	uint64_t		seed;
};

/* What happened since somebody set it to zero. */
struct sim_sums {
	uint64_t	came;
	uint64_t	served;
	uint64_t	good;		/* within the deadline */
	uint64_t	refused;	/* at once */
	uint64_t	thrown_out;	/* by the gate, later */
	uint64_t	timed_out;	/* while they waited */
	uint64_t	lost;		/* without patience */
	nsec_t		waited;		/* of those let in, before the gate */
	nsec_t		most_waited;
	nsec_t		inside;		/* of those served, behind it */
};

struct sim_client {
	struct gate_waiter	 w;
	struct list		 link;	/* waits: by arrival; upstream: queue */
	nsec_t			 arrived;
	nsec_t			 admitted;
	nsec_t			 ends;
};

static struct sim {
	struct sim_opts		 opts;
	nsec_t			 now;
	nsec_t			 next;		/* client comes */
	double			 rate;		/* of them, a second */
	double			 service;	/* nsec, in the mean */
	unsigned		 servers;
	uint64_t		 random;
	struct gate		*gate;
	struct mailbox		 box;
	struct adapt		 adapt;
	struct adapt_seen	 seen;
	struct sim_sums		 sums;
	uint64_t		 inside;
	uint64_t		 least_limit;	/* since somebody set it */
	struct list		 unused, waiting, queue;
	struct sim_client	*working[SIM_MOST];	/* a heap: who ends */
	unsigned		 busy;			/* of it */
	struct sim_client	 clients[SIM_MOST];
} sim;

/* --- chance ------------------------------------------------------------ */

/* Above 0, below 1. */
static inline double
sim_chance(void)
{
	return ((double)(rng_next(&sim.random) >> 11) + 0.5) / 0x1p53;
}

static inline nsec_t
sim_exponential(double mean)
{
	return (nsec_t)(-log(sim_chance()) * mean) + 1;
}

/* Heavy: nine of ten take half the time, the tenth more than five times. */
static inline nsec_t
sim_service(void)
{
	double s = sim.service;

	switch (sim.opts.times) {
	case SIM_EXPONENTIAL:
		return sim_exponential(s);
	case SIM_HEAVY:
		s *= sim_chance() < 0.9 ? 0.5 : 5.5;
		return (nsec_t)(s * (0.5 + sim_chance())) + 1;
	default:
		return (nsec_t)s;
	}
}

/* --- the upstream ------------------------------------------------------ */

static inline void
sim_swap(unsigned a, unsigned b)
{
	struct sim_client *c = sim.working[a];

	sim.working[a] = sim.working[b];
	sim.working[b] = c;
}

static inline bool
sim_is_before(unsigned a, unsigned b)
{
	return sim.working[a]->ends < sim.working[b]->ends;
}

static inline void
sim_work_on(struct sim_client *c)
{
	unsigned at = sim.busy++;

	c->ends = sim.now + sim_service();
	sim.working[at] = c;
	for (; at > 0 && sim_is_before(at, (at - 1) / 2); at = (at - 1) / 2)
		sim_swap(at, (at - 1) / 2);
}

static inline struct sim_client *
sim_first_to_end(void)
{
	struct sim_client *c = sim.working[0];
	unsigned at = 0;

	sim.working[0] = sim.working[--sim.busy];
	for (unsigned to; (to = 2 * at + 1) < sim.busy; at = to) {
		if (to + 1 < sim.busy && sim_is_before(to + 1, to))
			to++;
		if (!sim_is_before(to, at))
			break;
		sim_swap(at, to);
	}
	return c;
}

static inline void
sim_start_work(void)
{
	struct list *l;

	while (sim.busy < sim.servers &&
	    (l = list_pop_first(&sim.queue)) != NULL)
		sim_work_on(container_of(l, struct sim_client, link));
}

/* --- the gate ---------------------------------------------------------- */

static inline void
sim_let_in(struct sim_client *c)
{
	nsec_t waited = sim.now - c->arrived;

	sim.sums.waited += waited;
	sim.sums.most_waited = MAX(sim.sums.most_waited, waited);
	sim.inside++;
	c->admitted = sim.now;
	list_add_last(&sim.queue, &c->link);
}

static inline void
sim_forget(struct sim_client *c)
{
	list_add_first(&sim.unused, &c->link);
}

static inline void
sim_on_waited(struct gate_waiter *w, enum failure why)
{
	struct sim_client *c = container_of(w, struct sim_client, w);

	list_remove(&c->link);
	if (why == FAIL_NONE) {
		sim_let_in(c);
		return;
	}
	sim.sums.thrown_out++;
	sim_forget(c);
}

static inline void
sim_wake(void *arg, unsigned worker, struct mail *m)
{
	(void)arg, (void)worker;
	(void)mailbox_put(&sim.box, m);
}

static inline void
sim_on_arrival(void)
{
	struct list *l = list_pop_first(&sim.unused);
	enum failure why;

	ASSERT(l != NULL);
	struct sim_client *c = container_of(l, struct sim_client, link);
	c->arrived = sim.now;
	gate_waiter_init(&c->w, sim_on_waited);
	sim.sums.came++;
	sim.next = sim.now + sim_exponential(NSEC_PER_SEC / sim.rate);
	switch (gate_take(sim.gate, 0, &c->w, sim.now, &why)) {
	case GATE_TAKEN:
		sim_let_in(c);
		break;
	case GATE_WAITS:
		list_add_last(&sim.waiting, &c->link);
		break;
	case GATE_REFUSED:
		sim.sums.refused++;
		sim_forget(c);
		break;
	}
}

static inline void
sim_on_timeout(struct sim_client *c)
{
	gate_leave(sim.gate, 0, &c->w, sim.now);
	list_remove(&c->link);
	sim.sums.timed_out++;
	sim_forget(c);
}

static inline void
sim_step(nsec_t time, bool lost)
{
	if (sim.opts.bounds.max == 0)
		return;
	sim.seen.count++;
	sim.seen.lost += lost;
	sim.seen.time += time;
	sim.seen.in_use += gate_taken(sim.gate);
	if (!adapt_is_due(&sim.adapt, &sim.seen, sim.now))
		return;
	uint64_t limit = adapt_step(&sim.adapt, &sim.seen, sim.now);
	sim.seen = (struct adapt_seen){ .count = 0 };
	sim.least_limit = MIN(sim.least_limit, limit);
	gate_resize(sim.gate, limit, 0, sim.now);
}

static inline void
sim_on_end(void)
{
	struct sim_client *c = sim_first_to_end();
	nsec_t deadline = sim.opts.deadline;

	sim.inside--;
	sim.sums.served++;
	sim.sums.inside += sim.now - c->admitted;
	sim.sums.good += deadline == 0 || sim.now - c->arrived <= deadline;
	sim_step(sim.now - c->admitted, false);
	sim_forget(c);
	gate_release(sim.gate, 0, sim.now);
}

/* Nobody waits for it any more, and the upstream hasn't begun with it. */
static inline void
sim_on_lost(struct sim_client *c)
{
	list_remove(&c->link);
	sim.inside--;
	sim.sums.lost++;
	sim_step(sim.now - c->admitted, true);
	sim_forget(c);
	gate_release(sim.gate, 0, sim.now);
}

/* --- the story --------------------------------------------------------- */

/* From now on; what is being worked on ends as it would have. */
static inline void
sim_upstream(unsigned servers, nsec_t service)
{
	ASSERT(servers < SIM_MOST);
	sim.servers = servers;
	sim.service = (double)service;
}

static inline void
sim_clients(double a_second)
{
	sim.rate = a_second;
	sim.next = sim.now + sim_exponential(NSEC_PER_SEC / sim.rate);
}

static inline double
sim_capacity(void)
{
	return sim.servers / sim.service * NSEC_PER_SEC;
}

static inline void
sim_open(const struct sim_opts *opts)
{
	memset(&sim, 0, sizeof sim);
	sim.opts = *opts;
	sim.now = NSEC_PER_SEC;
	sim.random = opts->seed * 2 + 1;
	sim.least_limit = UINT64_MAX;
	list_init(&sim.unused);
	list_init(&sim.waiting);
	list_init(&sim.queue);
	for (unsigned i = 0; i < SIM_MOST; i++)
		list_add_last(&sim.unused, &sim.clients[i].link);
	mailbox_init(&sim.box);
	if (opts->bounds.max != 0) {
		adapt_init(&sim.adapt, &opts->bounds, ADAPT_FIRST, sim.now);
		sim.opts.gate.limit = adapt_limit(&sim.adapt);
	}
	sim.gate = gate_new(&sim.opts.gate, 1, sim_wake, NULL);
}

/* What happens next, and when; not after `until`. */
static inline void
sim_event(nsec_t until)
{
	struct sim_client *first = list_is_empty(&sim.waiting) ? NULL :
	    container_of(sim.waiting.next, struct sim_client, link);
	nsec_t ends = sim.busy > 0 ? sim.working[0]->ends : NSEC_NEVER;
	nsec_t late = first == NULL ? NSEC_NEVER :
	    first->arrived + sim.opts.gate.queue_timeout;
	struct sim_client *next = list_is_empty(&sim.queue) ||
	    sim.opts.patience == 0 ? NULL :
	    container_of(sim.queue.next, struct sim_client, link);
	nsec_t lost = next == NULL ? NSEC_NEVER :
	    next->admitted + sim.opts.patience;

	sim.now = MIN(MIN(until, sim.next), MIN(MIN(ends, late), lost));
	if (sim.now == ends)
		sim_on_end();
	else if (sim.now == lost)
		sim_on_lost(next);
	else if (sim.now == late)
		sim_on_timeout(first);
	else if (sim.now == sim.next)
		sim_on_arrival();
	while (mailbox_run(&sim.box) != 0)
		;
	sim_start_work();
}

/* Let time go on for so many seconds. */
static inline void
sim_run(double seconds)
{
	nsec_t until = sim.now + (nsec_t)(seconds * NSEC_PER_SEC);

	while (sim.now < until)
		sim_event(until);
}

/* Everybody leaves; the gate must have all its permits then. */
static inline void
sim_close(void)
{
	sim.next = NSEC_NEVER;
	while (sim.inside > 0 || !list_is_empty(&sim.waiting))
		sim_event(NSEC_NEVER);
	gate_validate(sim.gate, 0);
	gate_free(&sim.gate);
}

#endif
