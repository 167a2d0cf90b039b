/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_adapt.c - src/base/adapt.c, before a simulated upstream.
 *
 * The right limit of the upstream is the number of its servers: with less some
 * are idle, with more requests queue there.
 */
#include <check.h>
#include <stdio.h>

#include "base/upstream_sim.h"
#include "harness.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

/*
 * Under sanitizers, that take ten times as long, what has few events; of so
 * few stories more may be wrong.  Of a hundred, by how times differ.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SEEDS = 1, MOST_A_SECOND = 500 };
static const int may_be_wrong[] = { 0, 25, 50 };
#else
enum { SEEDS = 3, MOST_A_SECOND = 5000 };
static const int may_be_wrong[] = { 0, 10, 35 };
#endif

static void
open_story(enum sim_times times, uint64_t limit, nsec_t deadline,
    uint64_t seed)
{
	struct sim_opts opts = {
		.gate = {
			.limit = limit, .queue = 1000,
			.queue_timeout = 2 * SEC, .adaptive = deadline != 0,
			.queue_target = 20 * MSEC,
		},
		.times = times,
		.deadline = deadline,
		.seed = seed,
	};

	if (limit == 0)
		opts.bounds = (struct adapt_bounds){ 1, 1000 };
	sim_open(&opts);
}

static void
set_upstream(double servers, double service_ms, double load)
{
	sim_upstream((unsigned)(servers + 0.5), (nsec_t)(service_ms * MSEC));
	sim_clients(load * sim_capacity());
}

/* --- where it comes to -------------------------------------------------- */

/*
 * All combinations of these, except those with too few responses a second for
 * it to be right within half a minute; see adapt.h.
 */
static const double servers[] = { 4, 10, 40, 100, 400 };
static const double services_ms[] = { 2, 20, 200 };
static const double loads[] = { 1.2, 3 };

enum {
	UPSTREAMS = ARRAY_LEN(servers) * ARRAY_LEN(services_ms),
	LEAST_A_SECOND = 100,
};

static const struct change {
	double	servers, service;	/* times as many, times as long */
} changes[] = {
	{ 1, 1 },	{ 0.5, 1 },	{ 2, 1 },	{ 0.25, 1 },
	{ 4, 1 },	{ 1, 3 },	{ 1, 1 / 3.0 },
};

/* What became of stories. */
struct tally {
	int	told, wrong;
	double	least, most;	/* times what is right */
};

/* The limit in effect, in the mean of ten seconds, and what it should be. */
static void
judge(struct tally *t)
{
	double sum = 0, right = sim.servers;

	for (int i = 0; i < 200; i++) {
		sim_run(0.05);
		sum += (double)adapt_limit(&sim.adapt) / 200;
	}
	t->told++;
	t->wrong += fabs(sum - right) > MAX(right / 5, 1);
	/* Of fewer, one more is much. */
	if (sim.servers < 4)
		return;
	t->least = MIN(t->least, sum / right);
	t->most = MAX(t->most, sum / right);
}

/* The limit is judged 30 s after the last change of the upstream. */
static void
tell(struct tally *t, int upstream, const struct change *c,
    enum sim_times times, unsigned seed)
{
	double count = servers[upstream % (int)ARRAY_LEN(servers)];
	double ms = services_ms[upstream / (int)ARRAY_LEN(servers)];
	double before = count / ms * 1000;
	double after = before * c->servers / c->service;
	double load = loads[(unsigned)upstream % 2 ^ seed % 2];

	if (MIN(before, after) < LEAST_A_SECOND ||
	    MAX(before, after) > MOST_A_SECOND)
		return;
	open_story(times, 0, 0, seed);
	set_upstream(count, ms, load);
	sim_run(30);
	if (c != &changes[0]) {
		set_upstream(count * c->servers, ms * c->service, load);
		sim_run(30);
	}
	judge(t);
	sim_close();
}

static const struct tally nothing = { .least = 1, .most = 1 };

static void
say(const struct tally *t, const char *what, int i)
{
	printf("%s %d: %d of %d wrong, %.2f to %.2f of what is right\n", what,
	    i, t->wrong, t->told, t->least, t->most);
}

