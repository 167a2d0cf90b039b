/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_adapt.c - src/base/adapt.c, before a simulated upstream.
 *
 * The right limit of the upstream is the number of its servers: with less some
 * are idle, with more requests queue there.
 */
#include <check.h>

#include "base/upstream_sim.h"
#include "harness.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

static void
open_story(enum sim_times times, uint64_t limit, nsec_t deadline)
{
	struct sim_opts opts = {
		.gate = {
			.limit = limit, .queue = 1000,
			.queue_timeout = 2 * SEC, .adaptive = deadline != 0,
			.queue_target = 20 * MSEC,
		},
		.times = times,
		.deadline = deadline,
		.seed = 2026,
	};

	if (limit == 0)
		opts.bounds = (struct adapt_bounds){ 1, 1000 };
	sim_open(&opts);
}

static void
set_upstream(double servers, double service_ms, double load)
{
	sim_upstream((unsigned)servers, (nsec_t)(service_ms * MSEC));
	sim_clients(load * sim_capacity());
}

/* Of ten seconds, without the dips; single looks are off by chance. */
static double
mean_limit(void)
{
	double sum = 0;

	for (int i = 0; i < 100; i++) {
		sim_run(0.1);
		sum += floor(sim.adapt.limit);
	}
	return sum / 100;
}

/* Within a fifth, and of few within one. */
static void
expect_right_limit(const char *when)
{
	double right = sim.servers, found = mean_limit();

	ck_assert_msg(fabs(found - right) <= MAX(right / 5, 1),
	    "%s: limit %.1f, not %.0f", when, found, right);
}

/* --- where it comes to -------------------------------------------------- */

/*
 * With few responses a second chance needs longer than that to be told from
 * what is so, and the more they differ, the longer.
 */
static const struct upstream {
	double		servers, service_ms;
	enum sim_times	most;		/* that they may differ */
} upstreams[] = {
	{ 4, 2, SIM_HEAVY },		{ 4, 20, SIM_EXPONENTIAL },
	{ 10, 2, SIM_HEAVY },		{ 10, 20, SIM_EXPONENTIAL },
	{ 40, 5, SIM_HEAVY },		{ 40, 20, SIM_HEAVY },
	{ 40, 200, SIM_EXPONENTIAL },	{ 100, 20, SIM_HEAVY },
	{ 100, 200, SIM_EXPONENTIAL },	{ 400, 50, SIM_HEAVY },
	{ 400, 200, SIM_EXPONENTIAL },
};

static const double loads[] = { 1.2, 3 };

START_TEST(it_comes_to_the_right_limit_within_30_s)
{
	const struct upstream *u = &upstreams[_i / (int)ARRAY_LEN(loads)];
	double load = loads[_i % (int)ARRAY_LEN(loads)];

	for (unsigned times = 0; times <= u->most; times++) {
		open_story((enum sim_times)times, 0, 0);
		set_upstream(u->servers, u->service_ms, load);
		sim_run(30);
		expect_right_limit("after 30 s");
		sim_close();
	}
}
END_TEST

static const struct change {
	double	servers, service;	/* times as many, times as long */
} changes[] = {
	{ 0.5, 1 },	{ 2, 1 },	{ 0.25, 1 },	{ 4, 1 },
	{ 1, 3 },	{ 1, 1 / 3.0 },	{ 0.5, 2 },
};

static const struct upstream changing[] = {
	{ 16, 5, SIM_EXPONENTIAL },	{ 40, 10, SIM_HEAVY },
	{ 100, 20, SIM_EXPONENTIAL },	{ 200, 50, SIM_EXPONENTIAL },
};

START_TEST(it_follows_a_change_within_30_s)
{
	const struct change *c = &changes[_i % (int)ARRAY_LEN(changes)];
	const struct upstream *u = &changing[_i / (int)ARRAY_LEN(changes)];

	for (unsigned times = 0; times <= u->most; times++) {
		open_story((enum sim_times)times, 0, 0);
		set_upstream(u->servers, u->service_ms, 1.5);
		sim_run(33);
		set_upstream(u->servers * c->servers,
		    u->service_ms * c->service, 1.5);
		sim_run(30);
		expect_right_limit("30 s after the change");
		sim_close();
	}
}
END_TEST

/* --- what it does not do ------------------------------------------------ */

