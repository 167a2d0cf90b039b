/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_framing.c - how long bodies are, and what is refused for it.
 */
#include "http/framing.h"

#include "http/heads.h"

struct framing_case {
	int			 row;
	struct str		 in;
	enum method		 to;		/* responses */
	enum failure		 why;
	enum framing_kind	 kind;
	uint64_t		 length;
	bool			 has_length;
};

#define CL	"Content-Length: "
#define TE	"Transfer-Encoding: "
#define CHUNKED	TE "chunked\r\n"
#define TRACE	"TRACE / HTTP/1.1\r\nHost: a\r\n"
#define CONNECT	"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n"

#define REFUSED(row, why, in) \
	{ row, STR_INIT(in), METHOD_NONE, FAIL_##why, FRAMING_NONE, 0, false }
#define BODY(row, kind, length, in) \
	{ row, STR_INIT(in), METHOD_NONE, FAIL_NONE, FRAMING_##kind, length, \
	    false }
#define LENGTH(row, why, value)	REFUSED(row, why, POST CL value "\r\n\r\n")
#define CODING(row, why, value)	REFUSED(row, why, POST TE value "\r\n\r\n")

static const struct framing_case requests[] = {
	REFUSED(86, BAD_REQUEST, POST CL "5\r\n" CHUNKED END),
	REFUSED(87, BAD_REQUEST, POST CHUNKED CL "5\r\n" END),
	REFUSED(87, BAD_REQUEST, POST CHUNKED "cOnTENT-length: 5\r\n" END),
	REFUSED(87, BAD_REQUEST, POST CHUNKED "a:\r\nb:\r\nc:\r\nd:\r\ne:\r\n"
	    "f:\r\ng:\r\nh:\r\ni:\r\nj:\r\nk:\r\nl:\r\nm:\r\nn:\r\no:\r\n"
	    "p:\r\nq:\r\nr:\r\ns:\r\nt:\r\n" CL "0\r\n" END),
	CODING(88, BAD_REQUEST, "chunked, identity"),
	CODING(88, BAD_REQUEST, "gzip"),
	CODING(88, BAD_REQUEST, "xchunked"),
	CODING(88, BAD_REQUEST, "\"chunked\""),
	CODING(88, BAD_REQUEST, "chunked;q=1"),
	CODING(88, BAD_REQUEST, "x chunked"),
	CODING(88, BAD_REQUEST, "a;b=c, chunked"),
	CODING(89, METHOD_UNSUPPORTED, "gzip, chunked"),
	CODING(89, METHOD_UNSUPPORTED, "identity, chunked"),
	CODING(90, BAD_REQUEST, "chunked, chunked"),
	REFUSED(90, BAD_REQUEST, POST CHUNKED CHUNKED END),
	REFUSED(91, BAD_REQUEST, POST TE "identity\r\n" CHUNKED END),
	REFUSED(91, BAD_REQUEST, POST CHUNKED TE "\r\n" END),
	REFUSED(91, BAD_REQUEST, POST TE "\r\n" CHUNKED END),
	CODING(92, BAD_REQUEST, ""),
	REFUSED(92, BAD_REQUEST, POST TE "\r\n" CL "5\r\n" END),
	CODING(93, BAD_REQUEST, ",chunked"),
	CODING(93, BAD_REQUEST, "chunked,"),
	CODING(93, BAD_REQUEST, "gzip,,chunked"),
	BODY(94, CHUNKED, 0, POST TE "ChUnKeD\r\n\r\n"),
	BODY(95, CHUNKED, 0, POST "Transfer-Encoding:\tchunked\r\n\r\n"),
	CODING(95, BAD_REQUEST, "\x0b" "chunked"),
	CODING(95, BAD_REQUEST, "\xa0" "chunked"),
	CODING(95, BAD_REQUEST, "chunked\0"),
	REFUSED(96, BAD_REQUEST, "POST / HTTP/1.0\r\nHost: a\r\n" CHUNKED END),
	LENGTH(97, BAD_REQUEST, "-1"),
	LENGTH(97, BAD_REQUEST, "+2"),
	LENGTH(97, BAD_REQUEST, "0x2"),
	LENGTH(97, BAD_REQUEST, "2 3"),
	LENGTH(97, BAD_REQUEST, "2,3"),
	LENGTH(97, BAD_REQUEST, "1_0"),
	LENGTH(97, BAD_REQUEST, ""),
	LENGTH(97, BAD_REQUEST, "2;x"),
	LENGTH(97, BAD_REQUEST, "\xd9\xa2"),
	LENGTH(97, BAD_REQUEST, "1e3"),
	LENGTH(97, BAD_REQUEST, "2.0"),
	LENGTH(98, BAD_REQUEST, "42, 42"),
	LENGTH(98, BAD_REQUEST, "42\r\n" CL "42"),
	LENGTH(99, BAD_REQUEST, "42\r\n" CL "43"),
	LENGTH(99, BAD_REQUEST, "\r\n" CL "43"),
	LENGTH(99, BAD_REQUEST, "43\r\n" CL),
	LENGTH(100, BAD_REQUEST, "18446744073709551616"),
	LENGTH(101, BODY_TOO_LARGE, "18446744073709551615"),
	LENGTH(101, BODY_TOO_LARGE, "9223372036854775808"),
	BODY(101, LENGTH, INT64_MAX, POST CL "9223372036854775807\r\n\r\n"),
	BODY(102, LENGTH, 10, POST CL "0010\r\n\r\n"),
	BODY(0, LENGTH, 0, POST CL "0\r\n\r\n"),
	BODY(103, NONE, 0, POST END),
	BODY(106, LENGTH, 5, GET CL "5\r\n\r\n"),
	BODY(106, LENGTH, 5, "HEAD / HTTP/1.1\r\nHost: a\r\n" CL "5\r\n\r\n"),
	BODY(106, LENGTH, 5, "DELETE / HTTP/1.0\r\n" CL "5\r\n\r\n"),
	BODY(106, CHUNKED, 0, "OPTIONS / HTTP/1.1\r\nHost: a\r\n" CHUNKED END),
	REFUSED(107, BAD_REQUEST, TRACE CL "5\r\n\r\n"),
	REFUSED(107, BAD_REQUEST, TRACE CHUNKED END),
	BODY(107, LENGTH, 0, TRACE CL "0\r\n\r\n"),
	REFUSED(214, BAD_REQUEST, CONNECT CL "3\r\n\r\n"),
	REFUSED(214, BAD_REQUEST, CONNECT CL "0\r\n\r\n"),
	REFUSED(214, BAD_REQUEST, CONNECT CHUNKED END),
	BODY(81, NONE, 0, POST "Content_Length: 5\r\n"
	    "Transfer_Encoding: chunked\r\n\r\n"),
};

#define ANSWER(row, to, kind, length, has, in) \
	{ row, STR_INIT(in), METHOD_##to, FAIL_NONE, FRAMING_##kind, length, \
	    has }
#define INVALID(row, in) \
	{ row, STR_INIT(in), METHOD_GET, FAIL_RESPONSE_INVALID, FRAMING_NONE, \
	    0, false }
#define STATUS(code)	"HTTP/1.1 " #code " X\r\n"

static const struct framing_case responses[] = {
	ANSWER(133, HEAD, NONE, 5, true, OK CL "5\r\n\r\n"),
	ANSWER(133, HEAD, NONE, 0, false, OK CHUNKED END),
	ANSWER(133, HEAD, NONE, 0, false, OK END),
	ANSWER(134, GET, NONE, 0, false, STATUS(204) CL "5\r\n\r\n"),
	ANSWER(135, GET, NONE, 0, false, STATUS(204) CHUNKED END),
	ANSWER(135, GET, NONE, 0, false, STATUS(100) CHUNKED END),
	ANSWER(136, GET, NONE, 5, true, STATUS(304) CL "5\r\n\r\n"),
	ANSWER(136, GET, NONE, 0, false, STATUS(304) CHUNKED END),
	INVALID(136, STATUS(304) CL "5\r\n" CHUNKED END),
	INVALID(136, STATUS(304) TE "gzip\r\n\r\n"),
	INVALID(136, STATUS(304) CL "5, 5\r\n\r\n"),
	ANSWER(137, GET, NONE, 0, false, STATUS(100) CL "5\r\n\r\n"),
	ANSWER(137, GET, NONE, 0, false, STATUS(103) CL "5\r\n\r\n"),
	ANSWER(137, GET, NONE, 0, false, STATUS(150) CL "5\r\n\r\n"),
	ANSWER(137, CONNECT, NONE, 0, false, STATUS(150) END),
	ANSWER(138, GET, LENGTH, 3, false, STATUS(205) CL "3\r\n\r\n"),
	ANSWER(138, GET, NONE, 0, true, STATUS(205) END),
	ANSWER(138, HEAD, NONE, 0, false, STATUS(205) END),
	ANSWER(139, CONNECT, TUNNEL, 0, false, OK CL "3\r\n\r\n"),
	ANSWER(139, CONNECT, TUNNEL, 0, false, STATUS(299) CHUNKED END),
	ANSWER(139, CONNECT, TUNNEL, 0, false, STATUS(204) END),
	ANSWER(139, CONNECT, LENGTH, 3, false, STATUS(403) CL "3\r\n\r\n"),
	INVALID(140, OK CL "5\r\n" CHUNKED END),
	INVALID(141, OK TE "gzip\r\n\r\n"),
	INVALID(141, OK TE "gzip, chunked\r\n\r\n"),
	INVALID(141, OK TE "\r\n\r\n"),
	INVALID(141, OK CHUNKED CHUNKED END),
	INVALID(142, OK CL "5\r\n" CL "6\r\n\r\n"),
	INVALID(142, OK CL "5\r\n" CL "5\r\n\r\n"),
	INVALID(142, OK CL "5, 5\r\n\r\n"),
	INVALID(142, OK CL "-1\r\n\r\n"),
	INVALID(142, OK CL "abc\r\n\r\n"),
	INVALID(142, OK CL "9223372036854775808\r\n\r\n"),
	ANSWER(145, GET, CLOSE, 0, false, OK END),
	ANSWER(145, GET, CLOSE, 0, false, "HTTP/1.0 200 OK\r\n\r\n"),
	INVALID(146, "HTTP/1.0 200 OK\r\n" CHUNKED END),
	ANSWER(94, GET, CHUNKED, 0, false, OK TE "CHUNKED\r\n\r\n"),
	ANSWER(228, GET, TUNNEL, 0, false, STATUS(101) "Upgrade: w\r\n"
	    "Connection: upgrade\r\n\r\n"),
	INVALID(230, STATUS(101) END),
};

static void
check_framing(const struct framing_case *c, enum failure why,
    const struct framing *is)
{
	same_failure(c->row, why, c->why, c->in);
	if (why != FAIL_NONE)
		return;
	ck_assert_msg(is->kind == c->kind && is->length == c->length &&
	    is->has_length == c->has_length, "row %d: \"" STR_FMT "\"",
	    c->row, STR_ARG(c->in));
}

START_TEST(a_request_has_the_body_that_its_fields_say)
{
	const struct framing_case *c = &requests[_i];
	struct framing f;
	struct head h;
	enum failure why = read_request(c->in, &h);

	if (why == FAIL_NONE)
		why = framing_of_request(&h, &f);
	check_framing(c, why, &f);
}
END_TEST

START_TEST(a_response_has_the_body_that_request_and_fields_say)
{
	const struct framing_case *c = &responses[_i];
	struct framing f;
	struct head h;
	enum failure why = read_response(c->in, &h);

	if (why == FAIL_NONE)
		why = framing_of_response(&h, c->to, &f);
	check_framing(c, why, &f);
}
END_TEST

/* A field made by hand: llhttp refuses most of these by itself. */
struct made {
	enum field_id	 id;
	const char	*value;
};

static enum failure
framing_of(struct made a, struct made b)
{
	char text[200];
	struct field fields[2] = {
		{ .id = (uint8_t)a.id, .value = 0,
		    .value_len = (uint16_t)strlen(a.value) },
		{ .id = (uint8_t)b.id, .value = 100,
		    .value_len = (uint16_t)strlen(b.value) },
	};
	struct head h = { .base = text, .fields = fields, .count = 2,
	    .minor = 1, .method = METHOD_POST };
	struct framing f;

	snprintf(text, 100, "%s", a.value);
	snprintf(text + 100, 100, "%s", b.value);
	h.repeated = UINT64_C(1) << a.id;
	h.first[b.id] = 2;
	h.first[a.id] = 1;
	return framing_of_request(&h, &f);
}

/* Both llhttp and framing.c must refuse; here the latter alone. */
START_TEST(framing_does_not_rely_on_the_parser)
{
	const enum field_id length = FIELD_CONTENT_LENGTH;
	const enum field_id coding = FIELD_TRANSFER_ENCODING;
	const struct made other = { FIELD_OTHER, "" };
	const struct made five = { length, "5" };
	const struct made chunked = { coding, "chunked" };
	const struct made bad[][2] = {
		{ five, chunked }, { chunked, five }, { five, five },
		{ five, { length, "6" } }, { five, { length, "" } },
		{ { length, "+5" }, other }, { { length, "" }, other },
		{ { length, "5 5" }, other }, { { length, "5," }, other },
		{ { length, "18446744073709551616" }, other },
		{ { coding, "gzip" }, other }, { { coding, "" }, other },
		{ { coding, "chunked, chunked" }, other },
		{ { coding, "chunked;a" }, other }, { chunked, chunked },
		{ chunked, { coding, "" } },
	};

	ck_assert_int_eq(framing_of(five, other), FAIL_NONE);
	ck_assert_int_eq(framing_of(chunked, other), FAIL_NONE);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_int_eq(framing_of(bad[i][0], bad[i][1]),
		    FAIL_BAD_REQUEST);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/framing");
	TCase *t = tcase_create("framing");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, a_request_has_the_body_that_its_fields_say, 0,
	    ARRAY_LEN(requests));
	tcase_add_loop_test(t,
	    a_response_has_the_body_that_request_and_fields_say, 0,
	    ARRAY_LEN(responses));
	tcase_add_test(t, framing_does_not_rely_on_the_parser);
	return run_suite(s);
}
