/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_resolver.c - src/net/resolver.c: what is answered, and when
 */
#include <check.h>
#include <errno.h>

#include "net/resolver_fixture.h"

/* --- answered at once --- */

static const struct {
	const char		*name;
	enum resolve_result	 result;
	const char		*set;
} at_once[] = {
	{ "127.0.0.1",		RESOLVE_KNOWN,	"127.0.0.1:8080" },
	{ "::1",		RESOLVE_KNOWN,	"[::1]:8080" },
	{ "[::1]",		RESOLVE_KNOWN,	"[::1]:8080" },
	{ "localhost",	RESOLVE_KNOWN,	"127.0.0.1:8080 [::1]:8080" },
	{ "LocalHost.",	RESOLVE_KNOWN,	"127.0.0.1:8080 [::1]:8080" },
	{ "a.localhost",	RESOLVE_KNOWN,	"127.0.0.1:8080 [::1]:8080" },
	{ "",			RESOLVE_NONE,	"" },
	{ "a b.test",		RESOLVE_NONE,	"" },
	{ "2130706433",		RESOLVE_NONE,	"" },
	{ "127.1",		RESOLVE_NONE,	"" },
	{ "0x7f.1",		RESOLVE_NONE,	"" },
	{ "0x7f000001",		RESOLVE_NONE,	"" },
	{ "1.2.3.4.",		RESOLVE_NONE,	"" },
	{ "fe80::1%lo",		RESOLVE_NONE,	"" },
};

START_TEST(literals_localhost_and_nonsense_are_not_asked_for)
{
	struct question q = { 0 };

	ck_assert_int_eq(start(&q, at_once[_i].name, LONG),
	    at_once[_i].result);
	ck_assert_str_eq(text_of(&q.set), at_once[_i].set);
	ck_assert_uint_eq(atomic_load(&server->questions), 0);
}
END_TEST

START_TEST(a_name_that_only_ends_like_localhost_is_asked_for)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "notlocalhost", LONG), RESOLVE_NONE);
	ck_assert_uint_gt(atomic_load(&server->questions), 0);
}
END_TEST

START_TEST(the_hosts_table_comes_before_servers)
{
	char path[] = "/tmp/penstock-hosts-XXXXXX";
	static const char text[] = "10.1.2.3 v4.test\n";
	struct question q;

	int fd = mkstemp(path);
	ck_assert_int_eq(write(fd, text, sizeof text - 1), sizeof text - 1);
	close(fd);
	struct hosts *hosts = hosts_read(path);
	unlink(path);
	open_resolver(server->where, hosts);

	ck_assert_int_eq(start(&q, "V4.test", LONG), RESOLVE_KNOWN);
	ck_assert_str_eq(text_of(&q.set), "10.1.2.3:8080");
	resolver_free(&resolver);
	hosts_free(&hosts);
}
END_TEST

/* --- what servers say --- */

static const struct {
	const char		*name;
	enum resolve_result	 result;
	const char		*set;
} answers[] = {
	{ "v4.test",		RESOLVE_KNOWN,	"127.0.0.2:8080" },
	{ "v6.test",		RESOLVE_KNOWN,	"[::1]:8080" },
	{ "half.test",		RESOLVE_KNOWN,	"127.0.0.2:8080" },
	{ "cname.test",		RESOLVE_KNOWN,	"127.0.0.2:8080" },
	{ "trunc.test",		RESOLVE_KNOWN,	"127.0.0.2:8080" },
	{ "zero.test",		RESOLVE_KNOWN,	"127.0.0.2:8080" },
	{ "v4",			RESOLVE_KNOWN,	"127.0.0.2:8080" },
	{ "nx.test",		RESOLVE_NONE,	"" },
	{ "nodata.test",	RESOLVE_NONE,	"" },
	{ "stray.test",		RESOLVE_NONE,	"" },
	{ "circle.test",	RESOLVE_NONE,	"" },
	{ "servfail.test",	RESOLVE_FAILED,	"" },
	{ "pointer.test",	RESOLVE_FAILED,	"" },
};

START_TEST(answers_are_understood)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, answers[_i].name, LONG),
	    answers[_i].result);
	ck_assert_str_eq(text_of(&q.set), answers[_i].set);
}
END_TEST

START_TEST(both_families_are_used)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "both.test", LONG), RESOLVE_KNOWN);
	ck_assert_uint_eq(q.set.count, 2);
	ck_assert_int_ne(q.set.addrs[0].family, q.set.addrs[1].family);
}
END_TEST

START_TEST(of_many_addresses_eight_are_kept)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "many.test", LONG), RESOLVE_KNOWN);
	ck_assert_uint_eq(q.set.count, RESOLVER_ADDRS);
	ck_assert_uint_gt(atomic_load(&server->over_tcp), 0);
}
END_TEST

