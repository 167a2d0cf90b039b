/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_body.c - the content in bodies, and where they end.  Every case arrives
 * whole, byte by byte and line by line.
 */
#include "http/body.h"

#include "http/heads.h"

enum { ROOM = 1 << 20 };

/* Everything that a decoder says. */
struct decoded {
	enum body_result result;
	size_t		 used;
	size_t		 len;
	char		*content;	/* of ROOM bytes, the caller's */
	size_t		 trailers;	/* bytes that were said to be */
	char		 trailer[BODY_TRAILER];
};

static void
keep(struct decoded *d, const struct iovec *iov, int pieces)
{
	for (int i = 0; i < pieces; i++) {
		MUST(iov[i].iov_len > 0);
		MUST(d->len + iov[i].iov_len <= ROOM);
		memcpy(d->content + d->len, iov[i].iov_base, iov[i].iov_len);
		d->len += iov[i].iov_len;
	}
}

/* Trailers are the last of what was used. */
static void
keep_trailers(struct decoded *d, const uint8_t *end, size_t n)
{
	MUST(n <= sizeof d->trailer - d->trailers);
	memcpy(d->trailer + d->trailers, end - n, n);
	d->trailers += n;
}

/* One read of n bytes, in memory of just that size. */
static void
decode_read(struct body *b, struct decoded *d, const char *at, size_t n)
{
	uint8_t *copy = malloc(n);
	struct body_content c;
	size_t done = 0;

	memcpy(copy, at, n);
	do {
		d->result = body_decode(b, copy + done, n - done, &c);
		keep(d, c.iov, c.count);
		done += c.used;
		MUST(c.trailers <= c.used);
		keep_trailers(d, copy + done, c.trailers);
		MUST(d->result != BODY_SPANS_FULL || c.count > 0);
	} while (d->result == BODY_SPANS_FULL);
	MUST(d->result != BODY_MORE || done == n);
	d->used += done;
	free(copy);
}

static void
decode(struct body *b, struct decoded *d, struct str in, enum delivery how)
{
	size_t at = 0;

	d->result = body_is_done(b) ? BODY_DONE : BODY_MORE;
	d->used = d->len = d->trailers = 0;
	while (at < in.len && d->result == BODY_MORE) {
		size_t n = delivered(in, at, how);
		decode_read(b, d, in.at + at, n);
		at += n;
	}
	MUST(body_is_done(b) == (d->result == BODY_DONE));
}

/* Decode in all deliveries; they must agree.  The body is that of the last. */
static void
decode_all(struct body *b, struct decoded *d, struct str in,
    const struct framing *f)
{
	static char other[ROOM];
	struct decoded o = { .content = other };

	body_init(b, f);
	decode(b, d, in, WHOLE);
	for (enum delivery how = BYTES; how < DELIVERIES; how++) {
		body_init(b, f);
		decode(b, &o, in, how);
		if (o.result != d->result)
			ck_abort_msg("delivery %d of \"" STR_FMT "\"", how,
			    STR_ARG(in));
		MUST(o.used == d->used && o.len == d->len &&
		    memcmp(o.content, d->content, d->len) == 0);
		MUST(str_equal(str_make(o.trailer, o.trailers),
		    str_make(d->trailer, d->trailers)));
	}
}

static char content[ROOM];

static const struct framing chunked = { .kind = FRAMING_CHUNKED };

struct body_case {
	int			 row;
	struct str		 in;
	enum body_result	 result;
	const char		*content;
	size_t			 rest;	/* bytes after its end */
};

#define GOOD(row, in, content, rest) \
	{ row, STR_INIT(in), BODY_DONE, content, rest }
#define MORE(row, in, content)	{ row, STR_INIT(in), BODY_MORE, content, 0 }
#define BAD(row, in)		{ row, STR_INIT(in), BODY_BAD, "", 0 }
#define LAST			"0\r\n\r\n"

