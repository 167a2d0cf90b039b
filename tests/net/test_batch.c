/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_batch.c - the reads and the writes of a turn, each in one system call.
 */
#include <stdio.h>

#include "base/pace.h"
#include "net/batch.h"
#include "net/rig.h"
#include "net/ring.h"
#include "net/throttle.h"

enum { MOST = BATCH_MOST + 8 };

static struct rig rig;
static struct batch *batch;
static const struct batch_stats *stats;

/* One stream of several, and what its reader does. */
struct end {
	struct stream	*s;
	int		 fd;		/* the stream's own */
	int		 peer;
	char		 text[64];
	size_t		 length;
	size_t		 total;		/* of lengths */
	size_t		 once;		/* most to receive; 0: all */
	ssize_t		 last;
	unsigned	 reads;
	unsigned	 writes;
	int		 write_err;
	bool		 over;		/* FIN or error */
	void		(*then)(struct end *e);	/* after it has read */
	struct end	*other;
	struct stream_writer writer;
} all[MOST];

static void
on_read(void *arg)
{
	struct end *e = arg;
	size_t room = sizeof e->text - 1 - e->length;

	e->reads++;
	e->last = stream_recv(e->s, e->text + e->length,
	    e->once > 0 ? e->once : room);
	if (e->last > 0)
		e->length += (size_t)e->last;
	else if (e->last != -EAGAIN)
		e->over = true;
	if (e->then != NULL)
		e->then(e);
}

static void
on_write(struct stream_writer *w, int err)
{
	struct end *e = container_of(w, struct end, writer);

	e->writes++;
	e->write_err = err;
}

static void
set_up(void)
{
	int err;

	rig_open(&rig, 1 << 20);
	batch = batch_new(rig.loop, &err);
	ck_assert_ptr_nonnull(batch);
	stats = batch_stats(batch);
	stream_pool_set_batch(rig.streams, batch);
	memset(all, 0, sizeof all);
}

static void
open_ends(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct end *e = &all[i];
		int fds[2];

		rig_pair(fds);
		e->other = &all[i ^ 1];
		e->fd = fds[0];
		e->peer = fds[1];
		e->s = stream_new(rig.streams, fds[0]);
		e->writer.fn = on_write;
		stream_set_writer(e->s, &e->writer, 0);
		stream_set_reader(e->s, on_read, e);
	}
}

static void
tear_down(void)
{
	for (unsigned i = 0; i < MOST; i++) {
		stream_close(&all[i].s);
		if (all[i].peer > 0)
			close(all[i].peer);
	}
	batch_free(&batch);
	rig_close(&rig);
}

static void
say(struct end *e, const char *text)
{
	ck_assert_int_eq(stream_send(e->s,
	    &(struct iovec){ (char *)text, strlen(text) }, 1, BLOCK_BODY), 0);
}

/* An end is heard as nothing. */
static void
hears(const struct end *e, const char *text)
{
	char buf[256];
	ssize_t n = read(e->peer, buf, sizeof buf - 1);

	ck_assert_int_ge(n, 0);
	buf[n] = '\0';
	ck_assert_str_eq(buf, text);
}

/* Both have something to read when the next turn begins. */
static void
both_speak(void)
{
	rig_write(all[0].peer, "one");
	rig_write(all[1].peer, "two");
}

static void
echo(struct end *e)
{
	e->text[e->length] = '\0';
	say(e, e->text);
}

/* --- reads --- */

START_TEST(two_are_read_in_one_call_and_answer_in_another)
{
	open_ends(2);
	all[0].then = all[1].then = echo;
	both_speak();
	rig_turns(&rig, 1);
	ck_assert_str_eq(all[0].text, "one");
	ck_assert_str_eq(all[1].text, "two");
	ck_assert_uint_eq(stat_read(&stats->calls), 2);
	ck_assert_uint_eq(stat_read(&stats->done), 4);
	ck_assert_uint_eq(all[0].writes + all[1].writes, 2);
	hears(&all[0], "one");
	hears(&all[1], "two");
	ck_assert_uint_eq(atomic_load(&rig.totals.received), 6);
	ck_assert_uint_eq(atomic_load(&rig.totals.sent), 6);
}
END_TEST

START_TEST(who_is_alone_needs_no_batch)
{
	open_ends(2);
	all[0].then = echo;
	rig_write(all[0].peer, "one");
	rig_turns(&rig, 1);
	hears(&all[0], "one");
	ck_assert_uint_eq(stat_read(&stats->calls), 0);
	ck_assert_uint_eq(all[0].writes, 0);
}
END_TEST

