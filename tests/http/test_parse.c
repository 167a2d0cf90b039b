/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_parse.c - which heads are accepted, and what they say about their
 * connection.
 */
#include "http/parse.h"

#include "http/heads.h"

struct parse_case {
	int		 row;
	struct str	 in;
	enum failure	 why;
};

#define ROW(row, why, in)	{ row, STR_INIT(in), FAIL_##why }
#define LINE(row, why, line)	ROW(row, why, line "\r\nHost: a\r\n\r\n")
#define HOST(row, why, value) \
	ROW(row, why, "GET / HTTP/1.1\r\nHost: " value "\r\n\r\n")

static const struct parse_case requests[] = {
	/* The request line. */
	LINE(13, VERSION_UNSUPPORTED, "GET / HTTP/1.2"),
	LINE(14, VERSION_UNSUPPORTED, "GET / HTTP/2.0"),
	LINE(14, VERSION_UNSUPPORTED, "GET / HTTP/3.1"),
	ROW(15, VERSION_UNSUPPORTED, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	LINE(16, VERSION_UNSUPPORTED, "GET / HTTP/0.9"),
	ROW(18, BAD_REQUEST, "GET /x\r\n\r\n"),
	LINE(18, BAD_REQUEST, "GET /x"),
	LINE(19, BAD_REQUEST, "GET / http/1.1"),
	LINE(19, BAD_REQUEST, "GET / HTTP/1.1x"),
	LINE(19, BAD_REQUEST, "GET / HTTP/01.1"),
	LINE(19, BAD_REQUEST, "GET / HTTP/1.10"),
	LINE(19, BAD_REQUEST, "GET / HTTP/1."),
	LINE(19, BAD_REQUEST, "GET / HTTP/ 1.1"),
	LINE(19, BAD_REQUEST, "GET / HTTP/4294967295.255"),
	LINE(20, BAD_REQUEST, "OPTIONS / RTSP/1.0"),
	LINE(20, BAD_REQUEST, "GET / ICE/1.0"),
	LINE(20, BAD_REQUEST, "SOURCE / ICE/1.0"),
	LINE(20, METHOD_UNSUPPORTED, "SOURCE / HTTP/1.1"),
	LINE(20, METHOD_UNSUPPORTED, "DESCRIBE / HTTP/1.1"),
	LINE(21, BAD_REQUEST, "GET  / HTTP/1.1"),
	LINE(21, BAD_REQUEST, "GET /  HTTP/1.1"),
	LINE(22, BAD_REQUEST, "GET / HTTP/1.1 "),
	LINE(22, BAD_REQUEST, "GET / HTTP/1.1\t"),
	LINE(23, BAD_REQUEST, "GET /a b HTTP/1.1"),
	LINE(25, METHOD_UNSUPPORTED, "FOO / HTTP/1.1"),
	LINE(25, METHOD_UNSUPPORTED, "QUERY / HTTP/1.1"),
	LINE(25, METHOD_UNSUPPORTED, "get / HTTP/1.1"),
	LINE(25, METHOD_UNSUPPORTED, "GETX / HTTP/1.1"),
	LINE(25, METHOD_UNSUPPORTED, "PRI / HTTP/1.1"),
	LINE(28, BAD_REQUEST, "GET /\xe2\x82 HTTP/1.1"),
	LINE(28, BAD_REQUEST, "GET /\ta HTTP/1.1"),
	LINE(28, BAD_REQUEST, "GET /a?\xff HTTP/1.1"),
	LINE(29, BAD_REQUEST, "GET /a#b HTTP/1.1"),
	LINE(29, BAD_REQUEST, "GET /a?b#c HTTP/1.1"),
	LINE(30, BAD_REQUEST, "GET foo HTTP/1.1"),
	LINE(30, BAD_REQUEST, "GET ?q HTTP/1.1"),
	LINE(0, NONE, "M-SEARCH * HTTP/1.1"),
	LINE(47, NONE, "GET /%0d%0aX:y/%00/%zz%u0041%0 HTTP/1.1"),

	/* Host. */
	ROW(50, BAD_REQUEST, "GET / HTTP/1.1\r\n\r\n"),
	ROW(51, BAD_REQUEST, GET "Host: b\r\n\r\n"),
	ROW(51, BAD_REQUEST, GET "X: y\r\nhost: a\r\n\r\n"),
	ROW(51, BAD_REQUEST, "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"),
	HOST(52, BAD_REQUEST, "a/b"),
	HOST(52, BAD_REQUEST, "u@a"),
	HOST(52, BAD_REQUEST, "a b"),
	HOST(52, BAD_REQUEST, "a,b"),
	HOST(52, BAD_REQUEST, "a:99999"),
	HOST(52, BAD_REQUEST, "a:-1"),
	HOST(52, BAD_REQUEST, "a: 80"),
	HOST(52, BAD_REQUEST, "[::1"),
	HOST(52, BAD_REQUEST, "a\tb"),
	HOST(52, BAD_REQUEST, "a#b"),
	HOST(52, BAD_REQUEST, "a?b"),
	HOST(52, BAD_REQUEST, "\"a\""),
	HOST(52, BAD_REQUEST, "a\x80"),
	HOST(53, NONE, ""),
	HOST(59, NONE, "WWW.Example.COM.:80"),
	ROW(56, NONE, "GET / HTTP/1.0\r\n\r\n"),
	ROW(80, NONE, "GET / HTTP/1.1\r\nhOsT: a\r\n\r\n"),

	/* What llhttp refuses by itself. */
	ROW(86, BAD_REQUEST, POST "Content-Length: 5\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n"),
	ROW(97, BAD_REQUEST, POST "Content-Length: -1\r\n\r\n"),
	ROW(98, BAD_REQUEST, POST "Content-Length: 5\r\n"
	    "Content-Length: 5\r\n\r\n"),
	ROW(100, BAD_REQUEST, POST
	    "Content-Length: 18446744073709551616\r\n\r\n"),

	/* Names that Connection must not have. */
	ROW(171, BAD_REQUEST, GET "Connection: cache-control, cookie\r\n\r\n"),
	ROW(171, BAD_REQUEST, GET "Connection: Authorization\r\n\r\n"),
	ROW(171, BAD_REQUEST, GET "Connection: content-length\r\n\r\n"),
	ROW(171, BAD_REQUEST, GET "Connection: TRANSFER-ENCODING\r\n\r\n"),
	ROW(171, BAD_REQUEST, GET "Connection: forwarded\r\n\r\n"),
	ROW(171, BAD_REQUEST, GET "Connection: X-Forwarded-For\r\n\r\n"),
	ROW(171, BAD_REQUEST, GET "Connection: close\r\n"
	    "Connection: x-forwarded-anything\r\n\r\n"),
	ROW(57, NONE, GET "Connection: host\r\n\r\n"),

	/* Max-Forwards. */
	ROW(201, BAD_REQUEST, "OPTIONS * HTTP/1.1\r\nHost: a\r\n"
	    "Max-Forwards: -1\r\n\r\n"),
	ROW(201, BAD_REQUEST, "TRACE / HTTP/1.1\r\nHost: a\r\n"
	    "Max-Forwards: x\r\n\r\n"),
	ROW(201, BAD_REQUEST, "TRACE / HTTP/1.1\r\nHost: a\r\n"
	    "Max-Forwards: 99999999999999999999\r\n\r\n"),
	ROW(201, BAD_REQUEST, "TRACE / HTTP/1.1\r\nHost: a\r\n"
	    "Max-Forwards: 1\r\nMax-Forwards: 1\r\n\r\n"),
	ROW(201, NONE, GET "Max-Forwards: x\r\n\r\n"),
};

#define STATUS_LINE(row, why, line)	ROW(row, why, line "\r\n\r\n")

static const struct parse_case responses[] = {
	STATUS_LINE(12, NONE, "HTTP/1.0 200 OK"),
	STATUS_LINE(149, RESPONSE_INVALID, "HTTP/1.1 600 X"),
	STATUS_LINE(149, RESPONSE_INVALID, "HTTP/1.1 000 X"),
	STATUS_LINE(149, RESPONSE_INVALID, "HTTP/1.1 099 X"),
	STATUS_LINE(149, RESPONSE_INVALID, "HTTP/1.1 99 X"),
	STATUS_LINE(149, RESPONSE_INVALID, "HTTP/1.1 0200 X"),
	STATUS_LINE(149, RESPONSE_INVALID, "HTTP/1.1 1000 X"),
	STATUS_LINE(149, RESPONSE_INVALID, "HTTP/1.1 2x0 X"),
	STATUS_LINE(149, RESPONSE_INVALID, "HTTP/1.1 +200 X"),
	STATUS_LINE(149, RESPONSE_INVALID, "HTTP/1.1 200X"),
	STATUS_LINE(150, RESPONSE_INVALID, "HTTP/1.1  200 OK"),
	STATUS_LINE(150, RESPONSE_INVALID, "HTTP/1.1"),
	STATUS_LINE(150, RESPONSE_INVALID, "HTTP/1.1 "),
	STATUS_LINE(151, NONE, "HTTP/1.1 200"),
	STATUS_LINE(151, NONE, "HTTP/1.1 200 "),
	STATUS_LINE(154, RESPONSE_INVALID, "HTTP/2.0 200 OK"),
	STATUS_LINE(154, RESPONSE_INVALID, "HTTP/0.9 200 OK"),
	STATUS_LINE(154, RESPONSE_INVALID, "HTTP/1.2 200 OK"),
	STATUS_LINE(154, RESPONSE_INVALID, "HTTP/11 200 OK"),
	STATUS_LINE(268, NONE, "HTTP/1.1 299 X"),
	STATUS_LINE(268, NONE, "HTTP/1.1 418 T\tx\xc3\xa9"),
	STATUS_LINE(268, NONE, "HTTP/1.1 599 Y"),
	ROW(140, RESPONSE_INVALID, OK "Content-Length: 5\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n"),
	ROW(142, RESPONSE_INVALID, OK "Content-Length: abc\r\n\r\n"),
	ROW(171, NONE, OK "Connection: set-cookie, cookie\r\n\r\n"),
};

START_TEST(requests_are_accepted_or_refused)
{
	struct head h;

	same_failure(requests[_i].row, read_request(requests[_i].in, &h),
	    requests[_i].why, requests[_i].in);
}
END_TEST

START_TEST(responses_are_accepted_or_refused)
{
	struct head h;

	same_failure(responses[_i].row, read_response(responses[_i].in, &h),
	    responses[_i].why, responses[_i].in);
}
END_TEST

START_TEST(every_method_of_the_table_is_read)
{
	char text[100];
	struct head h;

	for (unsigned m = METHOD_NONE + 1; m < METHOD_COUNT; m++) {
		const char *target = m == METHOD_CONNECT ? "a:1" : "/";
		snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: a\r\n\r\n",
		    method_name(m).at, target);
		good_request(text, &h);
		ck_assert_uint_eq(h.method, m);
		same_text(head_str(&h, h.target), target);
	}
}
END_TEST

