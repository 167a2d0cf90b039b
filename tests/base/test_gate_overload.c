/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gate_overload.c - src/base/gate.c, before a simulated upstream that has
 * more to do than it can: what becomes of waits in each order.
 */
#include <check.h>

#include "base/upstream_sim.h"
#include "harness.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC
#define TARGET	(20 * MSEC)

/* An upstream of 20 that take 50 ms, and a gate of as many. */
static void
open_story(bool adaptive, double load)
{
	struct sim_opts opts = {
		.gate = {
			.limit = 20, .queue = 2000, .queue_timeout = SEC,
			.adaptive = adaptive, .queue_target = TARGET,
		},
		.times = SIM_EXPONENTIAL,
		.deadline = 500 * MSEC,
		.seed = 1,
	};

	sim_open(&opts);
	sim_upstream(20, 50 * MSEC);
	sim_clients(load * sim_capacity());
}

/* Of who is served, in an hour of it. */
static nsec_t
mean_wait(void)
{
	sim_run(60);
	sim.sums = (struct sim_sums){ .came = 0 };
	sim_run(3600);
	return sim.sums.waited / sim.sums.served;
}

static const double loads[] = { 1.1, 1.5, 3 };

START_TEST(overloaded_fifo_stands_at_the_timeout_and_adaptive_at_the_target)
{
	open_story(false, loads[_i]);
	ck_assert_uint_gt(mean_wait(), 8 * SEC / 10);
	ck_assert_uint_lt(sim.sums.good, sim.sums.served / 100);
	sim_close();

	open_story(true, loads[_i]);
	ck_assert_uint_lt(mean_wait(), 2 * TARGET);
	ck_assert_uint_lt(sim.sums.most_waited, SEC / 4);
	ck_assert(sim.sums.good >= 0.99 * (double)sim.sums.served);
	ck_assert((double)sim.sums.served >= 0.97 * 3600 * sim_capacity());
	sim_close();
}
END_TEST

START_TEST(without_overload_the_orders_are_the_same)
{
	struct sim_sums fifo;

	open_story(false, 0.5);
	(void)mean_wait();
	fifo = sim.sums;
	sim_close();
	open_story(true, 0.5);
	(void)mean_wait();
	ck_assert_uint_eq(sim.sums.served, fifo.served);
	ck_assert_uint_eq(sim.sums.waited, fifo.waited);
	ck_assert_uint_eq(sim.sums.thrown_out, 0);
	sim_close();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gate_overload");
	TCase *t = tcase_create("hours");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t,
	    overloaded_fifo_stands_at_the_timeout_and_adaptive_at_the_target,
	    0, (int)ARRAY_LEN(loads));
	tcase_add_test(t, without_overload_the_orders_are_the_same);
	suite_add_tcase(s, t);
	return run_suite(s);
}
