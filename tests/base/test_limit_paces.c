/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limit_paces.c - the bandwidth of a limit: src/base/limits.c
 */
#include <check.h>
#include <string.h>

#include "base/crew.h"
#include "base/limit.h"
#include "harness.h"

#define SEC	NSEC_PER_SEC

enum { RATE = 100000, BURST = 65536 };

#define KEY		(UINT64_C(1234567) << 40)
#define OTHER_KEY	(UINT64_C(7654321) << 40)

static struct limits *registry;
static struct limit *l;
static struct limit_spec spec;

/* In the second round of a looped test it is by key. */
static void
get_limit(int keyed)
{
	spec.key.what = keyed ? LIMIT_KEY_CLIENT_ADDRESS : LIMIT_KEY_NONE;

	struct limit *before = l;

	l = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0, SEC);
	limit_unref(registry, &before);
}

static void
one_way(void)
{
	crew_setup();
	registry = limits_new(CREW, crew_wake, NULL);
	spec = (struct limit_spec){
		.name = "some",
		.gate = { .queue_timeout = SEC },
		.bandwidth = { [LIMIT_OUT] = RATE },
		.bandwidth_burst = { [LIMIT_OUT] = BURST },
		.keys = 64,
	};
	l = NULL;
}

static void
clean_up(void)
{
	limit_unref(registry, &l);
	limits_free(&registry);
}

static void
on_look(void *arg, const struct limit_state *s)
{
	*(struct limit_state *)arg = *s;
}

static uint64_t
take(uint64_t key, uint64_t want, nsec_t now)
{
	struct pace_use u;
	uint64_t n;

	pace_use_init(&u, limit_pace(l, LIMIT_OUT), key);
	n = pace_take(&u, want, now);
	pace_count(&u, n, now);
	return n;
}

static uint64_t
would_wait(void)
{
	struct limit_state s;

	limits_look(registry, SEC, on_look, &s);
	return s.would_wait;
}

START_TEST(a_way_without_bandwidth_has_no_pace)
{
	get_limit(_i);
	ck_assert_ptr_null(limit_pace(l, LIMIT_IN));
	ck_assert_ptr_nonnull(limit_pace(l, LIMIT_OUT));
}
END_TEST

START_TEST(keys_have_their_own_and_all_others_share)
{
	get_limit(_i);
	ck_assert_uint_eq(take(KEY, BURST / 2, SEC), BURST / 2);
	ck_assert_uint_eq(take(OTHER_KEY, 60000, SEC), _i ? 60000 : BURST / 2);
}
END_TEST

START_TEST(a_reload_keeps_what_was_used)
{
	struct limit *before;

	get_limit(_i);
	ck_assert_uint_gt(take(KEY, BURST, SEC), BURST - 100);
	before = l;
	spec.bandwidth[LIMIT_IN] = spec.bandwidth[LIMIT_OUT] = 2 * RATE;
	spec.bandwidth_burst[LIMIT_IN] = BURST;
	spec.bandwidth_burst[LIMIT_OUT] = BURST;
	get_limit(_i);
	ck_assert_ptr_eq(l, before);
	ck_assert_ptr_nonnull(limit_pace(l, LIMIT_IN));
	ck_assert_uint_eq(take(KEY, BURST, SEC), 0);

	uint64_t n = take(KEY, BURST, SEC + SEC / 10);

	ck_assert_uint_ge(n, 2 * RATE / 10);
	ck_assert_uint_le(n, 2 * RATE / 10 + 100);
}
END_TEST

START_TEST(a_reload_may_end_it_and_those_inside_are_let_through)
{
	struct pace_use u;

	get_limit(_i);
	ck_assert_uint_gt(take(KEY, BURST, SEC), 0);
	pace_use_init(&u, limit_pace(l, LIMIT_OUT), KEY);
	spec.bandwidth[LIMIT_OUT] = 0;
	get_limit(_i);
	ck_assert_ptr_null(limit_pace(l, LIMIT_OUT));
	ck_assert_uint_eq(pace_take(&u, BURST, SEC), BURST);
}
END_TEST