/* Row 27. */
START_TEST(a_request_line_of_8000_bytes_is_read)
{
	static char text[9000];
	struct head h;
	int n = snprintf(text, sizeof text, "GET /%08100d HTTP/1.1\r\n"
	    "Host: a\r\n\r\n", 0);

	ck_assert_int_gt(n, 8000);
	good_request(text, &h);
	ck_assert_uint_eq(h.target.len, 8101);
}
END_TEST

START_TEST(a_request_is_taken_apart)
{
	struct head h;

	good_request("\r\nPOST /a?b=c HTTP/1.0\r\nhost: a:1\r\nX-Y:\r\n"
	    "Content-length:\t 5 \r\nx-y: \xff b,\t \r\n\r\nabcde", &h);
	ck_assert_uint_eq(h.method, METHOD_POST);
	ck_assert_uint_eq(h.minor, 0);
	ck_assert_uint_eq(h.count, 4);
	same_text(head_str(&h, h.target), "/a?b=c");
	same_text(field_name(&h, &h.fields[0]), "host");
	same_text(field_value(&h, &h.fields[0]), "a:1");
	same_text(field_name(&h, &h.fields[1]), "X-Y");
	same_text(field_value(&h, &h.fields[1]), "");
	same_text(field_value(&h, &h.fields[2]), "5");
	same_text(field_value(&h, &h.fields[3]), "\xff b,");
	ck_assert_ptr_eq(head_first(&h, FIELD_HOST), &h.fields[0]);
	ck_assert_ptr_eq(head_first(&h, FIELD_CONTENT_LENGTH), &h.fields[2]);
	ck_assert_ptr_null(head_first(&h, FIELD_VIA));
	ck_assert_ptr_eq(head_first(&h, FIELD_OTHER), &h.fields[1]);
	ck_assert_ptr_eq(head_next(&h, &h.fields[1]), &h.fields[3]);
	ck_assert(!h.close && !h.keep_alive && !h.upgrade);
}
END_TEST

