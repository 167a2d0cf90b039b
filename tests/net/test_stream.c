/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stream.c - one end of a connection, against a bare socket.
 */
#include "base/addr.h"
#include "net/rig.h"

static struct rig rig;

/* A reader and writer that note what they see. */
struct end {
	struct stream	*s;
	char		 text[64];
	size_t		 length;
	size_t		 once;		/* most to receive at once; 0: all */
	unsigned	 reads;
	unsigned	 writes;
	ssize_t		 last;
	int		 write_err;
	bool		 read_over;	/* FIN or error */
	bool		 drained;
	bool		 close_on_read;
	bool		 close_on_write;
	struct stream_writer writer;
};

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

static void
on_read(void *arg)
{
	struct end *e = arg;

	e->reads++;
	if (e->close_on_read) {
		stream_close(&e->s);
		return;
	}
	e->last = stream_recv(e->s, e->text + e->length,
	    e->once > 0 ? e->once : sizeof e->text - 1 - e->length);
	if (e->last > 0)
		e->length += (size_t)e->last;
	else if (e->last != -EAGAIN)
		e->read_over = true;
}

static void
on_write(struct stream_writer *w, int err)
{
	struct end *e = container_of(w, struct end, writer);

	e->writes++;
	e->write_err = err;
	if (e->close_on_write) {
		stream_close(&e->s);
		return;
	}
	e->drained = err != 0 || stream_queued(e->s) == 0;
}

static bool
has_read(void *arg)
{
	const struct end *e = arg;

	return e->length > 0 || e->read_over;
}

static int
say(struct stream *s, const char *text)
{
	return stream_send(s, &(struct iovec){ (char *)text, strlen(text) },
	    1, BLOCK_BODY);
}

/* --- reading --- */

START_TEST(bytes_arrive_and_are_counted)
{
	struct end e = { .reads = 0 };
	int peer;

	e.s = rig_stream(&rig, &peer);
	stream_set_reader(e.s, on_read, &e);
	rig_write(peer, "hello");
	rig_until(&rig, has_read, &e);
	ck_assert_str_eq(e.text, "hello");
	ck_assert_uint_eq(atomic_load(&rig.totals.received), 5);
	ck_assert_uint_eq(atomic_load(&rig.totals.open), 1);
	ck_assert_ptr_eq(stream_loop(e.s), rig.loop);
	stream_close(&e.s);
	ck_assert_ptr_null(e.s);
	stream_close(&e.s);
	close(peer);
}
END_TEST

static bool
has_three(void *arg)
{
	return ((const struct end *)arg)->length == 3;
}

START_TEST(what_is_left_in_the_kernel_comes_in_the_next_turn)
{
	struct end e = { .once = 1 };
	int peer;

	e.s = rig_stream(&rig, &peer);
	stream_set_reader(e.s, on_read, &e);
	rig_write(peer, "abc");
	rig_until(&rig, has_three, &e);
	ck_assert_uint_eq(e.reads, 3);
	stream_close(&e.s);
	close(peer);
}
END_TEST

START_TEST(a_paused_stream_neither_calls_nor_spins)
{
	struct end e = { .reads = 0 };
	int peer;

	e.s = rig_stream(&rig, &peer);
	stream_set_reader(e.s, on_read, &e);
	rig_turns(&rig, 2);
	stream_pause(e.s);
	ck_assert(stream_is_paused(e.s));
	rig_write(peer, "abc");
	rig_turns(&rig, 50);
	ck_assert_uint_eq(e.reads, 0);
	ck_assert_uint_le(rig_ready(&rig), 1);
	stream_resume(e.s);
	rig_until(&rig, has_read, &e);
	ck_assert_str_eq(e.text, "abc");
	stream_close(&e.s);
	close(peer);
}
END_TEST

START_TEST(the_end_is_told_once)
{
	struct end e = { .reads = 0 };
	int peer;

	e.s = rig_stream(&rig, &peer);
	stream_set_reader(e.s, on_read, &e);
	close(peer);
	rig_until_true(&rig, &e.read_over);
	ck_assert_int_eq(e.last, 0);
	rig_turns(&rig, 20);
	ck_assert_uint_eq(e.reads, 1);
	stream_close(&e.s);
}
END_TEST

START_TEST(a_reset_is_told_as_an_error)
{
	struct end e = { .reads = 0 };
	int peer;

	e.s = rig_stream(&rig, &peer);
	stream_set_reader(e.s, on_read, &e);
	rig_reset(peer);
	rig_until_true(&rig, &e.read_over);
	ck_assert_int_eq(e.last, -ECONNRESET);
	rig_turns(&rig, 20);
	ck_assert_uint_eq(e.reads, 1);
	stream_close(&e.s);
}
END_TEST

