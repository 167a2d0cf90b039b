/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heads.h - from bytes to a head, as a connection would do it, for tests.
 */
#ifndef PENSTOCK_TESTS_HTTP_HEADS_H
#define PENSTOCK_TESTS_HTTP_HEADS_H

#include <stdio.h>

#include "harness.h"
#include "http/parse.h"
#include "http/scan.h"

#define GET	"GET / HTTP/1.1\r\nHost: a\r\n"
#define POST	"POST / HTTP/1.1\r\nHost: a\r\n"
#define OK	"HTTP/1.1 200 OK\r\n"
#define END	"\r\n"

static const struct head_limits usual_limits = {
	.size = HEAD_SIZE_MAX, .line = 8192, .fields = HEAD_FIELDS_MAX,
};

/* An assertion for inner loops: Check's own write to a file each time. */
#define MUST(x) \
	do { \
		if (!(x)) \
			ck_abort_msg("%s", #x); \
	} while (0)

/* How bytes arrive. */
enum delivery { WHOLE, BYTES, LINES, DELIVERIES };

/* How many of the n bytes at `from` arrive next. */
static inline size_t
delivered(struct str all, size_t from, enum delivery how)
{
	size_t n = 1;

	if (how == WHOLE)
		return all.len - from;
	while (how == LINES && from + n < all.len &&
	    !str_ends(str_head(all, from + n), STR("\r\n")))
		n++;
	return n;
}

/* Everything that a scan says. */
struct scanned {
	enum scan_result	result;
	enum failure		why;
	uint32_t		start;
	uint32_t		at;
	unsigned		fields;
};

/* Each step sees a fresh copy, so that no byte beyond can be read unseen. */
static inline struct scanned
scan_in(struct str in, enum scan_kind kind, const struct head_limits *limits,
    enum delivery how)
{
	struct scanned r = { .result = SCAN_MORE };
	struct scan s;
	size_t n = 0;

	scan_init(&s, kind);
	while (n < in.len && r.result == SCAN_MORE) {
		n += delivered(in, n, how);
		char *copy = malloc(n);
		MUST(copy != NULL);
		memcpy(copy, in.at, n);
		r.result = scan_run(&s, copy, n, limits, &r.why);
		free(copy);
	}
	r.start = s.start;
	r.at = s.at;
	r.fields = s.fields;
	return r;
}

/* Scan in all deliveries; they must agree. */
static inline struct scanned
scan_all(struct str in, enum scan_kind kind, const struct head_limits *limits)
{
	struct scanned r = scan_in(in, kind, limits, WHOLE);

	for (enum delivery how = BYTES; how < DELIVERIES; how++) {
		struct scanned s = scan_in(in, kind, limits, how);
		if (s.result != r.result || s.why != r.why ||
		    s.start != r.start || s.at != r.at)
			ck_abort_msg("delivery %d of \"" STR_FMT "\" differs",
			    how, STR_ARG(in));
	}
	return r;
}

static inline struct parser *
the_parser(void)
{
	static struct parser *p;

	if (p == NULL)
		p = parser_new();
	return p;
}

/* A head that doesn't end is no failure, but none of these tests has one. */
static inline enum failure
read_head(struct str in, enum scan_kind kind, struct head *h)
{
	struct scanned r = scan_all(in, kind, &usual_limits);

	if (r.result == SCAN_BAD)
		return r.why;
	ck_assert_msg(r.result == SCAN_DONE, "\"" STR_FMT "\" has no end",
	    STR_ARG(in));
	struct str head = str_make(in.at + r.start, r.at - r.start);
	return kind == SCAN_REQUEST ?
	    parse_request(the_parser(), head, r.fields, h) :
	    parse_response(the_parser(), head, r.fields, h);
}

static inline enum failure
read_request(struct str in, struct head *h)
{
	return read_head(in, SCAN_REQUEST, h);
}

static inline enum failure
read_response(struct str in, struct head *h)
{
	return read_head(in, SCAN_RESPONSE, h);
}

/* The same for a text without NUL that must be good. */
static inline void
good_request(const char *text, struct head *h)
{
	enum failure why = read_request(str_of(text), h);

	ck_assert_msg(why == FAIL_NONE, "%s: \"%s\"", failure_row(why)->token,
	    text);
}

static inline void
good_response(const char *text, struct head *h)
{
	enum failure why = read_response(str_of(text), h);

	ck_assert_msg(why == FAIL_NONE, "%s: \"%s\"", failure_row(why)->token,
	    text);
}

static inline void
same_text(struct str is, const char *must)
{
	ck_assert_msg(str_equal(is, str_of(must)),
	    "is \"" STR_FMT "\"\nmust be \"%s\"", STR_ARG(is), must);
}

static inline void
same_failure(int row, enum failure is, enum failure must, struct str in)
{
	ck_assert_msg(is == must, "row %d: %s, must be %s: \"" STR_FMT "\"",
	    row, failure_row(is)->token, failure_row(must)->token,
	    STR_ARG(in));
}

/* A number from a fixed sequence: tests repeat exactly. */
static inline uint32_t
next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*state >> 33);
}

#endif
