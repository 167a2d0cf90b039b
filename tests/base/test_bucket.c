/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bucket.c - src/base/bucket.c
 */
#include "harness.h"

#include <pthread.h>
#include <signal.h>

#include "base/bucket.h"
#include "rng.h"

#define SEC	NSEC_PER_SEC
#define HOUR	(3600 * SEC)

static struct bucket_spec spec;
static struct bucket b;

static void
ten_a_second_burst_five(void)
{
	bucket_spec_init(&spec, 10, SEC, 5);
	b = (struct bucket){ 0 };
}

/* --- taking --- */

START_TEST(a_new_bucket_is_full)
{
	ck_assert_uint_eq(bucket_take(&b, &spec, 5, SEC), 0);
	ck_assert_uint_ne(bucket_take(&b, &spec, 1, SEC), 0);
}
END_TEST

START_TEST(a_new_bucket_is_full_at_time_0)
{
	ck_assert_uint_eq(bucket_take(&b, &spec, 5, 0), 0);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, 0), SEC / 10);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC / 10 - 1), 1);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC / 10), 0);
}
END_TEST

START_TEST(an_empty_bucket_says_how_long_to_wait)
{
	ck_assert_uint_eq(bucket_take(&b, &spec, 5, SEC), 0);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC), SEC / 10);
	ck_assert_uint_eq(bucket_take(&b, &spec, 3, SEC), 3 * SEC / 10);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC + SEC / 10), 0);
}
END_TEST

START_TEST(a_refusal_writes_nothing)
{
	ck_assert_uint_eq(bucket_take(&b, &spec, 4, SEC), 0);
	nsec_t before = b.full_at;
	ck_assert_uint_ne(bucket_take(&b, &spec, 2, SEC), 0);
	ck_assert_uint_eq(b.full_at, before);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC), 0);
}
END_TEST

START_TEST(idling_never_fills_beyond_the_burst)
{
	nsec_t later = UINT64_C(1) << 63;

	ck_assert_uint_eq(bucket_take(&b, &spec, 5, SEC), 0);
	ck_assert_uint_eq(bucket_take(&b, &spec, 5, later), 0);
	ck_assert_uint_ne(bucket_take(&b, &spec, 1, later), 0);
}
END_TEST

/* { rate, span, expected wait for one token }, from an empty bucket of one */
static const struct { uint64_t rate; nsec_t span, wait; } waits[] = {
	{ 1,		SEC,		SEC },
	{ 3,		SEC,		333333334 },	/* rounded up */
	{ SEC,		SEC,		1 },
	{ 7,		60 * SEC,	8571428572 },
	{ 1,		HOUR,		HOUR },
	{ HOUR,		HOUR,		1 },
	{ HOUR - 1,	HOUR,		2 },
};

START_TEST(waits_are_exact)
{
	bucket_spec_init(&spec, waits[_i].rate, waits[_i].span, 1);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC), 0);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC), waits[_i].wait);
}
END_TEST

/* --- taking late --- */

START_TEST(a_token_taken_late_is_held_until_it_is_there)
{
	ck_assert_uint_eq(bucket_take_late(&b, &spec, 5, SEC, SEC), 0);
	for (int i = 1; i <= 10; i++)
		ck_assert_uint_eq(bucket_take_late(&b, &spec, 1, SEC, SEC),
		    (nsec_t)i * SEC / 10);

	/* The eleventh would be too late; it changes nothing. */
	nsec_t before = b.full_at;
	ck_assert_uint_eq(bucket_take_late(&b, &spec, 1, SEC, SEC),
	    11 * SEC / 10);
	ck_assert_uint_eq(b.full_at, before);
}
END_TEST

START_TEST(a_late_refusal_says_when_one_can_go_at_once)
{
	nsec_t wait;

	while (bucket_take_late(&b, &spec, 1, SEC, SEC) <= SEC)
		;
	wait = bucket_take(&b, &spec, 1, SEC);
	ck_assert_uint_eq(wait, bucket_take_late(&b, &spec, 1, SEC, SEC));
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC + wait - 1), 1);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC + wait), 0);
}
END_TEST

