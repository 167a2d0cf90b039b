/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_history.c - src/daemon/history.c
 *
 * One worker that does nothing, one listener whose counts the tests change.
 */
#include "daemon/history.h"

#include <string.h>

#include "harness.h"
#include "proxy/setup.h"
#include "proxy/worker.h"

static struct worker worker;
static struct worker *workers[] = { &worker };
static struct listener_stats stats;
static struct listener_state state = { .name = "web", .stats = &stats };
static struct service service = { .state = &state };
static struct setup setup = { .services = &service, .service_count = 1 };
static struct history *history;

static void
source(void *arg, struct metrics_source *out)
{
	(void)arg;
	*out = (struct metrics_source){
		.workers = workers, .count = 1, .setup = &setup,
	};
}

static void
wake(void *arg, unsigned number, struct mail *m)
{
	(void)arg;
	(void)number;
	m->kind->fn(m);
}

static void
set_up(void)
{
	memset(&stats, 0, sizeof stats);
	worker.loop = loop_new();
	setup.registry = limits_new(2, wake, NULL);
	history = history_start(&(struct history_opts){
		.loop = worker.loop, .source = source,
	});
}

static void
tear_down(void)
{
	history_stop(&history);
	limits_free(&setup.registry);
	loop_free(&worker.loop);
}

/* As if some time had passed. */
static void
look(void)
{
	loop_now_update(worker.loop);
	history_look(history);
}

START_TEST(at_first_there_is_nothing)
{
	ck_assert_ptr_null(history_after(history, 0));
	ck_assert_ptr_null(history_trouble(history, 0));
}
END_TEST

START_TEST(a_sample_has_what_has_come_since_the_last)
{
	const struct history_sample *s;

	for (int i = 0; i < 3; i++)
		stat_code(&stats, 200);
	hist_add(&stats.duration, 40 * NSEC_PER_MSEC);
	look();
	look();
	s = history_after(history, 0);
	ck_assert_uint_eq(s->number, 1);
	ck_assert(s->requests > 0 && s->refused == 0 && s->failed == 0);
	ck_assert_uint_ge(s->slow, 20 * NSEC_PER_MSEC);
	s = history_after(history, 1);
	ck_assert_uint_eq(s->number, 2);
	ck_assert(s->requests == 0);
	ck_assert_uint_eq(s->slow, 0);
	ck_assert_ptr_null(history_after(history, 2));
}
END_TEST

START_TEST(the_oldest_samples_are_forgotten)
{
	uint64_t number = 0, count = 0;
	const struct history_sample *s;

	for (int i = 0; i < HISTORY_SAMPLES + 7; i++)
		look();
	for (; (s = history_after(history, number)) != NULL; count++) {
		ck_assert_uint_eq(s->number, count == 0 ? 8 : number + 1);
		number = s->number;
	}
	ck_assert_uint_eq(count, HISTORY_SAMPLES);
}
END_TEST

/* A listener that was replaced counts from the beginning. */
START_TEST(counts_that_fall_are_no_trouble)
{
	const struct history_sample *s;

	stat_code(&stats, 200);
	stat_failure(&stats, FAIL_INTERNAL);
	hist_add(&stats.duration, 1);
	look();
	memset(&stats, 0, sizeof stats);
	look();
	s = history_after(history, 1);
	ck_assert(s->requests == 0 && s->failed == 0);
	ck_assert_uint_eq(s->slow, 0);
	stat_failure(&stats, FAIL_INTERNAL);
	look();
	ck_assert_uint_eq(history_trouble(history, 0)->total, 1);
	ck_assert_uint_eq(history_trouble_in(history_trouble(history, 0),
	    history_trouble(history, 0)->last, 10), 2);
}
END_TEST

static void
answer_ourselves(void)
{
	stat_increment(&stats.own_5xx);
	stat_code(&stats, 503);
}

/* The response has begun, and the exchange is not over. */
START_TEST(a_refusal_under_way_is_no_failure_of_a_server)
{
	answer_ourselves();
	look();
	ck_assert(history_after(history, 0)->failed == 0);
	stat_failure(&stats, FAIL_QUEUE_FULL);
	look();
	ck_assert(history_after(history, 1)->failed == 0);
	ck_assert(history_after(history, 1)->refused > 0);
}
END_TEST

/* What is ours is not counted as the servers' too. */
START_TEST(refusals_failures_and_what_servers_send_are_told_apart)
{
	const struct history_sample *s;

	stat_failure(&stats, FAIL_QUEUE_FULL);
	answer_ourselves();
	stat_failure(&stats, FAIL_CLIENT_CLOSED);
	stat_failure(&stats, FAIL_BAD_REQUEST);
	stat_code(&stats, 400);
	look();
	s = history_after(history, 0);
	ck_assert(s->refused > 0 && s->failed == 0);
	stat_code(&stats, 500);
	look();
	s = history_after(history, 1);
	ck_assert(s->refused == 0 && s->failed > 0);
	answer_ourselves();
	stat_failure(&stats, FAIL_NO_SERVER);
	look();
	s = history_after(history, 2);
	ck_assert(s->refused == 0 && s->failed > 0);
	ck_assert_int_eq(trouble_kind(FAIL_RATE_LIMITED), TROUBLE_REFUSED);
	ck_assert_int_eq(trouble_kind(FAIL_NO_SERVER), TROUBLE_FAILED);
	ck_assert_int_eq(trouble_kind(FAIL_CONNECT_REFUSED), TROUBLE_FAILED);
	ck_assert_int_eq(trouble_kind(FAIL_CLIENT_CLOSED), TROUBLE_CLIENT);
	ck_assert_int_eq(trouble_kind(FAIL_BAD_REQUEST), TROUBLE_CLIENT);
}
END_TEST

START_TEST(trouble_is_remembered_for_ten_minutes)
{
	const struct history_trouble *t;

	for (int i = 0; i < 3; i++)
		stat_failure(&stats, FAIL_CONNECT_REFUSED);
	look();
	stat_failure(&stats, FAIL_QUEUE_LATE);
	look();
	t = history_trouble(history, 0);
	ck_assert_int_eq(t->why, FAIL_CONNECT_REFUSED);
	ck_assert_str_eq(t->name, "web");
	ck_assert(!t->of_limit);
	ck_assert_uint_eq(t->total, 3);
	ck_assert_uint_eq(history_trouble_in(t, t->last, 1), 3);
	ck_assert_uint_eq(history_trouble_in(t, t->last + 60, 2), 3);
	ck_assert_uint_eq(history_trouble_in(t, t->last + 60, 1), 0);
	ck_assert_uint_eq(history_trouble_in(t, t->last + 540, 10), 3);
	ck_assert_uint_eq(history_trouble_in(t, t->last + 660, 10), 0);
	ck_assert_int_eq(history_trouble(history, 1)->why, FAIL_QUEUE_LATE);
	ck_assert_ptr_null(history_trouble(history, 2));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("daemon/history");
	TCase *t = tcase_create("history");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, at_first_there_is_nothing);
	tcase_add_test(t, a_sample_has_what_has_come_since_the_last);
	tcase_add_test(t, the_oldest_samples_are_forgotten);
	tcase_add_test(t, counts_that_fall_are_no_trouble);
	tcase_add_test(t,
	    refusals_failures_and_what_servers_send_are_told_apart);
	tcase_add_test(t, a_refusal_under_way_is_no_failure_of_a_server);
	tcase_add_test(t, trouble_is_remembered_for_ten_minutes);
	return run_suite(s);
}
