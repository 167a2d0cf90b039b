/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_slab.c - src/base/slab.c
 */
#include "harness.h"

#include <signal.h>
#include <string.h>

#include "base/slab.h"
#include "rng.h"

START_TEST(no_more_than_the_bound_is_handed_out)
{
	struct slab s;
	void *object[1000];

	slab_init(&s, 100, ARRAY_LEN(object));
	for (size_t i = 0; i < ARRAY_LEN(object); i++) {
		object[i] = slab_take(&s);
		ck_assert_ptr_nonnull(object[i]);
	}
	ck_assert_ptr_null(slab_take(&s));
	ck_assert_uint_eq(s.refused, 1);
	ck_assert_uint_eq(s.total, ARRAY_LEN(object));
	ck_assert_uint_eq(s.in_use, ARRAY_LEN(object));

	slab_give(&s, object[7]);
	object[7] = slab_take(&s);
	ck_assert_ptr_nonnull(object[7]);
	ck_assert_ptr_null(slab_take(&s));
	ck_assert_uint_eq(s.refused, 2);

	for (size_t i = 0; i < ARRAY_LEN(object); i++)
		slab_give(&s, object[i]);
	ck_assert_uint_eq(s.in_use, 0);
	ck_assert_uint_eq(s.peak, ARRAY_LEN(object));
	slab_fini(&s);
}
END_TEST

START_TEST(a_bound_of_none_refuses_all)
{
	struct slab s;

	slab_init(&s, 1, 0);
	ck_assert_ptr_null(slab_take(&s));
	ck_assert_uint_eq(s.refused, 1);
	slab_fini(&s);
}
END_TEST

START_TEST(the_newest_given_back_comes_first)
{
	struct slab s;

	slab_init(&s, 48, 100);
	void *a = slab_take(&s);
	void *b = slab_take(&s);
	slab_give(&s, a);
	slab_give(&s, b);
	ck_assert_ptr_eq(slab_take(&s), b);
	ck_assert_ptr_eq(slab_take(&s), a);
	slab_give(&s, a);
	slab_give(&s, b);
	slab_fini(&s);
}
END_TEST

START_TEST(what_is_taken_zeroed_has_nothing_of_before)
{
	static const uint8_t none[100];
	struct slab s;

	slab_init(&s, sizeof none, 1);
	void *object = slab_take(&s);
	memset(object, 0xaa, sizeof none);
	slab_give(&s, object);
	object = slab_take_zeroed(&s);
	ck_assert_mem_eq(object, none, sizeof none);
	ck_assert_ptr_null(slab_take_zeroed(&s));
	slab_give(&s, object);
	slab_fini(&s);
}
END_TEST

START_TEST(after_the_first_rush_nothing_is_allocated)
{
	struct slab s;
	void *object[500];

	slab_init(&s, 1000, SIZE_MAX);
	for (int round = 0; round < 3; round++) {
		size_t total = s.total;

		for (size_t i = 0; i < ARRAY_LEN(object); i++)
			object[i] = slab_take(&s);
		if (round > 0)
			ck_assert_uint_eq(s.total, total);
		for (size_t i = 0; i < ARRAY_LEN(object); i++)
			slab_give(&s, object[i]);
	}
	slab_fini(&s);
}
END_TEST

static const size_t sizes[] = { 1, 8, 16, 17, 1024, 65536, 66560, 200000 };

/* Each object keeps a pattern of its own while others come and go. */
START_TEST(objects_are_aligned_and_do_not_overlap)
{
	struct slab s;
	unsigned char *object[64] = { NULL };
	uint64_t rng = 1;

	slab_init(&s, sizes[_i], 28);
	for (int n = 0; n < 2000; n++) {
		size_t i = rng_below(&rng, ARRAY_LEN(object));

		if (object[i] == NULL) {
			object[i] = slab_take(&s);
			if (object[i] == NULL) {
				ck_assert_uint_eq(s.in_use, 28);
				continue;
			}
			ck_assert_uint_eq((uintptr_t)object[i] % 8, 0);
			memset(object[i], (int)i, sizes[_i]);
			continue;
		}
		for (size_t k = 0; k < sizes[_i]; k++)
			if (object[i][k] != i)
				ck_abort_msg("object %zu, byte %zu", i, k);
		slab_give(&s, object[i]);
		object[i] = NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(object); i++)
		if (object[i] != NULL)
			slab_give(&s, object[i]);
	ck_assert_uint_gt(s.refused, 0);
	slab_fini(&s);
}
END_TEST

/* --- what goes back ---------------------------------------------------- */