START_TEST(a_hold_that_is_given_up_helps_the_next)
{
	ck_assert_uint_eq(bucket_take_late(&b, &spec, 5, SEC, SEC), 0);
	ck_assert_uint_eq(bucket_take_late(&b, &spec, 1, SEC, SEC), SEC / 10);
	bucket_give_back(&b, &spec, 1);
	ck_assert_uint_eq(bucket_take_late(&b, &spec, 1, SEC, SEC), SEC / 10);
}
END_TEST

START_TEST(one_may_wait_for_ever_without_overflow)
{
	bucket_spec_init(&spec, 1, HOUR, 1281023);
	nsec_t now = UINT64_C(1) << 63;
	nsec_t wait = 0, before = 0;
	int taken = 0;

	for (; taken < 10; taken++) {
		wait = bucket_take_late(&b, &spec, 1281023 / 4, NSEC_NEVER,
		    now);
		ck_assert_uint_ge(wait, before);
		if (wait > UINT64_C(1) << 61)
			break;
		before = wait;
	}
	/* Four quarters at once, and the 73 years that are the most. */
	ck_assert_int_eq(taken, 6);
	ck_assert_uint_gt(bucket_take_late(&b, &spec, spec.burst, NSEC_NEVER,
	    now), wait);
}
END_TEST

/* --- giving back --- */

START_TEST(what_is_given_back_can_be_taken_again)
{
	ck_assert_uint_eq(bucket_take(&b, &spec, 5, SEC), 0);
	bucket_give_back(&b, &spec, 2);
	ck_assert_uint_eq(bucket_take(&b, &spec, 2, SEC), 0);
	ck_assert_uint_ne(bucket_take(&b, &spec, 1, SEC), 0);
}
END_TEST

START_TEST(giving_back_to_a_full_bucket_credits_nothing)
{
	ck_assert_uint_eq(bucket_take(&b, &spec, 5, SEC), 0);
	bucket_give_back(&b, &spec, 5);
	ck_assert_uint_eq(bucket_take(&b, &spec, 5, 100 * SEC), 0);
	ck_assert_uint_ne(bucket_take(&b, &spec, 1, 100 * SEC), 0);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, 200 * SEC), 0);
	bucket_give_back(&b, &spec, 1);
	bucket_give_back(&b, &spec, 5);
	ck_assert_uint_eq(bucket_take(&b, &spec, 5, 200 * SEC), 0);
	ck_assert_uint_ne(bucket_take(&b, &spec, 1, 200 * SEC), 0);
}
END_TEST

START_TEST(giving_back_under_a_wider_gap_leaves_a_full_bucket)
{
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC), 0);
	bucket_spec_init(&spec, 1, HOUR, 5);
	bucket_give_back(&b, &spec, 1);
	ck_assert_uint_eq(bucket_take(&b, &spec, 5, SEC), 0);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, SEC), HOUR);
}
END_TEST

/* --- what can be asked for --- */

static const struct {
	uint64_t	rate;
	nsec_t		span;
	uint64_t	burst;
	bool		fits;
} specs[] = {
	{ 0,		SEC,		1,			false },
	{ 1,		SEC,		0,			false },
	{ 1,		0,		1,			false },
	{ 1,		SEC,		UINT64_C(1) << 32,	true },
	{ 1,		SEC,		(UINT64_C(1) << 32) + 1, false },
	{ SEC,		SEC,		UINT64_C(1) << 32,	true },
	{ SEC + 1,	SEC,		1,			false },
	{ UINT64_MAX,	SEC,		1,			false },
	{ 1,		60 * SEC,	76861433,		true },
	{ 1,		60 * SEC,	76861434,		false },
	{ 1,		HOUR,		1281023,		true },
	{ 1,		HOUR,		1281024,		false },
	{ 1,		HOUR,		UINT64_C(1) << 32,	false },
	{ 3600,		HOUR,		UINT64_C(1) << 32,	true },
	{ 1,		HOUR + 1,	1,			false },
	{ 1,		UINT64_MAX,	1,			false },
};

