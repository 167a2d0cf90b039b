/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_keygate.c - src/base/keygate.c; what its table does is in
 * test_keytable.c.
 */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/crew.h"
#include "base/keygate.h"
#include "harness.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

enum { GUESTS = 8, KEYS = 3 };

/* Somebody who wants in: of one worker, and now with one key. */
struct guest {
	struct keygate_waiter	 w;
	struct worker		*worker;
	unsigned		 key;
	bool			 inside;
	int			 served;	/* the how manieth; 0: not */
};

static struct worker {
	pthread_t		 thread;
	unsigned		 number;
	uint64_t		 seed;
	uint64_t		 entered;
	nsec_t			 now;
	struct guest		 guests[GUESTS];
} workers[CREW];

static struct keygate *g;
static struct gate_spec spec;
static atomic_int served;

/* Who is inside with each key, and what the most is. */
static _Atomic int64_t inside[KEYS];
static int64_t most_inside;

static void
enter(struct guest *v)
{
	int64_t n = atomic_fetch_add(&inside[v->key], 1) + 1;

	if (most_inside != 0)
		CREW_ASSERT(n <= most_inside);
	v->inside = true;
	v->worker->entered++;
}

static void
on_served(struct gate_waiter *w, enum failure how)
{
	struct guest *v = container_of(w, struct guest, w.gate);

	CREW_ASSERT(!gate_is_waiting(w) && !v->inside);
	CREW_ASSERT(how == FAIL_NONE);
	v->served = ++served;
	enter(v);
}

static void
open_gate(uint64_t limit, uint64_t queue)
{
	keygate_free(&g);
	spec = (struct gate_spec){
		.limit = limit, .queue = queue, .queue_timeout = SEC,
	};
	g = keygate_new(&spec, 64, CREW, crew_wake, NULL);
	served = 0;
	most_inside = (int64_t)limit;
	for (unsigned i = 0; i < CREW; i++) {
		struct worker *k = &workers[i];

		*k = (struct worker){ .number = i, .now = SEC };
		k->seed = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
		for (int j = 0; j < GUESTS; j++) {
			k->guests[j].worker = k;
			keygate_waiter_init(&k->guests[j].w, on_served);
		}
	}
	for (int i = 0; i < KEYS; i++)
		atomic_store(&inside[i], 0);
}

static void
one_a_key_and_a_queue(void)
{
	crew_setup();
	open_gate(1, 16);
}

static struct guest *
guest(unsigned worker, int number)
{
	return &workers[worker].guests[number];
}

static enum gate_result
take(struct guest *v, unsigned key)
{
	enum failure refused = FAIL_NONE;
	enum gate_result r = keygate_take(g, &(struct keygate_call){
		.key = (uint64_t)(key + 1) << 40 | key,
		.worker = v->worker->number, .now = v->worker->now,
	}, &v->w, &refused);

	v->key = key;
	if (r == GATE_TAKEN)
		enter(v);
	if (r == GATE_REFUSED)
		CREW_ASSERT(refused == FAIL_QUEUE_FULL);
	return r;
}

static void
release(struct guest *v)
{
	CREW_ASSERT(v->inside);
	v->inside = false;
	atomic_fetch_sub(&inside[v->key], 1);
	keygate_release(g, v->worker->number, v->w.row, v->worker->now);
}

static void
leave(struct guest *v)
{
	keygate_leave(g, v->worker->number, &v->w, v->worker->now);
}

static void
close_gate(void)
{
	for (unsigned i = 0; i < CREW; i++)
		for (int j = 0; j < GUESTS; j++)
			leave(guest(i, j));
	keygate_free(&g);
	ck_assert_ptr_null(g);
}

static uint64_t
sum_inside(void)
{
	int64_t n = 0;

	for (int i = 0; i < KEYS; i++)
		n += atomic_load(&inside[i]);
	return (uint64_t)n;
}

