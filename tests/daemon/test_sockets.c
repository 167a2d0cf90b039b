/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sockets.c - src/daemon/sockets.c: addresses come, stay and go
 */
#include "daemon/sockets.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "net/listener.h"

enum { WORKERS = 3, MOST = 4 };

static struct sockets *s;
static struct addr addrs[MOST];
static struct conf_listener listeners[MOST];
static struct config config;
static char *said;
static size_t said_size;
static FILE *errors;
static char folder[] = "/tmp/penstock-XXXXXX";

/* 127.0.0.1:port, for a listener of its own. */
static void
want(unsigned i, const char *ip, uint16_t port)
{
	ck_assert(addr_parse_ip(&addrs[i], ip, strlen(ip), port));
	listeners[i].bind = (struct conf_addrs){ &addrs[i], 1 };
	config.listener = listeners;
	config.listener_count = i + 1;
}

static void
want_path(unsigned i, const char *path)
{
	addrs[i] = (struct addr){ .family = ADDR_UNIX, .path = path };
	listeners[i].bind = (struct conf_addrs){ &addrs[i], 1 };
	config.listener_count = i + 1;
}

static void
set_up(void)
{
	memset(&config, 0, sizeof config);
	errors = open_memstream(&said, &said_size);
	want(0, "127.0.0.1", 0);
	s = sockets_new(&config, WORKERS, errors);
	ck_assert_ptr_nonnull(s);
	/* From here on it is wanted by its number. */
}

static void
clean_up(void)
{
	sockets_free(&s);
	fclose(errors);
	free(said);
}

static struct socket_set *
set(unsigned i)
{
	struct socket_set *at = sockets_next(s, NULL);

	while (i-- > 0)
		at = sockets_next(s, at);
	return at;
}

static bool
is_open(const struct addr *to)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(to, &ss);
	int fd = socket(ss.ss_family, SOCK_STREAM, 0);
	bool ok = connect(fd, (struct sockaddr *)&ss, len) == 0;

	close(fd);
	return ok;
}

static void
reload(void)
{
	ck_assert(sockets_prepare(s, &config, errors));
	sockets_commit(s);
}

START_TEST(what_stays_is_the_same)
{
	struct socket_set *first = set(0);
	int fd = first->fds[WORKERS - 1];

	want(1, "127.0.0.2", 0);
	reload();
	ck_assert_uint_eq(s->count, 2);
	ck_assert_ptr_eq(set(0), first);
	ck_assert_int_eq(first->fds[WORKERS - 1], fd);
	ck_assert_int_eq(set(1)->listener, 1);
	ck_assert(is_open(&set(1)->addr));
}
END_TEST

START_TEST(an_address_may_be_another_listeners)
{
	struct socket_set *first = set(0);

	want(0, "127.0.0.2", 0);
	want(1, "127.0.0.1", 0);
	reload();
	ck_assert_int_eq(first->listener, 1);
	ck_assert_uint_eq(sockets_sweep(s), 0);
	ck_assert_uint_eq(s->count, 2);
}
END_TEST

START_TEST(what_goes_is_open_until_nobody_serves_it)
{
	struct addr was = set(0)->addr;

	atomic_store(&set(0)->served, 1);
	want(0, "127.0.0.2", 0);
	reload();
	ck_assert_int_eq(set(0)->listener, SOCKETS_LEAVING);
	ck_assert_uint_eq(sockets_sweep(s), 1);
	ck_assert(is_open(&was));
	atomic_store(&set(0)->served, 0);
	ck_assert_uint_eq(sockets_sweep(s), 0);
	ck_assert(!is_open(&was));
	ck_assert(is_open(&set(0)->addr));
}
END_TEST

START_TEST(what_is_to_leave_may_stay)
{
	struct socket_set *first = set(0);
	int fd = first->fds[0];

	atomic_store(&first->served, 1);
	config.listener_count = 0;
	reload();
	ck_assert_int_eq(listener_refuse_new(first->fds[0]), 0);
	want(0, "127.0.0.1", 0);
	reload();
	ck_assert_ptr_eq(set(0), first);
	ck_assert_int_eq(first->fds[0], fd);
	ck_assert_int_eq(first->listener, 0);
	ck_assert(is_open(&first->addr));
	ck_assert_uint_eq(s->count, 1);
}
END_TEST

