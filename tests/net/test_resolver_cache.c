/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_resolver_cache.c - src/net/resolver.c: cache, sharing, giving up
 */
#include <check.h>

#include "net/resolver_fixture.h"

START_TEST(an_answer_is_asked_for_once)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "v4.test", LONG), RESOLVE_KNOWN);
	ck_assert_int_eq(start(&q, "V4.TEST.", LONG), RESOLVE_KNOWN);
	ck_assert_str_eq(text_of(&q.set), "127.0.0.2:8080");
	ck_assert_uint_eq(atomic_load(&server->questions), 2);
	ck_assert_uint_eq(atomic_load(&stats.found), 1);
	ck_assert_uint_eq(atomic_load(&stats.cached), 1);
	ck_assert_uint_eq(hist_total(&stats.time), 1);
}
END_TEST

START_TEST(no_such_name_is_asked_for_once)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "nx.test", LONG), RESOLVE_NONE);
	ck_assert_int_eq(start(&q, "nx.test", LONG), RESOLVE_NONE);
	ck_assert_uint_eq(atomic_load(&server->questions), 2);
	ck_assert_uint_eq(atomic_load(&stats.none), 1);
}
END_TEST

START_TEST(two_who_ask_for_one_name_share_a_look_up)
{
	struct question a = { 0 }, b = { 0 };

	ck_assert_int_eq(start(&a, "v4.test", LONG), RESOLVE_WAITS);
	ck_assert_int_eq(start(&b, "V4.test.", LONG), RESOLVE_WAITS);
	run();
	ck_assert_int_eq(a.result, RESOLVE_KNOWN);
	ck_assert_int_eq(b.result, RESOLVE_KNOWN);
	ck_assert_uint_eq(a.calls, 1);
	ck_assert_uint_eq(b.calls, 1);
	ck_assert_uint_eq(atomic_load(&server->questions), 2);
	ck_assert_uint_eq(atomic_load(&stats.found), 1);
}
END_TEST

START_TEST(half_an_answer_is_there_before_the_deadline)
{
	struct question q;

	/* The other half takes 3.5 s to fail. */
	ck_assert_int_eq(look_up(&q, "half.test", LONG), RESOLVE_KNOWN);
	ck_assert_uint_eq(atomic_load(&stats.found), 0);
	ck_assert_int_eq(start(&q, "half.test", LONG), RESOLVE_KNOWN);
}
END_TEST

START_TEST(half_an_answer_is_enough_at_the_deadline)
{
	struct question a = { 0 }, b = { 0 };

	start(&a, "half.test", LONG);
	take_answers(1);
	ck_assert_uint_eq(a.calls, 0);
	start(&b, "half.test", NSEC_PER_MSEC);
	run();
	ck_assert_int_eq(a.result, RESOLVE_KNOWN);
	ck_assert_int_eq(b.result, RESOLVE_KNOWN);
	ck_assert_uint_eq(atomic_load(&stats.late), 0);
}
END_TEST

START_TEST(an_answer_after_the_deadline_fills_the_cache)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "held.test", SHORT), RESOLVE_LATE);
	atomic_store(&server->release, true);
	dns_wake(server);
	struct question again;
	ck_assert_int_eq(look_up(&again, "held.test", LONG), RESOLVE_KNOWN);
	ck_assert_int_eq(start(&again, "held.test", LONG), RESOLVE_KNOWN);
	ck_assert_uint_eq(q.calls, 1);
	ck_assert_int_eq(q.result, RESOLVE_LATE);
	ck_assert_uint_eq(atomic_load(&server->questions), 2);
}
END_TEST

START_TEST(an_expired_answer_is_asked_for_again)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "flaky.test", LONG), RESOLVE_KNOWN);
	let_a_second_pass();
	ck_assert_int_eq(look_up(&q, "flaky.test", LONG), RESOLVE_KNOWN);
	ck_assert_uint_eq(q.calls, 1);
	ck_assert_uint_eq(atomic_load(&server->questions), 4);
}
END_TEST

START_TEST(the_last_good_answer_serves_while_servers_fail)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "flaky.test", LONG), RESOLVE_KNOWN);
	atomic_store(&server->broken, true);
	let_a_second_pass();
	ck_assert_int_eq(look_up(&q, "flaky.test", LONG), RESOLVE_KNOWN);
	ck_assert_uint_eq(q.calls, 1);
	ck_assert_str_eq(text_of(&q.set), "127.0.0.2:8080");
	ck_assert_uint_eq(atomic_load(&stats.failed), 1);

	/* Once they have failed, nobody waits for them. */
	let_a_second_pass();
	unsigned before = atomic_load(&server->questions);
	ck_assert_int_eq(start(&q, "flaky.test", LONG), RESOLVE_KNOWN);
	let_a_second_pass();
	ck_assert_uint_gt(atomic_load(&server->questions), before);
}
END_TEST

START_TEST(the_last_good_answer_serves_at_the_deadline)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "flaky.test", LONG), RESOLVE_KNOWN);
	atomic_store(&server->quiet, true);
	let_a_second_pass();
	ck_assert_int_eq(look_up(&q, "flaky.test", SHORT), RESOLVE_KNOWN);
	ck_assert_uint_eq(q.calls, 1);
	ck_assert_int_eq(start(&q, "flaky.test", SHORT), RESOLVE_KNOWN);
	ck_assert_uint_eq(atomic_load(&stats.late), 0);
}
END_TEST

/* --- giving up --- */