static const struct body_case chunked_cases[] = {
	GOOD(110, "2\r\nab\r\n" LAST, "ab", 0),
	GOOD(110, "A\r\n0123456789\r\n" LAST, "0123456789", 0),
	GOOD(110, "a\r\n0123456789\r\n" LAST, "0123456789", 0),
	GOOD(110, "000000000002\r\nab\r\n" LAST, "ab", 0),
	GOOD(110, "0000000000000002\r\nab\r\n3\r\ncde\r\n" LAST, "abcde", 0),
	GOOD(110, LAST, "", 0),
	GOOD(110, "2\r\n\r\n\r\n" LAST, "\r\n", 0),
	BAD(111, "+2\r\nab\r\n" LAST),
	BAD(111, "-2\r\nab\r\n" LAST),
	BAD(111, "-80000000\r\nab\r\n" LAST),
	BAD(111, "0x2\r\nab\r\n" LAST),
	BAD(111, " 2\r\nab\r\n" LAST),
	BAD(111, "2 \r\nab\r\n" LAST),
	BAD(111, "2\t\r\nab\r\n" LAST),
	BAD(111, "G\r\nab\r\n" LAST),
	BAD(111, "\r\nab\r\n" LAST),
	BAD(111, ";a=b\r\n" LAST),
	BAD(111, "0_2\r\nab\r\n" LAST),
	BAD(111, "2.\r\nab\r\n" LAST),
	BAD(111, "2\0\r\nab\r\n" LAST),
	BAD(112, "FFFFFFFFFFFFFFFFF\r\nab"),
	BAD(112, "10000000000000002\r\nab\r\n" LAST),
	BAD(112, "00000000000000002\r\nab\r\n" LAST),
	BAD(113, "FFFFFFFFFFFFFFFF\r\nab"),
	BAD(113, "8000000000000000\r\nab"),
	MORE(113, "7fffffffffffffff\r\nab", "ab"),
	MORE(113, "100000001\r\nab", "ab"),
	GOOD(114, "2;a=b\r\nab\r\n" LAST, "ab", 0),
	GOOD(114, "2;a\r\nab\r\n0;x\r\n\r\n", "ab", 0),
	BAD(116, "2;a\nab\r\n" LAST),
	BAD(116, "2;a=b\nab\r\n" LAST),
	BAD(116, "2;a=\"x\r\ny\"\r\nab\r\n" LAST),
	BAD(116, "2;\r\nab\r\n" LAST),
	BAD(116, "2;a=\r\nab\r\n" LAST),
	BAD(116, "2;a=\"x\r\nab\r\n" LAST),
	BAD(116, "2;a=\"x\"y\r\nab\r\n" LAST),
	BAD(116, "2;a\x00\r\nab\r\n" LAST),
	BAD(116, "2;a=\"\x7f\"\r\nab\r\n" LAST),
	BAD(116, "2;a=b=c\r\nab\r\n" LAST),
	BAD(117, "2;a\rXab\r\n" LAST),
	BAD(117, "5\r\r;ABCD\r\n" LAST),
	GOOD(118, "2 ;a=b\r\nab\r\n" LAST, "ab", 0),
	GOOD(118, "2; a=b\r\nab\r\n" LAST, "ab", 0),
	GOOD(118, "2;a=b;c=\"d\"\r\nab\r\n" LAST, "ab", 0),
	GOOD(118, "2\t ; a = b\t;c = \"d;\\\"\x80=\" ;e\r\nab\r\n" LAST, "ab",
	    0),
	BAD(118, "2;a=b \r\nab\r\n" LAST),
	BAD(118, "2;a \r\nab\r\n" LAST),
	BAD(119, "2\r\nabXX0\r\n\r\n"),
	BAD(119, "2\r\nabc\r\n" LAST),
	BAD(120, "2\r\nab\n0\r\n\r\n"),
	BAD(120, "2\r\nab\rX0\r\n\r\n"),
	BAD(120, "2\nab\r\n0\r\n\r\n"),
	BAD(121, "0\r\n\nGET /2 HTTP/1.1\r\n"),
	BAD(121, "0\n\r\n"),
	GOOD(122, "000\r\n\r\n", "", 0),
	MORE(123, "0\r\n", ""),
	MORE(123, "2\r\nab\r\n", "ab"),
	MORE(123, "2\r\na", "a"),
	GOOD(124, "0\r\nContent-Length: 5\r\nAuthorization: x\r\nX-Ok: y\r\n"
	    "\r\nGET", "", 3),
	GOOD(58, "0\r\nHost: evil\r\n\r\n", "", 0),
	BAD(127, "0\r\nX y\r\n\r\n"),
	BAD(127, "0\r\nX: y\r\n z\r\n\r\n"),
	BAD(127, "0\r\nX: \x00\r\n\r\n"),
	BAD(127, "0\r\n: y\r\n\r\n"),
	BAD(127, "0\r\nX: y\n\r\n"),
	/* What follows is somebody else's. */
	GOOD(186, LAST "GET / HTTP/1.1\r\n\r\n", "", 18),
	GOOD(17, LAST "\0", "", 1),
	GOOD(17, LAST "\n", "", 1),
	BAD(18, "17\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n\r\n\r\n0\r\n\r\n"),
};