START_TEST(a_response_is_taken_apart)
{
	struct head h;

	good_response("HTTP/1.1 404 Not  Found \r\nSet-Cookie: a\r\n"
	    "Set-Cookie: b\r\n\r\n", &h);
	ck_assert_int_eq(h.status, 404);
	same_text(head_str(&h, h.reason), "Not  Found ");
	ck_assert_uint_eq(h.count, 2);
	ck_assert_uint_eq(h.minor, 1);
	good_response("HTTP/1.0 200\r\n\r\n", &h);
	ck_assert_uint_eq(h.reason.len, 0);
	ck_assert_uint_eq(h.minor, 0);
}
END_TEST

static const char *const field_names[FIELD_IDS] = {
#define FIELD(ID, name, ...)	[FIELD_##ID] = name,
#include "http/fields.def"
};

/* In a response, that may have any of them. */
START_TEST(every_field_of_the_table_is_found_in_any_case)
{
	char text[200];
	struct head h;
	const char *name = field_names[_i];
	const char *value = _i == FIELD_TRANSFER_ENCODING ? "chunked" : "1";

	for (int upper = 0; upper < 2; upper++) {
		snprintf(text, sizeof text, OK "%s: %s\r\n%sx: 1\r\n"
		    "x%s: 1\r\n\r\n", name, value, name, name);
		char *end = text + strlen(OK) + strlen(name);
		for (char *c = text + strlen(OK); upper && c < end; c++) {
			if (*c >= 'a' && *c <= 'z')
				*c = (char)(*c - 0x20);
		}
		good_response(text, &h);
		ck_assert_int_eq(h.fields[0].id, _i);
		ck_assert_int_eq(h.fields[1].id, FIELD_OTHER);
		ck_assert_int_eq(h.fields[2].id, FIELD_OTHER);
	}
}
END_TEST

