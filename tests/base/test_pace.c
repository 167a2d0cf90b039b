/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pace.c - src/base/pace.c
 *
 * Under a simulated clock: flows that take all they are allowed, and wait as
 * long as they are told and a timer is late.  What passes is checked against a
 * bucket that is worked out exactly.
 */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/keybucket.h"
#include "base/pace.h"
#include "crew.h"
#include "rng.h"

#define SEC	NSEC_PER_SEC
#define MSEC	NSEC_PER_MSEC

enum { KEYS = 4096, THREADS = 4, KEY = 77 };

static struct pace pace;
static struct pace_spec spec;

static void
of_rate(uint64_t rate, uint64_t burst)
{
	pace_spec_init(&spec, rate, burst);
	pace_set(&pace, &spec, 0);
}

static void
set_up(void)
{
	pace_init(&pace);
	of_rate(1000000, 100000);
}

static void
tear_down(void)
{
	pace_fini(&pace);
	ck_assert_ptr_null(pace.table);
}

static struct pace_use
use_of(uint64_t key)
{
	struct pace_use u;

	pace_use_init(&u, &pace, key);
	return u;
}

/* In the second round of a looped test there are keys. */
static void
with_keys(int is)
{
	if (is)
		pace_make_table(&pace, KEYS);
}

/* --- one flow ----------------------------------------------------------- */

START_TEST(without_a_rate_everything_passes)
{
	struct pace_use u = use_of(KEY);

	of_rate(1, 1);
	spec.rate = 0;
	ck_assert(pace_is_open(&u, SEC));
	ck_assert_uint_eq(pace_take(&u, UINT64_MAX, SEC), UINT64_MAX);
	ck_assert_uint_eq(pace_charge(&u, PACE_MOST, 0, SEC), 0);
	pace_give_back(&u, UINT64_MAX);
	ck_assert_uint_gt(pace_wait_begin(&u, SEC), SEC);
	pace_wait_end(&u, 2 * SEC);
}
END_TEST

START_TEST(the_burst_passes_at_once)
{
	with_keys(_i);

	struct pace_use u = use_of(KEY);
	uint64_t n = pace_take(&u, PACE_MOST, SEC);

	ck_assert_uint_le(n, 100000);
	ck_assert_uint_ge(n, 99990);
	ck_assert(!pace_is_open(&u, SEC));
	ck_assert_uint_eq(pace_take(&u, 100, SEC), 0);
}
END_TEST

START_TEST(who_waits_is_told_when_a_quantum_is_there)
{
	with_keys(_i);

	struct pace_use u = use_of(KEY);
	nsec_t due;

	ck_assert_uint_gt(pace_take(&u, PACE_MOST, SEC), 0);
	due = pace_wait_begin(&u, SEC);
	/* 8 ms make 8,000 bytes; those 10 that were left are 10 us. */
	ck_assert_uint_le(due, SEC + 8 * MSEC + 1000);
	ck_assert_uint_ge(due, SEC + 8 * MSEC - 10000);
	pace_wait_end(&u, due);
	ck_assert(!pace_is_open(&u, due - 1000));
	ck_assert(pace_is_open(&u, due));
	ck_assert_uint_ge(pace_take(&u, PACE_MOST, due), 8000);
}
END_TEST

START_TEST(less_than_a_quantum_passes_who_wants_no_more)
{
	with_keys(_i);

	struct pace_use u = use_of(KEY);

	ck_assert_uint_gt(pace_take(&u, PACE_MOST, SEC), 0);
	ck_assert_uint_eq(pace_take(&u, 4000, SEC + MSEC), 0);
	ck_assert_uint_eq(pace_take(&u, 900, SEC + MSEC), 900);
}
END_TEST

START_TEST(what_did_not_come_is_given_back)
{
	with_keys(_i);

	struct pace_use u = use_of(KEY);

	for (int i = 0; i < 1000; i++) {
		uint64_t n = pace_take(&u, 65536, SEC);

		ck_assert_uint_gt(n, 60000);
		pace_give_back(&u, n - 1);
	}
	/* A thousand have passed. */
	ck_assert_uint_eq(pace_take(&u, PACE_MOST, SEC), 99000 - _i);
}
END_TEST

