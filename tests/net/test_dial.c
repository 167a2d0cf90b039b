/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dial.c - one address and several; refused, late, cancelled.
 */
#include <sys/resource.h>

#include "net/dial.h"
#include "net/rig.h"
#include "net/sock.h"

static struct rig rig;
static struct dial_pool *pool;
static struct dial *dial;
static struct stream *stream;
static bool inside, done;
static unsigned dones, tried;
static int err;

static void
on_done(void *arg, struct stream *s, int e, unsigned t)
{
	ck_assert(!inside);
	ck_assert_ptr_eq(arg, &dial);
	ck_assert((s != NULL) == (e == 0));
	dial = NULL;
	stream = s;
	err = e;
	tried = t;
	done = true;
	dones++;
}

static void
set_up(void)
{
	rig_open(&rig, 1 << 20);
	pool = dial_pool_new(rig.loop, rig.streams, 2);
}

static void
tear_down(void)
{
	rig_turns(&rig, 5);
	ck_assert_uint_le(dones, 1);
	stream_close(&stream);
	dial_pool_free(&pool);
	rig_close(&rig);
}

static struct addr
addr_of(const struct sockaddr_in *at)
{
	struct addr a;

	addr_from_sockaddr(&a, (const struct sockaddr *)at, sizeof *at);
	return a;
}

/* Where nobody listens. */
static struct addr
refusing(void)
{
	struct sockaddr_in at;

	close(rig_listen(&at));
	return addr_of(&at);
}

/*
 * A listener whose queue is full does not answer.  The descriptors stay open
 * until the test's process ends.
 */
static struct addr
silent(void)
{
	struct sockaddr_in at;
	int l = rig_listen(&at);

	ck_assert_int_eq(listen(l, 0), 0);
	for (int i = 0; i < 3; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		(void)!connect(fd, (struct sockaddr *)&at, sizeof at);
	}
	return addr_of(&at);
}

static void
start(const struct addr *to, unsigned count, nsec_t timeout)
{
	inside = true;
	ck_assert_int_eq(dial_start(&dial, pool, &(struct dial_opts){
		.to = to,
		.count = count,
		.timeout = timeout,
		.done = on_done,
		.arg = &dial,
	}), 0);
	inside = false;
	ck_assert_ptr_nonnull(dial);
}

START_TEST(a_dial_gives_a_stream)
{
	struct sockaddr_in at;
	int l = rig_listen(&at);
	struct addr to = addr_of(&at), peer;

	start(&to, 1, 60 * NSEC_PER_SEC);
	rig_until_true(&rig, &done);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(tried, 0);
	stream_peer(stream, &peer);
	ck_assert(addr_equal(&peer, &to));

	int fd = accept(l, NULL, NULL);
	char c = 0;

	ck_assert_int_eq(stream_send(stream, &(struct iovec){ "x", 1 }, 1,
	    BLOCK_BODY), 0);
	ck_assert_int_eq(read(fd, &c, 1), 1);
	ck_assert_int_eq(c, 'x');
	close(fd);
	close(l);
}
END_TEST

START_TEST(a_refusal_is_told_and_not_inside_start)
{
	struct addr to = refusing();

	start(&to, 1, 60 * NSEC_PER_SEC);
	rig_until_true(&rig, &done);
	ck_assert_int_eq(err, ECONNREFUSED);
}
END_TEST

START_TEST(the_next_address_is_tried)
{
	struct sockaddr_in at;
	int l = rig_listen(&at);
	struct addr to[3] = { refusing(), refusing(), addr_of(&at) };

	start(to, 3, 60 * NSEC_PER_SEC);
	memset(to, 0, sizeof to);
	rig_until_true(&rig, &done);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(tried, 2);
	close(l);
}
END_TEST

START_TEST(each_address_has_its_time)
{
	struct sockaddr_in at;
	int l = rig_listen(&at);
	struct addr to[2] = { silent(), addr_of(&at) };

	start(to, 2, 30 * NSEC_PER_MSEC);
	rig_until_true(&rig, &done);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(tried, 1);
	close(l);
}
END_TEST

START_TEST(the_last_address_says_why)
{
	struct addr to[2] = { refusing(), silent() };

	start(to, 2, 30 * NSEC_PER_MSEC);
	rig_until_true(&rig, &done);
	ck_assert_int_eq(err, ETIMEDOUT);
	ck_assert_uint_eq(tried, 1);
}
END_TEST

