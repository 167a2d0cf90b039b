/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hist.c - src/base/hist.c
 */
#include "harness.h"

#include "base/hist.h"
#include "rng.h"

static struct hist h;

static void
an_empty_histogram(void)
{
	h = (struct hist){ 0 };
}

/* The bucket, the slow way. */
static size_t
bucket_of(nsec_t v)
{
	size_t i = 0;

	while (v > hist_bounds[i])
		i++;
	return i;
}

static void
assert_counted_in_its_bucket(nsec_t v)
{
	uint64_t before = h.count[bucket_of(v)];

	hist_add(&h, v);
	if (h.count[bucket_of(v)] != before + 1)
		ck_abort_msg("%ju is not in bucket %zu", (uintmax_t)v,
		    bucket_of(v));
}

START_TEST(bounds_rise_and_end_with_never)
{
	for (size_t i = 1; i < HIST_BUCKETS; i++)
		ck_assert_uint_lt(hist_bounds[i - 1], hist_bounds[i]);
	ck_assert_uint_eq(hist_bounds[0], 100000);
	ck_assert_uint_eq(hist_bounds[HIST_BUCKETS - 2], 60 * NSEC_PER_SEC);
	ck_assert_uint_eq(hist_bounds[HIST_BUCKETS - 1], NSEC_NEVER);
}
END_TEST

START_TEST(a_bound_belongs_to_its_bucket)
{
	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		assert_counted_in_its_bucket(hist_bounds[i] - 1);
		assert_counted_in_its_bucket(hist_bounds[i]);
		assert_counted_in_its_bucket(hist_bounds[i] + 1);
	}
}
END_TEST

START_TEST(every_octave_is_counted_right)
{
	uint64_t rng = 7;

	assert_counted_in_its_bucket(0);
	for (int bit = 0; bit < 64; bit++) {
		assert_counted_in_its_bucket(UINT64_C(1) << bit);
		assert_counted_in_its_bucket((UINT64_C(1) << bit) - 1);
		for (int n = 0; n < 1000; n++)
			assert_counted_in_its_bucket(rng_next(&rng) >> bit);
	}
	ck_assert_uint_eq(hist_total(&h), 1 + 64 * 1002);
}
END_TEST

START_TEST(an_empty_histogram_has_no_quantile)
{
	ck_assert_uint_eq(hist_total(&h), 0);
	ck_assert_uint_eq(hist_quantile(&h, 0.5), 0);
	ck_assert_uint_eq(hist_quantile(&h, 1), 0);
}
END_TEST

START_TEST(a_quantile_is_the_bound_above_that_share)
{
	for (int i = 0; i < 90; i++)
		hist_add(&h, 1500 * UINT64_C(1000));
	for (int i = 0; i < 9; i++)
		hist_add(&h, 40 * NSEC_PER_MSEC);
	hist_add(&h, 1000 * NSEC_PER_SEC);

	ck_assert_uint_eq(hist_quantile(&h, 0), 2 * NSEC_PER_MSEC);
	ck_assert_uint_eq(hist_quantile(&h, 0.5), 2 * NSEC_PER_MSEC);
	ck_assert_uint_eq(hist_quantile(&h, 0.9), 2 * NSEC_PER_MSEC);
	ck_assert_uint_eq(hist_quantile(&h, 0.91), 50 * NSEC_PER_MSEC);
	ck_assert_uint_eq(hist_quantile(&h, 0.99), 50 * NSEC_PER_MSEC);
	ck_assert_uint_eq(hist_quantile(&h, 1), NSEC_NEVER);
}
END_TEST

START_TEST(merging_adds_counts_and_sums)
{
	struct hist other = { 0 };

	hist_add(&h, 5);
	hist_add(&other, 7);
	hist_add(&other, NSEC_PER_SEC);
	hist_merge(&h, &other);
	ck_assert_uint_eq(hist_total(&h), 3);
	ck_assert_uint_eq(h.sum, 12 + NSEC_PER_SEC);
	ck_assert_uint_eq(h.count[0], 2);
	ck_assert_uint_eq(hist_total(&other), 2);
}
END_TEST

/* As histogram_quantile() does, by the same buckets. */
START_TEST(an_estimate_lies_within_its_bucket)
{
	ck_assert_uint_eq(hist_estimate(&h, 0.5), 0);
	for (int i = 0; i < 8; i++)
		hist_add(&h, 1500 * UINT64_C(1000));
	for (int i = 0; i < 2; i++)
		hist_add(&h, 40 * NSEC_PER_MSEC);
	ck_assert_uint_eq(hist_estimate(&h, 0.4), 1500 * UINT64_C(1000));
	ck_assert_uint_eq(hist_estimate(&h, 0.8), 2 * NSEC_PER_MSEC);
	ck_assert_uint_eq(hist_estimate(&h, 0.9), 35 * NSEC_PER_MSEC);
	ck_assert_uint_eq(hist_estimate(&h, 1), 50 * NSEC_PER_MSEC);
	hist_add(&h, 1000 * NSEC_PER_SEC);
	ck_assert_uint_eq(hist_estimate(&h, 1), 60 * NSEC_PER_SEC);
}
END_TEST

START_TEST(since_is_what_came_and_never_less_than_nothing)
{
	struct hist before = { 0 }, since;

	hist_add(&h, 5);
	hist_merge(&before, &h);
	hist_add(&h, NSEC_PER_SEC);
	hist_since(&since, &h, &before);
	ck_assert_uint_eq(hist_total(&since), 1);
	ck_assert_uint_eq(since.sum, NSEC_PER_SEC);
	ck_assert_uint_eq(since.count[hist_bucket(NSEC_PER_SEC)], 1);
	hist_since(&since, &before, &h);
	ck_assert_uint_eq(hist_total(&since), 0);
	ck_assert_uint_eq(since.sum, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("hist");
	TCase *t = tcase_create("hist");

	tcase_add_checked_fixture(t, an_empty_histogram, NULL);
	tcase_add_test(t, bounds_rise_and_end_with_never);
	tcase_add_test(t, a_bound_belongs_to_its_bucket);
	tcase_add_test(t, every_octave_is_counted_right);
	tcase_add_test(t, an_empty_histogram_has_no_quantile);
	tcase_add_test(t, a_quantile_is_the_bound_above_that_share);
	tcase_add_test(t, merging_adds_counts_and_sums);
	tcase_add_test(t, an_estimate_lies_within_its_bucket);
	tcase_add_test(t, since_is_what_came_and_never_less_than_nothing);
	suite_add_tcase(s, t);
	return run_suite(s);
}
