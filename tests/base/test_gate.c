/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gate.c - src/base/gate.c by example; see test_gate_histories.c and
 * test_gate_threads.c too.
 */
#include <check.h>

#include "base/gate_guests.h"
#include "harness.h"

/* --- by example -------------------------------------------------------- */

START_TEST(as_many_as_the_limit_get_in)
{
	ck_assert_int_eq(take(0, 0), GATE_TAKEN);
	ck_assert_int_eq(take(1, 1), GATE_TAKEN);
	ck_assert_int_eq(take(2, 0), GATE_WAITS);
	ck_assert(!gate_try(g));
	gate_validate(g, 2);
	ck_assert_uint_eq(look().in_use, 2);
	ck_assert_uint_eq(look().waiting, 1);
}
END_TEST

START_TEST(a_waiter_is_served_by_its_own_worker_and_later)
{
	take(0, 0);
	take(1, 0);
	take(2, 1);
	now += 3 * MSEC;
	release(0);
	ck_assert(!guests[2].inside);
	ck_assert_uint_eq(crew_read(0), 0);
	ck_assert_uint_eq(crew_read(1), 1);
	ck_assert(guests[2].inside);
	ck_assert_uint_eq(guests[2].w.waited, 3 * MSEC);
	gate_validate(g, 2);
}
END_TEST

START_TEST(the_own_waiter_is_served_by_mail_too)
{
	take(0, 0);
	take(1, 0);
	take(2, 0);
	release(0);
	ck_assert(!guests[2].inside);
	ck_assert_uint_eq(crew_read(0), 1);
	ck_assert(guests[2].inside);
}
END_TEST

START_TEST(a_full_queue_refuses)
{
	open_gate(1, 1);
	take(0, 0);
	ck_assert_int_eq(take(1, 0), GATE_WAITS);
	ck_assert_int_eq(take(2, 1), GATE_REFUSED);
	ck_assert_int_eq(why, FAIL_QUEUE_FULL);
	gate_leave(g, 0, &guests[1].w, now);
	ck_assert_int_eq(take(2, 1), GATE_WAITS);
}
END_TEST

START_TEST(without_a_queue_nobody_waits)
{
	open_gate(1, 0);
	ck_assert_int_eq(take(0, 0), GATE_TAKEN);
	ck_assert_int_eq(take(1, 0), GATE_REFUSED);
	ck_assert_int_eq(why, FAIL_QUEUE_FULL);
	release(0);
	ck_assert_int_eq(take(1, 0), GATE_TAKEN);
	gate_validate(g, 1);
}
END_TEST

START_TEST(who_has_left_is_not_served)
{
	take(0, 0);
	take(1, 0);
	take(2, 1);
	take(3, 1);
	release(0);
	gate_leave(g, 1, &guests[2].w, now);
	gate_leave(g, 1, &guests[2].w, now);
	crew_settle();
	ck_assert_int_eq(guests[2].served, 0);
	ck_assert(guests[3].inside);
	gate_validate(g, 2);
}
END_TEST

START_TEST(a_permit_nobody_wants_any_more_goes_to_the_next_worker)
{
	open_gate(1, 16);
	take(0, 0);
	take(1, 1);
	now += SEC;
	take(2, 2);
	release(0);
	gate_leave(g, 1, &guests[1].w, now);
	crew_settle();
	ck_assert(guests[2].inside);
	release(2);
	crew_settle();
	ck_assert(gate_is_idle(g));
	ck_assert_int_eq(take(3, 3), GATE_TAKEN);
}
END_TEST

START_TEST(a_gate_with_mail_under_way_is_not_idle)
{
	take(0, 0);
	take(1, 0);
	take(2, 1);
	release(0);
	release(1);
	gate_leave(g, 1, &guests[2].w, now);
	ck_assert(!gate_is_idle(g));
	crew_settle();
	ck_assert(gate_is_idle(g));
}
END_TEST

START_TEST(a_newcomer_does_not_pass_a_waiter)
{
	open_gate(1, 16);
	take(0, 0);
	take(1, 1);
	release(0);
	/* The permit is on its way to worker 1. */
	ck_assert_int_eq(take(2, 0), GATE_WAITS);
	crew_settle();
	ck_assert(guests[1].inside && !guests[2].inside);
	release(1);
	crew_settle();
	ck_assert(guests[2].inside);
}
END_TEST

START_TEST(a_newcomer_takes_what_is_left_when_all_waiters_have_permits)
{
	open_gate(2, 1);
	take(0, 0);
	take(1, 0);
	take(2, 1);
	release(0);
	release(1);
	ck_assert_int_eq(take(3, 0), GATE_TAKEN);
	crew_settle();
	ck_assert(guests[2].inside);
	gate_validate(g, 2);
}
END_TEST