START_TEST(if_one_cant_be_bound_none_is)
{
	struct addr taken = set(0)->addr;

	want(1, "127.0.0.2", 0);
	want(2, "127.0.0.1", taken.port);
	want(3, "127.0.0.3", taken.port);
	/* As if another process had it: ours stays, by its port 0. */
	ck_assert(!sockets_prepare(s, &config, errors));
	fflush(errors);
	ck_assert_ptr_nonnull(strstr(said, "can't listen on 127.0.0.1:"));
	ck_assert_ptr_null(strstr(said, "127.0.0.3"));
	ck_assert_uint_eq(s->count, 1);
	ck_assert_int_eq(set(0)->listener, 0);
	ck_assert(is_open(&set(0)->addr));
	taken = addrs[3];
	ck_assert(!is_open(&taken));
}
END_TEST

START_TEST(what_goes_makes_room_for_what_is_wider)
{
	uint16_t port = set(0)->addr.port;

	want(0, "0.0.0.0", port);
	reload();
	ck_assert_int_eq(set(0)->listener, SOCKETS_LEAVING);
	ck_assert_int_eq(set(1)->listener, 0);
	ck_assert_uint_eq(sockets_sweep(s), 0);
	ck_assert(is_open(&addrs[0]));
}
END_TEST

START_TEST(abandoned_is_as_if_never_prepared)
{
	char path[40];
	struct stat st;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/s", folder);
	want_path(1, path);
	ck_assert(sockets_prepare(s, &config, errors));
	ck_assert_int_eq(stat(path, &st), 0);
	sockets_abandon(s);
	ck_assert_int_eq(stat(path, &st), -1);
	ck_assert_uint_eq(s->count, 1);
	reload();
	ck_assert_int_eq(stat(path, &st), 0);
	/* What leaves has no name any more, and the name is free at once. */
	atomic_store(&set(1)->served, 1);
	config.listener_count = 1;
	reload();
	ck_assert_int_eq(stat(path, &st), -1);
	config.listener_count = 2;
	reload();
	ck_assert_uint_eq(s->count, 3);
	atomic_store(&set(1)->served, 0);
	ck_assert_uint_eq(sockets_sweep(s), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_ptr_nonnull(set(1));
	unlink(path);
	rmdir(folder);
}
END_TEST

START_TEST(each_worker_has_its_share_and_keeps_it)
{
	unsigned before[WORKERS], sum = 0;
	struct door_socket *sockets;

	want(1, "127.0.0.2", 0);
	reload();
	for (unsigned i = 0; i < WORKERS; i++) {
		before[i] = sockets_of_worker(s, i, &sockets);
		ck_assert_uint_eq(before[i], 2);
		free(sockets);
		sum += before[i];
	}
	ck_assert_uint_eq(sum, 2 * WORKERS);
	config.listener_count = 1;
	reload();
	ck_assert_uint_eq(sockets_of_worker(s, 1, &sockets), 1);
	ck_assert_int_eq(sockets[0].fd, set(0)->fds[1]);
	ck_assert_uint_eq(sockets[0].service, 0);
	free(sockets);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sockets");
	TCase *t = tcase_create("reload");

	tcase_add_checked_fixture(t, set_up, clean_up);
	tcase_add_test(t, what_stays_is_the_same);
	tcase_add_test(t, an_address_may_be_another_listeners);
	tcase_add_test(t, what_goes_is_open_until_nobody_serves_it);
	tcase_add_test(t, what_is_to_leave_may_stay);
	tcase_add_test(t, if_one_cant_be_bound_none_is);
	tcase_add_test(t, what_goes_makes_room_for_what_is_wider);
	tcase_add_test(t, abandoned_is_as_if_never_prepared);
	tcase_add_test(t, each_worker_has_its_share_and_keeps_it);
	suite_add_tcase(suite, t);
	return run_suite(suite);
}