START_TEST(a_reader_may_close_the_stream)
{
	struct end e = { .close_on_read = true };
	int peer;

	e.s = rig_stream(&rig, &peer);
	stream_set_reader(e.s, on_read, &e);
	rig_write(peer, "x");
	rig_turns(&rig, 5);
	ck_assert_uint_eq(e.reads, 1);
	ck_assert_ptr_null(e.s);
	close(peer);
}
END_TEST

START_TEST(a_quiet_stream_is_one_without_bytes_or_end)
{
	int peer;
	struct stream *s = rig_stream(&rig, &peer);

	ck_assert(stream_is_quiet(s));
	rig_write(peer, "x");
	ck_assert(!stream_is_quiet(s));
	stream_close(&s);
	close(peer);

	s = rig_stream(&rig, &peer);
	close(peer);
	ck_assert(!stream_is_quiet(s));
	stream_close(&s);
}
END_TEST

/* --- writing --- */

enum { MANY = 300 * 1000 };

static uint8_t many[MANY];

static void
fill_many(void)
{
	for (size_t i = 0; i < MANY; i++)
		many[i] = rig_byte(i);
}

/* As pieces of odd sizes, some empty. */
static void
send_many(struct stream *s)
{
	for (size_t at = 0; at < MANY;) {
		size_t n = MIN(at % 9973 + 1, MANY - at);
		struct iovec iov[3] = {
			{ many + at, n / 3 },
			{ many + at + n / 3, 0 },
			{ many + at + n / 3, n - n / 3 },
		};

		ck_assert_int_eq(stream_send(s, iov, 3, BLOCK_BODY), 0);
		at += n;
	}
}

/* A stream whose kernel takes little at once. */
static struct stream *
narrow_stream(int *peer)
{
	int fds[2];

	fill_many();
	rig_pair(fds);
	rig_small_buffers(fds[0]);
	rig_small_buffers(fds[1]);
	*peer = fds[1];
	return stream_new(rig.streams, fds[0]);
}

START_TEST(short_writes_lose_nothing_and_end_with_a_fin)
{
	struct rig_sink sink = { .got = 0 };
	struct end e = { .s = narrow_stream(&sink.fd) };

	e.writer.fn = on_write;
	stream_set_writer(e.s, &e.writer, 0);
	send_many(e.s);
	ck_assert_uint_gt(stream_queued(e.s), MANY / 2);
	stream_end(e.s);
	ck_assert(!stream_has_ended(e.s));
	ck_assert_uint_eq(e.writes, 0);

	rig_until(&rig, rig_sink_read, &sink);
	ck_assert_uint_eq(sink.got, MANY);
	ck_assert(sink.ended && stream_has_ended(e.s));
	ck_assert(e.drained);
	ck_assert_uint_eq(atomic_load(&rig.totals.sent), MANY);
	ck_assert_uint_eq(atomic_load(&rig.budget.used), 0);
	ck_assert_uint_gt(e.writer.sent_at, 0);
	/* Nothing is wanted any more. */
	uint64_t ready = rig_ready(&rig);
	rig_turns(&rig, 20);
	ck_assert_uint_eq(rig_ready(&rig), ready);
	stream_close(&e.s);
	close(sink.fd);
}
END_TEST

START_TEST(the_writer_is_told_at_low_and_not_above)
{
	struct rig_sink sink = { .got = 0 };
	struct end e = { .s = narrow_stream(&sink.fd) };

	e.writer.fn = on_write;
	stream_set_writer(e.s, &e.writer, 50000);
	send_many(e.s);
	while (e.writes == 0) {
		ck_assert_uint_gt(stream_queued(e.s), 50000);
		(void)rig_sink_read(&sink);
		rig_turns(&rig, 1);
	}
	ck_assert_int_eq(e.write_err, 0);
	ck_assert_uint_le(stream_queued(e.s), 50000);
	stream_close(&e.s);
	close(sink.fd);
}
END_TEST

START_TEST(an_end_without_queue_is_sent_at_once)
{
	struct rig_sink sink = { .got = 0 };
	struct stream *s = rig_stream(&rig, &sink.fd);

	stream_end(s);
	ck_assert(stream_has_ended(s));
	rig_until(&rig, rig_sink_read, &sink);
	ck_assert(sink.ended);
	stream_close(&s);
	close(sink.fd);
}
END_TEST

START_TEST(a_reset_stream_is_a_reset_for_the_other_end)
{
	struct rig_sink sink = { .got = 0 };
	struct stream *s = rig_stream(&rig, &sink.fd);

	stream_reset(&s);
	ck_assert_ptr_null(s);
	rig_until(&rig, rig_sink_read, &sink);
	ck_assert_int_eq(sink.err, ECONNRESET);
	close(sink.fd);
}
END_TEST

