/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pace_set.c - other numbers for what is under way: src/base/pace.c
 *
 * What passes is checked against a bucket that is worked out exactly.
 */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/pace.h"
#include "crew.h"
#include "rng.h"

#define SEC	NSEC_PER_SEC
#define MSEC	NSEC_PER_MSEC

enum { KEYS = 4096, THREADS = 4, KEY = 77, SETS = 2000 };

static struct pace pace;
static struct pace_spec specs[SETS + 1];	/* each is used once */
static unsigned sets;

static void
set_up(void)
{
	pace_init(&pace);
	sets = 0;
}

static void
tear_down(void)
{
	pace_fini(&pace);
}

static const struct pace_spec *
set(uint64_t rate, uint64_t burst, nsec_t now)
{
	struct pace_spec *s = &specs[sets++];

	pace_spec_init(s, rate, burst);
	pace_set(&pace, s, now);
	return s;
}

/* In the second round of a looped test there are keys. */
static struct pace_use
use_of(int keyed)
{
	struct pace_use u;

	if (keyed)
		pace_make_table(&pace, KEYS);
	pace_use_init(&u, &pace, KEY);
	return u;
}

static void
empty(struct pace_use *u, nsec_t now)
{
	while (pace_take(u, PACE_MOST, now) > 0)
		;
}

/* When may a quantum be taken? */
static nsec_t
due(struct pace_use *u, nsec_t now)
{
	nsec_t at = pace_wait_begin(u, now);

	pace_wait_end(u, now);
	u->due = 0;
	return at;
}

/* --- one change --------------------------------------------------------- */

START_TEST(nobody_waits_for_a_burst_that_was_longer)
{
	struct pace_use u = use_of(_i);

	/* A burst of 100 seconds, and then of 50 ms. */
	set(1024, 102400, SEC);
	empty(&u, SEC);
	set(1000000, 50000, SEC);
	ck_assert_uint_eq(pace_take(&u, PACE_MOST, SEC), 0);
	ck_assert_uint_le(due(&u, SEC), SEC + 8 * MSEC + 1000);
	ck_assert_uint_ge(pace_take(&u, PACE_MOST, SEC + 9 * MSEC), 8990);
	ck_assert_uint_eq(pace_take(&u, PACE_MOST, SEC + 9 * MSEC), 0);
}
END_TEST

START_TEST(a_slower_rate_is_kept_from_that_moment_on)
{
	struct pace_use u = use_of(_i);

	set(1000000, 100000, SEC);
	empty(&u, SEC);
	set(10000, 100000, SEC);
	ck_assert_uint_gt(due(&u, SEC), SEC + 100 * MSEC);
	ck_assert_uint_eq(pace_take(&u, PACE_MOST, SEC + 100 * MSEC), 0);

	uint64_t n = pace_take(&u, PACE_MOST, 2 * SEC);

	ck_assert_uint_ge(n, 9990);
	ck_assert_uint_le(n, 10000);
}
END_TEST

START_TEST(as_much_is_there_as_before)
{
	struct pace_use u = use_of(_i);

	set(1000000, 100000, SEC);
	ck_assert_uint_eq(pace_take(&u, 70000, SEC), 70000);
	set(500000, 200000, SEC);
	ck_assert_uint_eq(pace_take(&u, PACE_MOST, SEC), 30000 - _i);
	set(1000000, 100000, SEC);
	ck_assert_uint_eq(pace_take(&u, 1, SEC), 0);
}
END_TEST

START_TEST(a_full_bucket_is_full_of_a_shorter_burst)
{
	struct pace_use u = use_of(_i);

	set(1000, 100000, SEC);
	set(1000000, 70000, SEC);
	ck_assert_uint_eq(pace_take(&u, PACE_MOST, SEC), 70000 - _i);
	/* And so an empty one is empty. */
	set(1000000, 200000, SEC);
	ck_assert_uint_eq(pace_take(&u, 1, SEC), 0);
}
END_TEST

START_TEST(what_is_held_is_paid_at_the_new_rate)
{
	struct pace_use u = use_of(_i);

	set(1000, 100000, SEC);
	empty(&u, SEC);
	ck_assert_uint_ge(pace_charge(&u, 10000, 20 * SEC, SEC), 9 * SEC);
	set(100000, 70000, SEC);
	ck_assert_uint_eq(pace_take(&u, 1, SEC + 99 * MSEC), 0);
	ck_assert_uint_eq(pace_take(&u, 1, SEC + 101 * MSEC), 1);
}
END_TEST

START_TEST(nothing_is_owed_after_a_time_without_a_rate)
{
	struct pace_use u = use_of(_i);

	set(1024, 102400, SEC);
	empty(&u, SEC);
	specs[sets] = (struct pace_spec){ .rate = 0 };
	pace_set(&pace, &specs[sets++], SEC);
	ck_assert_uint_eq(pace_take(&u, UINT64_MAX, SEC), UINT64_MAX);
	set(1024, 102400, SEC);
	/* That cost nothing. */
	pace_give_back(&u, 100000);
	ck_assert_uint_eq(pace_take(&u, PACE_MOST, SEC), 102400 - _i);
	ck_assert_uint_eq(pace_take(&u, PACE_MOST, SEC), 0);
	pace_give_back(&u, 1000);
	ck_assert_uint_eq(pace_take(&u, 2000, SEC), 0);
	ck_assert_uint_eq(pace_take(&u, 1000, SEC), 1000);
}
END_TEST