/* --- by example -------------------------------------------------------- */

START_TEST(each_key_has_its_own_limit)
{
	struct gate_state s;

	ck_assert_int_eq(take(guest(0, 0), 0), GATE_TAKEN);
	ck_assert_int_eq(take(guest(1, 0), 1), GATE_TAKEN);
	ck_assert_int_eq(take(guest(0, 1), 0), GATE_WAITS);
	ck_assert_int_eq(take(guest(1, 1), 0), GATE_WAITS);
	keygate_look(g, &s);
	ck_assert_uint_eq(s.in_use, 2);
	ck_assert_uint_eq(s.waiting, 2);
	ck_assert_uint_eq(s.limit, 1);
	keygate_validate(g, 2);
}
END_TEST

START_TEST(waiters_of_a_key_are_served_in_order_and_by_mail)
{
	for (int i = 0; i < 4; i++)
		(void)!take(guest(0, i), 0);
	workers[0].now += 2 * MSEC;
	for (int i = 0; i < 4; i++) {
		release(guest(0, i));
		ck_assert(i == 3 || !guest(0, i + 1)->inside);
		crew_settle();
		ck_assert(i == 3 || guest(0, i + 1)->inside);
	}
	ck_assert_uint_eq(guest(0, 1)->w.gate.waited, 2 * MSEC);
	ck_assert(keygate_is_idle(g));
}
END_TEST

START_TEST(another_workers_waiter_is_served)
{
	ck_assert_int_eq(take(guest(0, 0), 0), GATE_TAKEN);
	ck_assert_int_eq(take(guest(5, 0), 0), GATE_WAITS);
	release(guest(0, 0));
	ck_assert_uint_eq(crew_read(5), 1);
	ck_assert(guest(5, 0)->inside);
}
END_TEST

START_TEST(a_full_queue_refuses_and_other_keys_do_not_mind)
{
	open_gate(1, 1);
	ck_assert_int_eq(take(guest(0, 0), 0), GATE_TAKEN);
	ck_assert_int_eq(take(guest(0, 1), 0), GATE_WAITS);
	ck_assert_int_eq(take(guest(0, 2), 0), GATE_REFUSED);
	ck_assert_int_eq(take(guest(0, 2), 1), GATE_TAKEN);
	leave(guest(0, 1));
	ck_assert_int_eq(take(guest(0, 3), 0), GATE_WAITS);
}
END_TEST

START_TEST(any_waiter_can_leave_and_the_others_stay_in_order)
{
	for (int i = 0; i < 6; i++)
		(void)!take(guest(0, i), 0);
	leave(guest(0, 1));
	leave(guest(0, 1));
	leave(guest(0, 3));
	leave(guest(0, 5));
	keygate_validate(g, 1);
	release(guest(0, 0));
	crew_settle();
	release(guest(0, 2));
	crew_settle();
	ck_assert(guest(0, 4)->inside);
	ck_assert_int_eq(served, 2);
}
END_TEST

START_TEST(who_leaves_passes_the_turn_on)
{
	(void)!take(guest(0, 0), 0);
	(void)!take(guest(1, 0), 0);
	(void)!take(guest(2, 0), 0);
	release(guest(0, 0));
	leave(guest(1, 0));
	crew_settle();
	ck_assert(guest(2, 0)->inside);
	keygate_validate(g, 1);
}
END_TEST

START_TEST(a_worker_that_never_releases_is_served_all_the_same)
{
	int in = 0;

	(void)!take(guest(0, 0), 0);
	(void)!take(guest(1, 0), 0);
	/* Worker 0 always has a waiter of its own. */
	for (int turn = 0; !guest(1, 0)->inside; turn++) {
		int next = 1 + turn % 2;

		ck_assert_int_lt(turn, 3);
		(void)!take(guest(0, next), 0);
		release(guest(0, in));
		crew_settle();
		in = next;
	}
}
END_TEST