START_TEST(what_passed_is_told)
{
	struct limit_state s = { .passed = { 7, 7 } };

	get_limit(_i);
	ck_assert_uint_eq(take(KEY, 1000, SEC), 1000);
	ck_assert_uint_eq(take(OTHER_KEY, 2000, SEC), 2000);
	limits_look(registry, SEC, on_look, &s);
	ck_assert_uint_eq(s.passed[LIMIT_IN], 0);
	ck_assert_uint_eq(s.passed[LIMIT_OUT], 3000);
}
END_TEST

START_TEST(who_has_to_wait_is_counted_once)
{
	struct limit_state s = { .throttled = { 7, 7 } };
	struct pace_use u;

	get_limit(_i);
	ck_assert_uint_gt(take(KEY, BURST, SEC), BURST - 100);
	pace_use_init(&u, limit_pace(l, LIMIT_OUT), KEY);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(pace_take(&u, BURST, SEC), 0);
		ck_assert_uint_gt(pace_wait_begin(&u, SEC), SEC);
		pace_wait_end(&u, SEC);
	}
	limits_look(registry, SEC, on_look, &s);
	ck_assert_uint_eq(s.throttled[LIMIT_IN], 0);
	ck_assert_uint_eq(s.throttled[LIMIT_OUT], 1);
	ck_assert_uint_eq(s.would_wait, 0);
}
END_TEST

START_TEST(in_dry_run_all_passes_and_who_would_wait_is_counted)
{
	struct pace_use u;

	spec.dry_run = true;
	get_limit(_i);
	pace_use_init(&u, limit_pace(l, LIMIT_OUT), KEY);
	ck_assert_uint_eq(take(KEY, BURST / 2, SEC), BURST / 2);
	ck_assert_uint_eq(would_wait(), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert(pace_is_open(&u, SEC));
		ck_assert_uint_eq(pace_take(&u, BURST, SEC), BURST);
		pace_give_back(&u, BURST / 3);
		pace_count(&u, BURST - BURST / 3, SEC);
	}
	ck_assert_uint_eq(would_wait(), 1);
	ck_assert_uint_eq(pace_charge(&u, BURST, 0, SEC), 0);
	ck_assert_uint_eq(take(KEY, BURST, SEC), BURST);
	ck_assert_uint_eq(would_wait(), 2);
	/* And it comes back. */
	ck_assert_uint_eq(take(KEY, BURST / 2, 9 * SEC), BURST / 2);
	ck_assert_uint_eq(would_wait(), 2);
}
END_TEST

START_TEST(the_tables_of_both_ways_are_known_before)
{
	spec.keys = 65536;
	ck_assert_uint_eq(limit_tables(&spec, 1), 0);
	spec.key.what = LIMIT_KEY_CLIENT_ADDRESS;

	size_t one = limit_tables(&spec, 1);

	ck_assert_uint_ge(one, 65536 * 12);
	spec.bandwidth[LIMIT_IN] = 1;
	ck_assert_uint_eq(limit_tables(&spec, 1), 2 * one);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("limit/paces");
	TCase *t = tcase_create("paces");

	tcase_add_checked_fixture(t, one_way, clean_up);
	tcase_add_loop_test(t, a_way_without_bandwidth_has_no_pace, 0, 2);
	tcase_add_loop_test(t, keys_have_their_own_and_all_others_share, 0,
	    2);
	tcase_add_loop_test(t, a_reload_keeps_what_was_used, 0, 2);
	tcase_add_loop_test(t,
	    a_reload_may_end_it_and_those_inside_are_let_through, 0, 2);
	tcase_add_loop_test(t, what_passed_is_told, 0, 2);
	tcase_add_loop_test(t, who_has_to_wait_is_counted_once, 0, 2);
	tcase_add_loop_test(t,
	    in_dry_run_all_passes_and_who_would_wait_is_counted, 0, 2);
	tcase_add_test(t, the_tables_of_both_ways_are_known_before);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	return run_suite(suite());
}
