/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hangup.c - the other end of a stream goes, though nobody reads it.
 */
#include "net/hangup.h"
#include "net/rig.h"

static struct rig rig;
static struct hangups *hangups;

static struct minder {
	struct hangup	 hangup;
	struct stream	*s;
	struct stream	*closes;	/* this too */
	int		 peer;
	unsigned	 calls;
	bool		 called;
	bool		 broken;
	size_t		 unread;
} a, b;

static void
on_hangup(struct hangup *h)
{
	struct minder *m = container_of(h, struct minder, hangup);

	m->calls++;
	m->called = true;
	m->broken = stream_is_broken(m->s);
	ck_assert(stream_unread(m->s, &m->unread));
	stream_close(&m->closes);
}

static void
minder_open(struct minder *m)
{
	*m = (struct minder){ .hangup.fn = on_hangup };
	m->s = rig_stream(&rig, &m->peer);
	stream_mind(m->s, &m->hangup);
}

static void
set_up(void)
{
	rig_open(&rig, 1 << 20);
	hangups = hangups_new(rig.loop);
	ck_assert_ptr_nonnull(hangups);
	stream_pool_set_hangups(rig.streams, hangups);
	minder_open(&a);
}

static void
tear_down(void)
{
	stream_close(&a.s);
	hangups_free(&hangups);
	ck_assert_ptr_null(hangups);
	hangups_free(&hangups);
	rig_close(&rig);
}

START_TEST(bytes_wake_nobody)
{
	uint64_t ready;

	rig_turns(&rig, 2);
	ready = rig_ready(&rig);
	rig_write(a.peer, "hello");
	rig_turns(&rig, 20);
	ck_assert_uint_eq(a.calls, 0);
	ck_assert_uint_eq(rig_ready(&rig), ready);
	close(a.peer);
}
END_TEST

START_TEST(an_end_is_told_once_and_what_lies_in_front_of_it)
{
	rig_write(a.peer, "hello");
	close(a.peer);
	rig_until_true(&rig, &a.called);
	rig_turns(&rig, 20);
	ck_assert_uint_eq(a.calls, 1);
	ck_assert(!a.broken);
	ck_assert_uint_eq(a.unread, 5);
	ck_assert_uint_lt(stream_silence(a.s), NSEC_NEVER);
}
END_TEST

START_TEST(a_reset_is_told_behind_bytes)
{
	uint8_t byte;

	rig_write(a.peer, "hello");
	rig_reset(a.peer);
	rig_until_true(&rig, &a.called);
	ck_assert(a.broken);
	/* Whoever is asked again says the same, though the kernel doesn't. */
	ck_assert(stream_is_broken(a.s));
	ck_assert_int_lt(stream_recv(a.s, &byte, 1), 0);
}
END_TEST

START_TEST(a_reset_is_told_behind_an_end)
{
	rig_write(a.peer, "hello");
	shutdown(a.peer, SHUT_WR);
	rig_until_true(&rig, &a.called);
	ck_assert(!a.broken);
	a.called = false;
	rig_reset(a.peer);
	rig_until_true(&rig, &a.called);
	ck_assert(a.broken);
	ck_assert_uint_eq(a.calls, 2);
}
END_TEST

START_TEST(an_end_that_was_there_before_is_told)
{
	stream_mind_no_more(a.s);
	close(a.peer);
	rig_turns(&rig, 20);
	ck_assert_uint_eq(a.calls, 0);
	stream_mind(a.s, &a.hangup);
	ck_assert_uint_eq(a.calls, 0);
	rig_until_true(&rig, &a.called);
	stream_mind_no_more(a.s);
	stream_mind_no_more(a.s);
}
END_TEST

/* Whichever is told first closes the other, of which nothing is told then. */
START_TEST(one_may_close_the_next)
{
	minder_open(&b);
	a.closes = b.s;
	b.closes = a.s;
	close(a.peer);
	close(b.peer);
	rig_turns(&rig, 20);
	ck_assert_uint_eq(a.calls + b.calls, 1);
	if (a.called)
		b.s = NULL;
	else
		a.s = NULL;
	stream_close(&b.s);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/hangup");
	TCase *t = tcase_create("hangup");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, bytes_wake_nobody);
	tcase_add_test(t, an_end_is_told_once_and_what_lies_in_front_of_it);
	tcase_add_test(t, a_reset_is_told_behind_bytes);
	tcase_add_test(t, a_reset_is_told_behind_an_end);
	tcase_add_test(t, an_end_that_was_there_before_is_told);
	tcase_add_test(t, one_may_close_the_next);
	return run_suite(s);
}
