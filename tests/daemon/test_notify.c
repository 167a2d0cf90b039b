/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_notify.c - src/daemon/notify.c
 */
#include "daemon/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness.h"

static char name[64];			/* as NOTIFY_SOCKET has it */
static int fd = -1;			/* the manager's end */

/* A manager that listens there; `abstract` or at a path. */
static void
listen_at(bool abstract)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len;

	snprintf(name, sizeof name, "%s/tmp/test_notify.%ld",
	    abstract ? "@" : "", (long)getpid());
	memcpy(un.sun_path, name, strlen(name));
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
	    strlen(name));
	if (abstract)
		un.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, len), 0);
}

static void
tear_down(void)
{
	close(fd);
	if (name[0] == '/')
		unlink(name);
}

/* The next datagram; "" if there is none. */
static const char *
next(void)
{
	static char text[NOTIFY_TEXT];
	ssize_t n = recv(fd, text, sizeof text - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

START_TEST(it_sends_to_a_path_and_to_an_abstract_name)
{
	struct notify *n;

	listen_at(_i == 1);
	ck_assert_int_eq(notify_new(&n, name), 0);
	notify_state(n, "READY=1\nSTATUS=%d", 5);
	notify_news(n, "WATCHDOG=1");
	ck_assert_str_eq(next(), "READY=1\nSTATUS=5");
	ck_assert_str_eq(next(), "WATCHDOG=1");
	ck_assert_str_eq(next(), "");
	notify_free(&n);
	ck_assert_ptr_null(n);
}
END_TEST

/* The kernel keeps a few for who doesn't read. */
static unsigned
fill(struct notify *n)
{
	unsigned sent = 0;

	while (notify_kept(n) == 0)
		notify_state(n, "N=%u", sent++);
	return sent;
}

START_TEST(what_nobody_reads_is_kept_and_said_later)
{
	struct notify *n;
	char text[NOTIFY_TEXT];

	listen_at(true);
	ck_assert_int_eq(notify_new(&n, name), 0);

	unsigned sent = fill(n);
	notify_news(n, "STATUS=old");
	notify_state(n, "N=%u", sent++);
	ck_assert_uint_eq(notify_kept(n), 2);
	for (unsigned i = 0; i < sent; i++) {
		notify_retry(n);
		snprintf(text, sizeof text, "N=%u", i);
		ck_assert_str_eq(next(), text);
	}
	ck_assert_str_eq(next(), "");
	notify_news(n, "STATUS=new");
	ck_assert_str_eq(next(), "STATUS=new");
	notify_free(&n);
}
END_TEST

START_TEST(of_too_much_the_oldest_goes)
{
	struct notify *n;
	char text[NOTIFY_TEXT];

	listen_at(true);
	ck_assert_int_eq(notify_new(&n, name), 0);

	unsigned sent = fill(n);
	for (unsigned i = 0; i < NOTIFY_KEPT; i++)
		notify_state(n, "N=%u", sent++);
	ck_assert_uint_eq(notify_kept(n), NOTIFY_KEPT);
	for (unsigned i = 0; i < sent - NOTIFY_KEPT - 1; i++)
		next();
	notify_retry(n);
	ck_assert_uint_eq(notify_kept(n), 0);
	snprintf(text, sizeof text, "N=%u", sent - NOTIFY_KEPT);
	ck_assert_str_eq(next(), text);
	notify_free(&n);
}
END_TEST

START_TEST(nobody_there_is_nobody_to_tell)
{
	struct notify *n;

	listen_at(false);
	tear_down();
	ck_assert_int_eq(notify_new(&n, name), 0);
	notify_state(n, "READY=1");
	ck_assert_uint_eq(notify_kept(n), 0);
	notify_free(&n);
	notify_state(NULL, "READY=1");
	notify_news(NULL, "WATCHDOG=1");
	notify_retry(NULL);
	ck_assert_uint_eq(notify_kept(NULL), 0);
	listen_at(false);
}
END_TEST

START_TEST(what_is_no_address_is_refused)
{
	struct notify *n;
	char text[200];

	listen_at(true);
	memset(text, 'a', sizeof text - 1);
	text[0] = '/';
	text[sizeof text - 1] = '\0';
	ck_assert_int_eq(notify_new(&n, text), -ENAMETOOLONG);
	ck_assert_ptr_null(n);
	ck_assert_int_eq(notify_new(&n, "relative"), -EAFNOSUPPORT);
	ck_assert_int_eq(notify_new(&n, "vsock:2:1"), -EAFNOSUPPORT);
	ck_assert_int_eq(notify_new(&n, "@"), -EAFNOSUPPORT);
	ck_assert_int_eq(notify_new(&n, ""), -EAFNOSUPPORT);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("notify");
	TCase *c = tcase_create("notify");

	tcase_add_checked_fixture(c, NULL, tear_down);
	tcase_add_loop_test(c, it_sends_to_a_path_and_to_an_abstract_name,
	    0, 2);
	tcase_add_test(c, what_nobody_reads_is_kept_and_said_later);
	tcase_add_test(c, of_too_much_the_oldest_goes);
	tcase_add_test(c, nobody_there_is_nobody_to_tell);
	tcase_add_test(c, what_is_no_address_is_refused);
	suite_add_tcase(s, c);
	return run_suite(s);
}
