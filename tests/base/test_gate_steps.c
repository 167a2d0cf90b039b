/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gate_steps.c - src/base/gate.c: up to three workers in every step of
 * each other.
 */
#include <check.h>
#include <sched.h>

#include "base/steps.h"

#include "../../src/base/gate.c"	/* with the accesses of steps.h */
#include "../../src/base/gate_queue.c"

#include "base/gate_guests.h"
#include "harness.h"

enum { HISTORIES = 50000, BEFORE = 8, DURING = 3, WORKERS = 3, EACH = 3 };

static uint64_t seed;

/* Worker i has guests EACH * i and on. */
static void
move(unsigned worker)
{
	int i = (int)(EACH * worker + crew_random(&seed, EACH));

	switch (crew_random(&seed, 16)) {
	case 0:
		if (worker != 0)
			break;
		spec.limit = crew_random(&seed, 4);
		spec.by_key = crew_random(&seed, 2) == 0;
		spec.dry = crew_random(&seed, 4) == 0;
		gate_set(g, &spec, worker, now);
		break;
	case 1: case 2: case 3: case 4: case 5: case 6:
		crew_read(worker);
		break;
	case 7: case 8:
		gate_leave(g, worker, &guests[i].w, now);
		break;
	default:
		if (guests[i].inside)
			release(i);
		else if (!gate_is_waiting(&guests[i].w) &&
		    take_as_any(i, worker, &seed) == GATE_REFUSED)
			guests[i].inside = gate_is_dry(g) && gate_take_dry(g);
	}
}

static void
act(unsigned worker)
{
	for (int i = 0; i < DURING; i++)
		move(worker);
}

START_TEST(nobody_is_forgotten_in_any_order_of_steps)
{
	seed = (uint64_t)_i + 1;
	workers = WORKERS;
	for (int n = 0; n < HISTORIES; n++) {
		if (n % 64 == 0)
			open_gate(1 + crew_random(&seed, 3), 4);
		for (int i = 0; i < BEFORE; i++)
			move(crew_random(&seed, WORKERS));
		steps_run(WORKERS, act, &seed);
		gate_validate(g, count_inside());
		crew_settle();
		gate_validate(g, count_inside());
		CREW_ASSERT(spec.limit == 0 || look().waiting == 0 ||
		    look().in_use >= spec.limit);
		CREW_ASSERT(!spec.dry || look().waiting == 0);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gate steps");
	TCase *t = tcase_create("gate steps");

	tcase_add_checked_fixture(t, two_permits_and_a_queue, close_gate);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, nobody_is_forgotten_in_any_order_of_steps, 0,
	    2);
	suite_add_tcase(s, t);
	return run_suite(s);
}
