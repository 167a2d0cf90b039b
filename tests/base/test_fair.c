/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_fair.c - src/base/fair.c: who has most waiting.  That turns go round is
 * for test_gate_order.c.
 */
#include <check.h>
#include <sched.h>

#include "base/steps.h"

#include "../../src/base/fair.c"	/* with the accesses of steps.h */
#include "../../src/base/keytable.c"

#include "base/rng.h"
#include "harness.h"

enum { KEYS = 300, MOVES = 50000 };

static struct fair *f;

static void
nobody_waits(void)
{
	f = fair_new();
}

static void
no_fair(void)
{
	fair_free(&f);
	ck_assert_ptr_null(f);
}

/* As a hash would make them: all bits differ. */
static uint64_t
key(uint64_t n)
{
	uint64_t k = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return k ^ k >> 29;
}

/* Low ones more often, so that a few are long. */
static uint64_t
skewed(uint64_t *seed)
{
	return rng_below(seed, 1 + rng_below(seed, KEYS));
}

/* What is said to be the longest is one that is. */
static void
check_longest(const uint32_t *waiting)
{
	uint32_t longest = 0, row = 0, n = fair_longest(f, &row);

	for (uint64_t k = 0; k < KEYS; k++)
		longest = MAX(longest, waiting[k]);
	CREW_ASSERT(n == longest);
	if (n == 0)
		return;
	/* One more of that row's key is of that row: so it has so many. */
	for (uint64_t k = 0; k < KEYS; k++) {
		if (waiting[k] != longest)
			continue;
		uint32_t its = fair_join(f, key(k));

		fair_quit(f, its);
		if (its == row)
			return;
	}
	ck_abort_msg("row %u is not the longest", row);
}

START_TEST(the_longest_is_known_after_each_step)
{
	static uint32_t waiting[KEYS], rows[KEYS];
	uint64_t seed = 1;

	for (int i = 0; i < MOVES; i++) {
		uint64_t k = skewed(&seed);
		bool comes = rng_below(&seed, 2) == 0;

		if (comes) {
			rows[k] = fair_join(f, key(k));
			waiting[k]++;
		} else if (waiting[k] > 0) {
			fair_quit(f, rows[k]);
			waiting[k]--;
		}
		ck_assert_msg(fair_waiting(f, key(k)) == waiting[k],
		    "key %ju", (uintmax_t)k);
		check_longest(waiting);
	}
}
END_TEST

START_TEST(of_more_keys_than_there_are_rows_the_shared_one_is_longest)
{
	enum { MANY = 3 * FAIR_KEYS };
	static uint32_t rows[MANY];
	uint32_t row, shared = 0;

	for (uint64_t k = 0; k < MANY; k++) {
		rows[k] = fair_join(f, key(k));
		shared += rows[k] == FAIR_SHARED;
	}
	ck_assert_uint_ge(shared, MANY - FAIR_ROWS);
	ck_assert_uint_eq(fair_longest(f, &row), shared);
	ck_assert_uint_eq(row, FAIR_SHARED);
	for (uint64_t k = 0; k < MANY; k++)
		fair_quit(f, rows[k]);
	ck_assert_uint_eq(fair_longest(f, &row), 0);
}
END_TEST

/*
 * Workers come and go in every step of each other, with a few keys whose rows
 * are in one group; once they have finished, what is known is right.
 */
enum { WORKERS = 3, CLOSE = 4, TURNS = 3, HISTORIES = 2000 };

static uint64_t seed;
static uint64_t close_keys[CLOSE];
static uint32_t close_waiting[CLOSE];
static uint32_t rows[WORKERS][CLOSE];	/* 0: doesn't wait */

static void
find_close_keys(void)
{
	for (uint64_t k = 0, n = 0; n < CLOSE; k++) {
		uint32_t row = fair_join(f, key(k));

		fair_quit(f, row);
		if (row > 0 && row < GROUP)
			close_keys[n++] = key(k);
	}
}

static void
come_and_go(unsigned worker)
{
	for (int i = 0; i < TURNS; i++) {
		uint64_t k = crew_random(&seed, CLOSE);
		uint32_t *row = &rows[worker][k];

		if (*row != 0) {
			close_waiting[k]--;
			fair_quit(f, *row);
			*row = 0;
		} else {
			close_waiting[k]++;
			*row = fair_join(f, close_keys[k]);
		}
	}
}

/* Whoever waits in that row has a key of which so many wait. */
static bool
is_a_longest(uint32_t row, uint32_t longest)
{
	for (int k = 0; k < CLOSE; k++)
		for (int i = 0; i < WORKERS; i++)
			if (rows[i][k] == row && close_waiting[k] != longest)
				return false;
	return true;
}

START_TEST(the_longest_is_known_after_any_order_of_steps)
{
	seed = (uint64_t)_i + 1;
	find_close_keys();
	for (int n = 0; n < HISTORIES; n++) {
		uint32_t longest = 0, row;

		steps_run(WORKERS, come_and_go, &seed);
		for (int k = 0; k < CLOSE; k++)
			longest = MAX(longest, close_waiting[k]);
		CREW_ASSERT(fair_longest(f, &row) == longest);
		CREW_ASSERT(longest == 0 || is_a_longest(row, longest));
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("fair");
	TCase *t = tcase_create("fair");

	tcase_add_checked_fixture(t, nobody_waits, no_fair);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, the_longest_is_known_after_each_step);
	tcase_add_test(t,
	    of_more_keys_than_there_are_rows_the_shared_one_is_longest);
	tcase_add_loop_test(t, the_longest_is_known_after_any_order_of_steps,
	    0, 2);
	suite_add_tcase(s, t);
	return run_suite(s);
}
