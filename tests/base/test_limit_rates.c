/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limit_rates.c - other rates for a limit: src/base/limits.c
 *
 * Each test with and without a key.
 */
#include "harness.h"

#include "base/crew.h"
#include "base/limit_own.h"

#define SEC	NSEC_PER_SEC

enum { PASSES = 5 };

#define KEY	(UINT64_C(1234567) << 40)

static struct limits *registry;
static struct limit *l;
static struct limit_spec spec;
static struct limit_pass passes[PASSES];
static nsec_t now;

static void
change(uint64_t rate, nsec_t span, uint64_t burst)
{
	struct limit *before = l;

	spec.rate = rate;
	spec.rate_span = span;
	spec.burst = burst;
	l = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0, now);
	ck_assert(before == NULL || before == l);
	limit_unref(registry, &before);
}

static void
begin(int keyed, uint64_t rate, nsec_t span, uint64_t burst)
{
	spec.key.what = keyed ? LIMIT_KEY_CLIENT_ADDRESS : LIMIT_KEY_NONE;
	change(rate, span, burst);
	for (int i = 0; i < PASSES; i++)
		limit_pass_init(&passes[i], l, KEY, NULL);
}

/* So many pass at once. */
static uint64_t
pass_at(nsec_t at)
{
	struct limit_pass p;
	uint64_t n = 0;

	for (;; n++) {
		limit_pass_init(&p, l, KEY, NULL);
		if (limit_rate(&p, at) != 0)
			return n;
	}
}

static void
set_up(void)
{
	crew_setup();
	registry = limits_new(CREW, crew_wake, NULL);
	spec = (struct limit_spec){ .name = "some", .keys = 64 };
	l = NULL;
	now = 1000 * SEC;
}

static void
clean_up(void)
{
	limit_unref(registry, &l);
	limits_free(&registry);
}

START_TEST(nobody_waits_for_a_token_of_old_numbers)
{
	begin(_i, 1, 3600 * SEC, 10);
	ck_assert_uint_eq(pass_at(now), 10);
	change(100, SEC, 5);
	ck_assert_uint_eq(pass_at(now), 0);
	ck_assert_uint_eq(pass_at(now + 15 * SEC / 1000), 1);
	now += SEC;
	ck_assert_uint_eq(pass_at(now), 5);
	/* Nor does one come by them later. */
	change(1, 60 * SEC, 5);
	ck_assert_uint_eq(pass_at(now + 59 * SEC), 0);
	ck_assert_uint_eq(pass_at(now + 61 * SEC), 1);
}
END_TEST

START_TEST(as_many_tokens_are_there_as_before)
{
	begin(_i, 100, SEC, 10);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(limit_rate(&passes[i], now), 0);
	change(10, SEC, 20);
	limit_rate_undo(&passes[3]);
	ck_assert_uint_eq(pass_at(now), 7);
	change(10, SEC, 5);
	change(10, SEC, 20);
	ck_assert_uint_eq(pass_at(now), 0);
}
END_TEST

START_TEST(who_waits_for_a_token_is_owed_it)
{
	spec.wait = 10 * SEC;
	begin(_i, 1, SEC, 2);
	for (int i = 0; i < PASSES; i++)
		ck_assert_uint_le(limit_rate(&passes[i], now), 3 * SEC);
	spec.wait = 0;
	change(10, SEC, 2);
	ck_assert_uint_eq(pass_at(now + 395 * SEC / 1000), 0);
	ck_assert_uint_eq(pass_at(now + 405 * SEC / 1000), 1);
}
END_TEST

START_TEST(a_new_rate_begins_with_all_of_its_burst)
{
	begin(_i, 1, 3600 * SEC, 10);
	ck_assert_uint_eq(pass_at(now), 10);
	change(0, SEC, 0);
	change(1, SEC, 4);
	ck_assert_uint_eq(pass_at(now), 4);
}
END_TEST

/* As if a worker, in the middle of it, had been late with a token an hour. */
START_TEST(a_token_taken_by_old_numbers_is_cut_once_all_is_settled)
{
	const struct bucket_spec *hourly;

	begin(0, 1, 3600 * SEC, 2);
	hourly = &limit_numbers(l)->bucket;
	change(100, SEC, 10);
	ck_assert_uint_eq(bucket_take(&l->bucket, hourly, 1, now), 0);
	ck_assert_uint_eq(pass_at(now + SEC), 0);
	limits_settle(registry, now);
	ck_assert_uint_eq(pass_at(now + SEC), 10);
}
END_TEST

START_TEST(settling_leaves_those_who_wait_what_they_owe)
{
	spec.wait = 10 * SEC;
	begin(_i, 1, SEC, 2);
	for (int i = 0; i < PASSES; i++)
		ck_assert_uint_le(limit_rate(&passes[i], now), 3 * SEC);
	spec.wait = 0;
	change(10, SEC, 2);
	limits_settle(registry, now);
	ck_assert_uint_eq(pass_at(now + 395 * SEC / 1000), 0);
	ck_assert_uint_eq(pass_at(now + 405 * SEC / 1000), 1);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("limit/rates");
	TCase *t = tcase_create("rates");

	tcase_add_checked_fixture(t, set_up, clean_up);
	tcase_add_loop_test(t, nobody_waits_for_a_token_of_old_numbers, 0, 2);
	tcase_add_loop_test(t, as_many_tokens_are_there_as_before, 0, 2);
	tcase_add_loop_test(t, who_waits_for_a_token_is_owed_it, 0, 2);
	tcase_add_loop_test(t, a_new_rate_begins_with_all_of_its_burst, 0, 2);
	tcase_add_test(t,
	    a_token_taken_by_old_numbers_is_cut_once_all_is_settled);
	tcase_add_loop_test(t, settling_leaves_those_who_wait_what_they_owe,
	    0, 2);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	return run_suite(suite());
}