START_TEST(a_raised_limit_lets_waiters_in_at_once)
{
	for (unsigned i = 0; i < 4; i++)
		for (int j = 0; j < 2; j++)
			(void)!take(guest(i, j), (unsigned)j);
	most_inside = 3;
	spec.limit = 3;
	keygate_set(g, &spec, SEC);
	crew_settle();
	ck_assert_uint_eq(sum_inside(), 6);
	most_inside = 0;
	spec.limit = 0;
	keygate_set(g, &spec, SEC);
	crew_settle();
	ck_assert_uint_eq(sum_inside(), 8);
	keygate_validate(g, 8);
}
END_TEST

START_TEST(a_lowered_limit_is_a_debt)
{
	open_gate(3, 16);
	for (int i = 0; i < 5; i++)
		(void)!take(guest(0, i), 0);
	spec.limit = 1;
	keygate_set(g, &spec, SEC);
	for (int i = 0; i < 2; i++) {
		release(guest(0, i));
		crew_settle();
		ck_assert_uint_eq(sum_inside(), 2 - (unsigned)i);
	}
	release(guest(0, 2));
	crew_settle();
	ck_assert(guest(0, 3)->inside);
	keygate_validate(g, 1);
}
END_TEST

START_TEST(a_table_without_room_says_so)
{
	enum failure full = FAIL_NONE;
	struct keygate_waiter w;
	int refused = 0;

	for (uint64_t key = 1; key < 200; key++) {
		keygate_waiter_init(&w, on_served);
		refused += keygate_take(g, &(struct keygate_call){
			.key = key << 40 | key << 24, .now = SEC,
		}, &w, &full) == GATE_REFUSED;
	}
	ck_assert_int_ge(refused, 199 - 70);
	ck_assert_int_eq(full, FAIL_KEYS_FULL);
	crew_settle();
}
END_TEST

/* --- long random histories, one thread --------------------------------- */

static void
move_at_random(uint64_t *seed)
{
	struct guest *v = guest(crew_random(seed, 3),
	    (int)crew_random(seed, GUESTS));

	switch (crew_random(seed, 32)) {
	case 0:
		most_inside = 0;
		spec.limit = crew_random(seed, 5);
		spec.queue = crew_random(seed, GUESTS * 2);
		keygate_set(g, &spec, SEC);
		break;
	case 1: case 2: case 3: case 4:
		crew_read(v->worker->number);
		break;
	case 5: case 6: case 7: case 8:
		leave(v);
		break;
	default:
		if (v->inside)
			release(v);
		else if (!gate_is_waiting(&v->w.gate))
			(void)!take(v, crew_random(seed, KEYS));
	}
}

START_TEST(long_random_histories_keep_the_promise)
{
	uint64_t seed = (uint64_t)_i + 1;

	open_gate(2, 10);
	for (int i = 0; i < 200000; i++) {
		move_at_random(&seed);
		if (i % 16 == 0) {
			crew_settle();
			keygate_validate(g, sum_inside());
		}
	}
	for (unsigned i = 0; i < 3; i++)
		for (int j = 0; j < GUESTS; j++)
			leave(guest(i, j));
	for (unsigned i = 0; i < 3; i++)
		for (int j = 0; j < GUESTS; j++)
			if (guest(i, j)->inside)
				release(guest(i, j));
	crew_settle();
	ck_assert(keygate_is_idle(g));
}
END_TEST

/* --- many threads ------------------------------------------------------ */

enum { TURNS = 1000000 };

static const struct setup {
	unsigned	threads;
	unsigned	limit;
	uint64_t	queue;
	bool		leaves;
	bool		changes;
} setups[] = {
	{ 2, 1, 1000, false, false },
	{ 4, 1, 1000, true,  false },
	{ 4, 2, 4,    true,  true },
	{ 8, 1, 1000, false, false },
	{ 8, 3, 1000, true,  true },
	{ 8, 9, 5,    true,  true },
};