/* { the other waits longer by, who is served } */
static const struct { nsec_t older; int who; } ages[] = {
	{ 0,		2 },
	{ 4 * MSEC,	2 },
	{ 6 * MSEC,	1 },
	{ 100 * MSEC,	1 },
};

START_TEST(the_oldest_is_served_unless_the_own_is_hardly_younger)
{
	open_gate(1, 16);
	take(0, 0);
	take(1, 1);
	now += ages[_i].older;
	take(2, 0);
	release(0);
	crew_settle();
	ck_assert(guests[ages[_i].who].inside);
	ck_assert_uint_eq(count_inside(), 1);
}
END_TEST

START_TEST(a_worker_that_never_releases_is_served_all_the_same)
{
	int in = 0;

	open_gate(1, 16);
	take(0, 0);
	take(1, 1);
	/* Worker 0 always has a waiter of its own. */
	for (int turn = 0; !guests[1].inside; turn++) {
		int next = 2 + turn % 2;

		ck_assert_int_lt(turn, 8);
		take(next, 0);
		now += MSEC;
		release(in);
		crew_settle();
		in = next;
	}
}
END_TEST

/* --- changing ---------------------------------------------------------- */

START_TEST(a_raised_limit_lets_waiters_in_at_once)
{
	for (int i = 0; i < 8; i++)
		take(i, (unsigned)i);
	spec.limit = 5;
	gate_set(g, &spec, 3, now);
	crew_settle();
	ck_assert_uint_eq(count_inside(), 5);
	gate_validate(g, 5);
	spec.limit = 1000000;
	gate_set(g, &spec, 3, now);
	crew_settle();
	ck_assert_uint_eq(count_inside(), 8);
	gate_validate(g, 8);
}
END_TEST

START_TEST(a_lowered_limit_is_a_debt_that_releases_pay)
{
	open_gate(4, 16);
	for (int i = 0; i < 6; i++)
		take(i, 0);
	spec.limit = 2;
	gate_set(g, &spec, 0, now);
	gate_validate(g, 4);
	for (int i = 0; i < 2; i++) {
		release(i);
		crew_settle();
		ck_assert_uint_eq(count_inside(), 3 - (unsigned)i);
	}
	release(2);
	crew_settle();
	ck_assert(guests[4].inside);
	ck_assert_uint_eq(count_inside(), 2);
	gate_validate(g, 2);
}
END_TEST

START_TEST(a_lowered_queue_throws_nobody_out)
{
	for (int i = 0; i < 6; i++)
		take(i, 0);
	spec.queue = 1;
	gate_set(g, &spec, 0, now);
	ck_assert_uint_eq(look().waiting, 4);
	ck_assert_int_eq(take(6, 0), GATE_REFUSED);
	spec.limit = 6;
	gate_set(g, &spec, 0, now);
	crew_settle();
	ck_assert_uint_eq(count_inside(), 6);
}
END_TEST

START_TEST(without_a_limit_all_get_in_and_are_counted)
{
	open_gate(0, 0);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(take(i, 0), GATE_TAKEN);
	ck_assert(gate_try(g));
	gate_release(g, 0, now);
	ck_assert_uint_eq(look().limit, 0);
	ck_assert_uint_eq(look().in_use, 10);
	gate_validate(g, 10);
}
END_TEST

START_TEST(a_limit_can_come_and_go)
{
	open_gate(0, 16);
	for (int i = 0; i < 5; i++)
		take(i, 0);
	spec.limit = 3;
	gate_set(g, &spec, 0, now);
	ck_assert_int_eq(take(5, 1), GATE_WAITS);
	ck_assert_int_eq(take(6, 1), GATE_WAITS);
	for (int i = 0; i < 2; i++)
		release(i);
	crew_settle();
	ck_assert_uint_eq(count_inside(), 3);
	gate_validate(g, 3);
	spec.limit = 0;
	gate_set(g, &spec, 0, now);
	crew_settle();
	ck_assert(guests[5].inside && guests[6].inside);
	gate_validate(g, 5);
}
END_TEST

/* --- the prediction ---------------------------------------------------- */

/* n permits came back, one each `gap`; then the only one is taken. */
static void
remember_releases(unsigned n, nsec_t gap)
{
	open_gate(1, 16);
	for (unsigned i = 0; i < n; i++) {
		take(0, i % 3);
		now += gap;
		release(0);
	}
	take(0, 0);
}

static void
queue_up(int n)
{
	for (int i = 1; i <= n; i++)
		ck_assert_int_eq(take(i, 1), GATE_WAITS);
}

START_TEST(who_would_wait_too_long_is_refused_at_once)
{
	remember_releases(9, 450 * MSEC);
	queue_up(5);
	ck_assert_int_eq(take(6, 1), GATE_REFUSED);
	ck_assert_int_eq(why, FAIL_QUEUE_LATE);
	ck_assert_uint_gt(look().wait_estimate, 2 * SEC);
	gate_validate(g, 1);
}
END_TEST

