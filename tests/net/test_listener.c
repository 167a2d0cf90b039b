/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_listener.c - binding; leave, shortage, draining.
 */
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "net/listener.h"
#include "net/rig.h"

enum { SOCKETS = 4, CLIENTS = 40 };

static struct rig rig;
static struct listener *listener;
static int fds[SOCKETS];
static struct addr at;		/* where fds[0] listens */
static int clients[CLIENTS];
static unsigned accepted, taken, shortages;
static unsigned leave = 1000;	/* what may be accepted */
static unsigned stop_after;	/* stop in the function */

static bool
admit(void *arg)
{
	(void)arg;
	if (taken == leave)
		return false;
	taken++;
	return true;
}

static void
unadmit(void *arg)
{
	(void)arg;
	ck_assert_uint_gt(taken, 0);
	taken--;
}

static void
on_accepted(void *arg, int fd, const struct addr *from)
{
	ck_assert_ptr_eq(arg, &rig);
	ck_assert_uint_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_uint_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(from->family, at.family);
	close(fd);
	if (++accepted == stop_after)
		listener_stop(&listener);
}

static void
on_shortage(void *arg, int err)
{
	(void)arg;
	ck_assert_int_eq(err, EMFILE);
	shortages++;
}

static void
start(void)
{
	listener = listener_start(rig.loop, &(struct listener_opts){
		.fd = fds[0],
		.admit = admit,
		.unadmit = unadmit,
		.accepted = on_accepted,
		.shortage = on_shortage,
		.arg = &rig,
	});
	ck_assert_ptr_nonnull(listener);
}

static struct addr
local_of(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	struct addr a;

	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	addr_from_sockaddr(&a, (struct sockaddr *)&ss, len);
	return a;
}

static void
set_up(void)
{
	struct addr any = { .family = ADDR_IP4, .ip = { 127, 0, 0, 1 } };

	rig_open(&rig, 1 << 20);
	memset(clients, 0xff, sizeof clients);
	ck_assert_int_eq(bind_address(&any, fds, 1, false), 0);
	at = local_of(fds[0]);
}

static void
tear_down(void)
{
	listener_stop(&listener);
	rig_turns(&rig, 3);
	for (int i = 0; i < CLIENTS; i++)
		if (clients[i] != -1)
			close(clients[i]);
	close(fds[0]);
	rig_close(&rig);
}

static int
connect_to(const struct addr *to)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(to, &ss);
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	(void)!connect(fd, (struct sockaddr *)&ss, len);
	return fd;
}

static void
connect_clients(int n)
{
	for (int i = 0; i < n; i++)
		clients[i] = connect_to(&at);
}

static bool
all_accepted(void *arg)
{
	return accepted == *(unsigned *)arg;
}

static void
until_accepted(unsigned n)
{
	rig_until(&rig, all_accepted, &n);
}

START_TEST(all_who_come_are_accepted)
{
	start();
	connect_clients(CLIENTS);
	until_accepted(CLIENTS);
	rig_turns(&rig, 5);
	ck_assert_uint_eq(taken, CLIENTS);
	ck_assert_uint_eq(shortages, 0);
}
END_TEST

START_TEST(without_leave_connections_wait_in_the_kernel)
{
	leave = 3;
	start();
	connect_clients(10);
	until_accepted(3);
	uint64_t ready = rig_ready(&rig);
	rig_turns(&rig, 50);
	ck_assert_uint_eq(accepted, 3);
	ck_assert_uint_le(rig_ready(&rig), ready + 1);
	leave = 5;
	listener_resume(listener);
	until_accepted(5);
	leave = 100;
	listener_resume(listener);
	until_accepted(10);
}
END_TEST

START_TEST(a_paused_listener_accepts_nothing)
{
	start();
	listener_pause(listener);
	connect_clients(2);
	rig_turns(&rig, 20);
	ck_assert_uint_eq(accepted, 0);
	listener_resume(listener);
	until_accepted(2);
}
END_TEST

START_TEST(a_listener_may_be_stopped_by_who_it_calls)
{
	stop_after = 2;
	start();
	connect_clients(5);
	until_accepted(2);
	rig_turns(&rig, 5);
	ck_assert_uint_eq(accepted, 2);
	ck_assert_ptr_null(listener);
}
END_TEST

static bool
three_shortages(void *arg)
{
	(void)arg;
	return shortages == 3;
}

START_TEST(without_descriptors_it_waits_and_does_not_spin)
{
	struct rlimit none, was;

	start();
	connect_clients(3);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	rig_until(&rig, three_shortages, NULL);
	ck_assert_uint_le(rig_ready(&rig), 6);
	ck_assert_uint_eq(accepted, 0);
	ck_assert_uint_eq(taken, 0);
	/* Resumed by others meanwhile: the wait holds. */
	listener_resume(listener);
	rig_turns(&rig, 20);
	ck_assert_uint_le(shortages, 4);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	until_accepted(3);
}
END_TEST

static bool
is_drained(void *arg)
{
	(void)arg;
	return listener_is_drained(listener);
}