static bool enough;

static void
on_enough(struct wheel_timer *t)
{
	(void)t;
	enough = true;
}

START_TEST(a_cancelled_dial_calls_nobody)
{
	struct addr to = silent();
	struct wheel_timer later;

	wheel_timer_init(&later, on_enough);
	start(&to, 1, 60 * NSEC_PER_SEC);
	rig_turns(&rig, 3);
	dial_cancel(&dial);
	ck_assert_ptr_null(dial);
	dial_cancel(&dial);
	to = refusing();
	start(&to, 1, 20 * NSEC_PER_MSEC);
	dial_cancel(&dial);
	to = (struct addr){ .family = ADDR_UNIX, .path = "/nonexistent" };
	start(&to, 1, 20 * NSEC_PER_MSEC);
	dial_cancel(&dial);
	/* Longer than the times they had. */
	loop_arm(rig.loop, &later, 50 * NSEC_PER_MSEC);
	rig_until_true(&rig, &enough);
	ck_assert_uint_eq(dones, 0);
}
END_TEST

START_TEST(what_fails_at_once_is_told_later)
{
	struct addr to = { .family = ADDR_UNIX, .path = "/nonexistent" };

	start(&to, 1, 60 * NSEC_PER_SEC);
	rig_until_true(&rig, &done);
	ck_assert_int_eq(err, ENOENT);
}
END_TEST

START_TEST(without_descriptors_the_error_says_so)
{
	struct addr to = refusing();
	struct rlimit none = { 0, 0 }, was;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	none.rlim_max = was.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	start(&to, 1, 60 * NSEC_PER_SEC);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	rig_until_true(&rig, &done);
	ck_assert_int_eq(err, EMFILE);
}
END_TEST

START_TEST(dials_are_bounded)
{
	struct addr to = silent();
	struct dial *d[3];
	struct dial_opts opts = {
		.to = &to,
		.count = 1,
		.timeout = NSEC_PER_SEC,
		.done = on_done,
	};

	ck_assert_int_eq(dial_start(&d[0], pool, &opts), 0);
	ck_assert_int_eq(dial_start(&d[1], pool, &opts), 0);
	ck_assert_int_eq(dial_start(&d[2], pool, &opts), -ENOMEM);
	ck_assert_ptr_null(d[2]);
	dial_cancel(&d[0]);
	dial_cancel(&d[1]);
}
END_TEST

START_TEST(without_a_stream_it_is_a_shortage_of_memory)
{
	struct stream *all[RIG_STREAMS];
	struct sockaddr_in at;
	int l = rig_listen(&at);
	struct addr to = addr_of(&at);

	for (int i = 0; i < RIG_STREAMS; i++)
		all[i] = stream_new(rig.streams, dup(0));
	start(&to, 1, 60 * NSEC_PER_SEC);
	rig_until_true(&rig, &done);
	ck_assert_int_eq(err, ENOMEM);
	for (int i = 0; i < RIG_STREAMS; i++)
		stream_close(&all[i]);
	close(l);
}
END_TEST

START_TEST(a_socket_connected_to_itself_is_known)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int fds[2];

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
	ck_assert(sock_is_self_connected(fd));
	close(fd);

	rig_pair(fds);
	ck_assert(!sock_is_self_connected(fds[0]));
	close(fds[0]);
	close(fds[1]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/dial");
	TCase *t = tcase_create("dial");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, a_dial_gives_a_stream);
	tcase_add_test(t, a_refusal_is_told_and_not_inside_start);
	tcase_add_test(t, the_next_address_is_tried);
	tcase_add_test(t, each_address_has_its_time);
	tcase_add_test(t, the_last_address_says_why);
	tcase_add_test(t, a_cancelled_dial_calls_nobody);
	tcase_add_test(t, what_fails_at_once_is_told_later);
	tcase_add_test(t, without_descriptors_the_error_says_so);
	tcase_add_test(t, dials_are_bounded);
	tcase_add_test(t, without_a_stream_it_is_a_shortage_of_memory);
	tcase_add_test(t, a_socket_connected_to_itself_is_known);
	return run_suite(s);
}
