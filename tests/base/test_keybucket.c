/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_keybucket.c - src/base/keybucket.c
 */
#include <check.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/crew.h"
#include "base/keybucket.h"
#include "base/rng.h"
#include "harness.h"

#define SEC	NSEC_PER_SEC

enum { THREADS = 4, PLACES_OF_A_LINE = 7 };

static struct keybuckets *t;
static struct keybucket_spec spec;
static nsec_t now;

static void
ten_a_second_burst_five(void)
{
	t = keybuckets_new(PLACES_OF_A_LINE);
	keybucket_spec_init(&spec, 10, SEC, 5, 0);
	now = 1000 * SEC;
}

static void
no_table(void)
{
	keybuckets_free(&t);
	ck_assert_ptr_null(t);
}

static uint64_t
key(uint64_t tag)
{
	return tag << 40 | 7;
}

static nsec_t
take(uint64_t tag)
{
	return keybucket_take(t, key(tag), &spec, now);
}

static void
empty(uint64_t tag)
{
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(take(tag), 0);
}

START_TEST(each_key_has_its_burst)
{
	for (uint64_t k = 1; k <= 3; k++) {
		empty(k);
		ck_assert_uint_gt(take(k), 0);
	}
}
END_TEST

START_TEST(an_empty_bucket_says_how_long_to_wait)
{
	empty(1);
	ck_assert_uint_eq(take(1), SEC / 10);
	ck_assert_uint_eq(keybucket_due(t, key(1), &spec, now), SEC / 10);
	now += SEC / 10 - KEYBUCKET_UNIT;
	ck_assert_uint_eq(take(1), KEYBUCKET_UNIT);
	now += KEYBUCKET_UNIT;
	ck_assert_uint_eq(keybucket_due(t, key(1), &spec, now), 0);
	ck_assert_uint_eq(take(1), 0);
	ck_assert_uint_gt(take(1), 0);
}
END_TEST

START_TEST(a_token_may_come_late)
{
	keybucket_spec_init(&spec, 10, SEC, 5, SEC / 5);
	empty(1);
	ck_assert_uint_eq(take(1), SEC / 10);
	ck_assert_uint_eq(take(1), SEC / 5);
	ck_assert_uint_eq(take(1), 3 * SEC / 10);
	ck_assert_uint_eq(take(1), 3 * SEC / 10);
}
END_TEST

START_TEST(what_is_given_back_can_be_taken_again)
{
	empty(1);
	keybucket_give_back(t, key(1), &spec);
	keybucket_give_back(t, key(2), &spec);
	ck_assert_uint_eq(take(1), 0);
	ck_assert_uint_gt(take(1), 0);
}
END_TEST

START_TEST(giving_back_never_fills_beyond_the_burst)
{
	ck_assert_uint_eq(take(1), 0);
	now += SEC;
	for (int i = 0; i < 3; i++)
		keybucket_give_back(t, key(1), &spec);
	empty(1);
	ck_assert_uint_gt(take(1), 0);
}
END_TEST

START_TEST(many_days_later_the_bucket_is_full)
{
	for (uint64_t days = 1; days < 600; days += 7) {
		empty(days);
		now += days * 86400 * SEC;
		empty(days);
		ck_assert_uint_gt(take(days), 0);
	}
}
END_TEST

START_TEST(those_who_come_once_do_not_push_out_the_one_in_debt)
{
	empty(1);
	for (uint64_t k = 2; k < 1000; k++)
		ck_assert_uint_eq(take(k), 0);
	ck_assert_uint_gt(keybuckets_evicted(t), 0);
	ck_assert_uint_gt(take(1), 0);
}
END_TEST

START_TEST(full_buckets_are_replaced_without_harm)
{
	for (uint64_t k = 1; k < 1000; k++) {
		ck_assert_uint_eq(take(k), 0);
		now += SEC;
	}
	ck_assert_uint_eq(keybuckets_evicted(t), 0);
}
END_TEST