START_TEST(what_fits_is_told_and_works)
{
	uint64_t burst = specs[_i].burst;

	ck_assert(bucket_spec_fits(specs[_i].rate, specs[_i].span, burst) ==
	    specs[_i].fits);
	if (!specs[_i].fits)
		return;
	bucket_spec_init(&spec, specs[_i].rate, specs[_i].span, burst);
	ck_assert_uint_eq(bucket_take(&b, &spec, burst, 0), 0);
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, 0), spec.gap);
	ck_assert_uint_eq(bucket_take(&b, &spec, burst, 0), spec.depth);
	ck_assert_uint_eq(bucket_take(&b, &spec, burst, spec.depth), 0);
}
END_TEST

START_TEST(what_does_not_fit_is_a_broken_invariant)
{
	bucket_spec_init(&spec, 1, HOUR, UINT64_C(1) << 32);
}
END_TEST

START_TEST(taking_more_than_the_burst_is_a_broken_invariant)
{
	ck_assert_uint_eq(bucket_take(&b, &spec, 6, SEC), 0);
}
END_TEST

/* --- the promise: any window --- */

static const struct { uint64_t rate; nsec_t span; uint64_t burst; } limits[] = {
	{ 10,		SEC,		5 },
	{ 3,		SEC,		1 },
	{ 1000,		SEC,		100 },
	{ 7,		60 * SEC,	2 },
	{ 100000007,	HOUR,		50 },
};

enum { EVENTS = 1500 };

/* When each event happens that is let through. */
static nsec_t when[EVENTS];

/* In any window: events <= burst + rate * W, in integers. */
static void
assert_no_window_has_more(size_t n, int i)
{
	for (size_t from = 0; from < n; from++)
		for (size_t to = from; to < n; to++) {
			unsigned __int128 events = to - from + 1;
			nsec_t window = when[to] - when[from];

			if (when[to] < when[from])
				ck_abort_msg("%zu is before %zu", to, from);
			if (events <= limits[i].burst)
				continue;
			if ((events - limits[i].burst) * limits[i].span >
			    (unsigned __int128)limits[i].rate * window)
				ck_abort_msg("%zu to %zu: too many", from, to);
		}
}

START_TEST(no_window_has_more_than_burst_and_rate)
{
	uint64_t rng = 5 + (uint64_t)_i;
	nsec_t now = 0;
	size_t n = 0;

	bucket_spec_init(&spec, limits[_i].rate, limits[_i].span,
	    limits[_i].burst);
	while (n < EVENTS) {
		nsec_t max_wait = rng_below(&rng, 3) ? 0 :
		    rng_below(&rng, 10 * spec.gap);
		nsec_t wait = bucket_take_late(&b, &spec, 1, max_wait, now);

		if (wait <= max_wait)
			when[n++] = now + wait;
		if (rng_below(&rng, 4) != 0)
			now += rng_below(&rng, 2 * spec.gap);
		if (rng_below(&rng, 100) == 0)
			now += rng_below(&rng, 2 * spec.depth);
	}
	assert_no_window_has_more(n, _i);
}
END_TEST

START_TEST(who_comes_back_when_told_gets_all_there_is)
{
	nsec_t now = 12345;
	size_t n = 0;

	bucket_spec_init(&spec, limits[_i].rate, limits[_i].span,
	    limits[_i].burst);
	for (size_t tries = 0; n < EVENTS; tries++) {
		nsec_t wait = bucket_take(&b, &spec, 1, now);

		/* Told once, a retry succeeds. */
		ck_assert_uint_le(tries, 2 * EVENTS);
		now += wait;
		if (wait == 0)
			when[n++] = now;
	}
	for (size_t i = 0; i < n; i++) {
		nsec_t due = i < spec.burst ? 0 :
		    (i - spec.burst + 1) * spec.gap;

		ck_assert_uint_eq(when[i], 12345 + due);
	}
	assert_no_window_has_more(n, _i);
}
END_TEST

/* --- many threads --- */

enum { THREADS = 4, TRIES = 1000000 };

static pthread_barrier_t start;
static _Atomic uint64_t ticks, taken;

static void
run_threads(void *(*fn)(void *))
{
	pthread_t thread[THREADS];

	ticks = taken = 0;
	ck_assert_int_eq(pthread_barrier_init(&start, NULL, THREADS), 0);
	for (size_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, fn,
		    (void *)(i + 1)), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&start);
}