START_TEST(giving_back_never_fills_beyond_the_burst)
{
	with_keys(_i);

	struct pace_use u = use_of(KEY);

	for (int i = 0; i < 10; i++) {
		uint64_t n = pace_take(&u, 30000, SEC);

		ck_assert_uint_eq(n, 30000);
		pace_give_back(&u, n);
	}
	ck_assert_uint_le(pace_take(&u, PACE_MOST, SEC), 100000);
	pace_give_back(&u, 50000);
	ck_assert_uint_le(pace_take(&u, PACE_MOST, 100 * SEC), 100000);
}
END_TEST

START_TEST(a_charge_is_held_until_it_may_pass)
{
	with_keys(_i);

	struct pace_use u = use_of(KEY);
	nsec_t wait;

	ck_assert_uint_eq(pace_charge(&u, 60000, SEC, SEC), 0);
	wait = pace_charge(&u, 60000, SEC, SEC);
	ck_assert_uint_ge(wait, 20 * MSEC);
	ck_assert_uint_le(wait, 20 * MSEC + 1000);
	/* Too long, so it costs nothing. */
	ck_assert_uint_gt(pace_charge(&u, 60000, 70 * MSEC, SEC), 70 * MSEC);
	ck_assert_uint_le(pace_charge(&u, 1000, SEC, SEC), 21 * MSEC + 1000);
	ck_assert_uint_eq(pace_take(&u, 1, SEC + 21 * MSEC - 1000), 0);
	ck_assert_uint_eq(pace_take(&u, 1, SEC + 22 * MSEC), 1);
}
END_TEST

START_TEST(each_key_has_its_own)
{
	with_keys(true);
	for (uint64_t key = 1; key <= 100; key++) {
		struct pace_use u = use_of(key << 40 | key);

		ck_assert_uint_ge(pace_take(&u, PACE_MOST, SEC), 99990);
		ck_assert_uint_eq(pace_take(&u, PACE_MOST, SEC), 0);
	}
}
END_TEST

START_TEST(what_passes_is_counted)
{
	struct pace_use u = use_of(KEY);

	pace_count(&u, 3, SEC);
	pace_count(&u, UINT64_C(1) << 40, SEC);
	ck_assert_uint_eq(pace_passed(&pace), (UINT64_C(1) << 40) + 3);
}
END_TEST

START_TEST(memory_is_that_of_the_table)
{
	ck_assert_uint_ge(pace_memory(65536), 65536 * 12);
	ck_assert_uint_le(pace_memory(65536), 65536 * 14);
}
END_TEST

/* --- others that wait --------------------------------------------------- */

START_TEST(those_who_wait_are_told_times_one_after_the_other)
{
	with_keys(_i);

	struct pace_use u[10];
	nsec_t before = 0;

	for (int i = 0; i < 10; i++) {
		u[i] = use_of(KEY);
		while (i == 0 && pace_take(&u[i], PACE_MOST, SEC) > 0)
			;
		nsec_t due = pace_wait_begin(&u[i], SEC);

		ck_assert_uint_ge(due + 100, before + (i > 0 ? 8 * MSEC : 0));
		before = due;
	}
	for (int i = 0; i < 10; i++)
		pace_wait_end(&u[i], SEC);
	ck_assert_uint_eq(pace.waiting, 0);
}
END_TEST

START_TEST(a_newcomer_takes_nothing_from_those_who_wait)
{
	with_keys(_i);

	struct pace_use first = use_of(KEY), second = use_of(KEY);
	struct pace_use newcomer = use_of(KEY);
	nsec_t due;

	while (pace_take(&first, PACE_MOST, SEC) > 0)
		;
	due = pace_wait_begin(&first, SEC);
	ck_assert_uint_gt(pace_wait_begin(&second, SEC), due);
	ck_assert_uint_eq(pace_take(&newcomer, 100, due), 0);
	pace_wait_end(&first, due);
	ck_assert_uint_gt(pace_take(&first, PACE_MOST, due), 0);
	pace_wait_end(&second, due);
	ck_assert_uint_gt(pace_take(&newcomer, PACE_MOST, due + 9 * MSEC), 0);
}
END_TEST

/* --- many flows, and a simulated clock ---------------------------------- */

