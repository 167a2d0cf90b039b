/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_loop.c - the order of a turn, calls, timers, descriptors.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "net/rig.h"

static struct rig rig;

static void
set_up(void)
{
	rig_open(&rig, 1 << 20);
}

static void
tear_down(void)
{
	rig_close(&rig);
}

/* --- calls --- */

struct note {
	struct mail	 mail;
	struct mail	*next;		/* put by the call */
	char		 name;
};

static char	order[64];
static size_t	steps;

static void
note(char name)
{
	ck_assert_uint_lt(steps, sizeof order - 1);
	order[steps++] = name;
}

static void
on_note(struct mail *m)
{
	struct note *n = container_of(m, struct note, mail);

	note(n->name);
	if (n->next != NULL)
		loop_later(rig.loop, n->next);
}

static void
note_init(struct note *n, char name)
{
	*n = (struct note){ .name = name };
	mail_init(&n->mail, on_note);
}

START_TEST(later_keeps_order_and_coalesces)
{
	struct note a, b, c;

	note_init(&a, 'a');
	note_init(&b, 'b');
	note_init(&c, 'c');
	loop_later(rig.loop, &b.mail);
	loop_later(rig.loop, &a.mail);
	loop_later(rig.loop, &b.mail);
	loop_later(rig.loop, &c.mail);
	ck_assert_uint_eq(steps, 0);
	rig_turns(&rig, 0);
	ck_assert_str_eq(order, "bac");
}
END_TEST

START_TEST(later_of_later_comes_in_the_same_turn)
{
	struct note a, b;

	note_init(&a, 'a');
	note_init(&b, 'b');
	a.next = &b.mail;
	loop_later(rig.loop, &a.mail);
	rig_turns(&rig, 0);
	ck_assert_str_eq(order, "ab");
}
END_TEST

START_TEST(cancelled_calls_are_not_made_and_the_list_stays_whole)
{
	struct note n[4];

	for (int i = 0; i < 4; i++)
		note_init(&n[i], (char)('a' + i));
	for (int i = 0; i < 3; i++)
		loop_later(rig.loop, &n[i].mail);
	loop_later_cancel(rig.loop, &n[2].mail);
	loop_later_cancel(rig.loop, &n[0].mail);
	loop_later_cancel(rig.loop, &n[0].mail);
	loop_later(rig.loop, &n[3].mail);
	loop_later(rig.loop, &n[0].mail);
	rig_turns(&rig, 0);
	ck_assert_str_eq(order, "bda");
}
END_TEST

START_TEST(cancel_finds_mail_that_was_posted)
{
	struct note a, b;

	note_init(&a, 'a');
	note_init(&b, 'b');
	/* Not running, so this goes through the mailbox. */
	loop_post(rig.loop, &a.mail);
	loop_post(rig.loop, &b.mail);
	loop_later_cancel(rig.loop, &a.mail);
	rig_turns(&rig, 2);
	ck_assert_str_eq(order, "b");
	loop_post(rig.loop, &a.mail);
	rig_turns(&rig, 2);
	ck_assert_str_eq(order, "ba");
}
END_TEST

static void
on_again(struct loop_again *a)
{
	(void)a;
	note('x');
}

START_TEST(again_is_called_once_a_turn_before_later)
{
	struct loop_again a = { .fn = on_again };
	struct note b;

	list_init(&a.link);
	note_init(&b, 'b');
	loop_later(rig.loop, &b.mail);
	loop_again(rig.loop, &a);
	loop_again(rig.loop, &a);
	rig_turns(&rig, 3);
	list_remove(&a.link);
	rig_turns(&rig, 1);
	ck_assert_str_eq(order, "xbxxx");
}
END_TEST

/* --- descriptors --- */

struct forever {
	struct mail	mail;
	unsigned	calls;
};

static void
on_forever(struct mail *m)
{
	container_of(m, struct forever, mail)->calls++;
	loop_later(rig.loop, m);
}