START_TEST(chunks_are_content_or_bad)
{
	const struct body_case *c = &chunked_cases[_i];
	struct decoded d = { .content = content };
	struct body b;

	decode_all(&b, &d, c->in, &chunked);
	ck_assert_msg(d.result == c->result, "row %d: result %d: \"" STR_FMT
	    "\"", c->row, d.result, STR_ARG(c->in));
	ck_assert(body_ends_at_close(&b) == (c->result == BODY_DONE));
	if (c->result == BODY_BAD)
		return;
	same_text(str_make(d.content, d.len), c->content);
	ck_assert_uint_eq(d.used, c->in.len - c->rest);
}
END_TEST

START_TEST(a_length_is_counted_to_the_byte)
{
	struct framing f = { .kind = FRAMING_LENGTH, .length = 5 };
	struct decoded d = { .content = content };
	struct body b;

	decode_all(&b, &d, STR("ab\r\ncGET"), &f);
	ck_assert_int_eq(d.result, BODY_DONE);
	ck_assert_uint_eq(d.used, 5);
	same_text(str_make(d.content, d.len), "ab\r\nc");
	decode_all(&b, &d, STR("ab\r\n"), &f);
	ck_assert_int_eq(d.result, BODY_MORE);
	ck_assert(!body_ends_at_close(&b));
	ck_assert_uint_eq(b.left, 1);
}
END_TEST

START_TEST(a_body_without_bytes_is_done_at_once)
{
	static const struct framing none[] = {
		{ .kind = FRAMING_NONE },
		{ .kind = FRAMING_NONE, .length = 5, .has_length = true },
		{ .kind = FRAMING_LENGTH, .length = 0 },
	};
	uint8_t bytes[] = "GET";
	struct body_content c;
	struct body b;

	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		body_init(&b, &none[i]);
		ck_assert(body_is_done(&b) && body_ends_at_close(&b));
		ck_assert_int_eq(body_decode(&b, bytes, 3, &c), BODY_DONE);
		ck_assert_uint_eq(c.used, 0);
		ck_assert_int_eq(c.count, 0);
	}
}
END_TEST

START_TEST(a_body_may_last_until_the_connection_ends)
{
	struct framing f = { .kind = FRAMING_CLOSE };
	struct decoded d = { .content = content };
	struct body b;

	decode_all(&b, &d, STR("ab\r\nc"), &f);
	ck_assert_int_eq(d.result, BODY_MORE);
	ck_assert(body_ends_at_close(&b) && !body_is_done(&b));
	same_text(str_make(d.content, d.len), "ab\r\nc");
}
END_TEST

/* Like out_put(), n times. */
static void
put_times(struct out *o, size_t n, const char *text)
{
	while (n-- > 0)
		out_put(o, text);
	ck_assert(!out_is_full(o));
}

/* The last byte of `text` is where a decoder refuses. */
static void
refused_at_the_end(struct str text)
{
	struct decoded d = { .content = content };
	struct body b;

	decode_all(&b, &d, text, &chunked);
	ck_assert_int_eq(d.result, BODY_BAD);
	ck_assert_uint_eq(d.used, text.len);
	decode_all(&b, &d, str_head(text, text.len - 1), &chunked);
	ck_assert_int_eq(d.result, BODY_MORE);
}