START_TEST(more_than_there_are_places_for_are_served_all)
{
	open_ends(MOST);
	for (unsigned i = 0; i < MOST; i++) {
		all[i].then = echo;
		rig_write(all[i].peer, "hello");
	}
	rig_turns(&rig, 1);
	for (unsigned i = 0; i < MOST; i++)
		hears(&all[i], "hello");
	ck_assert_uint_eq(stat_read(&stats->calls), 4);
	ck_assert_uint_eq(stat_read(&stats->done), 2 * MOST);
}
END_TEST

static void
pause_other(struct end *e)
{
	stream_pause(e->other->s);
	e->then = NULL;
}

/* Whichever of the two is called first. */
static struct end *
other_is_paused(void)
{
	all[0].then = all[1].then = pause_other;
	both_speak();
	rig_turns(&rig, 1);
	ck_assert_uint_eq(all[0].reads + all[1].reads, 1);
	return all[0].reads == 0 ? &all[0] : &all[1];
}

START_TEST(what_was_read_of_who_was_paused_then_waits)
{
	open_ends(2);
	struct end *e = other_is_paused();
	uint64_t ready = rig_ready(&rig);
	size_t unread;

	e->then = NULL;
	rig_turns(&rig, 20);
	ck_assert_uint_eq(e->reads, 0);
	ck_assert_uint_eq(rig_ready(&rig), ready);
	ck_assert(!stream_seems_quiet(e->s));
	ck_assert(stream_unread(e->s, &unread));
	ck_assert_uint_eq(unread, 3);
	rig_give_pipes(&rig, 1);
	ck_assert(!stream_can_splice(e->s, e->other->s));
	stream_resume(e->s);
	rig_turns(&rig, 1);
	ck_assert_uint_eq(e->length, 3);
	ck_assert(stream_can_splice(e->s, e->other->s));
	ck_assert(stream_seems_quiet(e->s));
	rig_write(e->peer, "more");
	rig_turns(&rig, 2);
	ck_assert_uint_eq(e->length, 7);
}
END_TEST

/* Who is watched last is called first. */
START_TEST(a_reset_of_who_was_paused_is_no_secret)
{
	open_ends(2);
	all[1].then = pause_other;
	rig_reset(all[0].peer);
	all[0].peer = -1;
	rig_write(all[1].peer, "one");
	rig_turns(&rig, 1);
	ck_assert(!all[0].over);
	ck_assert(stream_is_broken(all[0].s));
}
END_TEST

static void
close_other(struct end *e)
{
	stream_close(&e->other->s);
	e->then = NULL;
}

START_TEST(who_is_closed_meanwhile_is_not_called)
{
	for (unsigned i = 0; i < 3 * BATCH_MOST; i++) {
		open_ends(2);
		all[0].then = all[1].then = close_other;
		both_speak();
		rig_turns(&rig, 1);
		ck_assert_uint_eq(all[0].reads + all[1].reads, i + 1);
		for (unsigned j = 0; j < 2; j++) {
			stream_close(&all[j].s);
			close(all[j].peer);
			all[j].peer = 0;
			all[j].length = 0;
		}
	}
	ck_assert_uint_eq(stat_read(&stats->calls), 3 * BATCH_MOST);
}
END_TEST

START_TEST(who_takes_a_part_is_called_again)
{
	open_ends(2);
	all[0].once = 1;
	both_speak();
	rig_turns(&rig, 4);
	ck_assert_uint_eq(all[0].reads, 3);
	ck_assert_str_eq(all[0].text, "one");
	ck_assert(stream_took_all(all[0].s));
	ck_assert_str_eq(all[1].text, "two");
}
END_TEST

START_TEST(an_end_and_a_reset_come_through)
{
	open_ends(2);
	close(all[0].peer);
	rig_reset(all[1].peer);
	all[0].peer = all[1].peer = -1;
	rig_turns(&rig, 3);
	ck_assert(all[0].over && all[1].over);
	ck_assert_int_eq(all[0].last, 0);
	ck_assert_int_eq(all[1].last, -ECONNRESET);
	ck_assert_uint_eq(all[0].reads + all[1].reads, 2);
}
END_TEST