/* { rate, span, the gap in ns } */
static const struct { uint64_t rate; nsec_t span; nsec_t gap; } gaps[] = {
	{ 1000,	SEC,		1008000 },	/* rounded up */
	{ 3,	SEC,		333344000 },
	{ 1,	SEC,		SEC },
	{ 1,	3600 * SEC,	3600 * SEC },
	{ 7,	60 * SEC,	8571440000 },
};

START_TEST(gaps_are_rounded_up_to_16_us)
{
	keybucket_spec_init(&spec, gaps[_i].rate, gaps[_i].span, 1, 0);
	ck_assert_uint_eq(take(1), 0);
	ck_assert_uint_eq(take(1), gaps[_i].gap);
}
END_TEST

/* In any time the admitted are at most burst + rate * time, exactly. */
START_TEST(a_greedy_key_gets_its_rate_and_no_more)
{
	uint64_t seed = 5, got = 0;
	nsec_t began = now;

	for (int i = 0; i < 200000; i++) {
		now += crew_random(&seed, 200000);
		got += take(1) == 0;
	}
	ck_assert_uint_le(got, 5 + (now - began + KEYBUCKET_UNIT) * 10 / SEC);
	ck_assert_uint_ge(got, 4 + (now - began) * 10 / SEC);
}
END_TEST

/* --- a spray of keys --------------------------------------------------- */

/* Under sanitizers, that take ten times as long, a tenth of ten million. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SPRAY = 1000000 };
#else
enum { SPRAY = 10000000 };
#endif

enum { ROWS = 65536, BURST = 20, RATE = 10, GREED = 10 };

/*
 * A million events a second, of keys that come so many times at once and never
 * again, while one key asks for GREED times its rate.  What that one got.
 */
static uint64_t
spray(uint64_t seed, unsigned times)
{
	const nsec_t each = SEC / 1000000, pause = SEC / (RATE * GREED);
	const uint64_t offender = key(1) * 12345;
	nsec_t next = now;
	uint64_t got = 0;

	for (unsigned i = 0; i < SPRAY / times; i++) {
		uint64_t other = rng_next(&seed);

		for (unsigned j = 0; j < times; j++, now += each)
			CREW_ASSERT(keybucket_take(t, other, &spec,
			    now) == 0);
		for (; next <= now; next += pause)
			got += keybucket_take(t, offender, &spec, now) == 0;
	}
	return got;
}

/* Once, so that more are in debt than there are rows; or to their limit. */
static const unsigned spray_times[] = { 1, BURST };

START_TEST(a_spray_of_keys_frees_nobody_who_is_over_the_limit)
{
	nsec_t began = now;

	no_table();
	t = keybuckets_new(ROWS);
	keybucket_spec_init(&spec, RATE, SEC, BURST, 0);

	size_t memory = mallinfo2().uordblks;
	uint64_t got = spray((uint64_t)_i + 1, spray_times[_i]);
	uint64_t fair = BURST + RATE * (now - began) / SEC;
	uint64_t evicted = keybuckets_evicted(t);

	ck_assert_uint_gt(evicted, 0);
	ck_assert_uint_le(got * 100, fair * 105);
	ck_assert_uint_ge(got, fair - 1);
	ck_assert_uint_eq(mallinfo2().uordblks, memory);
	/* What has expired is no longer there, though nobody has swept. */
	now += 3 * SEC;
	for (uint64_t i = 0, seed = 99; i < ROWS / 8; i++)
		ck_assert_uint_eq(keybucket_take(t, rng_next(&seed), &spec,
		    now), 0);
	ck_assert_uint_le(keybuckets_evicted(t) - evicted, ROWS / 8 / 1000);
}
END_TEST

static atomic_uint taken;

static void *
grab(void *arg)
{
	uint64_t seed = *(const uint64_t *)arg;

	for (int i = 0; i < 20000; i++) {
		taken += take(1) == 0;
		/* Others come and go on the same line. */
		(void)!take(2 + crew_random(&seed, 3));
	}
	return NULL;
}

