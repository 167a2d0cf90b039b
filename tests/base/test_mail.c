/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mail.c - src/base/mail.c
 */
#include "harness.h"

#include <pthread.h>

#include "base/mail.h"

static struct mailbox box;

/* What was called, as decimal digits after a leading 9. */
static int calls;

struct letter {
	struct mail	mail;
	int		digit;
};

static struct letter letters[4];

static mail_fn on_letter, on_letter_again;

static void
on_letter(struct mail *m)
{
	calls = calls * 10 + container_of(m, struct letter, mail)->digit;
}

static void
on_letter_again(struct mail *m)
{
	on_letter(m);
	mail_init(m, on_letter);
	mailbox_put(&box, m);
}

static void
an_empty_box_and_four_letters(void)
{
	mailbox_init(&box);
	calls = 9;
	for (int i = 0; i < 4; i++) {
		mail_init(&letters[i].mail, on_letter);
		letters[i].digit = i;
	}
}

START_TEST(an_empty_box_calls_nobody)
{
	ck_assert_uint_eq(mailbox_run(&box), 0);
	ck_assert_ptr_null(mailbox_take(&box));
	ck_assert_int_eq(calls, 9);
}
END_TEST

START_TEST(only_the_first_mail_says_that_the_box_was_empty)
{
	ck_assert(mailbox_put(&box, &letters[0].mail));
	ck_assert(!mailbox_put(&box, &letters[1].mail));
	ck_assert_uint_eq(mailbox_run(&box), 2);
	ck_assert(mailbox_put(&box, &letters[1].mail));
	ck_assert_uint_eq(mailbox_run(&box), 1);
}
END_TEST

START_TEST(the_oldest_is_called_first)
{
	for (int i = 0; i < 4; i++)
		mailbox_put(&box, &letters[i].mail);
	ck_assert_uint_eq(mailbox_run(&box), 4);
	ck_assert_int_eq(calls, 90123);
	ck_assert_uint_eq(mailbox_run(&box), 0);
}
END_TEST

START_TEST(mail_put_twice_is_called_once)
{
	mailbox_put(&box, &letters[2].mail);
	ck_assert(!mailbox_put(&box, &letters[2].mail));
	ck_assert_uint_eq(mailbox_run(&box), 1);
	ck_assert_int_eq(calls, 92);
}
END_TEST

START_TEST(mail_put_during_its_call_stays_for_the_next_time)
{
	mail_init(&letters[1].mail, on_letter_again);
	mailbox_put(&box, &letters[1].mail);
	mailbox_put(&box, &letters[2].mail);
	ck_assert_uint_eq(mailbox_run(&box), 2);
	ck_assert_int_eq(calls, 912);
	ck_assert_uint_eq(mailbox_run(&box), 1);
	ck_assert_int_eq(calls, 9121);
	ck_assert_uint_eq(mailbox_run(&box), 0);
}
END_TEST

START_TEST(mail_that_was_taken_counts_as_put_until_it_is_called)
{
	mailbox_put(&box, &letters[3].mail);
	mailbox_put(&box, &letters[0].mail);

	struct mail *m = mailbox_take(&box);
	ck_assert_ptr_eq(m, &letters[3].mail);
	ck_assert_ptr_eq(m->next, &letters[0].mail);
	ck_assert_ptr_null(m->next->next);
	ck_assert(!mailbox_put(&box, m));
	ck_assert_ptr_null(mailbox_take(&box));
	ck_assert_int_eq(calls, 9);

	mail_call(m);
	ck_assert_int_eq(calls, 93);
	ck_assert(mailbox_put(&box, m));
	ck_assert_uint_eq(mailbox_run(&box), 1);
}
END_TEST

/* --- posting threads --- */

enum { POSTERS = 3, COUNTERS = 8, ROUNDS = 50000 };

/*
 * Posters raise `wanted` and put the mail; the call copies it to `seen`.  If
 * a put or what was written before it were ever lost, the last value of some
 * counter would be missing in the end.
 */
struct counter {
	struct mail		mail;
	_Atomic uint64_t	wanted;
	uint64_t		seen;	/* the reader's */
};

static struct counter counters[COUNTERS];
static _Atomic uint64_t wakes;
static _Atomic unsigned posting;

static void
on_counter(struct mail *m)
{
	struct counter *c = container_of(m, struct counter, mail);

	c->seen = atomic_load_explicit(&c->wanted, memory_order_relaxed);
}

static void *
post(void *arg)
{
	uint64_t n = 0;

	for (size_t i = (uintptr_t)arg; i < ROUNDS; i++) {
		struct counter *c = &counters[i % COUNTERS];

		atomic_fetch_add_explicit(&c->wanted, 1,
		    memory_order_relaxed);
		if (mailbox_put(&box, &c->mail))
			n++;
	}
	atomic_fetch_add(&wakes, n);
	atomic_fetch_sub(&posting, 1);
	return NULL;
}

static void
run_posters(bool read_meanwhile)
{
	pthread_t thread[POSTERS];
	uint64_t runs = 0;

	for (size_t i = 0; i < COUNTERS; i++)
		mail_init(&counters[i].mail, on_counter);
	posting = POSTERS;
	for (size_t i = 0; i < POSTERS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, post,
		    (void *)i), 0);
	while (read_meanwhile && atomic_load(&posting) > 0)
		runs += mailbox_run(&box) > 0;
	for (size_t i = 0; i < POSTERS; i++)
		pthread_join(thread[i], NULL);
	runs += mailbox_run(&box) > 0;

	/* Each time it held something, one poster was told to wake. */
	ck_assert_uint_eq(wakes, runs);
	for (size_t i = 0; i < COUNTERS; i++)
		ck_assert_uint_eq(counters[i].seen, counters[i].wanted);
	ck_assert_uint_eq(mailbox_run(&box), 0);
}

START_TEST(no_mail_of_many_threads_is_lost)
{
	run_posters(true);
}
END_TEST

START_TEST(many_puts_without_a_run_wake_once)
{
	run_posters(false);
	ck_assert_uint_eq(wakes, 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("mail");
	TCase *t = tcase_create("mail");

	tcase_set_timeout(t, 240);
	tcase_add_checked_fixture(t, an_empty_box_and_four_letters, NULL);
	tcase_add_test(t, an_empty_box_calls_nobody);
	tcase_add_test(t, only_the_first_mail_says_that_the_box_was_empty);
	tcase_add_test(t, the_oldest_is_called_first);
	tcase_add_test(t, mail_put_twice_is_called_once);
	tcase_add_test(t, mail_put_during_its_call_stays_for_the_next_time);
	tcase_add_test(t,
	    mail_that_was_taken_counts_as_put_until_it_is_called);
	tcase_add_loop_test(t, no_mail_of_many_threads_is_lost, 0, 5);
	tcase_add_test(t, many_puts_without_a_run_wake_once);
	suite_add_tcase(s, t);
	return run_suite(s);
}