START_TEST(draining_accepts_what_is_queued_and_then_stops)
{
	start();
	connect_clients(CLIENTS - 1);
	ck_assert_int_eq(listener_refuse_new(fds[0]), 0);
	leave = 7;
	listener_drain(listener);
	until_accepted(7);
	rig_turns(&rig, 5);
	ck_assert(!listener_is_drained(listener));
	leave = 1000;
	listener_resume(listener);
	rig_until(&rig, is_drained, NULL);
	ck_assert_uint_eq(accepted, CLIENTS - 1);

	/* A newcomer is not answered, neither yes nor no. */
	struct tcp_info info;
	socklen_t len = sizeof info;
	int fd = clients[CLIENTS - 1] = connect_to(&at);

	rig_turns(&rig, 20);
	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len),
	    0);
	ck_assert_int_eq(info.tcpi_state, TCP_SYN_SENT);
	ck_assert_uint_eq(accepted, CLIENTS - 1);
}
END_TEST

/* --- binding --- */

START_TEST(a_second_bind_is_an_error)
{
	int other[2] = { -1, -1 };

	ck_assert_int_eq(bind_address(&at, other, 2, false), -EADDRINUSE);
}
END_TEST

START_TEST(a_set_of_sockets_shares_one_port)
{
	struct addr any = { .family = ADDR_IP4, .ip = { 127, 0, 0, 1 } };
	int set[SOCKETS];

	ck_assert_int_eq(bind_address(&any, set, SOCKETS, false), 0);
	struct addr first = local_of(set[0]);
	for (int i = 0; i < SOCKETS; i++) {
		struct addr a = local_of(set[i]);
		int on = 0;
		socklen_t len = sizeof on;

		ck_assert(addr_equal(&a, &first));
		ck_assert_int_eq(getsockopt(set[i], IPPROTO_TCP, TCP_NODELAY,
		    &on, &len), 0);
		ck_assert_int_ne(on, 0);
		close(set[i]);
	}
	ck_assert_uint_ne(first.port, 0);
	ck_assert_uint_ne(first.port, at.port);
}
END_TEST

START_TEST(ipv6_sockets_leave_ipv4_alone)
{
	struct addr six = { .family = ADDR_IP6, .port = at.port };
	int set[1];
	int err = bind_address(&six, set, 1, false);

	if (err == -EAFNOSUPPORT)
		return;
	/* The port of fds[0], which is IPv4's. */
	ck_assert_int_eq(err, 0);
	close(set[0]);
}
END_TEST

/* A socket's path in a new directory; the path of which is in *dir. */
static char dir[] = "/tmp/test_listener.XXXXXX";

static struct addr
unix_address(void)
{
	static char path[sizeof dir + 8];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/sock", dir);
	return (struct addr){ .family = ADDR_UNIX, .path = path };
}

START_TEST(a_unix_socket_in_use_is_kept_and_a_stale_one_replaced)
{
	struct addr un = unix_address();
	struct stat st;
	int one, two;

	ck_assert_int_eq(bind_address(&un, &one, 1, false), 0);
	ck_assert_int_eq(stat(un.path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0660);
	ck_assert_int_eq(bind_address(&un, &two, 1, false), -EADDRINUSE);
	close(one);
	ck_assert_int_eq(bind_address(&un, &two, 1, false), 0);

	int old = fds[0];
	fds[0] = two;
	at = un;
	start();
	connect_clients(2);
	until_accepted(2);
	ck_assert_int_eq(listener_refuse_new(two), 0);
	close(old);
	unlink(un.path);
	rmdir(dir);
}
END_TEST

START_TEST(a_file_in_the_place_of_a_unix_socket_is_left_alone)
{
	struct addr un = unix_address();
	int fd = open(un.path, O_CREAT | O_WRONLY, 0600);
	int out;

	close(fd);
	ck_assert_int_eq(bind_address(&un, &out, 1, false), -EADDRINUSE);
	ck_assert_int_eq(access(un.path, F_OK), 0);
	unlink(un.path);
	rmdir(dir);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/listener");
	TCase *t = tcase_create("listener");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, all_who_come_are_accepted);
	tcase_add_test(t, without_leave_connections_wait_in_the_kernel);
	tcase_add_test(t, a_paused_listener_accepts_nothing);
	tcase_add_test(t, a_listener_may_be_stopped_by_who_it_calls);
	tcase_add_test(t, without_descriptors_it_waits_and_does_not_spin);
	tcase_add_test(t, draining_accepts_what_is_queued_and_then_stops);
	tcase_add_test(t, a_second_bind_is_an_error);
	tcase_add_test(t, a_set_of_sockets_shares_one_port);
	tcase_add_test(t, ipv6_sockets_leave_ipv4_alone);
	tcase_add_test(t,
	    a_unix_socket_in_use_is_kept_and_a_stale_one_replaced);
	tcase_add_test(t,
	    a_file_in_the_place_of_a_unix_socket_is_left_alone);
	return run_suite(s);
}