/* A full piece: there may be more. */
static void
rewind_text(struct end *e)
{
	e->total += e->length;
	e->length = 0;
	if (e->total == BATCH_PIECE)
		ck_assert(!stream_took_all(e->s));
}

START_TEST(much_is_read_whole)
{
	char much[3 * BATCH_PIECE];

	memset(much, 'x', sizeof much);
	open_ends(2);
	ck_assert_int_eq(write(all[0].peer, much, sizeof much), sizeof much);
	rig_write(all[1].peer, "two");
	all[0].then = all[1].then = rewind_text;
	rig_turns(&rig, 8 + sizeof much / sizeof all[0].text);
	ck_assert_uint_eq(atomic_load(&rig.totals.received),
	    sizeof much + 3);
	ck_assert(!all[0].over);
	ck_assert_uint_eq(all[0].total, sizeof much);
	ck_assert(stream_took_all(all[0].s));
}
END_TEST

/* What was read before it had a throttle counts, and passes in parts. */
START_TEST(what_lies_here_passes_a_throttle_that_comes)
{
	struct pace pace;
	struct pace_spec spec;
	struct throttle t;

	open_ends(2);
	struct end *e = other_is_paused();

	e->then = NULL;
	pace_init(&pace);
	pace_spec_init(&spec, 1 << 20, 1 << 20);
	pace_set(&pace, &spec, 0);
	throttle_init(&t);
	throttle_add(&t, &pace, 1);
	stream_set_throttle(e->s, &t);
	e->once = 2;
	stream_resume(e->s);
	rig_turns(&rig, 3);
	ck_assert_uint_eq(e->length, 3);
	ck_assert_uint_eq(e->reads, 2);
	stream_set_throttle(e->s, NULL);
}
END_TEST

/* --- writes --- */

static void
say_twice(struct end *e)
{
	say(e, "first, ");
	ck_assert_uint_eq(stream_queued(e->s), 7);
	say(e, "second");
}

START_TEST(who_sends_twice_is_heard_in_order)
{
	open_ends(2);
	all[0].then = all[1].then = say_twice;
	both_speak();
	rig_turns(&rig, 1);
	hears(&all[0], "first, second");
	hears(&all[1], "first, second");
	ck_assert_uint_eq(stream_queued(all[0].s), 0);
}
END_TEST

static void
say_and_end(struct end *e)
{
	say(e, "bye");
	stream_end(e->s);
	ck_assert(!stream_has_ended(e->s));
	e->then = NULL;
}

START_TEST(an_end_follows_what_was_sent)
{
	open_ends(2);
	all[0].then = all[1].then = say_and_end;
	both_speak();
	rig_turns(&rig, 1);
	ck_assert(stream_has_ended(all[0].s));
	hears(&all[0], "bye");
	hears(&all[0], "");
	hears(&all[1], "bye");
}
END_TEST

static void
say_and_close(struct end *e)
{
	say(e, "bye");
	stream_close(&e->s);
}

START_TEST(what_was_sent_goes_out_before_a_close)
{
	open_ends(2);
	all[0].then = all[1].then = say_and_close;
	both_speak();
	rig_turns(&rig, 2);
	hears(&all[0], "bye");
	hears(&all[0], "");
	ck_assert_uint_eq(all[0].writes, 0);
}
END_TEST

static void
say_and_reset(struct end *e)
{
	say(e, "bye");
	stream_reset(&e->s);
}

START_TEST(a_reset_drops_what_was_sent)
{
	char byte;

	open_ends(2);
	all[0].then = say_and_reset;
	both_speak();
	rig_turns(&rig, 2);
	ck_assert_int_eq(read(all[0].peer, &byte, 1), -1);
	ck_assert_int_eq(errno, ECONNRESET);
}
END_TEST

/* So that the kernel takes no more of its stream. */
static size_t
stuff(const struct end *e)
{
	static const char junk[4096];
	size_t sum = 0;
	ssize_t n;

	while ((n = write(e->fd, junk, sizeof junk)) > 0)
		sum += (size_t)n;
	while ((n = write(e->fd, junk, 1)) > 0)
		sum++;
	return sum;
}

static bool
has_been_told(void *arg)
{
	struct end *e = arg;
	char buf[4096];

	ssize_t n = read(e->peer, buf, sizeof buf);

	e->length += n > 0 ? (size_t)n : 0;
	return e->writes > 0 && stream_queued(e->s) == 0;
}

