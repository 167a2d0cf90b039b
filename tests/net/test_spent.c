/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_spent.c - src/net/spent.c, and what src/net/loop.c tells it.
 *
 * Functions here run until a clock has moved on, so that one surely takes
 * longer than another, however slow the machine is.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#include "net/clock.h"
#include "net/loop.h"
#include "net/spent.h"

#define LONG	(50 * NSEC_PER_MSEC)

static struct spent turn;
static struct loop *loop;
static char said[256];
static nsec_t told;
static unsigned times;
static int fds[2];
static struct watch watch;
static struct watch_kind kind;
static struct mail mail;
static struct wheel_timer timer, stopper;
static struct loop_again again;

static void
spin(nsec_t time)
{
	nsec_t end = read_clock(CLOCK_MONOTONIC) + time;

	while (read_clock(CLOCK_MONOTONIC) < end)
		continue;
}

static void
on_slow(void *arg, const char *name, nsec_t took)
{
	ck_assert_ptr_eq(arg, said);
	snprintf(said, sizeof said, "%s", callback_name(name));
	told = took;
	times++;
}

static void
a_turn(void)
{
	said[0] = '\0';
	told = times = 0;
	spent_init(&turn);
}

START_TEST(a_name_begins_with_the_folder_of_the_source)
{
	ck_assert_str_eq(callback_name("../src/net/stream.c:on_ready"),
	    "net/stream.c:on_ready");
	ck_assert_str_eq(callback_name("/usr/src/x/src/net/a.c:b"),
	    "net/a.c:b");
	ck_assert_str_eq(callback_name("net/a.c:b"), "net/a.c:b");
	ck_assert_str_eq(callback_name(NULL), "?");
	ck_assert_str_eq(&CALLBACK_NAME(spin)[sizeof(__FILE__) - 1], ":spin");
}
END_TEST

START_TEST(the_longest_of_a_turn_is_known)
{
	_Atomic(const char *) longest = "none";

	spent_begin(&turn, "loop");
	spent_mark(&turn, "a");
	spent_mark(&turn, "b");
	ck_assert_str_eq(spent_running(&turn), "b");
	spin(LONG);
	spent_mark(&turn, "c");
	spent_end(&turn, &longest);
	ck_assert_str_eq(longest, "b");
	ck_assert_ptr_null(spent_running(&turn));
	/* The next turn knows nothing of it, and may keep what it found. */
	spent_begin(&turn, "loop");
	spent_mark(&turn, "d");
	spin(NSEC_PER_MSEC);
	spent_end(&turn, NULL);
	ck_assert_str_eq(longest, "b");
	spent_begin(&turn, "loop");
	spin(LONG);
	spent_mark(&turn, "d");
	spent_end(&turn, &longest);
	ck_assert_str_eq(longest, "loop");
}
END_TEST

START_TEST(only_what_is_slow_is_told)
{
	spent_set_slow(&turn, 0);		/* nobody to tell */
	spent_begin(&turn, "loop");
	spent_mark(&turn, "a");
	spent_on_slow(&turn, on_slow, said);
	spent_set_slow(&turn, LONG);
	spent_mark(&turn, "b");
	ck_assert_uint_eq(times, 0);
	spin(2 * LONG);
	spent_mark(&turn, "c");
	ck_assert_uint_eq(times, 1);
	ck_assert_str_eq(said, "b");
	/* Ticks aren't nanoseconds, but what they are worth is known. */
	ck_assert_uint_ge(told, 2 * LONG - LONG / 10);
	spent_set_slow(&turn, NSEC_NEVER);
	spin(2 * LONG);
	spent_end(&turn, NULL);
	ck_assert_uint_eq(times, 1);
}
END_TEST

/* --- what a loop marks -------------------------------------------------- */

static void
on_end(struct wheel_timer *t)
{
	(void)t;
	loop_stop(loop);
}

/* In a later turn: what is spent is known when a turn is over. */
static void
stop_soon(void)
{
	wheel_timer_init(&stopper, on_end);
	loop_arm(loop, &stopper, 0);
}

static void
on_byte(struct watch *w, unsigned ready)
{
	(void)ready;
	spin(LONG);
	watch_stop(w);
	stop_soon();
}

static void
on_mail(struct mail *m)
{
	(void)m;
	spin(LONG);
	stop_soon();
}

static void
on_timer(struct wheel_timer *t)
{
	(void)t;
	spin(LONG);
	stop_soon();
}

static void
on_again(struct loop_again *a)
{
	spin(LONG);
	list_remove(&a->link);
	stop_soon();
}

static void
want_byte(void)
{
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	kind = WATCH_KIND(loop, on_byte);
	watch_init(&watch, &kind, fds[0]);
	watch_want(&watch, WATCH_READ);
}

static void
want_mail(void)
{
	mail_init(&mail, on_mail);
	loop_later(loop, &mail);
}

static void
want_timer(void)
{
	wheel_timer_init(&timer, on_timer);
	loop_arm(loop, &timer, 0);
}

static void
want_again(void)
{
	list_init(&again.link);
	again.fn = on_again;
	again.name = CALLBACK_NAME(on_again);
	loop_again(loop, &again);
}

static const struct { void (*want)(void); const char *name; } calls[] = {
	{ want_byte,	":on_byte" },
	{ want_mail,	":on_mail" },
	{ want_timer,	":on_timer" },
	{ want_again,	":on_again" },
};

START_TEST(a_loop_knows_what_took_longest)
{
	loop = loop_new();
	spent_on_slow(loop_spent(loop), on_slow, said);
	spent_set_slow(loop_spent(loop), LONG / 2);
	calls[_i].want();
	loop_run(loop);
	const char *name = loop_stats(loop)->longest_by;
	ck_assert_ptr_nonnull(name);
	ck_assert_str_eq(name + sizeof(__FILE__) - 1, calls[_i].name);
	ck_assert_uint_ge(stat_read(&loop_stats(loop)->longest), LONG);
	ck_assert_uint_eq(times, 1);
	ck_assert_str_eq(said, callback_name(name));
	loop_free(&loop);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("spent");
	TCase *t = tcase_create("spent");

	tcase_add_checked_fixture(t, a_turn, NULL);
	tcase_add_test(t, a_name_begins_with_the_folder_of_the_source);
	tcase_add_test(t, the_longest_of_a_turn_is_known);
	tcase_add_test(t, only_what_is_slow_is_told);
	tcase_add_loop_test(t, a_loop_knows_what_took_longest, 0,
	    (int)ARRAY_LEN(calls));
	suite_add_tcase(s, t);
	return run_suite(s);
}