/* All that may be owed is: for an older time it is more than that. */
START_TEST(a_clock_that_is_behind_finds_no_full_bucket)
{
	empty(1);
	now -= SEC;
	ck_assert_uint_eq(take(1), SEC + SEC / 10);
	ck_assert_uint_eq(keybucket_due(t, key(1), &spec, now),
	    SEC + SEC / 10);
	now += SEC;
	ck_assert_uint_eq(take(1), SEC / 10);
}
END_TEST

START_TEST(a_table_may_count_by_a_meter)
{
	no_table();
	t = keybuckets_new_metered(PLACES_OF_A_LINE);
	/* What is taken may differ from one time to the next. */
	spec = (struct keybucket_spec){ .gap = 1000, .depth = 1000 };
	ck_assert_uint_eq(take(1), 0);
	spec.gap = 3;
	ck_assert_uint_eq(take(1), 3);
	now += 2;
	ck_assert_uint_eq(take(1), 1);
	now += 1;
	ck_assert_uint_eq(take(1), 0);
	keybucket_give_back(t, key(1), &spec);
	ck_assert_uint_eq(keybucket_due(t, key(1), &spec, now), 0);
	ck_assert_uint_gt(keybuckets_memory_metered(70),
	    keybuckets_memory(70));
}
END_TEST

START_TEST(who_waits_for_a_key_is_counted)
{
	uint32_t first, second, other;

	no_table();
	t = keybuckets_new_metered(PLACES_OF_A_LINE);
	ck_assert_uint_eq(keybucket_waiting(t, key(1)), 0);
	first = keybucket_wait_begin(t, key(1), now);
	second = keybucket_wait_begin(t, key(1), now);
	spec.gap = spec.depth;
	ck_assert_uint_eq(take(1), 0);
	other = keybucket_wait_begin(t, key(2), now);
	ck_assert_uint_eq(keybucket_waiting(t, key(1)), 2);
	ck_assert_uint_eq(keybucket_waiting(t, key(2)), 1);
	keybucket_wait_end(t, first);
	keybucket_wait_end(t, other);
	ck_assert_uint_eq(keybucket_waiting(t, key(1)), 1);
	ck_assert_uint_eq(keybucket_waiting(t, key(2)), 0);
	keybucket_wait_end(t, second);
	ck_assert_uint_eq(keybucket_waiting(t, key(1)), 0);
}
END_TEST

START_TEST(threads_share_one_bucket)
{
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS];

	keybucket_spec_init(&spec, 10, SEC, 1000, 0);
	for (uint64_t i = 0; i < THREADS; i++) {
		seeds[i] = i + 1;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, grab,
		    &seeds[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&taken), 1000);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("keybucket");
	TCase *c = tcase_create("keybucket");

	tcase_add_checked_fixture(c, ten_a_second_burst_five, no_table);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, each_key_has_its_burst);
	tcase_add_test(c, an_empty_bucket_says_how_long_to_wait);
	tcase_add_test(c, a_token_may_come_late);
	tcase_add_test(c, what_is_given_back_can_be_taken_again);
	tcase_add_test(c, giving_back_never_fills_beyond_the_burst);
	tcase_add_test(c, many_days_later_the_bucket_is_full);
	tcase_add_test(c,
	    those_who_come_once_do_not_push_out_the_one_in_debt);
	tcase_add_test(c, full_buckets_are_replaced_without_harm);
	tcase_add_loop_test(c, gaps_are_rounded_up_to_16_us, 0,
	    (int)ARRAY_LEN(gaps));
	tcase_add_test(c, a_greedy_key_gets_its_rate_and_no_more);
	tcase_add_loop_test(c,
	    a_spray_of_keys_frees_nobody_who_is_over_the_limit, 0,
	    (int)ARRAY_LEN(spray_times));
	tcase_add_test(c, a_clock_that_is_behind_finds_no_full_bucket);
	tcase_add_test(c, a_table_may_count_by_a_meter);
	tcase_add_test(c, who_waits_for_a_key_is_counted);
	tcase_add_test(c, threads_share_one_bucket);
	suite_add_tcase(s, c);
	return run_suite(s);
}
