/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_tunnel.c - both ways: half-closed, reset, idle, stopped.
 */
#include "net/rig.h"
#include "net/tunnel.h"

static struct rig rig;
static struct tunnel tunnel;
static struct tunnel_opts opts;
static int client, server;	/* the far ends; -1: closed */
static unsigned ends;
static bool ended, inside;
static enum failure why;

static void
on_ended(struct tunnel *t, enum failure f)
{
	ck_assert(!inside);
	ck_assert_ptr_null(t->client);
	ck_assert_ptr_null(t->upstream);
	/* It may be freed now. */
	memset(t, 0xa5, sizeof *t);
	ends++;
	ended = true;
	why = f;
}

static void
set_up(void)
{
	rig_open(&rig, 1 << 20);
	opts = (struct tunnel_opts){
		.client = rig_stream(&rig, &client),
		.upstream = rig_stream(&rig, &server),
		.high = 65536,
		.low = 16384,
		.idle = 60 * NSEC_PER_SEC,
		.half_closed = 60 * NSEC_PER_SEC,
		.send = 60 * NSEC_PER_SEC,
		.ended = on_ended,
	};
}

static void
start(void)
{
	inside = true;
	tunnel_start(&tunnel, &opts);
	inside = false;
}

static void
tear_down(void)
{
	rig_turns(&rig, 5);
	ck_assert_uint_le(ends, 1);
	if (client != -1)
		close(client);
	if (server != -1)
		close(server);
	rig_close(&rig);
}

/* --- the far ends --- */

struct heard {
	int	 fd;
	char	 text[64];
	size_t	 length;
	size_t	 want;		/* bytes; more than there is: the end */
	ssize_t	 last;
	int	 err;
};

static bool
has_heard(void *arg)
{
	struct heard *h = arg;

	h->last = read(h->fd, h->text + h->length,
	    sizeof h->text - 1 - h->length);
	if (h->last > 0)
		h->length += (size_t)h->last;
	h->err = h->last == -1 ? errno : 0;
	return h->length == h->want || h->last == 0 ||
	    (h->err != 0 && h->err != EAGAIN);
}

static void
expect(int fd, const char *text)
{
	struct heard h = { .fd = fd, .want = strlen(text) };

	rig_until(&rig, has_heard, &h);
	ck_assert_str_eq(h.text, text);
}

static void
expect_end(int fd)
{
	struct heard h = { .fd = fd, .want = SIZE_MAX };

	rig_until(&rig, has_heard, &h);
	ck_assert_uint_eq(h.length, 0);
	ck_assert_int_eq(h.last, 0);
}

static void
expect_reset(int fd)
{
	struct heard h = { .fd = fd, .want = SIZE_MAX };

	rig_until(&rig, has_heard, &h);
	ck_assert_int_eq(h.err, ECONNRESET);
}

START_TEST(a_clients_end_lets_the_server_go_on)
{
	start();
	rig_write(client, "question");
	shutdown(client, SHUT_WR);
	expect(server, "question");
	expect_end(server);
	rig_write(server, "answer");
	expect(client, "answer");
	rig_turns(&rig, 10);
	ck_assert(!ended);
	rig_write(server, " and more");
	shutdown(server, SHUT_WR);
	expect(client, " and more");
	expect_end(client);
	rig_until_true(&rig, &ended);
	ck_assert_int_eq(why, FAIL_NONE);
}
END_TEST

START_TEST(a_servers_end_lets_the_client_go_on)
{
	start();
	rig_write(server, "greeting");
	shutdown(server, SHUT_WR);
	expect(client, "greeting");
	expect_end(client);
	rig_write(client, "thanks");
	expect(server, "thanks");
	shutdown(client, SHUT_WR);
	expect_end(server);
	rig_until_true(&rig, &ended);
	ck_assert_int_eq(why, FAIL_NONE);
}
END_TEST

START_TEST(a_clients_reset_is_carried)
{
	start();
	rig_reset(client);
	client = -1;
	expect_reset(server);
	rig_until_true(&rig, &ended);
	ck_assert_int_eq(why, FAIL_CLIENT_CLOSED);
}
END_TEST

START_TEST(a_servers_reset_is_carried)
{
	start();
	rig_reset(server);
	server = -1;
	expect_reset(client);
	rig_until_true(&rig, &ended);
	ck_assert_int_eq(why, FAIL_UPSTREAM_CLOSED);
}
END_TEST

START_TEST(bytes_from_before_go_first)
{
	uint8_t up[] = "up ", down[] = "down ";

	start();
	inside = true;
	tunnel_push_up(&tunnel, up, 3);
	tunnel_push_down(&tunnel, down, 5);
	inside = false;
	rig_write(client, "stairs");
	rig_write(server, "town");
	expect(server, "up stairs");
	expect(client, "down town");
	tunnel_stop(&tunnel);
}
END_TEST

START_TEST(an_end_from_before_is_carried_after_its_bytes)
{
	uint8_t bytes[] = "last";

	start();
	inside = true;
	tunnel_push_up(&tunnel, bytes, 4);
	tunnel_push_end(&tunnel);
	inside = false;
	expect(server, "last");
	expect_end(server);
	rig_write(server, "answer");
	expect(client, "answer");
	tunnel_stop(&tunnel);
}
END_TEST

