/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gate_orders.c - src/base/gate.c: two workers and two permits, in every
 * order of their accesses that has up to SWITCHES switches in the middle of
 * what they do.
 */
#include <check.h>
#include <sched.h>

#include "base/steps.h"

#include "../../src/base/gate.c"	/* with the accesses of steps.h */
#include "../../src/base/gate_queue.c"

#include "base/gate_guests.h"
#include "harness.h"

enum { WORKERS = 2, PERMITS = 2, MOVES = 2, SWITCHES = 2, EACH = 3 };

enum move { TAKE, RELEASE, LEAVE, READ, MOVE_KINDS };

/* How many of each worker's guests are inside and wait before. */
static const struct { int inside[WORKERS], waiting[WORKERS]; } before[] = {
	{ { 1, 0 }, { 0, 0 } },
	{ { 1, 1 }, { 0, 0 } },
	{ { 2, 0 }, { 0, 0 } },
	{ { 1, 1 }, { 0, 1 } },
	{ { 2, 0 }, { 0, 1 } },
	{ { 2, 0 }, { 1, 1 } },
};

static unsigned scripts[WORKERS];	/* MOVES moves each, MOVE_KINDS-adic */

/* The first of a worker's guests of whom that is possible. */
static void
move(unsigned worker, enum move what)
{
	for (int i = EACH * (int)worker; i < EACH * (int)worker + EACH; i++) {
		bool waits = gate_is_waiting(&guests[i].w);

		if (what == TAKE && !waits && !guests[i].inside) {
			(void)!take(i, worker);
			return;
		}
		if (what == RELEASE && guests[i].inside) {
			release(i);
			return;
		}
		if (what == LEAVE && waits) {
			gate_leave(g, worker, &guests[i].w, now);
			return;
		}
	}
	if (what == READ)
		crew_read(worker);
}

static void
act(unsigned worker)
{
	for (unsigned i = 0, s = scripts[worker]; i < MOVES; i++) {
		move(worker, s % MOVE_KINDS);
		s /= MOVE_KINDS;
	}
}

static void
open_for(bool by_key)
{
	open_gate(PERMITS, 8);
	spec.by_key = by_key;
	gate_set(g, &spec, 0, now);
	for (int i = 0; i < EACH * WORKERS; i++)
		guests[i].w.key = (uint64_t)(i % 2 + 1) << 40;
}

/* Everybody out, and in again as before. */
static void
set_up(int which)
{
	everybody_stops_waiting();
	for (int i = 0; i < EACH * WORKERS; i++)
		if (guests[i].inside)
			release(i);
	crew_settle();
	CREW_ASSERT(gate_is_idle(g));
	for (unsigned w = 0; w < WORKERS; w++)
		for (int n = 0; n < before[which].inside[w]; n++)
			move(w, TAKE);
	for (unsigned w = 0; w < WORKERS; w++)
		for (int n = 0; n < before[which].waiting[w]; n++)
			move(w, TAKE);
}

static void
try_all_orders(int which)
{
	do {
		set_up(which);
		steps_explore(WORKERS, SWITCHES);
		steps_run(WORKERS, act, NULL);
		gate_validate(g, count_inside());
		crew_settle();
		gate_validate(g, count_inside());
		CREW_ASSERT(count_inside() <= PERMITS);
		CREW_ASSERT(look().waiting == 0 ||
		    count_inside() == PERMITS);
	} while (steps_explore_more());
}

START_TEST(nobody_is_forgotten_in_any_order)
{
	unsigned all = MOVE_KINDS * MOVE_KINDS;

	workers = WORKERS;
	open_for(_i % 2 != 0);
	for (unsigned a = 0; a < all; a++) {
		for (unsigned b = 0; b < all; b++) {
			scripts[0] = a;
			scripts[1] = b;
			try_all_orders(_i / 2);
		}
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gate orders");
	TCase *t = tcase_create("gate orders");

	tcase_add_checked_fixture(t, two_permits_and_a_queue, close_gate);
	tcase_set_timeout(t, 240);
	tcase_add_loop_test(t, nobody_is_forgotten_in_any_order, 0,
	    2 * (int)ARRAY_LEN(before));
	suite_add_tcase(s, t);
	return run_suite(s);
}