static size_t
piece_of(size_t size)
{
	struct slab s;

	slab_init_mapped(&s, size, SIZE_MAX);
	return slab_next_piece(&s);
}

static const size_t mapped_sizes[] = { 16, 1024, 16384, 66560, 147456 };

START_TEST(pieces_go_back_but_for_the_oldest_and_those_in_use)
{
	enum { PIECES = 10 };
	const size_t size = mapped_sizes[_i], piece = piece_of(size);
	struct slab s;
	void *object[PIECES * 4096];
	size_t n = 0, each;

	slab_init_mapped(&s, size, SIZE_MAX);
	object[n++] = slab_take(&s);
	each = s.total;
	while (s.total < PIECES * each || slab_has(&s))
		object[n++] = slab_take(&s);
	/* All but the third piece's first. */
	for (size_t i = 0; i < n; i++)
		if (i != 2 * each)
			slab_give(&s, object[i]);
	ck_assert_uint_eq(slab_trim(&s, piece + 1), 2 * piece);
	ck_assert_uint_eq(s.total, (PIECES - 2) * each);
	ck_assert_uint_eq(slab_trim(&s, SIZE_MAX), (PIECES - 4) * piece);
	ck_assert_uint_eq(slab_trim(&s, SIZE_MAX), 0);
	ck_assert_uint_eq(s.total, 2 * each);
	/* And those that stayed are all to be had. */
	for (size_t i = 0; i < 2 * each - 1; i++)
		memset(object[i] = slab_take(&s), 1, size);
	ck_assert_uint_eq(s.total, 2 * each);
	ck_assert(!slab_has(&s));
	for (size_t i = 0; i < 2 * each - 1; i++)
		slab_give(&s, object[i]);
	slab_give(&s, object[2 * each]);
	slab_fini(&s);
}
END_TEST

/* Trimmed at any time, nothing that is in use is touched. */
START_TEST(objects_in_use_stay_whatever_is_trimmed)
{
	const size_t size = mapped_sizes[_i];
	struct slab s;
	unsigned char *object[200] = { NULL };
	uint64_t rng = 1;
	size_t back = 0;

	slab_init_mapped(&s, size, SIZE_MAX);
	for (int n = 0; n < 5000; n++) {
		size_t i = rng_below(&rng, ARRAY_LEN(object));

		if (rng_below(&rng, 50) == 0)
			back += slab_trim(&s, rng_below(&rng, 1000000));
		if (object[i] == NULL) {
			object[i] = slab_take(&s);
			object[i][0] = object[i][size - 1] = (unsigned char)i;
			continue;
		}
		if (object[i][0] != i || object[i][size - 1] != i)
			ck_abort_msg("object %zu", i);
		slab_give(&s, object[i]);
		object[i] = NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(object); i++)
		if (object[i] != NULL)
			slab_give(&s, object[i]);
	ck_assert(back > 0 || size <= 1024);
	slab_fini(&s);
}
END_TEST

START_TEST(an_end_with_objects_out_is_a_broken_invariant)
{
	struct slab s;

	slab_init(&s, 16, 1);
	ck_assert_ptr_nonnull(slab_take(&s));
	slab_fini(&s);
}
END_TEST

START_TEST(giving_twice_is_a_broken_invariant)
{
	struct slab s;

	slab_init(&s, 16, 2);
	void *a = slab_take(&s);
	ck_assert_ptr_nonnull(slab_take(&s));
	slab_give(&s, a);
	slab_give(&s, a);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("slab");
	TCase *t = tcase_create("slab");

	tcase_set_timeout(t, 240);
	tcase_add_test(t, no_more_than_the_bound_is_handed_out);
	tcase_add_test(t, a_bound_of_none_refuses_all);
	tcase_add_test(t, the_newest_given_back_comes_first);
	tcase_add_test(t, what_is_taken_zeroed_has_nothing_of_before);
	tcase_add_test(t, after_the_first_rush_nothing_is_allocated);
	tcase_add_loop_test(t, objects_are_aligned_and_do_not_overlap, 0,
	    (int)ARRAY_LEN(sizes));
	tcase_add_loop_test(t,
	    pieces_go_back_but_for_the_oldest_and_those_in_use, 0,
	    (int)ARRAY_LEN(mapped_sizes));
	tcase_add_loop_test(t, objects_in_use_stay_whatever_is_trimmed, 0,
	    (int)ARRAY_LEN(mapped_sizes));
	tcase_add_test_raise_signal(t,
	    an_end_with_objects_out_is_a_broken_invariant, SIGABRT);
	tcase_add_test_raise_signal(t, giving_twice_is_a_broken_invariant,
	    SIGABRT);
	suite_add_tcase(s, t);
	return run_suite(s);
}