START_TEST(a_stopped_tunnel_resets_both_and_calls_nobody)
{
	start();
	inside = true;
	tunnel_stop(&tunnel);
	expect_reset(client);
	expect_reset(server);
	ck_assert_uint_eq(ends, 0);
}
END_TEST

START_TEST(a_tunnel_without_bytes_is_idle)
{
	opts.idle = 20 * NSEC_PER_MSEC;
	start();
	rig_until_true(&rig, &ended);
	ck_assert_int_eq(why, FAIL_TUNNEL_IDLE);
}
END_TEST

START_TEST(a_half_closed_tunnel_has_its_own_time)
{
	opts.half_closed = 20 * NSEC_PER_MSEC;
	start();
	rig_turns(&rig, 10);
	shutdown(server, SHUT_WR);
	rig_until_true(&rig, &ended);
	ck_assert_int_eq(why, FAIL_HALF_CLOSED);
}
END_TEST

/* One side floods; the other takes nothing, but talks. */
struct flood {
	int		 from;
	const struct flow *flow;
	int		 deaf;
};

static bool
is_held_up(void *arg)
{
	static uint8_t zeros[8000];
	const struct flood *f = arg;

	while (write(f->from, zeros, sizeof zeros) > 0)
		;
	return f->flow->waits == FLOW_WAITS_SINK;
}

static bool
talks_to_the_end(void *arg)
{
	const struct flood *f = arg;

	if (!ended)
		rig_write(f->deaf, "x");
	return ended;
}

static void
flood(struct flood f)
{
	opts.send = 20 * NSEC_PER_MSEC;
	start();
	rig_until(&rig, is_held_up, &f);
	rig_until(&rig, talks_to_the_end, &f);
}

START_TEST(a_client_that_takes_nothing_is_cut)
{
	flood((struct flood){ server, &tunnel.down, client });
	ck_assert_int_eq(why, FAIL_CLIENT_TIMEOUT);
}
END_TEST

START_TEST(an_upstream_that_takes_nothing_is_cut)
{
	flood((struct flood){ client, &tunnel.up, server });
	ck_assert_int_eq(why, FAIL_UPSTREAM_BLOCKED);
}
END_TEST

/*
 * The server has answered and gone; what the client says yet is answered
 * with a reset, and must not cost it the answer.
 */
enum { ANSWER = 400 * 1000 };

static struct rig_sink sink;
static size_t answered;

static bool
has_answered(void *arg)
{
	uint8_t buf[8000];
	size_t n = MIN(sizeof buf, ANSWER - answered);

	(void)arg;
	for (size_t i = 0; i < n; i++)
		buf[i] = rig_byte(answered + i);

	ssize_t w = write(server, buf, n);

	if (w > 0)
		answered += (size_t)w;
	return answered == ANSWER;
}

static bool
upstream_was_read(void *arg)
{
	(void)arg;
	return tunnel.down.source_over;
}

static bool
upstream_broke(void *arg)
{
	(void)arg;
	rig_write(client, "x");
	return !flow_is_running(&tunnel.up);
}

START_TEST(a_server_that_answers_and_goes_is_heard_to_the_end)
{
	int fds[2];

	/* Much waits in the tunnel, a little in the kernel. */
	stream_close(&opts.client);
	close(client);
	rig_pair(fds);
	rig_small_buffers(fds[0]);
	rig_small_buffers(fds[1]);
	client = sink.fd = fds[1];
	opts.client = stream_new(rig.streams, fds[0]);
	opts.high = ANSWER;
	start();
	rig_until(&rig, has_answered, NULL);
	close(server);
	server = -1;
	rig_until(&rig, upstream_was_read, NULL);
	ck_assert_uint_gt(stream_queued(tunnel.client), 0);
	rig_until(&rig, upstream_broke, NULL);
	ck_assert(!ended);
	rig_until(&rig, rig_sink_read, &sink);
	ck_assert_uint_eq(sink.got, ANSWER);
	rig_until_true(&rig, &ended);
	ck_assert_int_eq(why, FAIL_UPSTREAM_CLOSED);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/tunnel");
	TCase *t = tcase_create("tunnel");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, a_clients_end_lets_the_server_go_on);
	tcase_add_test(t, a_servers_end_lets_the_client_go_on);
	tcase_add_test(t, a_clients_reset_is_carried);
	tcase_add_test(t, a_servers_reset_is_carried);
	tcase_add_test(t, bytes_from_before_go_first);
	tcase_add_test(t, an_end_from_before_is_carried_after_its_bytes);
	tcase_add_test(t, a_stopped_tunnel_resets_both_and_calls_nobody);
	tcase_add_test(t, a_tunnel_without_bytes_is_idle);
	tcase_add_test(t, a_half_closed_tunnel_has_its_own_time);
	tcase_add_test(t, a_client_that_takes_nothing_is_cut);
	tcase_add_test(t, an_upstream_that_takes_nothing_is_cut);
	tcase_add_test(t, a_server_that_answers_and_goes_is_heard_to_the_end);
	return run_suite(s);
}
