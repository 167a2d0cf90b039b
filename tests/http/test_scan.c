/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_scan.c - where heads end, and what no parser gets to see.  Every case
 * arrives whole, byte by byte and line by line.
 */
#include "http/scan.h"

#include "http/chars.h"
#include "http/heads.h"

struct scan_case {
	int		 row;
	struct str	 in;
	enum failure	 why;		/* FAIL_NONE: complete */
	uint32_t	 start;
	uint32_t	 rest;		/* bytes after its end */
};

#define BAD(row, in)	{ row, STR_INIT(in), FAIL_BAD_REQUEST, 0, 0 }
#define INVALID(row, in) { row, STR_INIT(in), FAIL_RESPONSE_INVALID, 0, 0 }
#define GOOD(row, in, start, rest) \
	{ row, STR_INIT(in), FAIL_NONE, start, rest }

static const struct scan_case requests[] = {
	GOOD(0, GET END, 0, 0),
	GOOD(0, GET END "GET", 0, 3),
	GOOD(0, "GET / HTTP/1.0\r\n\r\n", 0, 0),
	BAD(1, GET "X: a\rb\r\n\r\n"),
	BAD(2, "GET /\rx HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD(3, "GET / HTTP/1.1\nHost: a\n\n"),
	BAD(3, "GET / HTTP/1.1\r\nHost: a\n\r\n"),
	BAD(4, GET "\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD(5, GET "\rXGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"),
	GOOD(6, "\r\n" GET END, 2, 0),
	GOOD(6, "\r\n\r\n" GET END, 4, 0),
	BAD(6, "\r\n\r\n\r\n" GET END),
	BAD(6, "\n" GET END),
	BAD(6, "\r" GET END),
	BAD(7, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
	BAD(7, "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"),
	BAD(8, "\x16\x03\x01\x02\x00\x01\x00"),
	BAD(9, "\x00"),
	BAD(9, "SSH-2.0-x\r\n"),
	BAD(17, "GET /x\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
	BAD(22, "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD(22, " GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD(22, "GET /\x0b HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD(28, "GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD(28, "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD(60, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
	BAD(60, GET "Content-Length : 2\r\n\r\n"),
	BAD(60, GET "X\t: a\r\n\r\n"),
	BAD(62, GET "X: a\r\n b\r\n\r\n"),
	BAD(62, GET "X: a\r\n\tb\r\n\r\n"),
	BAD(64, POST "Content-Length:\r\n 2\r\n\r\nab"),
	BAD(64, POST "X: y\r\n Content-Length: 3\r\n\r\n"),
	BAD(65, GET "X: a\x00" "b\r\n\r\n"),
	BAD(66, GET "X: a\nEvil: b\r\n\r\n"),
	BAD(67, GET "X: \x01\r\n\r\n"),
	BAD(67, GET "X: \x1f\r\n\r\n"),
	BAD(67, GET "X: 0123456789\x7f\r\n\r\n"),
	GOOD(68, GET "X: \xff\x80\xc3\xa9\t0123456789\x80\r\n\r\n", 0, 0),
	BAD(69, GET ": v\r\n\r\n"),
	BAD(70, GET "X(): v\r\n\r\n"),
	BAD(70, GET "X@: v\r\n\r\n"),
	BAD(70, GET "\"X\": v\r\n\r\n"),
	BAD(70, GET "X\xa0: v\r\n\r\n"),
	BAD(70, GET "X\x00: v\r\n\r\n"),
	BAD(70, GET "X y: v\r\n\r\n"),
	BAD(70, GET "X[1]: v\r\n\r\n"),
	BAD(71, GET "foo\r\n\r\n"),
	BAD(71, GET "Content-Length 10\r\n\r\n"),
	GOOD(78, GET "X:\r\nY: \t \r\nZ:z\r\n\r\n", 0, 0),
};

static const struct scan_case responses[] = {
	GOOD(0, OK END, 0, 0),
	GOOD(0, OK "Content-Length: 2\r\n\r\nok", 0, 2),
	GOOD(151, "HTTP/1.1 200\r\n\r\n", 0, 0),
	INVALID(61, OK "X : a\r\n\r\n"),
	INVALID(63, OK "X: a\r\n b\r\n\r\n"),
	INVALID(69, OK ": v\r\n\r\n"),
	INVALID(152, "HTTP/1.1 200 O\x00K\r\n\r\n"),
	INVALID(152, "HTTP/1.1 200 O\rK\r\n\r\n"),
	INVALID(153, "HTTP/1.1 200 OK\nA: b\r\n\r\n"),
	INVALID(154, "ICY 200 OK\r\n\r\n"),
	INVALID(154, "<html>"),
	INVALID(154, "\r\n" OK END),
};

static void
check_case(const struct scan_case *c, enum scan_kind kind)
{
	struct scanned r = scan_all(c->in, kind, &usual_limits);

	ck_assert_msg(r.result == (c->why == FAIL_NONE ? SCAN_DONE : SCAN_BAD),
	    "row %d: result %d: \"" STR_FMT "\"", c->row, r.result,
	    STR_ARG(c->in));
	same_failure(c->row, r.why, c->why, c->in);
	if (c->why == FAIL_NONE) {
		ck_assert_uint_eq(r.start, c->start);
		ck_assert_uint_eq(r.at, c->in.len - c->rest);
	}
}

START_TEST(requests_end_or_are_refused)
{
	check_case(&requests[_i], SCAN_REQUEST);
}
END_TEST

START_TEST(responses_end_or_are_refused)
{
	check_case(&responses[_i], SCAN_RESPONSE);
}
END_TEST

START_TEST(every_beginning_of_a_good_head_is_incomplete)
{
	struct str all = STR("\r\n" GET "X: y\r\n\r\n");

	for (size_t n = 1; n < all.len; n++) {
		struct scanned r = scan_all(str_head(all, n), SCAN_REQUEST,
		    &usual_limits);
		ck_assert_int_eq(r.result, SCAN_MORE);
	}
}
END_TEST

/* A text of `before`, n times c, and `after`; static. */
static struct str
text_of(const char *before, size_t n, char c, const char *after)
{
	static char text[200000];
	struct out o;

	out_init(&o, text, sizeof text);
	out_put(&o, before);
	while (n-- > 0)
		out_char(&o, c);
	out_put(&o, after);
	ck_assert(!out_is_full(&o));
	return out_text(&o);
}

static void
check_limits(struct str in, enum scan_kind kind,
    const struct head_limits *limits, enum failure why)
{
	struct scanned r = scan_all(in, kind, limits);

	same_failure(0, r.why, why, str_head(in, 60));
	ck_assert_int_eq(r.result, why == FAIL_NONE ? SCAN_DONE : SCAN_BAD);
}

/* Row 26: at the byte beyond the limit, not at the end of the line. */
START_TEST(a_start_line_is_as_long_as_its_limit_at_most)
{
	struct head_limits limits = { 4096, 100, 10 };
	const char *rest = " HTTP/1.1\r\n\r\n";

	check_limits(text_of("GET /", 86, 'x', rest), SCAN_REQUEST, &limits,
	    FAIL_NONE);
	check_limits(text_of("GET /", 87, 'x', rest), SCAN_REQUEST, &limits,
	    FAIL_URI_TOO_LONG);
	check_limits(text_of("GET /", 96, 'x', ""), SCAN_REQUEST, &limits,
	    FAIL_URI_TOO_LONG);
	check_limits(text_of("GET /", 90, 'x', "\001\r\n"), SCAN_REQUEST,
	    &limits, FAIL_BAD_REQUEST);
	check_limits(text_of("HTTP/1.1 200 ", 87, 'x', "\r\n\r\n"),
	    SCAN_RESPONSE, &limits, FAIL_NONE);
	check_limits(text_of("HTTP/1.1 200 ", 88, 'x', ""), SCAN_RESPONSE,
	    &limits, FAIL_RESPONSE_TOO_LARGE);
}
END_TEST

/* Row 24. */
START_TEST(a_method_that_nobody_has_need_not_arrive_whole)
{
	check_limits(text_of("", 65, 'A', ""), SCAN_REQUEST, &usual_limits,
	    FAIL_METHOD_UNSUPPORTED);
	check_limits(text_of("", 65536, 'A', " / HTTP/1.1\r\n\r\n"),
	    SCAN_REQUEST, &usual_limits, FAIL_METHOD_UNSUPPORTED);
	check_limits(text_of("", 64, 'A', " / HTTP/1.1\r\n\r\n"), SCAN_REQUEST,
	    &usual_limits, FAIL_NONE);
}
END_TEST

/* Rows 72 to 75. */
START_TEST(a_head_is_as_large_as_its_limit_at_most)
{
	struct head_limits limits = { 1000, 100, 10 };
	size_t room = 1000 - strlen(GET "X: \r\n\r\n");

	check_limits(text_of(GET "X: ", room, 'x', "\r\n\r\n"), SCAN_REQUEST,
	    &limits, FAIL_NONE);
	check_limits(text_of("\r\n\r\n" GET "X: ", room, 'x', "\r\n\r\n"),
	    SCAN_REQUEST, &limits, FAIL_NONE);
	check_limits(text_of(GET "X: ", room + 1, 'x', "\r\n\r\n"),
	    SCAN_REQUEST, &limits, FAIL_HEAD_TOO_LARGE);
	check_limits(text_of(GET, 1000, 'x', ""), SCAN_REQUEST, &limits,
	    FAIL_HEAD_TOO_LARGE);
	check_limits(text_of(OK "X: ", 1000, 'x', ""), SCAN_RESPONSE, &limits,
	    FAIL_RESPONSE_TOO_LARGE);
}
END_TEST

START_TEST(a_head_has_as_many_fields_as_its_limit_at_most)
{
	struct head_limits limits = { 4096, 100, 3 };

	check_limits(STR(GET "a:\r\nb:\r\n\r\n"), SCAN_REQUEST, &limits,
	    FAIL_NONE);
	check_limits(STR(GET "a:\r\nb:\r\nc"), SCAN_REQUEST, &limits,
	    FAIL_HEAD_TOO_LARGE);
	check_limits(STR(OK "a:\r\nb:\r\nc:\r\nd:\r\n\r\n"), SCAN_RESPONSE,
	    &limits, FAIL_RESPONSE_TOO_LARGE);
}
END_TEST

START_TEST(trailers_are_fields_only)
{
	struct scanned r = scan_all(STR("\r\nX"), SCAN_TRAILERS,
	    &usual_limits);

	ck_assert_int_eq(r.result, SCAN_DONE);
	ck_assert_uint_eq(r.at, 2);
	r = scan_all(STR("X: y\r\n\r\nX"), SCAN_TRAILERS, &usual_limits);
	ck_assert_int_eq(r.result, SCAN_DONE);
	ck_assert_uint_eq(r.at, 8);
	r = scan_all(STR("\nGET"), SCAN_TRAILERS, &usual_limits);
	ck_assert_int_eq(r.result, SCAN_BAD);
}
END_TEST

/* The table of chars.h against the grammar, byte by byte. */
START_TEST(classes_of_bytes_are_those_of_the_grammar)
{
	for (int c = 0; c < 256; c++) {
		bool alnum = (c >= '0' && c <= '9') ||
		    (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		bool hex = (c >= '0' && c <= '9') ||
		    (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
		bool token = alnum ||
		    (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
		bool host = alnum || (c != 0 && strchr("-._~", c) != NULL);
		ck_assert(char_is((char)c, CHAR_TOKEN) == token);
		ck_assert(char_is((char)c, CHAR_TEXT) ==
		    (c == '\t' || (c >= ' ' && c != 0x7f)));
		ck_assert(char_is((char)c, CHAR_TARGET) ==
		    (c > ' ' && c < 0x7f && c != '#'));
		ck_assert(char_is((char)c, CHAR_HOST) == host);
		ck_assert(char_is((char)c, CHAR_HEX) == hex);
	}
}
END_TEST

/* At each place of a value: sixteen at a time or not. */
START_TEST(a_control_byte_is_found_wherever_it_is)
{
	char text[] = GET "X: 0123456789abcdefghijklmno\r\n\r\n";
	size_t from = strlen(GET "X: ");

	for (size_t at = from; at < from + 25; at++) {
		char was = text[at];
		text[at] = (char)_i;
		struct scanned r = scan_in(str_make(text, sizeof text - 1),
		    SCAN_REQUEST, &usual_limits, WHOLE);
		bool good = char_is((char)_i, CHAR_TEXT);
		ck_assert_int_eq(r.result, good ? SCAN_DONE : SCAN_BAD);
		text[at] = was;
	}
}
END_TEST

/* The same of a name: sixteen at a time, four, or none of that. */
START_TEST(a_byte_of_no_token_is_found_wherever_it_is)
{
	char text[] = GET "Name-Of-Forty-Bytes-abcdefghijklmnopqrst: x\r\n\r\n";
	size_t from = strlen(GET);

	for (size_t at = from; at < from + 40; at++) {
		char was = text[at];
		text[at] = (char)_i;
		struct scanned r = scan_in(str_make(text, sizeof text - 1),
		    SCAN_REQUEST, &usual_limits, WHOLE);
		bool ends = _i == ':' && at > from;
		ck_assert_int_eq(r.result, ends || char_is((char)_i,
		    CHAR_TOKEN) ? SCAN_DONE : SCAN_BAD);
		text[at] = was;
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/scan");
	TCase *t = tcase_create("scan");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, requests_end_or_are_refused, 0,
	    ARRAY_LEN(requests));
	tcase_add_loop_test(t, responses_end_or_are_refused, 0,
	    ARRAY_LEN(responses));
	tcase_add_test(t, every_beginning_of_a_good_head_is_incomplete);
	tcase_add_test(t, a_start_line_is_as_long_as_its_limit_at_most);
	tcase_add_test(t, a_method_that_nobody_has_need_not_arrive_whole);
	tcase_add_test(t, a_head_is_as_large_as_its_limit_at_most);
	tcase_add_test(t, a_head_has_as_many_fields_as_its_limit_at_most);
	tcase_add_test(t, trailers_are_fields_only);
	tcase_add_test(t, classes_of_bytes_are_those_of_the_grammar);
	tcase_add_loop_test(t, a_control_byte_is_found_wherever_it_is, 0, 256);
	tcase_add_loop_test(t, a_byte_of_no_token_is_found_wherever_it_is, 0,
	    256);
	return run_suite(s);
}