static const struct setup *setup;
static atomic_uint running;

static int
count_waiting(struct worker *k)
{
	int n = 0;

	for (int i = 0; i < GUESTS; i++)
		n += gate_is_waiting(&k->guests[i].w.gate);
	return n;
}

static void
sleep_for_mail(struct worker *k)
{
	crew_wait(k->number);
	crew_read(k->number);
}

static void
step(struct worker *k, struct guest *v)
{
	if (v->inside) {
		release(v);
	} else if (!gate_is_waiting(&v->w.gate)) {
		(void)!take(v, crew_random(&k->seed, KEYS));
	} else if (setup->leaves && crew_random(&k->seed, 64) == 0) {
		leave(v);
	}
}

static void *
work(void *arg)
{
	struct worker *k = arg;

	for (unsigned i = 0; i < TURNS / setup->threads; i++) {
		step(k, &k->guests[crew_random(&k->seed, GUESTS)]);
		crew_read(k->number);
		/* Nobody here can do anything; a lost wake-up stands still. */
		while (count_waiting(k) == GUESTS)
			sleep_for_mail(k);
	}
	for (;;) {
		for (int i = 0; i < GUESTS; i++)
			if (k->guests[i].inside)
				release(&k->guests[i]);
		if (count_waiting(k) == 0)
			break;
		sleep_for_mail(k);
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* Worker 0 has no guests and changes the limit. */
static void *
change(void *arg)
{
	struct worker *k = arg;
	struct gate_spec s = spec;

	while (atomic_load(&running) != 0) {
		s.limit = crew_random(&k->seed, setup->limit * 2);
		keygate_set(g, &s, k->now);
		for (unsigned i = crew_random(&k->seed, 50); i > 0; i--)
			sched_yield();
	}
	return NULL;
}

START_TEST(threads_keep_the_promise)
{
	setup = &setups[_i];
	open_gate(setup->limit, setup->queue);
	if (setup->changes)
		most_inside = 0;
	atomic_store(&running, setup->threads - setup->changes);
	for (unsigned i = 0; i < setup->threads; i++)
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL,
		    i == 0 && setup->changes ? change : work, &workers[i]),
		    0);
	for (unsigned i = 0; i < setup->threads; i++)
		pthread_join(workers[i].thread, NULL);
	crew_settle();
	ck_assert_uint_eq(sum_inside(), 0);
	keygate_validate(g, 0);
	ck_assert(keygate_is_idle(g));
	/* Who finds a short queue full each time has bad luck. */
	for (unsigned i = setup->changes; i < setup->threads; i++)
		ck_assert(workers[i].entered > 0 || setup->queue < 1000);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("keygate");
	TCase *t = tcase_create("keygate");

	tcase_add_checked_fixture(t, one_a_key_and_a_queue, close_gate);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, each_key_has_its_own_limit);
	tcase_add_test(t, waiters_of_a_key_are_served_in_order_and_by_mail);
	tcase_add_test(t, another_workers_waiter_is_served);
	tcase_add_test(t, a_full_queue_refuses_and_other_keys_do_not_mind);
	tcase_add_test(t, any_waiter_can_leave_and_the_others_stay_in_order);
	tcase_add_test(t, who_leaves_passes_the_turn_on);
	tcase_add_test(t, a_worker_that_never_releases_is_served_all_the_same);
	tcase_add_test(t, a_raised_limit_lets_waiters_in_at_once);
	tcase_add_test(t, a_lowered_limit_is_a_debt);
	tcase_add_test(t, a_table_without_room_says_so);
	tcase_add_loop_test(t, long_random_histories_keep_the_promise, 0, 4);
	tcase_add_loop_test(t, threads_keep_the_promise, 0,
	    (int)ARRAY_LEN(setups));
	suite_add_tcase(s, t);
	return run_suite(s);
}