/* The fields in bytes * SEC, so that nothing is rounded. */
struct judge {
	unsigned __int128	full;		/* a burst */
	unsigned __int128	used;		/* of it */
	uint64_t		rate;
	nsec_t			at;
	uint64_t		passed;
};

/* n bytes pass now; they must be there. */
static void
judge_passes(struct judge *j, uint64_t n, nsec_t now)
{
	unsigned __int128 came = (unsigned __int128)j->rate * (now - j->at);

	CREW_ASSERT(now >= j->at);
	j->used -= MIN(j->used, came);
	j->used += (unsigned __int128)n * SEC;
	CREW_ASSERT(j->used <= j->full);
	j->at = now;
	j->passed += n;
}

struct sim_flow {
	struct pace_use	use;
	struct judge	*judge;
	nsec_t		at;		/* when it does something next */
	uint64_t	passed;
};

struct sim {
	const char	*name;
	uint64_t	 rate;
	uint64_t	 burst;
	nsec_t		 span;
	unsigned	 flows;
	unsigned	 keys;		/* 0: none */
	bool		 hungry;	/* always more to be read */
	nsec_t		 late;		/* what a timer may be, beyond that */
};

enum { MOST_FLOWS = 1000, MOST_KEYS = 3 };

static struct sim_flow flows[MOST_FLOWS];
static struct judge judges[MOST_KEYS];
static uint64_t dice;

static struct sim_flow *
next_flow(const struct sim *s)
{
	struct sim_flow *next = &flows[0];

	for (unsigned i = 1; i < s->flows; i++)
		if (flows[i].at < next->at)
			next = &flows[i];
	return next;
}

/* A wheel's bucket is 8 ms wide, and a turn of a loop may be long. */
static nsec_t
fires_at(const struct sim *s, nsec_t due)
{
	nsec_t tick = (due + 8 * MSEC - 1) / (8 * MSEC) * 8 * MSEC;

	tick += rng_below(&dice, s->late + 1);
	return tick + rng_below(&dice, rng_below(&dice, 20) == 0 ? MSEC :
	    MSEC / 20);
}

static void
step(const struct sim *s, struct sim_flow *f)
{
	uint64_t want = s->hungry ? PACE_MOST : 1 + rng_below(&dice, 200000);
	uint64_t n, came;

	if (f->use.waits)
		pace_wait_end(&f->use, f->at);
	n = pace_take(&f->use, want, f->at);
	if (n == 0) {
		f->at = fires_at(s, pace_wait_begin(&f->use, f->at));
		return;
	}
	came = s->hungry ? n : rng_below(&dice, n + 1);
	pace_give_back(&f->use, n - came);
	judge_passes(f->judge, came, f->at);
	f->passed += came;
	f->at += 1 + rng_below(&dice, s->hungry ? MSEC / 50 : MSEC);
}

static void
begin(const struct sim *s)
{
	dice = 4711;
	of_rate(s->rate, s->burst);
	with_keys(s->keys > 0);
	for (unsigned i = 0; i < MAX(s->keys, 1); i++)
		judges[i] = (struct judge){
			.full = (unsigned __int128)s->burst * SEC,
			.rate = s->rate,
		};
	for (unsigned i = 0; i < s->flows; i++) {
		unsigned key = s->keys > 0 ? i % s->keys : 0;

		flows[i] = (struct sim_flow){
			.use = use_of(UINT64_C(0x1234567) << (40 + key) | key),
			.judge = &judges[key],
			.at = SEC + rng_below(&dice, MSEC),
		};
	}
}

static void
run_until(const struct sim *s, nsec_t end)
{
	struct sim_flow *f;

	for (f = next_flow(s); f->at < end; f = next_flow(s))
		step(s, f);
}

#define MIB	(UINT64_C(1) << 20)
#define LEAST	65536