/* What is no answer to the question: the caller's time runs out. */
static const char *const useless[] = {
	"silent.test", "empty.test", "short.test", "other.test",
	"wrongid.test",
};

START_TEST(the_deadline_holds_whatever_comes)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, useless[_i], SHORT), RESOLVE_LATE);
	ck_assert_uint_eq(atomic_load(&stats.late), 1);
	/* The loop is alive, and so are other names. */
	ck_assert_int_eq(look_up(&q, "v4.test", LONG), RESOLVE_KNOWN);
}
END_TEST

START_TEST(a_silent_server_is_late_in_the_end)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "silent.test", LONG), RESOLVE_LATE);
	/* That is remembered. */
	ck_assert_int_eq(start(&q, "silent.test", LONG), RESOLVE_LATE);
	ck_assert_uint_eq(atomic_load(&stats.failed), 1);
	ck_assert_uint_eq(atomic_load(&stats.late), 0);
}
END_TEST

START_TEST(the_next_server_is_asked_when_one_fails)
{
	struct question q;
	char servers[80];

	/* Nobody listens on port 1. */
	snprintf(servers, sizeof servers, "127.0.0.1:1,%s", server->where);
	open_resolver(servers, NULL);
	ck_assert_int_eq(look_up(&q, "v4.test", LONG), RESOLVE_KNOWN);
}
END_TEST

START_TEST(a_server_that_cannot_be_reached_fails_at_once)
{
	struct question q = { 0 };

	/* The kernel refuses broadcasts inside the call. */
	open_resolver("255.255.255.255:53", NULL);
	ck_assert_int_eq(start(&q, "v4.test", LONG), RESOLVE_FAILED);
	ck_assert_int_eq(start(&q, "v4.test", LONG), RESOLVE_FAILED);
	ck_assert_uint_eq(atomic_load(&stats.failed), 1);
	ck_assert_uint_eq(atomic_load(&stats.cached), 1);
	/* And closing with that news undelivered loses nothing. */
	resolver_free(&resolver);
	run_for(SHORT);
}
END_TEST

START_TEST(names_are_asked_for_as_they_are)
{
	struct question q;

	ck_assert_int_eq(look_up(&q, "nx", LONG), RESOLVE_NONE);
	ck_assert_uint_eq(atomic_load(&server->questions), 2);
	ck_assert_int_eq(look_up(&q, "nodata", LONG), RESOLVE_NONE);
	ck_assert_uint_eq(atomic_load(&server->questions), 4);
}
END_TEST

static const char nine[] = "1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,"
    "1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1";

static const char *const bad_servers[] = {
	"", "127.0.0.1", "localhost:53", "127.0.0.1:53,", "unix:/tmp/x",
	"127.0.0.1:0", nine,
};

START_TEST(bad_servers_are_refused)
{
	struct resolver_opts o = {
		.servers = bad_servers[_i],
		.stats = &stats,
	};
	struct resolver *r;

	ck_assert_int_eq(resolver_new(&r, loop, &o), -EINVAL);
	ck_assert_ptr_null(r);
}
END_TEST

START_TEST(the_systems_servers_can_be_used)
{
	open_resolver(NULL, NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("resolver");
	TCase *t = tcase_create("answers");

	tcase_add_checked_fixture(t, a_resolver, no_resolver);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t,
	    literals_localhost_and_nonsense_are_not_asked_for, 0,
	    (int)ARRAY_LEN(at_once));
	tcase_add_test(t, a_name_that_only_ends_like_localhost_is_asked_for);
	tcase_add_test(t, the_hosts_table_comes_before_servers);
	tcase_add_loop_test(t, answers_are_understood, 0,
	    (int)ARRAY_LEN(answers));
	tcase_add_test(t, both_families_are_used);
	tcase_add_test(t, of_many_addresses_eight_are_kept);
	tcase_add_loop_test(t, the_deadline_holds_whatever_comes, 0,
	    (int)ARRAY_LEN(useless));
	tcase_add_test(t, a_silent_server_is_late_in_the_end);
	tcase_add_test(t, the_next_server_is_asked_when_one_fails);
	tcase_add_test(t, a_server_that_cannot_be_reached_fails_at_once);
	tcase_add_test(t, names_are_asked_for_as_they_are);
	tcase_add_loop_test(t, bad_servers_are_refused, 0,
	    (int)ARRAY_LEN(bad_servers));
	tcase_add_test(t, the_systems_servers_can_be_used);
	suite_add_tcase(s, t);
	return run_suite(s);
}