START_TEST(it_comes_to_the_right_limit_within_30_s)
{
	struct tally t = nothing;

	for (int i = 0; i < UPSTREAMS; i++)
		for (unsigned seed = 1; seed <= SEEDS; seed++)
			tell(&t, i, &changes[0], (enum sim_times)_i, seed);
	say(&t, "times", _i);
	ck_assert_int_ge(t.told, SEEDS * 3);
	ck_assert_int_le(t.wrong * 100, t.told * may_be_wrong[_i]);
}
END_TEST

/* A different seed for each, as one story of each is told. */
START_TEST(it_follows_a_change_within_30_s)
{
	struct tally t = nothing;

	for (int c = 1; c < (int)ARRAY_LEN(changes); c++)
		for (int i = 0; i < UPSTREAMS; i++)
			tell(&t, i, &changes[c], (enum sim_times)_i,
			    (unsigned)(c * UPSTREAMS + i));
	say(&t, "changes, times", _i);
	ck_assert_int_gt(t.told, 6);
	ck_assert_int_le(t.wrong * 100, t.told * may_be_wrong[_i]);
	if (_i != SIM_HEAVY)
		ck_assert(t.least > 0.6 && t.most < 1.6);
}
END_TEST

/*
 * Nine of ten servers fail, and who waits for long gives up: all that come back
 * have taken as long as that, however many are inside.
 */
START_TEST(it_comes_down_though_nobody_waits_for_what_is_late)
{
	open_story((enum sim_times)_i, 0, 0, 2026);
	set_upstream(400, 20, 1.5);
	sim_run(30);
	sim.opts.patience = 100 * MSEC;
	sim_upstream(40, 20 * MSEC);
	sim_run(30);
	sim.sums.served = sim.sums.lost = 0;
	sim_run(10);
	ck_assert_uint_ge(adapt_limit(&sim.adapt), 30);
	ck_assert_uint_le(adapt_limit(&sim.adapt), 60);
	ck_assert_uint_le(sim.sums.lost * 20, sim.sums.served);
	sim_close();
}
END_TEST

START_TEST(it_comes_down_when_nothing_comes)
{
	open_story(SIM_CONSTANT, 0, 0, 2026);
	set_upstream(100, 20, 1.5);
	sim_run(30);
	ck_assert_uint_ge(adapt_limit(&sim.adapt), 80);
	for (int i = 0; i < 40; i++) {
		uint64_t limit = adapt_limit(&sim.adapt);
		uint64_t lost = MAX(limit, 20);

		sim.now += SEC;
		(void)adapt_step(&sim.adapt, &(struct adapt_seen){
			.count = lost, .lost = lost, .in_use = lost * limit,
			.time = lost * 100 * MSEC,
		}, sim.now);
	}
	ck_assert_uint_eq(adapt_limit(&sim.adapt), 1);
	sim_close();
}
END_TEST

/* --- what it does not do ------------------------------------------------ */

START_TEST(it_never_goes_below_two_fifths_of_what_is_worked_on)
{
	open_story((enum sim_times)_i, 0, 0, 2026);
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
	open_story((enum sim_times)_i, 0, 0, 2026);
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

	open_story(SIM_EXPONENTIAL, 0, 0, 2026);
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
			.lost = values[rng_below(&seed, 8)],
			.time = values[rng_below(&seed, 8)],
			.in_use = values[rng_below(&seed, 8)],
		};

		now = rng_below(&seed, 50) == 0 ? values[rng_below(&seed, 8)] :
		    now + rng_below(&seed, SEC);
		(void)adapt_is_due(&a, &seen, now);
		uint64_t limit = adapt_step(&a, &seen, now);
		ck_assert(limit >= 1 && limit <= 1000);
		ck_assert(isfinite(a.base) && isfinite(a.limit));
		ck_assert(a.base >= 0 && isfinite(a.noise));
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

	open_story(times, limit, deadline, 2026);
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
	    SIM_TIMES);
	tcase_add_loop_test(t, it_follows_a_change_within_30_s, 0, SIM_TIMES);
	tcase_add_loop_test(t,
	    it_comes_down_though_nobody_waits_for_what_is_late, 0, SIM_TIMES);
	tcase_add_test(t, it_comes_down_when_nothing_comes);
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