/* A length of 8 or 16 bits would wrap at these. */
START_TEST(names_are_read_whole_at_any_length)
{
	static const size_t lengths[] = { 255, 256, 257, 511, 512, 65000 };
	static char text[70000];
	struct out o;
	struct head h;

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		out_init(&o, text, sizeof text);
		out_put(&o, GET);
		for (size_t n = 0; n < lengths[i]; n++)
			out_char(&o, 'a');
		out_put(&o, ": b\r\n\r\n");
		struct scanned r = scan_in(out_text(&o), SCAN_REQUEST,
		    &usual_limits, WHOLE);
		ck_assert_int_eq(r.result, SCAN_DONE);
		ck_assert_int_eq(parse_request(the_parser(), out_text(&o), 2,
		    &h), FAIL_NONE);
		ck_assert_uint_eq(h.count, 2);
		ck_assert_uint_eq(h.fields[1].name_len, lengths[i]);
	}
}
END_TEST

START_TEST(a_head_may_have_a_thousand_fields_and_no_more)
{
	static char text[70000];
	struct out o;
	struct head h;

	for (unsigned fields = 999; fields <= 1001; fields++) {
		out_init(&o, text, sizeof text);
		out_put(&o, GET);
		for (unsigned i = 1; i < fields; i++)
			out_put(&o, "a:b\r\n");
		out_put(&o, "\r\n");
		ck_assert_int_eq(parse_request(the_parser(), out_text(&o),
		    fields, &h), fields <= HEAD_FIELDS_MAX ?
		    FAIL_NONE : FAIL_BAD_REQUEST);
	}
}
END_TEST

