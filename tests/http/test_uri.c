/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_uri.c - targets, and where they lead.
 */
#include "http/uri.h"

#include "http/heads.h"

struct authority_case {
	int		 row;
	struct str	 text;
	const char	*host;		/* NULL: refused */
	unsigned	 port;
	bool		 is_ip6;
};

#define GOOD(row, text, host, port) \
	{ row, STR_INIT(text), host, port, false }
#define IP6(row, text, host, port) \
	{ row, STR_INIT(text), host, port, true }
#define BAD(row, text)		{ row, STR_INIT(text), NULL, 0, false }

static const struct authority_case authorities[] = {
	GOOD(0, "a", "a", 0),
	GOOD(0, "a:80", "a", 80),
	GOOD(43, "b:", "b", 0),
	GOOD(43, "b:1", "b", 1),
	GOOD(43, "b:65535", "b", 65535),
	GOOD(43, "b:00080", "b", 80),
	GOOD(46, "WWW.Example.COM.", "WWW.Example.COM.", 0),
	GOOD(0, "127.0.0.1:8080", "127.0.0.1", 8080),
	GOOD(0, "a_b-c~d.e", "a_b-c~d.e", 0),
	IP6(44, "[::1]", "::1", 0),
	IP6(44, "[::1]:8080", "::1", 8080),
	IP6(44, "[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1", 1),
	BAD(40, ""),
	BAD(40, ":80"),
	BAD(43, "b:0"),
	BAD(43, "b:00000"),
	BAD(43, "b:65536"),
	BAD(43, "b:99999"),
	BAD(43, "b:4294967739"),
	BAD(43, "b:4294972296"),
	BAD(43, "b:18446744073709551696"),
	BAD(43, "b:00000000080"),
	BAD(43, "b:+80"),
	BAD(43, "b:8 0"),
	BAD(43, "b: 80"),
	BAD(43, "b:0x50"),
	BAD(43, "b:-1"),
	BAD(43, "b:x"),
	BAD(43, "b:80:80"),
	BAD(44, "[::1"),
	BAD(44, "[]"),
	BAD(44, "[127.0.0.1]"),
	BAD(44, "[::1]x"),
	BAD(44, "[::1]80"),
	BAD(44, "[fe80::1%25lo]"),
	BAD(44, "[fe80::1%lo]"),
	BAD(44, "[v1.a]"),
	BAD(44, "[::1\0]"),
	BAD(44, "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]"),
	BAD(44, "::1"),
	BAD(52, "a/b"),
	BAD(52, "u@a"),
	BAD(52, "a b"),
	BAD(52, "a,b"),
	BAD(52, "a;b"),
	BAD(52, "a%41"),
	BAD(52, "a\0"),
	BAD(52, "\"a\""),
};

START_TEST(an_authority_is_a_host_and_maybe_a_port)
{
	const struct authority_case *c = &authorities[_i];
	struct authority a;
	char *copy = malloc(c->text.len + 1);

	memcpy(copy, c->text.at, c->text.len);
	bool good = authority_parse(str_make(copy, c->text.len), &a);
	ck_assert_msg(good == (c->host != NULL), "row %d: " STR_FMT, c->row,
	    STR_ARG(c->text));
	if (good) {
		same_text(a.host, c->host);
		ck_assert(str_equal(a.text, c->text));
		ck_assert_uint_eq(a.port, c->port);
		ck_assert(a.is_ip6 == c->is_ip6);
	}
	free(copy);
}
END_TEST

/* It is split without being checked again. */
START_TEST(a_host_is_the_authority_that_was_accepted)
{
	const struct authority_case *c = &authorities[_i];
	struct authority a;
	char text[300];
	struct head h;

	if (c->host == NULL)
		return;
	snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: " STR_FMT
	    "\r\n\r\n", STR_ARG(c->text));
	good_request(text, &h);
	ck_assert_int_eq(host_parse(&h, &a), FAIL_NONE);
	same_text(a.host, c->host);
	ck_assert(str_equal(a.text, c->text));
	ck_assert_uint_eq(a.port, c->port);
	ck_assert(a.is_ip6 == c->is_ip6);
}
END_TEST

START_TEST(a_host_has_as_many_bytes_as_dns_knows)
{
	char text[256];
	struct authority a;

	memset(text, 'a', sizeof text);
	ck_assert(authority_parse(str_make(text, 254), &a));
	ck_assert(!authority_parse(str_make(text, 255), &a));
}
END_TEST

struct target_case {
	int		 row;
	const char	*method;
	const char	*text;
	int		 form;		/* -1: refused */
	const char	*authority;
	const char	*path;
	bool		 slash;
};

#define REFUSED	-1, "", "", false