/* Row 115. */
START_TEST(content_that_nothing_frames_may_pass_unseen)
{
	struct body b;

	body_init(&b, &(struct framing){
	    .kind = FRAMING_LENGTH, .length = 100 });
	ck_assert_uint_eq(body_plain(&b), 100);
	body_pass(&b, 40);
	ck_assert_uint_eq(body_plain(&b), 60);
	ck_assert_uint_eq(b.content, 40);
	ck_assert(!body_is_done(&b));
	body_pass(&b, 60);
	ck_assert_uint_eq(body_plain(&b), 0);
	ck_assert(body_is_done(&b));

	body_init(&b, &(struct framing){ .kind = FRAMING_CLOSE });
	body_pass(&b, 40);
	ck_assert_uint_gt(body_plain(&b), UINT32_MAX);
	ck_assert(body_ends_at_close(&b));

	body_init(&b, &(struct framing){ .kind = FRAMING_CHUNKED });
	ck_assert_uint_eq(body_plain(&b), 0);
	struct body_content c;
	ck_assert_int_eq(body_decode(&b, (uint8_t[]){ "5\r\nabc" }, 6, &c),
	    BODY_MORE);
	ck_assert_uint_eq(body_plain(&b), 0);
}
END_TEST

START_TEST(extensions_are_bounded)
{
	static char text[ROOM];
	struct out o;

	out_init(&o, text, sizeof text);
	out_put(&o, "2;");
	put_times(&o, BODY_EXTENSION, "a");
	refused_at_the_end(out_text(&o));

	/* Many short ones, with content that earns one byte in 16. */
	out_init(&o, text, sizeof text);
	put_times(&o, 8, "10;aaa\r\n0123456789abcdef\r\n");
	out_put(&o, "1;");
	put_times(&o, BODY_EXTENSION + 8 - 8 * 4, "b");
	refused_at_the_end(out_text(&o));
}
END_TEST

/* Row 125. */
START_TEST(trailers_are_bounded)
{
	static char text[ROOM];
	struct out o;

	out_init(&o, text, sizeof text);
	out_put(&o, "0\r\nX: ");
	put_times(&o, BODY_TRAILER - 3, "a");
	struct decoded d = { .content = content };
	struct body b;
	decode_all(&b, &d, out_text(&o), &chunked);
	ck_assert_int_eq(d.result, BODY_MORE);
	out_put(&o, "a");
	decode_all(&b, &d, out_text(&o), &chunked);
	ck_assert_int_eq(d.result, BODY_BAD);

	out_init(&o, text, sizeof text);
	out_put(&o, "0\r\n");
	put_times(&o, BODY_TRAILER_FIELDS, "a:\r\n");
	out_put(&o, "a");
	refused_at_the_end(out_text(&o));
}
END_TEST

/* In all deliveries; of no other framing are there any. */
START_TEST(trailers_are_given_as_they_came)
{
	struct decoded d = { .content = content };
	struct framing f = { .kind = FRAMING_CLOSE };
	struct body b;

	decode_all(&b, &d, STR("2\r\nab\r\n0;x\r\nX: 1\r\nHost:\tb \r\n\r\n"
	    "GET"), &chunked);
	ck_assert_int_eq(d.result, BODY_DONE);
	same_text(str_make(d.trailer, d.trailers),
	    "X: 1\r\nHost:\tb \r\n\r\n");
	decode_all(&b, &d, STR("2\r\nab\r\n" LAST), &chunked);
	same_text(str_make(d.trailer, d.trailers), "\r\n");
	decode_all(&b, &d, STR("2\r\nab\r\n" LAST), &f);
	ck_assert_uint_eq(d.trailers, 0);
}
END_TEST