/* --- Connection -------------------------------------------------------- */

struct connection_case {
	int		 row;
	const char	*lines;
	bool		 close;
	bool		 keep_alive;
	bool		 upgrade;
};

static const struct connection_case connections[] = {
	{ 79, "Connection: , ,close, ,", true, false, false },
	{ 172, "Connection: close, keep-alive", true, true, false },
	{ 172, "Connection: keep-alive\r\nConnection: close",
	    true, true, false },
	{ 173, "Connection: close\t", true, false, false },
	{ 173, "Connection: close\t,x", true, false, false },
	{ 173, "Connection:close", true, false, false },
	{ 174, "Connection: \"close\"", false, false, false },
	{ 174, "Connection: closed", false, false, false },
	{ 174, "Connection: xclose", false, false, false },
	{ 174, "Connection: close;x", false, false, false },
	{ 174, "Connection: close x", false, false, false },
	{ 175, "Proxy-Connection: close", false, false, false },
	{ 175, "Proxy-Connection: keep-alive", false, false, false },
	{ 228, "Connection: Upgrade\r\nUpgrade: websocket",
	    false, false, true },
	{ 228, "Upgrade: websocket\r\nConnection: keep-alive, UPGRADE",
	    false, true, true },
	{ 232, "Upgrade: websocket", false, false, false },
	{ 232, "Connection: upgrade", false, false, false },
	{ 232, "Connection: upgrade\r\nUpgrade: , ,", false, false, false },
	{ 234, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
	    "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA", false, false, false },
	{ 234, "Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: H2C",
	    false, false, false },
	{ 234, "Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: foo/2",
	    false, false, true },
};

START_TEST(connection_is_a_list_of_tokens)
{
	const struct connection_case *c = &connections[_i];
	char text[400];
	struct head h;

	snprintf(text, sizeof text, GET "%s\r\n\r\n", c->lines);
	good_request(text, &h);
	ck_assert_msg(h.close == c->close && h.keep_alive == c->keep_alive &&
	    h.upgrade == c->upgrade, "row %d: %s", c->row, c->lines);
}
END_TEST

/* Row 233. */
START_TEST(http_1_0_knows_no_upgrade)
{
	struct head h;

	good_request("GET / HTTP/1.0\r\nConnection: upgrade\r\n"
	    "Upgrade: websocket\r\n\r\n", &h);
	ck_assert(!h.upgrade);
}
END_TEST

/* Rows 168 and 169. */
START_TEST(fields_that_connection_names_are_marked)
{
	struct head h;

	good_request(GET "x-foo: 1\r\nConnection: X-Foo, close\r\nX-FOO: 2\r\n"
	    "Y: 3\r\nConnection: Via,\tY\r\nvia: 1.1 b\r\nX-Foo2: 4\r\n\r\n",
	    &h);
	ck_assert(h.close);
	ck_assert(!h.fields[0].named && !h.fields[2].named);
	ck_assert(h.fields[1].named && h.fields[3].named);
	ck_assert(h.fields[4].named && !h.fields[5].named);
	ck_assert(h.fields[6].named && !h.fields[7].named);
	good_request(GET "Connection: host\r\n\r\n", &h);
	ck_assert(!h.fields[0].named);
}
END_TEST

/* A use after free elsewhere. */
START_TEST(connection_may_name_itself)
{
	struct head h;

	good_request(GET "Connection: Connection\r\nConnection: x\r\n\r\n", &h);
	ck_assert(h.fields[1].named && h.fields[2].named);
	good_request(GET "Connection: proxy-connection\r\n\r\n", &h);
	good_request(GET "Connection: TE,,Keep-Alive\r\n\r\n", &h);
}
END_TEST

