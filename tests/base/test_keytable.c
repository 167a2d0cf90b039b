/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_keytable.c - src/base/keytable.c
 */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/crew.h"
#include "base/keytable.h"
#include "base/rng.h"
#include "harness.h"

enum { THREADS = 8, KEYS = 12, ROWS_OF_A_LINE = 7 };

static struct keytable *t;
static struct key_bounds two_and_one = { .limit = 2, .queue = 1 };

static void
one_line(void)
{
	t = keytable_new(ROWS_OF_A_LINE);
}

static void
no_table(void)
{
	keytable_free(&t);
	ck_assert_ptr_null(t);
}

/* A key with this tag; in a table of one line they all share it. */
static uint64_t
key(uint64_t tag)
{
	return tag << 40 | 7;
}

static enum key_result
enter(uint64_t tag, uint32_t *row)
{
	return keytable_enter(t, key(tag), &two_and_one, row);
}

START_TEST(a_key_has_its_limit_and_its_queue)
{
	uint32_t row, same;

	ck_assert_int_eq(enter(1, &row), KEY_TAKEN);
	ck_assert_int_eq(enter(1, &same), KEY_TAKEN);
	ck_assert_uint_eq(row, same);
	ck_assert_int_eq(enter(1, &same), KEY_WAITS);
	ck_assert_int_eq(enter(1, &same), KEY_REFUSED);
	ck_assert_uint_eq(keytable_look(t, row).in_use, 2);
	ck_assert_uint_eq(keytable_look(t, row).waiting, 1);
	ck_assert_int_eq(enter(2, &same), KEY_TAKEN);
	ck_assert_uint_ne(row, same);
	ck_assert_uint_eq(keytable_used(t), 2);
}
END_TEST

START_TEST(who_waits_is_promoted_when_there_is_room)
{
	uint32_t row;

	for (int i = 0; i < 3; i++)
		ck_assert_int_ne(enter(1, &row), KEY_REFUSED);
	ck_assert(!keytable_promote(t, row, 2));
	ck_assert_uint_eq(keytable_leave(t, row).waiting, 1);
	/* The room is the waiter's. */
	ck_assert_int_eq(enter(1, &row), KEY_REFUSED);
	ck_assert(keytable_promote(t, row, 2));
	ck_assert_int_eq(enter(1, &row), KEY_WAITS);
	ck_assert_uint_eq(keytable_quit(t, row).waiting, 0);
}
END_TEST

START_TEST(a_full_line_has_no_row_and_a_free_row_is_found)
{
	uint32_t rows[ROWS_OF_A_LINE], other;

	for (uint64_t i = 0; i < ROWS_OF_A_LINE; i++)
		ck_assert_int_eq(enter(i, &rows[i]), KEY_TAKEN);
	ck_assert_int_eq(enter(100, &other), KEY_NO_ROW);
	ck_assert_int_eq(enter(3, &other), KEY_TAKEN);
	ck_assert_uint_eq(other, rows[3]);
	keytable_leave(t, rows[5]);
	ck_assert_uint_eq(keytable_used(t), ROWS_OF_A_LINE - 1);
	ck_assert_int_eq(enter(100, &other), KEY_TAKEN);
	ck_assert_uint_eq(other, rows[5]);
	ck_assert_int_eq(enter(5, &other), KEY_NO_ROW);
}
END_TEST

START_TEST(counts_do_not_run_over)
{
	struct key_bounds any = { .limit = UINT64_MAX, .queue = 0 };
	uint32_t row;

	for (uint32_t i = 0; i < KEYTABLE_MAX_COUNT; i++)
		CREW_ASSERT(keytable_enter(t, key(9), &any, &row) ==
		    KEY_TAKEN);
	ck_assert_int_eq(keytable_enter(t, key(9), &any, &row), KEY_REFUSED);
	ck_assert_uint_eq(keytable_look(t, row).in_use, KEYTABLE_MAX_COUNT);
	ck_assert_uint_eq(keytable_look(t, row).waiting, 0);
}
END_TEST