struct seen {
	struct watch	 watch;
	struct watch	*stop;		/* the other one */
	unsigned	 calls;
	unsigned	 ready;
	bool		 called;
};

static void
on_seen(struct watch *w, unsigned ready)
{
	struct seen *s = container_of(w, struct seen, watch);

	s->calls++;
	s->called = true;
	s->ready = ready;
	if (s->stop != NULL)
		watch_stop(s->stop);
}

START_TEST(a_call_that_asks_for_itself_does_not_starve_descriptors)
{
	struct watch_kind kind = WATCH_KIND(rig.loop, on_seen);
	struct forever f = { .calls = 0 };
	struct seen s = { .calls = 0 };
	int fds[2];

	rig_pair(fds);
	watch_init(&s.watch, &kind, fds[0]);
	watch_want(&s.watch, WATCH_READ);
	rig_write(fds[1], "x");
	mail_init(&f.mail, on_forever);
	loop_later(rig.loop, &f.mail);
	rig_until_true(&rig, &s.called);
	ck_assert_uint_le(f.calls, 3 * LOOP_CALLS);
	loop_later_cancel(rig.loop, &f.mail);
	watch_stop(&s.watch);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(a_watch_stopped_by_another_in_the_same_turn_is_not_called)
{
	struct watch_kind kind = WATCH_KIND(rig.loop, on_seen);
	struct seen s[2];
	int fds[2][2];

	for (int i = 0; i < 2; i++) {
		rig_pair(fds[i]);
		s[i] = (struct seen){ .stop = &s[!i].watch };
		watch_init(&s[i].watch, &kind, fds[i][0]);
		watch_want(&s[i].watch, WATCH_READ);
		rig_write(fds[i][1], "x");
	}
	rig_turns(&rig, 3);
	ck_assert(s[0].calls == 0 || s[1].calls == 0);
	ck_assert_uint_gt(s[0].calls + s[1].calls, 0);
	for (int i = 0; i < 2; i++) {
		watch_stop(&s[i].watch);
		close(fds[i][0]);
		close(fds[i][1]);
	}
}
END_TEST

START_TEST(a_watch_says_what_is_ready_and_what_is_wanted)
{
	struct watch_kind kind = WATCH_KIND(rig.loop, on_seen);
	struct seen s = { .calls = 0 };
	int fds[2];

	rig_pair(fds);
	watch_init(&s.watch, &kind, fds[0]);
	ck_assert_uint_eq(watch_wanted(&s.watch), 0);
	watch_want(&s.watch, WATCH_READ);
	rig_turns(&rig, 3);
	ck_assert_uint_eq(s.calls, 0);
	watch_want(&s.watch, WATCH_READ | WATCH_WRITE);
	ck_assert_uint_eq(watch_wanted(&s.watch), WATCH_READ | WATCH_WRITE);
	rig_until_true(&rig, &s.called);
	ck_assert_uint_eq(s.ready, WATCH_WRITE);
	watch_want(&s.watch, WATCH_READ);
	rig_write(fds[1], "x");
	s.called = false;
	rig_until_true(&rig, &s.called);
	ck_assert_uint_eq(s.ready, WATCH_READ);
	ck_assert_int_eq(watch_fd(&s.watch), fds[0]);
	ck_assert_ptr_eq(watch_kind(&s.watch), &kind);
	watch_stop(&s.watch);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

static int refused_fd = -1;

/* In place of libc's: as if max_user_watches were reached. */
int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (fd == refused_fd) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

START_TEST(a_descriptor_that_cannot_be_watched_is_an_error)
{
	struct watch_kind kind = WATCH_KIND(rig.loop, on_seen);
	struct seen s = { .calls = 0 };
	int fds[2];

	rig_pair(fds);
	refused_fd = fds[0];
	watch_init(&s.watch, &kind, fds[0]);
	watch_want(&s.watch, WATCH_READ);
	rig_until_true(&rig, &s.called);
	ck_assert_uint_eq(s.ready, WATCH_READ | WATCH_ERROR);
	ck_assert_uint_eq(watch_wanted(&s.watch), 0);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* --- timers --- */

enum { TIMERS = 200 };

static struct shot {
	struct wheel_timer	timer;
	nsec_t			due;
} shots[TIMERS];

static unsigned fired;

static void
on_shot(struct wheel_timer *t)
{
	struct shot *s = container_of(t, struct shot, timer);

	ck_assert_uint_ge(loop_now(rig.loop), s->due);
	if (++fired == TIMERS)
		loop_stop(rig.loop);
}

START_TEST(timers_fire_once_and_never_early)
{
	for (size_t i = 0; i < TIMERS; i++) {
		nsec_t after = i * 977 % 150 * NSEC_PER_MSEC + i;

		wheel_timer_init(&shots[i].timer, on_shot);
		shots[i].due = loop_now(rig.loop) + after;
		loop_arm(rig.loop, &shots[i].timer, after);
	}
	/* One is moved on, another is not to fire. */
	shots[3].due += 20 * NSEC_PER_MSEC;
	loop_arm_at(rig.loop, &shots[3].timer, shots[3].due);
	loop_cancel(rig.loop, &shots[5].timer);
	fired = 1;
	rig_run(&rig);
	ck_assert_uint_eq(fired, TIMERS);
	ck_assert_uint_eq(atomic_load(&loop_stats(rig.loop)->timers),
	    TIMERS - 1);
}
END_TEST

START_TEST(a_sleeping_loop_takes_few_turns_for_a_timer)
{
	wheel_timer_init(&shots[0].timer, on_shot);
	shots[0].due = loop_now(rig.loop) + 300 * NSEC_PER_MSEC;
	loop_arm_at(rig.loop, &shots[0].timer, shots[0].due);
	fired = TIMERS - 1;
	rig_run(&rig);
	ck_assert_uint_le(atomic_load(&loop_stats(rig.loop)->turns), 12);
}
END_TEST

START_TEST(the_wall_clock_is_the_time_of_day)
{
	struct timespec real, wall;

	rig_turns(&rig, 2);
	wall = loop_wall(rig.loop);
	clock_gettime(CLOCK_REALTIME, &real);
	ck_assert_int_le(wall.tv_sec, real.tv_sec);
	ck_assert_int_ge(wall.tv_sec, real.tv_sec - 10);
	ck_assert_int_lt(wall.tv_nsec, 1000000000);
}
END_TEST

/* --- threads --- */

enum { THREADS = 4, POSTS = 20000, MAILS = 3 };

struct slot {
	struct mail		mail;
	_Atomic unsigned	sent;
	unsigned		seen;
};

struct poster {
	struct slot	slots[MAILS];
	pthread_t	thread;
};

static struct poster posters[THREADS];

static bool
all_seen(void)
{
	unsigned sum = 0;

	for (size_t t = 0; t < THREADS; t++)
		for (size_t i = 0; i < MAILS; i++)
			sum += posters[t].slots[i].seen;
	return sum == THREADS * POSTS;
}

/* Looks only when the loop was woken, so a lost wake-up hangs. */
static void
on_post(struct mail *m)
{
	struct slot *s = container_of(m, struct slot, mail);

	s->seen = atomic_load_explicit(&s->sent, memory_order_relaxed);
	if (all_seen())
		loop_stop(rig.loop);
}

static void *
post_many(void *arg)
{
	struct poster *p = arg;

	for (size_t n = 0; n < POSTS; n++) {
		struct slot *s = &p->slots[n % MAILS];

		atomic_fetch_add_explicit(&s->sent, 1, memory_order_relaxed);
		loop_post(rig.loop, &s->mail);
	}
	return NULL;
}

START_TEST(the_last_of_many_posts_is_always_seen)
{
	for (size_t t = 0; t < THREADS; t++) {
		for (size_t i = 0; i < MAILS; i++)
			mail_init(&posters[t].slots[i].mail, on_post);
		ck_assert_int_eq(pthread_create(&posters[t].thread, NULL,
		    post_many, &posters[t]), 0);
	}
	rig_run(&rig);
	for (size_t t = 0; t < THREADS; t++)
		pthread_join(posters[t].thread, NULL);
	ck_assert(all_seen());
}
END_TEST

static void *
stop_it(void *arg)
{
	loop_stop(arg);
	return NULL;
}

START_TEST(a_loop_is_stopped_by_another_thread_even_before_it_runs)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, stop_it, rig.loop), 0);
	rig_run(&rig);
	pthread_join(thread, NULL);
	loop_stop(rig.loop);
	rig_run(&rig);
}
END_TEST