static void *
take_as_time_goes_by(void *arg)
{
	uint64_t n = 0;

	(void)arg;
	pthread_barrier_wait(&start);
	for (int i = 0; i < TRIES; i++)
		if (bucket_take(&b, &spec, 1, atomic_fetch_add(&ticks, 1)) ==
		    0)
			n++;
	atomic_fetch_add(&taken, n);
	return NULL;
}

/*
 * Each try takes 1 ns and a token comes every 2 ns, so the bucket is never
 * full, and what is let through must be the burst and all that came.
 */
START_TEST(threads_together_get_exactly_what_there_is)
{
	bucket_spec_init(&spec, SEC / 2, SEC, 1000);
	/* The first at time 0, whichever thread is first then. */
	ck_assert_uint_eq(bucket_take(&b, &spec, 1, 0), 0);
	run_threads(take_as_time_goes_by);
	taken++;
	while (bucket_take(&b, &spec, 1, ticks) == 0)
		taken++;
	ck_assert_uint_eq(ticks, (uint64_t)THREADS * TRIES);
	ck_assert_uint_eq(taken, 1000 + ticks / 2);
}
END_TEST

static void *
take_and_give_back(void *arg)
{
	uint64_t rng = (uintptr_t)arg, held = 0;

	pthread_barrier_wait(&start);
	for (int i = 0; i < TRIES; i++) {
		if (held > 0 && rng_below(&rng, 2) == 0) {
			bucket_give_back(&b, &spec, held);
			held = 0;
			continue;
		}
		uint64_t n = 1 + rng_below(&rng, 10);
		if (bucket_take(&b, &spec, n, SEC) == 0)
			held += n;
	}
	atomic_fetch_add(&taken, held);
	return NULL;
}

START_TEST(threads_that_give_back_lose_and_gain_nothing)
{
	bucket_spec_init(&spec, 1, SEC, 100);
	run_threads(take_and_give_back);
	ck_assert_uint_le(taken, 100);
	while (bucket_take(&b, &spec, 1, SEC) == 0)
		taken++;
	ck_assert_uint_eq(taken, 100);
}
END_TEST

static void
add_tests_of_use(TCase *t)
{
	tcase_add_test(t, a_new_bucket_is_full);
	tcase_add_test(t, a_new_bucket_is_full_at_time_0);
	tcase_add_test(t, an_empty_bucket_says_how_long_to_wait);
	tcase_add_test(t, a_refusal_writes_nothing);
	tcase_add_test(t, idling_never_fills_beyond_the_burst);
	tcase_add_loop_test(t, waits_are_exact, 0, (int)ARRAY_LEN(waits));
	tcase_add_test(t, a_token_taken_late_is_held_until_it_is_there);
	tcase_add_test(t, a_late_refusal_says_when_one_can_go_at_once);
	tcase_add_test(t, a_hold_that_is_given_up_helps_the_next);
	tcase_add_test(t, one_may_wait_for_ever_without_overflow);
	tcase_add_test(t, what_is_given_back_can_be_taken_again);
	tcase_add_test(t, giving_back_to_a_full_bucket_credits_nothing);
	tcase_add_test(t, giving_back_under_a_wider_gap_leaves_a_full_bucket);
	tcase_add_loop_test(t, what_fits_is_told_and_works, 0,
	    (int)ARRAY_LEN(specs));
	tcase_add_test_raise_signal(t,
	    what_does_not_fit_is_a_broken_invariant, SIGABRT);
	tcase_add_test_raise_signal(t,
	    taking_more_than_the_burst_is_a_broken_invariant, SIGABRT);
}

int
main(void)
{
	Suite *s = suite_create("bucket");
	TCase *t = tcase_create("bucket");

	tcase_set_timeout(t, 240);
	tcase_add_checked_fixture(t, ten_a_second_burst_five, NULL);
	add_tests_of_use(t);
	tcase_add_loop_test(t, no_window_has_more_than_burst_and_rate, 0,
	    (int)ARRAY_LEN(limits));
	tcase_add_loop_test(t, who_comes_back_when_told_gets_all_there_is, 0,
	    (int)ARRAY_LEN(limits));
	tcase_add_test(t, threads_together_get_exactly_what_there_is);
	tcase_add_test(t, threads_that_give_back_lose_and_gain_nothing);
	suite_add_tcase(s, t);
	return run_suite(s);
}