/* --- many changes ------------------------------------------------------- */

/* In bytes * SEC, so that nothing is rounded. */
struct judge {
	__int128	there;
	uint64_t	rate;
	uint64_t	burst;
	nsec_t		at;
};

static void
judge_until(struct judge *j, nsec_t now)
{
	__int128 full = (__int128)j->burst * SEC;

	j->there += (__int128)j->rate * (now - j->at);
	j->there = MIN(j->there, full);
	j->at = now;
}

static void
judge_set(struct judge *j, uint64_t rate, uint64_t burst, nsec_t now)
{
	judge_until(j, now);
	if (j->rate == 0)
		j->there = (__int128)burst * SEC;
	j->rate = rate;
	j->burst = burst;
	judge_until(j, now);
}

static void
judge_passes(struct judge *j, uint64_t n, nsec_t now)
{
	judge_until(j, now);
	j->there -= (__int128)n * SEC;
	CREW_ASSERT(j->there >= 0);
}

static uint64_t
some_rate(uint64_t *dice)
{
	return 1024 + rng_below(dice, UINT64_C(1) << rng_below(dice, 30));
}

START_TEST(whatever_is_set_is_kept_and_nobody_waits_longer)
{
	struct pace_use u = use_of(_i);
	const struct pace_spec *s;
	struct judge j = { .at = SEC };
	uint64_t dice = 42;
	nsec_t now = SEC, wait;

	while (sets < SETS) {
		uint64_t rate = some_rate(&dice);
		uint64_t burst = 65536 + rng_below(&dice, rate);

		s = set(rate, burst, now);
		judge_set(&j, rate, burst, now);
		for (int n = 0; n < 20; n++) {
			uint64_t got = pace_take(&u, 1 +
			    rng_below(&dice, PACE_MOST), now);
			uint64_t back = rng_below(&dice, got + 1) / 2;

			pace_give_back(&u, back);
			judge_passes(&j, got - back, now);
			wait = due(&u, now) - now;
			ck_assert_uint_le(wait,
			    1000 + (s->quantum + 1) * SEC / rate);
			now += got > 0 ? rng_below(&dice, MSEC) : wait;
		}
	}
}
END_TEST

/* --- threads ------------------------------------------------------------ */

static atomic_uint_fast64_t the_time, passed_all;
static atomic_bool over;

static void *
taker(void *arg)
{
	uint64_t seed = 99 + (uint64_t)(uintptr_t)arg;
	struct pace_use u;

	pace_use_init(&u, &pace, KEY);
	while (!atomic_load(&over)) {
		nsec_t now = atomic_fetch_add(&the_time, 1000);
		uint64_t n = pace_take(&u, 1 + crew_random(&seed, 30000), now);
		uint64_t back = n > 0 ? crew_random(&seed, (unsigned)n) : 0;

		pace_give_back(&u, back);
		atomic_fetch_add(&passed_all, n - back);
	}
	return NULL;
}

START_TEST(numbers_change_while_threads_take)
{
	const uint64_t rates[] = { 50000000, 100000 }, burst = 1000000;
	struct pace_use u = use_of(_i);
	pthread_t threads[THREADS];
	__int128 most = (__int128)burst * SEC;
	nsec_t was = SEC;

	(void)u;
	atomic_store(&the_time, SEC);
	atomic_store(&passed_all, 0);
	atomic_store(&over, false);
	set(rates[1], burst, SEC);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, taker, (void *)i);
	while (sets < SETS / 20) {
		uint64_t rate = rates[sets % 2], before = rates[1 - sets % 2];
		nsec_t now = atomic_fetch_add(&the_time, 1000);

		most += (__int128)before * (now - was);
		set(rate, burst, now);
		was = atomic_load(&the_time);
		while (atomic_load(&the_time) < was + MSEC / 50)
			sched_yield();
		/* By the one or the other. */
		most += (__int128)rates[0] * (was - now);
	}
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	most += (__int128)rates[0] * (atomic_load(&the_time) - was);
	ck_assert_uint_le(atomic_load(&passed_all), (uint64_t)(most / SEC));
	ck_assert_uint_gt(atomic_load(&passed_all), 0);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("pace/set");
	TCase *t = tcase_create("set");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, nobody_waits_for_a_burst_that_was_longer, 0, 2);
	tcase_add_loop_test(t, a_slower_rate_is_kept_from_that_moment_on, 0,
	    2);
	tcase_add_loop_test(t, as_much_is_there_as_before, 0, 2);
	tcase_add_loop_test(t, a_full_bucket_is_full_of_a_shorter_burst, 0, 2);
	tcase_add_loop_test(t, what_is_held_is_paid_at_the_new_rate, 0, 2);
	tcase_add_loop_test(t, nothing_is_owed_after_a_time_without_a_rate, 0,
	    2);
	tcase_add_loop_test(t, whatever_is_set_is_kept_and_nobody_waits_longer,
	    0, 2);
	tcase_add_loop_test(t, numbers_change_while_threads_take, 0, 2);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	return run_suite(suite());
}