static const struct target_case targets[] = {
	{ 0, "GET", "/", TARGET_ORIGIN, "", "/", false },
	{ 0, "GET", "//b/x?y", TARGET_ORIGIN, "", "//b/x?y", false },
	{ 31, "GET", "*", REFUSED },
	{ 31, "OPTIONS", "*", TARGET_ASTERISK, "", "*", false },
	{ 31, "OPTIONS", "*x", REFUSED },
	{ 32, "GET", "a:80", REFUSED },
	{ 34, "GET", "http://b:81/x", TARGET_ABSOLUTE, "b:81", "/x", false },
	{ 34, "GET", "HTTP://b/x", TARGET_ABSOLUTE, "b", "/x", false },
	{ 35, "GET", "http://b", TARGET_ABSOLUTE, "b", "", true },
	{ 35, "GET", "http://b:", TARGET_ABSOLUTE, "b:", "", true },
	{ 36, "GET", "http://b?x=1", TARGET_ABSOLUTE, "b", "?x=1", true },
	{ 36, "GET", "http://b?x=1/y@z", TARGET_ABSOLUTE, "b", "?x=1/y@z",
	    true },
	{ 37, "OPTIONS", "http://b:8001", TARGET_ABSOLUTE, "b:8001", "*",
	    false },
	{ 38, "OPTIONS", "http://b/", TARGET_ABSOLUTE, "b", "/", false },
	{ 38, "OPTIONS", "http://b?x", TARGET_ABSOLUTE, "b", "?x", true },
	{ 39, "GET", "http://u:p@b/", REFUSED },
	{ 39, "GET", "http://a@b@c/", REFUSED },
	{ 39, "GET", "http://@b/", REFUSED },
	{ 40, "GET", "http:///x", REFUSED },
	{ 40, "GET", "http://:80/", REFUSED },
	{ 40, "GET", "http://", REFUSED },
	{ 40, "GET", "http:/x", REFUSED },
	{ 41, "GET", "https://b/", REFUSED },
	{ 42, "GET", "ftp://b/", REFUSED },
	{ 42, "GET", "gopher://b/", REFUSED },
	{ 42, "GET", "file:///etc/passwd", REFUSED },
	{ 43, "GET", "http://127.0.0.1:4294972296/", REFUSED },
	{ 44, "GET", "http://[::1]:8080/", TARGET_ABSOLUTE, "[::1]:8080", "/",
	    false },
	{ 44, "GET", "http://[::1/", REFUSED },
	{ 45, "GET", "http://b/a/../c//d;p?x=%2e&y=%zz", TARGET_ABSOLUTE, "b",
	    "/a/../c//d;p?x=%2e&y=%zz", false },
	{ 46, "GET", "http://WWW.Example.COM./", TARGET_ABSOLUTE,
	    "WWW.Example.COM.", "/", false },
	{ 211, "CONNECT", "b:443", TARGET_AUTHORITY, "b:443", "", false },
	{ 211, "CONNECT", "[::1]:443", TARGET_AUTHORITY, "[::1]:443", "",
	    false },
	{ 212, "CONNECT", "b", REFUSED },
	{ 212, "CONNECT", "b:", REFUSED },
	{ 212, "CONNECT", "b:0", REFUSED },
	{ 212, "CONNECT", "b:65536", REFUSED },
	{ 212, "CONNECT", "b:4294967739", REFUSED },
	{ 212, "CONNECT", "b:x", REFUSED },
	{ 213, "CONNECT", "/", REFUSED },
	{ 213, "CONNECT", "*", REFUSED },
	{ 213, "CONNECT", "http://b:443/", REFUSED },
	{ 213, "CONNECT", "u@b:443", REFUSED },
	{ 213, "CONNECT", "b:443/x", REFUSED },
};

START_TEST(a_target_has_one_of_four_forms)
{
	const struct target_case *c = &targets[_i];
	char text[300];
	struct head h;
	struct target t;

	snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: a\r\n\r\n",
	    c->method, c->text);
	enum failure why = read_request(str_of(text), &h);
	if (why == FAIL_NONE)
		why = target_parse(&h, &t);
	same_failure(c->row, why, c->form == -1 ? FAIL_BAD_REQUEST : FAIL_NONE,
	    str_of(text));
	if (c->form == -1)
		return;
	ck_assert_int_eq((int)t.form, c->form);
	same_text(t.authority.text, c->authority);
	same_text(t.path, c->path);
	ck_assert_msg(t.slash == c->slash, "%s", text);
}
END_TEST

START_TEST(a_request_has_one_host)
{
	struct head h;
	struct authority a;

	good_request("GET / HTTP/1.1\r\nHost: \tB.c:81 \r\n\r\n", &h);
	ck_assert_int_eq(host_parse(&h, &a), FAIL_NONE);
	same_text(a.text, "B.c:81");
	same_text(a.host, "B.c");
	ck_assert_uint_eq(a.port, 81);
	good_request("GET / HTTP/1.1\r\nHost:\r\n\r\n", &h);
	ck_assert_int_eq(host_parse(&h, &a), FAIL_BAD_REQUEST);
	good_request("GET / HTTP/1.0\r\n\r\n", &h);
	ck_assert_int_eq(host_parse(&h, &a), FAIL_BAD_REQUEST);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/uri");
	TCase *t = tcase_create("uri");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, an_authority_is_a_host_and_maybe_a_port, 0,
	    ARRAY_LEN(authorities));
	tcase_add_loop_test(t, a_host_is_the_authority_that_was_accepted, 0,
	    ARRAY_LEN(authorities));
	tcase_add_test(t, a_host_has_as_many_bytes_as_dns_knows);
	tcase_add_loop_test(t, a_target_has_one_of_four_forms, 0,
	    ARRAY_LEN(targets));
	tcase_add_test(t, a_request_has_one_host);
	return run_suite(s);
}