/* Sizes around what is moved together, and more pieces than fit. */
START_TEST(pieces_are_the_content_whatever_their_sizes)
{
	static char text[ROOM], all[ROOM];
	uint64_t seed = (uint64_t)_i;
	struct out o, must;
	struct decoded d = { .content = content };
	struct body b;

	out_init(&o, text, sizeof text);
	out_init(&must, all, sizeof all);
	for (int chunks = 0; chunks < 40; chunks++) {
		size_t n = next_random(&seed) % 4 == 0 ?
		    1 + next_random(&seed) % 5000 :
		    1 + next_random(&seed) % (_i % 2 == 0 ? 1200 : 20);
		size_t from = out_len(&must);
		out_hex(&o, n);
		out_put(&o, next_random(&seed) % 8 == 0 ? ";x\r\n" : "\r\n");
		while (n-- > 0)
			out_char(&must, (char)next_random(&seed));
		out_add(&o, all + from, out_len(&must) - from);
		out_put(&o, "\r\n");
	}
	out_put(&o, "0\r\n\r\nrest");
	ck_assert(!out_is_full(&o) && !out_is_full(&must));
	decode_all(&b, &d, out_text(&o), &chunked);
	ck_assert_int_eq(d.result, BODY_DONE);
	ck_assert_uint_eq(d.used, out_len(&o) - 4);
	ck_assert(str_equal(str_make(d.content, d.len), out_text(&must)));
	ck_assert_uint_eq(b.content, d.len);
}
END_TEST

START_TEST(short_chunks_become_one_piece)
{
	static char text[ROOM];
	struct body_content c;
	struct out o;
	struct body b;

	out_init(&o, text, sizeof text);
	put_times(&o, 10000, "1\r\nx\r\n");
	body_init(&b, &chunked);
	ck_assert_int_eq(body_decode(&b, (uint8_t *)text, out_len(&o), &c),
	    BODY_MORE);
	ck_assert_int_eq(c.count, 1);
	ck_assert_uint_eq(c.iov[0].iov_len, 10000);
	ck_assert_uint_eq(c.used, out_len(&o));
}
END_TEST

START_TEST(a_chunk_line_is_its_size)
{
	char line[BODY_CHUNK_LINE];

	same_text(str_make(line, body_chunk_line(line, 1)), "1\r\n");
	same_text(str_make(line, body_chunk_line(line, 65536)), "10000\r\n");
	same_text(str_make(line, body_chunk_line(line, UINT64_MAX)),
	    "ffffffffffffffff\r\n");
}
END_TEST

/* Random damage: any result will do, but the same in all deliveries. */
START_TEST(damaged_bodies_do_no_harm)
{
	static const char good[] = "5;a=\"b\\\"\" ; c=d\r\nabcde\r\n"
	    "12\r\n0123456789abcdefgh\r\n0\r\nX: y\r\nZ:\r\n\r\nGET /";
	static const char bytes[] = "\r\n 0;\"\\=aF:\t\x80";
	struct decoded d = { .content = content };
	uint64_t seed = 42;
	struct body b;

	for (int i = 0; i < 10000; i++) {
		char text[sizeof good];
		memcpy(text, good, sizeof good);
		unsigned faults = 1 + next_random(&seed) % 3;
		while (faults-- > 0) {
			unsigned at = next_random(&seed) % sizeof text;
			text[at] = next_random(&seed) % 4 == 0 ?
			    (char)next_random(&seed) :
			    bytes[next_random(&seed) % sizeof bytes];
		}
		decode_all(&b, &d, str_make(text, sizeof text), &chunked);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/body");
	TCase *t = tcase_create("body");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, chunks_are_content_or_bad, 0,
	    ARRAY_LEN(chunked_cases));
	tcase_add_test(t, a_length_is_counted_to_the_byte);
	tcase_add_test(t, a_body_without_bytes_is_done_at_once);
	tcase_add_test(t, a_body_may_last_until_the_connection_ends);
	tcase_add_test(t, content_that_nothing_frames_may_pass_unseen);
	tcase_add_test(t, extensions_are_bounded);
	tcase_add_test(t, trailers_are_bounded);
	tcase_add_test(t, trailers_are_given_as_they_came);
	tcase_add_loop_test(t, pieces_are_the_content_whatever_their_sizes, 0,
	    8);
	tcase_add_test(t, short_chunks_become_one_piece);
	tcase_add_test(t, a_chunk_line_is_its_size);
	tcase_add_test(t, damaged_bodies_do_no_harm);
	return run_suite(s);
}