START_TEST(what_the_kernel_refuses_is_queued)
{
	open_ends(2);
	all[0].then = all[1].then = echo;
	both_speak();

	size_t sum = stuff(&all[0]);

	rig_turns(&rig, 1);
	ck_assert_uint_eq(stream_queued(all[0].s), 3);
	ck_assert_uint_gt(atomic_load(&rig.budget.used), 0);
	ck_assert_uint_eq(all[0].writes, 0);
	ck_assert_uint_eq(all[1].writes, 1);
	all[0].length = 0;
	rig_until(&rig, has_been_told, &all[0]);
	while (all[0].length < sum + 3)
		has_been_told(&all[0]);
	ck_assert_uint_eq(all[0].length, sum + 3);
	ck_assert_uint_eq(atomic_load(&rig.budget.used), 0);
}
END_TEST

static void
shut_and_say(struct end *e)
{
	ck_assert_int_eq(shutdown(e->fd, SHUT_WR), 0);
	echo(e);
}

START_TEST(a_failure_is_told_in_the_same_turn)
{
	open_ends(2);
	all[0].then = shut_and_say;
	all[1].then = echo;
	both_speak();
	rig_turns(&rig, 1);
	ck_assert_int_eq(all[0].write_err, EPIPE);
	ck_assert_int_eq(stream_write_error(all[0].s), -EPIPE);
	ck_assert_uint_eq(all[1].writes, 1);
	ck_assert_int_eq(all[1].write_err, 0);
}
END_TEST

static void
close_both(struct stream_writer *w, int err)
{
	struct end *e = container_of(w, struct end, writer);

	(void)err;
	e->writes++;
	stream_close(&e->s);
	stream_close(&e->other->s);
}

START_TEST(a_writer_may_close_others)
{
	open_ends(2);
	all[0].then = all[1].then = echo;
	all[0].writer.fn = all[1].writer.fn = close_both;
	both_speak();
	rig_turns(&rig, 1);
	ck_assert_uint_eq(all[0].writes + all[1].writes, 1);
	hears(&all[0], "one");
	hears(&all[1], "two");
}
END_TEST

static void
say_more(struct stream_writer *w, int err)
{
	struct end *e = container_of(w, struct end, writer);

	ck_assert_int_eq(err, 0);
	if (e->writes++ == 0) {
		say(e, "!");
		say(e->other, "?");
	}
}

/* Then nothing is gathered any more: it goes out at once, and in order. */
START_TEST(a_writer_may_send_to_others)
{
	open_ends(2);
	all[0].then = all[1].then = echo;
	all[0].writer.fn = say_more;
	both_speak();
	rig_turns(&rig, 1);
	hears(&all[0], "one!");
	hears(&all[1], "two?");
	ck_assert_uint_eq(stat_read(&stats->calls), 2);
}
END_TEST

int
main(void)
{
	int err;
	struct ring *ring = ring_new(BATCH_MOST, &err);

	if (ring == NULL) {
		printf("SKIP: the kernel has no ring: %s\n", strerror(err));
		return 77;
	}
	ring_free(&ring);

	Suite *s = suite_create("net/batch");
	TCase *t = tcase_create("batch");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, two_are_read_in_one_call_and_answer_in_another);
	tcase_add_test(t, who_is_alone_needs_no_batch);
	tcase_add_test(t, more_than_there_are_places_for_are_served_all);
	tcase_add_test(t, what_was_read_of_who_was_paused_then_waits);
	tcase_add_test(t, a_reset_of_who_was_paused_is_no_secret);
	tcase_add_test(t, who_is_closed_meanwhile_is_not_called);
	tcase_add_test(t, who_takes_a_part_is_called_again);
	tcase_add_test(t, an_end_and_a_reset_come_through);
	tcase_add_test(t, much_is_read_whole);
	tcase_add_test(t, what_lies_here_passes_a_throttle_that_comes);
	tcase_add_test(t, who_sends_twice_is_heard_in_order);
	tcase_add_test(t, an_end_follows_what_was_sent);
	tcase_add_test(t, what_was_sent_goes_out_before_a_close);
	tcase_add_test(t, a_reset_drops_what_was_sent);
	tcase_add_test(t, what_the_kernel_refuses_is_queued);
	tcase_add_test(t, a_failure_is_told_in_the_same_turn);
	tcase_add_test(t, a_writer_may_close_others);
	tcase_add_test(t, a_writer_may_send_to_others);
	return run_suite(s);
}