START_TEST(a_list_of_commas_alone_is_empty)
{
	static char text[HEAD_SIZE_MAX];
	struct out o;
	struct head h;

	out_init(&o, text, sizeof text);
	out_put(&o, GET "Connection: ");
	while (out_len(&o) < sizeof text - 100)
		out_char(&o, ',');
	out_put(&o, "close\r\n\r\n");
	ck_assert_int_eq(parse_request(the_parser(), out_text(&o), 2, &h),
	    FAIL_NONE);
	ck_assert(h.close);
}
END_TEST

START_TEST(connection_may_name_64_fields_and_no_more)
{
	static char text[4096];
	struct out o;
	struct head h;

	for (unsigned named = 64; named <= 65; named++) {
		out_init(&o, text, sizeof text);
		out_put(&o, GET "Connection: keep-alive, a0");
		for (unsigned i = 1; i < named; i++)
			out_printf(&o, ",a%u", i);
		out_put(&o, "\r\n\r\n");
		ck_assert_int_eq(parse_request(the_parser(), out_text(&o), 2,
		    &h), named <= PARSE_NAMED ?
		    FAIL_NONE : FAIL_BAD_REQUEST);
	}
}
END_TEST

/* What is longer or shorter than the scan said must not pass. */
START_TEST(a_head_must_end_where_it_was_said_to)
{
	struct str in = STR(GET "X: y\r\n\r\nGET / HTTP/1.1\r\n");
	size_t end = strlen(GET "X: y\r\n\r\n");
	struct head h;

	for (size_t n = 1; n <= in.len; n++) {
		char *copy = malloc(n);
		memcpy(copy, in.at, n);
		enum failure why = parse_request(the_parser(),
		    str_make(copy, n), 2, &h);
		ck_assert((why == FAIL_NONE) == (n == end));
		free(copy);
	}
}
END_TEST

START_TEST(a_head_must_have_as_many_fields_as_were_counted)
{
	struct str request = STR(GET "X: y\r\n\r\n");
	struct str response = STR("HTTP/1.1 200\r\nA: b\r\nX: y\r\n\r\n");
	struct head h;

	for (unsigned fields = 0; fields <= 4; fields++) {
		ck_assert((parse_request(the_parser(), request, fields, &h) ==
		    FAIL_NONE) == (fields == 2));
		ck_assert((parse_response(the_parser(), response, fields,
		    &h) == FAIL_NONE) == (fields == 2));
	}
}
END_TEST

START_TEST(the_library_says_its_version)
{
	ck_assert(str_starts(str_of(parse_library()), STR("llhttp ")));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/parse");
	TCase *t = tcase_create("parse");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, requests_are_accepted_or_refused, 0,
	    ARRAY_LEN(requests));
	tcase_add_loop_test(t, responses_are_accepted_or_refused, 0,
	    ARRAY_LEN(responses));
	tcase_add_test(t, every_method_of_the_table_is_read);
	tcase_add_test(t, a_request_line_of_8000_bytes_is_read);
	tcase_add_test(t, a_request_is_taken_apart);
	tcase_add_test(t, a_response_is_taken_apart);
	tcase_add_loop_test(t, every_field_of_the_table_is_found_in_any_case,
	    FIELD_OTHER + 1, FIELD_IDS);
	tcase_add_test(t, names_are_read_whole_at_any_length);
	tcase_add_test(t, a_head_may_have_a_thousand_fields_and_no_more);
	tcase_add_loop_test(t, connection_is_a_list_of_tokens, 0,
	    ARRAY_LEN(connections));
	tcase_add_test(t, http_1_0_knows_no_upgrade);
	tcase_add_test(t, fields_that_connection_names_are_marked);
	tcase_add_test(t, connection_may_name_itself);
	tcase_add_test(t, a_list_of_commas_alone_is_empty);
	tcase_add_test(t, connection_may_name_64_fields_and_no_more);
	tcase_add_test(t, a_head_must_end_where_it_was_said_to);
	tcase_add_test(t, a_head_must_have_as_many_fields_as_were_counted);
	tcase_add_test(t, the_library_says_its_version);
	return run_suite(s);
}