static const struct sim full_rate[] = {
	{ "1k", 1024, LEAST, 400 * SEC, 1, 0, true, 0 },
	{ "1k, 3", 1024, LEAST, 400 * SEC, 3, 0, true, 0 },
	{ "1k, 100", 1024, LEAST, 4000 * SEC, 100, 0, true, 0 },
	{ "1k, keys", 1024, LEAST, 400 * SEC, 9, 3, true, 0 },
	{ "100k", 102400, LEAST, 60 * SEC, 1, 0, true, 0 },
	{ "100k, 100", 102400, LEAST, 60 * SEC, 100, 0, true, 0 },
	{ "100k, keys", 102400, LEAST, 60 * SEC, 99, 3, true, 0 },
	{ "1m", MIB, LEAST, 20 * SEC, 1, 0, true, 0 },
	{ "1m, 3", MIB, LEAST, 20 * SEC, 3, 0, true, 0 },
	{ "1m, 100", MIB, LEAST, 60 * SEC, 100, 0, true, 0 },
	{ "1m, 1000", MIB, MIB, 60 * SEC, 1000, 0, true, 0 },
	{ "1m, keys", MIB, LEAST, 20 * SEC, 3, 3, true, 0 },
	{ "1m, keys, 30", MIB, LEAST, 20 * SEC, 30, 3, true, 0 },
	{ "3.3m", 3333333, 66667, 20 * SEC, 3, 0, true, 0 },
	{ "600m", 600000000, 12000000, 5 * SEC, 1, 0, true, 0 },
	{ "600m, 3", 600000000, 12000000, 5 * SEC, 3, 0, true, 0 },
	{ "600m, 100", 600000000, 12000000, 5 * SEC, 100, 0, true, 0 },
	{ "600m, keys", 600000000, 12000000, 5 * SEC, 9, 3, true, 0 },
	{ "5g", 5000000000, 100000000, 2 * SEC, 1, 0, true, 0 },
	{ "5g, 3", 5000000000, 100000000, 2 * SEC, 3, 0, true, 0 },
	{ "5g, 100", 5000000000, 100000000, 2 * SEC, 100, 0, true, 0 },
	{ "5g, keys", 5000000000, 100000000, 2 * SEC, 3, 3, true, 0 },
	/* What came while a timer was late isn't lost, if a burst holds it. */
	{ "1m, late", MIB, LEAST, 20 * SEC, 1, 0, true, 40 * MSEC },
	{ "3.2m, late", 3276800, LEAST, 20 * SEC, 1, 0, true, 10 * MSEC },
	{ "3.2m, keys, late", 3276800, LEAST, 20 * SEC, 3, 3, true,
	    10 * MSEC },
	{ "400m, late", 400 * MIB, 8 * MIB, 5 * SEC, 1, 0, true, 10 * MSEC },
	{ "400m, keys, late", 400 * MIB, 8 * MIB, 5 * SEC, 3, 3, true,
	    10 * MSEC },
	{ "400m, 100, late", 400 * MIB, 8 * MIB, 5 * SEC, 100, 0, true,
	    10 * MSEC },
};

/* Each of those who share gets half of what is its due at least. */
static void
check_shares(const struct sim *s)
{
	for (unsigned i = 0; i < s->flows; i++) {
		unsigned sharers = s->flows / MAX(s->keys, 1);
		uint64_t due = flows[i].judge->passed / sharers;

		if (flows[i].passed + s->burst / sharers < due / 2)
			ck_abort_msg("%s: flow %u got %llu of %llu", s->name,
			    i, (unsigned long long)flows[i].passed,
			    (unsigned long long)due);
	}
}

START_TEST(all_of_the_rate_passes_and_never_more)
{
	const struct sim *s = &full_rate[_i];
	uint64_t before[MOST_KEYS];
	nsec_t empty;

	begin(s);
	/* The burst first, whatever comes meanwhile. */
	empty = 2 * SEC + 2 * s->burst * SEC / s->rate;
	run_until(s, empty);
	for (unsigned k = 0; k < MAX(s->keys, 1); k++)
		before[k] = judges[k].passed;
	run_until(s, empty + s->span);
	for (unsigned k = 0; k < MAX(s->keys, 1); k++) {
		uint64_t got = judges[k].passed - before[k];
		uint64_t best = s->span / MSEC * s->rate / 1000;

		if (got < best / 100 * 98)
			ck_abort_msg("%s: %llu of %llu passed", s->name,
			    (unsigned long long)got, (unsigned long long)best);
	}
	check_shares(s);
}
END_TEST