START_TEST(a_failed_write_is_told_to_the_writer_and_kept)
{
	int peer;
	struct end e = { .s = narrow_stream(&peer) };

	e.writer.fn = on_write;
	stream_set_writer(e.s, &e.writer, 0);
	send_many(e.s);
	rig_reset(peer);
	rig_until_true(&rig, &e.drained);
	ck_assert_int_ne(e.write_err, 0);
	ck_assert_int_eq(stream_write_error(e.s), -e.write_err);
	ck_assert_int_eq(say(e.s, "more"), -e.write_err);
	ck_assert_uint_eq(stream_queued(e.s), 0);
	stream_close(&e.s);
}
END_TEST

static bool
send_fails(void *arg)
{
	struct end *e = arg;

	return say(e->s, "x") != 0;
}

START_TEST(what_came_before_a_failed_write_is_received)
{
	struct end e = { .reads = 0 };
	int peer;

	e.s = rig_stream(&rig, &peer);
	rig_write(peer, "answer");
	rig_reset(peer);
	rig_until(&rig, send_fails, &e);
	stream_set_reader(e.s, on_read, &e);
	rig_until(&rig, has_read, &e);
	ck_assert_str_eq(e.text, "answer");
	rig_until_true(&rig, &e.read_over);
	ck_assert_int_lt(e.last, 0);
	stream_close(&e.s);
}
END_TEST

START_TEST(a_writer_may_close_a_stream_that_is_readable_too)
{
	struct rig_sink sink = { .got = 0 };
	struct end e = { .close_on_write = true };

	e.s = narrow_stream(&sink.fd);
	e.writer.fn = on_write;
	stream_set_writer(e.s, &e.writer, MANY);
	stream_set_reader(e.s, on_read, &e);
	send_many(e.s);
	rig_write(sink.fd, "x");
	while (sink.got < MANY / 20)
		(void)rig_sink_read(&sink);
	rig_turns(&rig, 5);
	ck_assert_uint_eq(e.writes, 1);
	ck_assert_uint_le(e.reads, 1);
	ck_assert_ptr_null(e.s);
	close(sink.fd);
}
END_TEST

/* --- limits --- */

START_TEST(a_queue_without_memory_breaks_the_stream)
{
	int peer;
	struct stream *s = narrow_stream(&peer);

	atomic_store(&rig.budget.limit, 65536);
	ck_assert_int_eq(stream_send(s, &(struct iovec){ many, MANY }, 1,
	    BLOCK_BODY), -ENOMEM);
	ck_assert_int_eq(say(s, "x"), -ENOMEM);
	ck_assert_uint_eq(stream_queued(s), 0);
	stream_close(&s);
	close(peer);
}
END_TEST

START_TEST(streams_are_bounded_and_the_socket_stays_with_the_caller)
{
	struct stream *s[RIG_STREAMS];
	int fds[2];

	for (int i = 0; i < RIG_STREAMS; i++) {
		s[i] = stream_new(rig.streams, dup(0));
		ck_assert_ptr_nonnull(s[i]);
	}
	rig_pair(fds);
	ck_assert_ptr_null(stream_new(rig.streams, fds[0]));
	rig_write(fds[0], "still ours");
	close(fds[0]);
	close(fds[1]);
	for (int i = 0; i < RIG_STREAMS; i++)
		stream_close(&s[i]);
}
END_TEST

START_TEST(the_other_end_has_an_address)
{
	struct addr peer;
	int fd;
	struct stream *s = rig_stream(&rig, &fd);

	stream_peer(s, &peer);
	ck_assert_int_eq(peer.family, ADDR_IP4);
	ck_assert(addr_is_loopback(&peer));
	ck_assert_uint_ne(peer.port, 0);
	stream_close(&s);
	close(fd);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/stream");
	TCase *t = tcase_create("stream");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, bytes_arrive_and_are_counted);
	tcase_add_test(t, what_is_left_in_the_kernel_comes_in_the_next_turn);
	tcase_add_test(t, a_paused_stream_neither_calls_nor_spins);
	tcase_add_test(t, the_end_is_told_once);
	tcase_add_test(t, a_reset_is_told_as_an_error);
	tcase_add_test(t, a_reader_may_close_the_stream);
	tcase_add_test(t, a_quiet_stream_is_one_without_bytes_or_end);
	tcase_add_test(t, short_writes_lose_nothing_and_end_with_a_fin);
	tcase_add_test(t, the_writer_is_told_at_low_and_not_above);
	tcase_add_test(t, an_end_without_queue_is_sent_at_once);
	tcase_add_test(t, a_reset_stream_is_a_reset_for_the_other_end);
	tcase_add_test(t, a_failed_write_is_told_to_the_writer_and_kept);
	tcase_add_test(t, what_came_before_a_failed_write_is_received);
	tcase_add_test(t,
	    a_writer_may_close_a_stream_that_is_readable_too);
	tcase_add_test(t, a_queue_without_memory_breaks_the_stream);
	tcase_add_test(t,
	    streams_are_bounded_and_the_socket_stays_with_the_caller);
	tcase_add_test(t, the_other_end_has_an_address);
	return run_suite(s);
}