START_TEST(the_figures_of_a_turn_add_up)
{
	const struct loop_stats *s = loop_stats(rig.loop);

	rig_turns(&rig, 10);
	ck_assert_uint_ge(atomic_load(&s->turns), 10);
	ck_assert_uint_ge(hist_total(&s->lag), 10);
	ck_assert_uint_le(atomic_load(&s->longest), atomic_load(&s->busy));
	ck_assert_uint_ge(atomic_load(&s->lag_recent), 1);
}
END_TEST

/* Longer than the lag that the test allows. */
static void
on_slow_call(struct mail *m)
{
	(void)m;
	nanosleep(&(struct timespec){ .tv_nsec = 2 * NSEC_PER_MSEC }, NULL);
}

/* Was the loop late in the turn after a slow one? */
static bool
is_late_after_slow_turn(void)
{
	struct mail m;

	mail_init(&m, on_slow_call);
	loop_later(rig.loop, &m);
	rig_turns(&rig, 1);
	return loop_is_late(rig.loop);
}

START_TEST(a_loop_is_late_after_a_slow_turn_and_for_a_while)
{
	const struct loop_stats *stats = loop_stats(rig.loop);

	ck_assert(!is_late_after_slow_turn());
	ck_assert_uint_eq(stat_read(&stats->turns_late), 0);
	loop_set_max_lag(rig.loop, NSEC_PER_MSEC);
	/* Should this thread itself be held up, the while may be over. */
	while (!is_late_after_slow_turn())
		;
	ck_assert_uint_ge(stat_read(&stats->turns_late), 1);
	/* Without a turn, and without one that is slow. */
	nsec_t since = loop_now(rig.loop);
	while (loop_is_late(rig.loop))
		loop_now_update(rig.loop);
	ck_assert_uint_le(loop_now(rig.loop) - since, NSEC_PER_SEC * 60);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/loop");
	TCase *t = tcase_create("loop");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, later_keeps_order_and_coalesces);
	tcase_add_test(t, later_of_later_comes_in_the_same_turn);
	tcase_add_test(t,
	    cancelled_calls_are_not_made_and_the_list_stays_whole);
	tcase_add_test(t, cancel_finds_mail_that_was_posted);
	tcase_add_test(t, again_is_called_once_a_turn_before_later);
	tcase_add_test(t,
	    a_call_that_asks_for_itself_does_not_starve_descriptors);
	tcase_add_test(t,
	    a_watch_stopped_by_another_in_the_same_turn_is_not_called);
	tcase_add_test(t, a_watch_says_what_is_ready_and_what_is_wanted);
	tcase_add_test(t, a_descriptor_that_cannot_be_watched_is_an_error);
	tcase_add_test(t, timers_fire_once_and_never_early);
	tcase_add_test(t, a_sleeping_loop_takes_few_turns_for_a_timer);
	tcase_add_test(t, the_wall_clock_is_the_time_of_day);
	tcase_add_test(t, the_last_of_many_posts_is_always_seen);
	tcase_add_test(t,
	    a_loop_is_stopped_by_another_thread_even_before_it_runs);
	tcase_add_test(t, the_figures_of_a_turn_add_up);
	tcase_add_test(t, a_loop_is_late_after_a_slow_turn_and_for_a_while);
	return run_suite(s);
}