START_TEST(who_cancels_is_not_told)
{
	struct question a = { 0 }, b = { 0 };

	start(&a, "v4.test", LONG);
	start(&b, "v4.test", LONG);
	resolve_cancel(&a.handle);
	ck_assert_ptr_null(a.handle);
	pending--;
	run();
	ck_assert_uint_eq(a.calls, 0);
	ck_assert_int_eq(b.result, RESOLVE_KNOWN);
	resolve_cancel(&a.handle);
}
END_TEST

START_TEST(who_cancels_is_not_told_at_the_deadline)
{
	struct question a = { 0 };

	start(&a, "silent.test", SHORT);
	resolve_cancel(&a.handle);
	run_for(4 * SHORT);
	ck_assert_uint_eq(a.calls, 0);
	ck_assert_uint_eq(atomic_load(&stats.late), 0);
}
END_TEST

static struct question *other;

static void
cancel_the_other(struct question *q)
{
	(void)q;
	resolve_cancel(&other->handle);
	loop_stop(loop);
	pending = 0;
}

START_TEST(one_who_is_told_may_cancel_the_next)
{
	struct question a = { .then = cancel_the_other }, b = { 0 };

	other = &b;
	start(&a, "v4.test", LONG);
	start(&b, "v4.test", LONG);
	run();
	ck_assert_uint_eq(a.calls, 1);
	ck_assert_uint_eq(b.calls, 0);
}
END_TEST

static void
ask_more(struct question *q)
{
	struct question *more = other;

	(void)q;
	ck_assert_int_eq(start(more, "v4.test", LONG), RESOLVE_KNOWN);
	ck_assert_int_eq(start(more, "both.test", LONG), RESOLVE_WAITS);
}

START_TEST(one_who_is_told_may_ask_again)
{
	struct question a = { .then = ask_more }, b = { 0 };

	other = &b;
	start(&a, "v4.test", LONG);
	loop_run(loop);
	run();
	ck_assert_int_eq(b.result, RESOLVE_KNOWN);
	ck_assert_uint_eq(b.calls, 1);
}
END_TEST

static void
free_all(struct question *q)
{
	(void)q;
	resolver_free(&resolver);
}

static const char *const freed[] = { "v4.test", "half.test", "silent.test" };

START_TEST(one_who_is_told_may_free_the_resolver)
{
	struct question q = { .then = free_all };

	start(&q, freed[_i], 200 * NSEC_PER_MSEC);
	run();
	ck_assert_uint_eq(q.calls, 1);
	ck_assert_ptr_null(resolver);
}
END_TEST

START_TEST(a_resolver_can_be_freed_while_it_asks)
{
	struct question a = { 0 }, b = { 0 }, c = { 0 };

	start(&a, "silent.test", LONG);
	start(&b, "half.test", LONG);
	take_answers(1);
	start(&c, "trunc.test", LONG);
	resolve_cancel(&a.handle);
	resolve_cancel(&b.handle);
	resolve_cancel(&c.handle);
	resolver_free(&resolver);
	run_for(4 * SHORT);
	ck_assert_uint_eq(a.calls, 0);
	ck_assert_uint_eq(c.calls, 0);
}
END_TEST

START_TEST(look_ups_at_once_are_bounded)
{
	static struct question q[RESOLVER_ASKING + 2];
	char name[32];

	for (int i = 0; i < RESOLVER_ASKING; i++) {
		snprintf(name, sizeof name, "silent%d.test", i);
		ck_assert_int_eq(start(&q[i], name, LONG), RESOLVE_WAITS);
	}
	ck_assert_int_eq(start(&q[RESOLVER_ASKING], "silent9999.test", LONG),
	    RESOLVE_FAILED);
	/* A name that is being asked for costs nothing more. */
	ck_assert_int_eq(start(&q[RESOLVER_ASKING + 1], name, LONG),
	    RESOLVE_WAITS);
	ck_assert_int_eq(start(&q[RESOLVER_ASKING], "127.0.0.1", LONG),
	    RESOLVE_KNOWN);
	for (size_t i = 0; i < ARRAY_LEN(q); i++)
		resolve_cancel(&q[i].handle);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("resolver cache");
	TCase *t = tcase_create("cache");

	tcase_add_checked_fixture(t, a_resolver, no_resolver);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, an_answer_is_asked_for_once);
	tcase_add_test(t, no_such_name_is_asked_for_once);
	tcase_add_test(t, two_who_ask_for_one_name_share_a_look_up);
	tcase_add_test(t, half_an_answer_is_there_before_the_deadline);
	tcase_add_test(t, half_an_answer_is_enough_at_the_deadline);
	tcase_add_test(t, an_answer_after_the_deadline_fills_the_cache);
	tcase_add_test(t, an_expired_answer_is_asked_for_again);
	tcase_add_test(t, the_last_good_answer_serves_while_servers_fail);
	tcase_add_test(t, the_last_good_answer_serves_at_the_deadline);
	tcase_add_test(t, who_cancels_is_not_told);
	tcase_add_test(t, who_cancels_is_not_told_at_the_deadline);
	tcase_add_test(t, one_who_is_told_may_cancel_the_next);
	tcase_add_test(t, one_who_is_told_may_ask_again);
	tcase_add_loop_test(t, one_who_is_told_may_free_the_resolver, 0,
	    (int)ARRAY_LEN(freed));
	tcase_add_test(t, a_resolver_can_be_freed_while_it_asks);
	tcase_add_test(t, look_ups_at_once_are_bounded);
	suite_add_tcase(s, t);
	return run_suite(s);
}