START_TEST(many_keys_fit_into_a_table_of_their_number_twice)
{
	uint64_t seed = 1;
	unsigned refused = 0;
	uint32_t row;

	no_table();
	t = keytable_new(65536);
	for (int i = 0; i < 16384; i++) {
		uint64_t k = (uint64_t)crew_random(&seed, UINT32_MAX) << 32 |
		    crew_random(&seed, UINT32_MAX);

		refused += keytable_enter(t, k, &two_and_one, &row) !=
		    KEY_TAKEN;
	}
	/* Poisson with 1.75 a line: one in 2000 finds it full. */
	ck_assert_uint_lt(refused, 40);
	ck_assert_uint_eq(keytable_used(t), 16384 - refused);
	ck_assert_uint_ge(keytable_memory(65536), 65536 * 8);
}
END_TEST

/* Under sanitizers, that take ten times as long, a tenth of ten million. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SPRAY = 1000000 };
#else
enum { SPRAY = 10000000 };
#endif

/*
 * Keys come and go, a crowd of them inside at any time: more than fit.  One
 * that is at its limit stays there, whoever finds no row.
 */
START_TEST(a_spray_of_keys_frees_nobody_who_is_at_the_limit)
{
	enum { ROWS = 65536, CROWD = 100000 };
	static uint32_t inside[CROWD];
	uint64_t seed = 1, refused = 0;
	uint32_t row, mine;

	no_table();
	t = keytable_new(ROWS);
	for (int i = 0; i < CROWD; i++)
		inside[i] = UINT32_MAX;
	ck_assert_int_eq(enter(5, &mine), KEY_TAKEN);
	ck_assert_int_eq(enter(5, &mine), KEY_TAKEN);
	ck_assert_int_eq(enter(5, &mine), KEY_WAITS);
	for (int i = 0; i < SPRAY; i++) {
		uint32_t *r = &inside[i % CROWD];

		if (*r != UINT32_MAX)
			keytable_leave(t, *r);
		if (keytable_enter(t, rng_next(&seed), &two_and_one, r) !=
		    KEY_TAKEN) {
			*r = UINT32_MAX;
			refused++;
		}
		if (i % 64 == 0)
			CREW_ASSERT(enter(5, &row) == KEY_REFUSED);
	}
	ck_assert_uint_gt(refused, SPRAY / 10);
	for (int i = 0; i < CROWD; i++)
		if (inside[i] != UINT32_MAX)
			keytable_leave(t, inside[i]);
	/* What is over costs nothing: its row is free. */
	ck_assert_uint_eq(keytable_used(t), 1);
}
END_TEST

/*
 * Threads take and leave keys of one line that holds fewer rows than there
 * are keys, so rows change hands all the time.  All go through the keys in
 * the same order, so that often two bring the same new key at once.  Never
 * is a key in twice.
 */
static atomic_int inside[KEYS];
static atomic_uint entered;

static void *
come_and_go(void *arg)
{
	const struct key_bounds one = { .limit = 1, .queue = 0 };

	(void)arg;
	for (unsigned i = 0; i < 1000000; i++) {
		unsigned k = i % KEYS;
		uint32_t row;

		if (keytable_enter(t, key(k + 1), &one, &row) != KEY_TAKEN)
			continue;
		CREW_ASSERT(atomic_fetch_add(&inside[k], 1) == 0);
		atomic_fetch_add(&entered, 1);
		atomic_fetch_sub(&inside[k], 1);
		keytable_leave(t, row);
	}
	return NULL;
}

START_TEST(a_key_never_has_two_rows)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
		    come_and_go, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_gt(atomic_load(&entered), 1000);
	ck_assert_uint_eq(keytable_used(t), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("keytable");
	TCase *c = tcase_create("keytable");

	tcase_add_checked_fixture(c, one_line, no_table);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, a_key_has_its_limit_and_its_queue);
	tcase_add_test(c, who_waits_is_promoted_when_there_is_room);
	tcase_add_test(c, a_full_line_has_no_row_and_a_free_row_is_found);
	tcase_add_test(c, counts_do_not_run_over);
	tcase_add_test(c, many_keys_fit_into_a_table_of_their_number_twice);
	tcase_add_test(c, a_spray_of_keys_frees_nobody_who_is_at_the_limit);
	tcase_add_test(c, a_key_never_has_two_rows);
	suite_add_tcase(s, c);
	return run_suite(s);
}