START_TEST(it_never_goes_below_two_fifths_of_what_is_worked_on)
{
	open_story((enum sim_times)_i, 0, 0);
	set_upstream(100, 20, 1.5);
	sim_run(30);
	sim.least_limit = UINT64_MAX;
	sim_run(60);
	ck_assert_uint_ge(sim.least_limit, 40);
	set_upstream(100, 60, 1.5);
	sim_run(60);
	ck_assert_uint_ge(sim.least_limit, 40);
	set_upstream(50, 60, 1.5);
	sim_run(60);
	ck_assert_uint_ge(sim.least_limit, 20);
	sim_close();
}
END_TEST

START_TEST(it_stays_while_less_than_half_is_used)
{
	open_story((enum sim_times)_i, 0, 0);
	set_upstream(100, 20, 1.5);
	sim_run(30);
	double was = sim.adapt.limit;
	sim_clients(0.3 * sim_capacity());
	sim_run(1);
	was = sim.adapt.limit;
	sim_run(120);
	ck_assert_double_eq(sim.adapt.limit, was);
	sim_close();
}
END_TEST

START_TEST(its_bounds_hold)
{
	struct adapt_bounds bounds = { 30, 60 };

	open_story(SIM_EXPONENTIAL, 0, 0);
	adapt_set(&sim.adapt, &bounds);
	sim.least_limit = UINT64_MAX;
	for (int i = 0; i < 60; i++) {
		set_upstream(i % 2 == 0 ? 10 : 200, 20, 2);
		sim_run(1);
		ck_assert_uint_le(adapt_limit(&sim.adapt), 60);
	}
	ck_assert_uint_ge(sim.least_limit, 30);
	sim_close();
}
END_TEST

START_TEST(nothing_it_sees_makes_no_number_of_it)
{
	static const uint64_t values[] = {
		0, 1, 2, 50, 1000, NSEC_PER_SEC, UINT64_MAX / 2, UINT64_MAX,
	};
	struct adapt_bounds bounds = { 1, 1000 };
	uint64_t seed = 5;
	struct adapt a;
	nsec_t now = 0;

	adapt_init(&a, &bounds, ADAPT_FIRST, now);
	for (int i = 0; i < 300000; i++) {
		struct adapt_seen seen = {
			.count = values[rng_below(&seed, 8)],
			.time = values[rng_below(&seed, 8)],
			.in_use = values[rng_below(&seed, 8)],
		};

		now = rng_below(&seed, 50) == 0 ? values[rng_below(&seed, 8)] :
		    now + rng_below(&seed, SEC);
		(void)adapt_is_due(&a, &seen, now);
		uint64_t limit = adapt_step(&a, &seen, now);
		ck_assert(limit >= 1 && limit <= 1000);
		ck_assert(isfinite(a.base.time) && isfinite(a.limit));
		ck_assert(a.base.time >= 0 && a.usual > 0);
	}
}
END_TEST

/* --- what it is good for ------------------------------------------------ */

/* A day of a server: three quarters of it fail, and come back. */
static uint64_t
goodput(uint64_t limit, enum sim_times times)
{
	nsec_t deadline = 200 * MSEC;
	uint64_t good;

	open_story(times, limit, deadline);
	sim_upstream(40, 50 * MSEC);
	sim_clients(1.5 * sim_capacity());
	sim_run(60);
	sim_upstream(10, 50 * MSEC);
	sim_run(60);
	sim_upstream(40, 50 * MSEC);
	sim_run(60);
	good = sim.sums.good;
	sim_close();
	return good;
}

START_TEST(more_is_served_in_time_than_with_a_wrong_number)
{
	enum sim_times times = _i == 0 ? SIM_CONSTANT : SIM_EXPONENTIAL;
	uint64_t found = goodput(0, times);

	ck_assert_uint_gt(found, goodput(80, times));
	ck_assert_uint_gt(found, goodput(20, times));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("adapt");
	TCase *t = tcase_create("upstream");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, it_comes_to_the_right_limit_within_30_s, 0,
	    (int)(ARRAY_LEN(upstreams) * ARRAY_LEN(loads)));
	tcase_add_loop_test(t, it_follows_a_change_within_30_s, 0,
	    (int)(ARRAY_LEN(changing) * ARRAY_LEN(changes)));
	tcase_add_loop_test(t,
	    it_never_goes_below_two_fifths_of_what_is_worked_on, 0, SIM_TIMES);
	tcase_add_loop_test(t, it_stays_while_less_than_half_is_used, 0,
	    SIM_TIMES);
	tcase_add_test(t, its_bounds_hold);
	tcase_add_test(t, nothing_it_sees_makes_no_number_of_it);
	tcase_add_loop_test(t, more_is_served_in_time_than_with_a_wrong_number,
	    0, 2);
	suite_add_tcase(s, t);
	return run_suite(s);
}
