/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_exemplar.c - src/base/exemplar.c
 */
#include "base/exemplar.h"

#include <pthread.h>
#include <string.h>

#include "base/hist.h"
#include "harness.h"

static struct exemplar buckets[HIST_BUCKETS];

static void
no_exemplars(void)
{
	memset(buckets, 0, sizeof buckets);
}

static void
note(uint64_t id, nsec_t value, nsec_t at)
{
	exemplar_note(buckets, &(struct exemplar_copy){ id, value, at });
}

START_TEST(there_is_none_at_first)
{
	struct exemplar_copy c;

	for (size_t i = 0; i < HIST_BUCKETS; i++)
		ck_assert(!exemplar_read(&buckets[i], &c));
}
END_TEST

START_TEST(a_bucket_has_the_latest_of_its_own)
{
	size_t of = hist_bucket(NSEC_PER_SEC);
	struct exemplar_copy c;

	note(1, NSEC_PER_SEC, 10);
	note(2, NSEC_PER_SEC, 11);
	note(3, NSEC_NEVER - 1, 12);
	ck_assert(exemplar_read(&buckets[of], &c));
	ck_assert(c.id == 2 && c.value == NSEC_PER_SEC && c.at == 11);
	ck_assert(exemplar_read(&buckets[HIST_BUCKETS - 1], &c));
	ck_assert_uint_eq(c.id, 3);
	ck_assert(!exemplar_read(&buckets[of + 1], &c));
}
END_TEST

START_TEST(of_two_workers_the_later_counts)
{
	struct exemplar other[HIST_BUCKETS] = { 0 };
	size_t of = hist_bucket(NSEC_PER_SEC);
	struct exemplar_copy c;

	note(1, NSEC_PER_SEC, 10);
	note(4, 1, 9);
	exemplar_note(other, &(struct exemplar_copy){ 2, NSEC_PER_SEC, 11 });
	exemplar_note(other, &(struct exemplar_copy){ 5, 1, 8 });
	exemplars_merge(buckets, other);
	ck_assert(exemplar_read(&buckets[of], &c));
	ck_assert_uint_eq(c.id, 2);
	ck_assert(exemplar_read(&buckets[0], &c));
	ck_assert_uint_eq(c.id, 4);
}
END_TEST

START_TEST(slow_ones_are_due_and_a_share_of_the_others)
{
	unsigned n = 0;

	ck_assert(exemplar_is_due(1, EXEMPLAR_SLOW));
	for (uint64_t id = 1; id <= 100 * EXEMPLAR_SHARE; id++)
		n += exemplar_is_due(id, EXEMPLAR_SLOW - 1);
	ck_assert_uint_eq(n, 100);
}
END_TEST

/* --- one writes and another reads --------------------------------------- */

static _Atomic bool over;

static void *
write_on(void *arg)
{
	(void)arg;
	/* All parts of one are the same number, in one bucket. */
	for (uint64_t i = 0; i < 200000; i++) {
		uint64_t n = 100 * NSEC_PER_SEC + i;

		note(n, n, n);
	}
	atomic_store(&over, true);
	return NULL;
}

START_TEST(a_reader_never_sees_parts_of_two)
{
	pthread_t writer;
	struct exemplar_copy c;
	uint64_t last = 0;

	ck_assert_int_eq(pthread_create(&writer, NULL, write_on, NULL), 0);
	while (!atomic_load(&over)) {
		if (!exemplar_read(&buckets[HIST_BUCKETS - 1], &c))
			continue;
		ck_assert(c.id == c.value && c.value == c.at);
		ck_assert_uint_ge(c.id, last);
		last = c.id;
	}
	pthread_join(writer, NULL);
	ck_assert(exemplar_read(&buckets[HIST_BUCKETS - 1], &c));
	ck_assert_uint_eq(c.id, 100 * NSEC_PER_SEC + 199999);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("exemplar");
	TCase *t = tcase_create("exemplar");

	tcase_add_checked_fixture(t, no_exemplars, NULL);
	tcase_add_test(t, there_is_none_at_first);
	tcase_add_test(t, a_bucket_has_the_latest_of_its_own);
	tcase_add_test(t, of_two_workers_the_later_counts);
	tcase_add_test(t, slow_ones_are_due_and_a_share_of_the_others);
	tcase_add_test(t, a_reader_never_sees_parts_of_two);
	suite_add_tcase(s, t);
	return run_suite(s);
}