START_TEST(little_history_predicts_nothing)
{
	remember_releases(7, 500 * MSEC);
	queue_up(15);
	ck_assert_uint_eq(look().wait_estimate, 0);
}
END_TEST

START_TEST(old_history_predicts_nothing)
{
	remember_releases(9, 400 * MSEC);
	now += 4 * SEC;
	queue_up(15);
}
END_TEST

START_TEST(the_estimate_counts_all_who_wait)
{
	remember_releases(16, 100 * MSEC);
	ck_assert_uint_ge(look().wait_estimate, 80 * MSEC);
	ck_assert_uint_le(look().wait_estimate, 120 * MSEC);
	queue_up(4);
	ck_assert_uint_ge(look().wait_estimate, 400 * MSEC);
	ck_assert_uint_le(look().wait_estimate, 600 * MSEC);
}
END_TEST

/* --- adaptive order ---------------------------------------------------- */

/* The only permit changes hands each `gap`; there are always waiters. */
static void
be_slow(nsec_t gap, int rounds)
{
	int in = 0, next = 1;

	open_gate(1, 16);
	spec.adaptive = true;
	spec.queue_timeout = 100 * SEC;
	gate_set(g, &spec, 0, now);
	take(in, 0);
	while (next < 10)
		take(next++, 0);
	for (int i = 0; i < rounds; i++) {
		now += gap;
		release(in);
		crew_settle();
		take(next++, 0);
		for (in = 0; !guests[in].inside; in++)
			ck_assert_int_lt(in + 1, GUESTS);
	}
}

START_TEST(while_waits_are_short_the_first_comes_first)
{
	be_slow(MSEC, 9);
	for (int i = 1; i < 10; i++)
		ck_assert_int_eq(guests[i].served, i);
	ck_assert_int_eq(guests[10].served, 0);
}
END_TEST

START_TEST(in_overload_the_newest_comes_first_and_the_old_are_shed)
{
	int last = 0, shed = 0;

	be_slow(30 * MSEC, 8);
	for (int i = 0; i < GUESTS; i++) {
		shed += guests[i].why == FAIL_QUEUE_SHED;
		if (guests[i].inside)
			last = i;
	}
	ck_assert_int_gt(shed, 0);
	/* Ten and up came one a round; the newest but one holds it. */
	ck_assert_int_ge(last, 16);
	ck_assert_uint_eq(count_inside(), 1);
	gate_validate(g, 1);
}
END_TEST

static void
add_examples(TCase *t)
{
	tcase_add_test(t, as_many_as_the_limit_get_in);
	tcase_add_test(t, a_waiter_is_served_by_its_own_worker_and_later);
	tcase_add_test(t, the_own_waiter_is_served_by_mail_too);
	tcase_add_test(t, a_full_queue_refuses);
	tcase_add_test(t, without_a_queue_nobody_waits);
	tcase_add_test(t, who_has_left_is_not_served);
	tcase_add_test(t,
	    a_permit_nobody_wants_any_more_goes_to_the_next_worker);
	tcase_add_test(t, a_gate_with_mail_under_way_is_not_idle);
	tcase_add_test(t, a_newcomer_does_not_pass_a_waiter);
	tcase_add_test(t,
	    a_newcomer_takes_what_is_left_when_all_waiters_have_permits);
	tcase_add_loop_test(t,
	    the_oldest_is_served_unless_the_own_is_hardly_younger, 0,
	    (int)ARRAY_LEN(ages));
	tcase_add_test(t, a_worker_that_never_releases_is_served_all_the_same);
}

static void
add_changes(TCase *t)
{
	tcase_add_test(t, a_raised_limit_lets_waiters_in_at_once);
	tcase_add_test(t, a_lowered_limit_is_a_debt_that_releases_pay);
	tcase_add_test(t, a_lowered_queue_throws_nobody_out);
	tcase_add_test(t, without_a_limit_all_get_in_and_are_counted);
	tcase_add_test(t, a_limit_can_come_and_go);
}

int
main(void)
{
	Suite *s = suite_create("gate");
	TCase *t = tcase_create("gate");

	tcase_add_checked_fixture(t, two_permits_and_a_queue, close_gate);
	tcase_set_timeout(t, 120);
	add_examples(t);
	add_changes(t);
	tcase_add_test(t, who_would_wait_too_long_is_refused_at_once);
	tcase_add_test(t, little_history_predicts_nothing);
	tcase_add_test(t, old_history_predicts_nothing);
	tcase_add_test(t, the_estimate_counts_all_who_wait);
	tcase_add_test(t, while_waits_are_short_the_first_comes_first);
	tcase_add_test(t,
	    in_overload_the_newest_comes_first_and_the_old_are_shed);
	suite_add_tcase(s, t);
	return run_suite(s);
}
