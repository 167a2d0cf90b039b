/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate_guests.h - a gate and guests who want in, for tests of one thread.
 */
#ifndef PENSTOCK_TESTS_GATE_GUESTS_H
#define PENSTOCK_TESTS_GATE_GUESTS_H

#include <check.h>
#include <stdint.h>

#include "base/crew.h"
#include "base/gate.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

enum { GUESTS = 24 };

/* Somebody who wants in. */
static struct guest {
	struct gate_waiter	 w;
	unsigned		 worker;
	bool			 inside;
	int			 served;	/* the how manieth; 0: not */
	enum failure		 why;
} guests[GUESTS];

static struct gate *g;
static struct gate_spec spec;
static unsigned workers = CREW;
static int served;
static nsec_t now;
static enum failure why;

static inline void
on_served(struct gate_waiter *w, enum failure how)
{
	struct guest *v = container_of(w, struct guest, w);

	CREW_ASSERT(!gate_is_waiting(w));
	CREW_ASSERT(!v->inside);
	v->inside = how == FAIL_NONE;
	v->served = ++served;
	v->why = how;
}

static inline void
everybody_stops_waiting(void)
{
	for (int i = 0; i < GUESTS; i++)
		gate_leave(g, guests[i].worker, &guests[i].w, now);
}

static inline void
close_gate(void)
{
	everybody_stops_waiting();
	gate_free(&g);
	CREW_ASSERT(g == NULL);
}

static inline void
open_gate(uint64_t limit, uint64_t queue)
{
	spec = (struct gate_spec){
		.limit = limit,
		.queue = queue,
		.queue_timeout = SEC,
		.queue_target = 20 * MSEC,
	};
	if (g != NULL)
		close_gate();
	g = gate_new(&spec, workers, crew_wake, NULL);
	served = 0;
	now = SEC;
	for (int i = 0; i < GUESTS; i++) {
		guests[i] = (struct guest){ .inside = false };
		gate_waiter_init(&guests[i].w, on_served);
	}
}

static inline void
two_permits_and_a_queue(void)
{
	crew_setup();
	open_gate(2, 16);
}

static inline enum gate_result
take(int guest, unsigned worker)
{
	enum gate_result r = gate_take(g, worker, &guests[guest].w, now,
	    &why);

	guests[guest].worker = worker;
	guests[guest].inside = r == GATE_TAKEN;
	return r;
}

/* With one of three keys, and in one of the classes. */
static inline enum gate_result
take_as_any(int guest, unsigned worker, uint64_t *seed)
{
	guests[guest].w.key = UINT64_C(0x9e3779b97f4a7c15) *
	    (1 + crew_random(seed, 3));
	guests[guest].w.class = (uint8_t)crew_random(seed, GATE_CLASSES);
	return take(guest, worker);
}

static inline void
release(int guest)
{
	CREW_ASSERT(guests[guest].inside);
	guests[guest].inside = false;
	gate_release(g, guests[guest].worker, now);
}

static inline uint64_t
count_inside(void)
{
	uint64_t n = 0;

	for (int i = 0; i < GUESTS; i++)
		n += guests[i].inside;
	return n;
}

static inline struct gate_state
look(void)
{
	struct gate_state s;

	gate_look(g, now, &s);
	return s;
}

#endif