static const struct sim random_takers[] = {
	{ "1k", 1024, LEAST, 200 * SEC, 10, 0, false, 0 },
	{ "1m", MIB, MIB, 20 * SEC, 10, 0, false, 0 },
	{ "1m, keys", MIB, LEAST, 20 * SEC, 30, 3, false, 0 },
	{ "600m", 600000000, 12000000, 5 * SEC, 10, 0, false, 0 },
	{ "5g", 5000000000, 100000000, SEC, 10, 0, false, 0 },
	{ "5g, keys", 5000000000, 100000000, SEC, 30, 3, false, 0 },
};

START_TEST(never_more_than_the_rate_passes_in_any_time)
{
	const struct sim *s = &random_takers[_i];

	begin(s);
	run_until(s, 2 * SEC + s->span);
	ck_assert_uint_gt(judges[0].passed, 0);
}
END_TEST

/* --- threads ------------------------------------------------------------ */

static atomic_uint_fast64_t the_time, passed_all;

/* Takes, gives some back, waits without waiting; the clock moves on. */
static void *
taker(void *arg)
{
	uint64_t seed = 99 + (uint64_t)(uintptr_t)arg;
	struct pace_use u = use_of(KEY);

	for (int i = 0; i < 20000; i++) {
		nsec_t now = atomic_fetch_add(&the_time, 1000);
		uint64_t n = pace_take(&u, 1 + crew_random(&seed, 30000), now);
		uint64_t back = n > 0 ? crew_random(&seed, (unsigned)n) : 0;

		pace_give_back(&u, back);
		atomic_fetch_add(&passed_all, n - back);
		if (n > 0)
			continue;
		CREW_ASSERT(pace_wait_begin(&u, now) > now);
		pace_wait_end(&u, now + crew_random(&seed, 2) * SEC);
	}
	return NULL;
}

START_TEST(threads_together_get_no_more_than_one)
{
	pthread_t threads[THREADS];
	uint64_t most;

	with_keys(_i);
	of_rate(50000000, 1000000);
	atomic_store(&the_time, SEC);
	atomic_store(&passed_all, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, taker, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	most = 1000000 + (atomic_load(&the_time) - SEC) / 20;
	ck_assert_uint_le(atomic_load(&passed_all), most);
	ck_assert_uint_ge(atomic_load(&passed_all), most / 2);
	ck_assert_uint_eq(pace.waiting, 0);
	if (pace.table != NULL)
		ck_assert_uint_eq(keybucket_waiting(pace.table, KEY), 0);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("pace");
	TCase *t = tcase_create("pace");
	TCase *sim = tcase_create("simulation");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, without_a_rate_everything_passes);
	tcase_add_loop_test(t, the_burst_passes_at_once, 0, 2);
	tcase_add_loop_test(t, who_waits_is_told_when_a_quantum_is_there,
	    0, 2);
	tcase_add_loop_test(t, less_than_a_quantum_passes_who_wants_no_more,
	    0, 2);
	tcase_add_loop_test(t, what_did_not_come_is_given_back, 0, 2);
	tcase_add_loop_test(t, giving_back_never_fills_beyond_the_burst,
	    0, 2);
	tcase_add_loop_test(t, a_charge_is_held_until_it_may_pass, 0, 2);
	tcase_add_test(t, each_key_has_its_own);
	tcase_add_test(t, what_passes_is_counted);
	tcase_add_test(t, memory_is_that_of_the_table);
	tcase_add_loop_test(t,
	    those_who_wait_are_told_times_one_after_the_other, 0, 2);
	tcase_add_loop_test(t, a_newcomer_takes_nothing_from_those_who_wait,
	    0, 2);
	suite_add_tcase(s, t);

	tcase_add_checked_fixture(sim, set_up, tear_down);
	tcase_set_timeout(sim, 60);
	tcase_add_loop_test(sim, all_of_the_rate_passes_and_never_more, 0,
	    ARRAY_LEN(full_rate));
	tcase_add_loop_test(sim, never_more_than_the_rate_passes_in_any_time,
	    0, ARRAY_LEN(random_takers));
	tcase_add_loop_test(sim, threads_together_get_no_more_than_one, 0, 2);
	suite_add_tcase(s, sim);
	return s;
}

int
main(void)
{
	return run_suite(suite());
}
