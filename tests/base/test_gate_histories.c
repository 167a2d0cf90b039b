/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gate_histories.c - src/base/gate.c: whatever happens in whatever order,
 * the promise is kept.
 */
#include <check.h>

#include "base/gate_guests.h"
#include "harness.h"

/* --- every short history ----------------------------------------------- */

enum { STEPS = 6, MOVES = 8 };

/* Two workers with four guests each; what isn't possible is passed over. */
static void
move(unsigned how)
{
	unsigned worker = how % 2;
	int first = (int)worker * 4;

	for (int i = first; i < first + 4 && how < 6; i++) {
		bool waits = gate_is_waiting(&guests[i].w);
		bool inside = guests[i].inside;

		if (how < 2 && !waits && !inside) {
			(void)!take(i, worker);
			return;
		}
		if (how >= 2 && how < 4 && inside) {
			release(i);
			return;
		}
		if (how >= 4 && waits) {
			gate_leave(g, worker, &guests[i].w, now);
			return;
		}
	}
	if (how >= 6)
		crew_read(worker);
}

START_TEST(every_short_history_keeps_the_promise)
{
	workers = 2;
	for (unsigned n = 0; n < 1u << (3 * STEPS); n++) {
		open_gate((uint64_t)_i, 3);
		for (unsigned i = 0; i < STEPS; i++) {
			move(n >> (3 * i) & (MOVES - 1));
			gate_validate(g, count_inside());
		}
		crew_settle();
		gate_validate(g, count_inside());
		CREW_ASSERT(look().waiting == 0 ||
		    count_inside() == (uint64_t)_i);
	}
}
END_TEST

/* --- long random histories --------------------------------------------- */

static uint64_t seed;

static void
change_at_random(unsigned worker)
{
	spec.limit = crew_random(&seed, 6);
	spec.queue = crew_random(&seed, GUESTS);
	spec.adaptive = crew_random(&seed, 2) == 0;
	spec.by_key = crew_random(&seed, 2) == 0;
	gate_set(g, &spec, worker, now);
}

static void
move_at_random(void)
{
	int i = (int)crew_random(&seed, GUESTS);
	unsigned worker = (unsigned)i % 3;
	bool waits = gate_is_waiting(&guests[i].w);

	now += crew_random(&seed, 4) * MSEC;
	switch (crew_random(&seed, 32)) {
	case 0:
		change_at_random(worker);
		break;
	case 1: case 2: case 3: case 4:
		crew_read(worker);
		break;
	case 5: case 6: case 7: case 8:
		gate_leave(g, worker, &guests[i].w, now);
		break;
	default:
		if (guests[i].inside)
			release(i);
		else if (!waits)
			(void)!take_as_any(i, worker, &seed);
	}
}

START_TEST(long_random_histories_keep_the_promise)
{
	seed = (uint64_t)_i + 1;
	open_gate(3, 10);
	for (int i = 0; i < 100000; i++) {
		move_at_random();
		gate_validate(g, count_inside());
		if (i % 16 != 0)
			continue;
		crew_settle();
		gate_validate(g, count_inside());
		CREW_ASSERT(look().in_use == count_inside());
		CREW_ASSERT(look().waiting == 0 ||
		    look().in_use >= look().limit);
	}
	everybody_stops_waiting();
	for (int i = 0; i < GUESTS; i++)
		if (guests[i].inside)
			release(i);
	crew_settle();
	ck_assert(gate_is_idle(g));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gate histories");
	TCase *t = tcase_create("gate histories");

	tcase_add_checked_fixture(t, two_permits_and_a_queue, close_gate);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, every_short_history_keeps_the_promise, 1, 3);
	tcase_add_loop_test(t, long_random_histories_keep_the_promise, 0, 4);
	suite_add_tcase(s, t);
	return run_suite(s);
}
