/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan.c - a state for each place in a head where bytes may end; see scan.h.
 *
 * The states between lines look at one byte each; those in lines run over
 * all bytes of their class at once, sixteen at a time.
 */
#include "http/scan.h"

#include <endian.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "http/chars.h"

/* Longer than any method that is known; longer ones needn't arrive whole. */
enum { METHOD_LONGEST = 64 };

/* Empty lines before a request, which RFC 9112, 2.2 asks to overlook. */
enum { EMPTY_LINES = 2 };

enum state {
	AT_BEGIN,		/* of a request: empty lines may come */
	AT_BEGIN_LF,
	IN_METHOD,
	IN_PROTOCOL,		/* "HTTP/", where a response begins */
	IN_START,		/* the rest of the start line */
	AT_START_LF,
	AT_FIELD,		/* the first byte of a field line */
	IN_NAME,
	IN_VALUE,
	AT_VALUE_LF,
	AT_END_LF,
	IS_OVER,
};

void
scan_init(struct scan *s, enum scan_kind kind)
{
	static const uint8_t begin[] = {
		[SCAN_REQUEST] = AT_BEGIN,
		[SCAN_RESPONSE] = IN_PROTOCOL,
		[SCAN_TRAILERS] = AT_FIELD,
	};

	*s = (struct scan){ .kind = kind, .state = begin[kind] };
}

enum scan_result
scan_run(struct scan *s, const char *bytes, size_t n,
    const struct head_limits *limits, enum failure *why)
{
	ASSERT(n >= s->at);
	return scan_feed(s, bytes + s->at, n - s->at, limits, why);
}

static enum scan_result
refuse(struct scan *s, enum failure because, enum failure *why)
{
	s->state = IS_OVER;
	*why = because;
	if (s->kind == SCAN_RESPONSE)
		*why = because == FAIL_BAD_REQUEST ?
		    FAIL_RESPONSE_INVALID : FAIL_RESPONSE_TOO_LARGE;
	return SCAN_BAD;
}

/* One byte before a request's head; false: too many lines, or half of one. */
static bool
skip_empty_lines(struct scan *s, char c)
{
	if (s->state == AT_BEGIN && c != '\r') {
		s->state = IN_METHOD;
		return true;
	}
	s->at++;
	if (s->state == AT_BEGIN) {
		s->state = AT_BEGIN_LF;
		return s->at < 2 * EMPTY_LINES;
	}
	s->state = AT_BEGIN;
	s->start = s->at;
	return c == '\n';
}

/*
 * Sixteen bytes at once.  A comparison of two has all bits of a byte set where
 * it holds.
 */
typedef uint8_t bytes16 __attribute__((vector_size(16)));

static inline bytes16
load16(const char *p)
{
	bytes16 v;

	memcpy(&v, p, sizeof v);
	return v;
}

/* How many bytes come before the first that is set; 16 if none is. */
static inline unsigned
first_of(bytes16 set)
{
#ifdef __SSE2__
	unsigned bits = (unsigned)_mm_movemask_epi8((__m128i)set);

	return (unsigned)__builtin_ctz(bits | BIT(16));
#else
	uint64_t half[2];

	memcpy(half, &set, sizeof half);
	if (half[0] != 0)
		return (unsigned)__builtin_ctzll(le64toh(half[0])) / 8;
	if (half[1] != 0)
		return 8 + (unsigned)__builtin_ctzll(le64toh(half[1])) / 8;
	return 16;
#endif
}

/* To the first byte that is no text; HTAB is the one control that is. */
static inline const char *
skip_text(const char *p, const char *end)
{
	while (end - p >= 16) {
		bytes16 v = load16(p);
		unsigned n = first_of((bytes16)((v < 0x20) | (v == 0x7f)));

		p += n;
		if (n == 16)
			continue;
		if (*p != '\t')
			return p;
		p++;
	}
	while (p < end && char_is(*p, CHAR_TEXT))
		p++;
	return p;
}

/* Most names are of letters and hyphens alone; to what is neither. */
static inline const char *
skip_letters(const char *p, const char *end)
{
	while (end - p >= 16) {
		bytes16 v = load16(p);
		bytes16 letter = (v | 0x20) - 'a';
		unsigned n = first_of((bytes16)((letter > 'z' - 'a') &
		    (v != '-')));

		p += n;
		if (n < 16)
			break;
	}
	return p;
}

/* To the first byte that is of no token. */
static inline const char *
skip_token(const char *p, const char *end)
{
	while (p < end && char_is(*p, CHAR_TOKEN))
		p++;
	return p;
}

static const char *
in_method(struct scan *s, const char *p, const char *end, enum failure *bad)
{
	size_t left = METHOD_LONGEST + 1 - s->line;
	const char *was = p;

	p = skip_token(p, (size_t)(end - p) > left ? p + left : end);
	s->line += (uint32_t)(p - was);
	if (s->line > METHOD_LONGEST)
		*bad = FAIL_METHOD_UNSUPPORTED;
	else if (p < end && (*p != ' ' || s->line == 0))
		*bad = FAIL_BAD_REQUEST;
	else if (p < end)
		s->state = IN_START;
	return p;
}

static const char *
in_protocol(struct scan *s, const char *p, const char *end, enum failure *bad)
{
	static const char protocol[] = "HTTP/";
	uint32_t at = s->line;

	if (at == 0 && end - p >= 5 && memcmp(p, protocol, 5) == 0) {
		s->state = IN_START;
		s->line = 5;
		return p + 5;
	}
	while (p < end && *p == protocol[at]) {
		p++;
		if (protocol[++at] == '\0') {
			s->state = IN_START;
			break;
		}
	}
	if (p < end && s->state == IN_PROTOCOL)
		*bad = FAIL_BAD_REQUEST;
	s->line = at;
	return p;
}

/* The byte after the last one allowed must be the CR. */
static const char *
in_start(struct scan *s, const char *p, const char *end, uint32_t limit,
    enum failure *bad)
{
	uint32_t left = limit > s->line ? limit - s->line : 0;
	const char *stop = (size_t)(end - p) > left ? p + left : end;
	const char *was = p;

	p = skip_text(p, stop);
	s->line += (uint32_t)(p - was);
	if (p == end)
		return p;
	if (LIKELY(end - p >= 2 && memcmp(p, "\r\n", 2) == 0)) {
		s->state = AT_FIELD;
		return p + 2;
	}
	if (*p == '\r')
		s->state = AT_START_LF;
	else
		*bad = p == stop ? FAIL_URI_TOO_LONG : FAIL_BAD_REQUEST;
	return p + 1;
}

/* A byte that must be `must`, and the state after it. */
static inline const char *
expect(struct scan *s, const char *p, char must, enum state next,
    enum failure *bad)
{
	if (LIKELY(*p == must))
		s->state = next;
	else
		*bad = FAIL_BAD_REQUEST;
	return p + 1;
}

/*
 * Over good field lines that lie there whole.  The states are for what comes
 * in pieces, or must be refused.
 */
static const char *
whole_fields(struct scan *s, const char *p, const char *end, uint16_t limit)
{
	uint16_t fields = s->fields;

	while (fields < limit) {
		const char *at = skip_letters(p, end);

		if (UNLIKELY(at == end || *at != ':')) {
			at = skip_token(at, end);
			if (at == end || *at != ':')
				break;
		}
		if (at == p)
			break;
		at = skip_text(at + 1, end);
		if (end - at < 2 || memcmp(at, "\r\n", 2) != 0)
			break;
		fields++;
		p = at + 2;
	}
	s->fields = fields;
	return p;
}

/* The first byte of a line: of a field, or of the empty line. */
static inline const char *
at_field(struct scan *s, const char *p, uint16_t limit, enum failure *bad)
{
	if (*p == '\r') {
		s->state = AT_END_LF;
		return p + 1;
	}
	if (!char_is(*p, CHAR_TOKEN))
		*bad = FAIL_BAD_REQUEST;
	else if (s->fields == limit)
		*bad = FAIL_HEAD_TOO_LARGE;
	s->fields++;
	s->state = IN_NAME;
	return p + 1;
}

/* All of p to end, unless the head ends or turns out bad before. */
static const char *
scan_lines(struct scan *s, const char *p, const char *end,
    const struct head_limits *limits, enum failure *bad)
{
	while (p < end && *bad == FAIL_NONE) {
		switch (s->state) {
		case IN_METHOD:
			p = in_method(s, p, end, bad);
			break;
		case IN_PROTOCOL:
			p = in_protocol(s, p, end, bad);
			break;
		case IN_START:
			p = in_start(s, p, end, limits->line, bad);
			break;
		case AT_START_LF:
		case AT_VALUE_LF:
			p = expect(s, p, '\n', AT_FIELD, bad);
			break;
		case AT_FIELD:
			p = whole_fields(s, p, end, limits->fields);
			if (p < end)
				p = at_field(s, p, limits->fields, bad);
			break;
		case IN_NAME:
			p = skip_token(p, end);
			if (p < end)
				p = expect(s, p, ':', IN_VALUE, bad);
			break;
		case IN_VALUE:
			p = skip_text(p, end);
			if (p < end)
				p = expect(s, p, '\r', AT_VALUE_LF, bad);
			break;
		case AT_END_LF:
			return expect(s, p, '\n', IS_OVER, bad);
		default:
			ASSERT(!"a scan goes on after its end");
		}
	}
	return p;
}

HOT enum scan_result
scan_feed(struct scan *s, const char *bytes, size_t n,
    const struct head_limits *limits, enum failure *why)
{
	const char *p = bytes, *end = bytes + n;

	while (p < end && s->state <= AT_BEGIN_LF) {
		if (!skip_empty_lines(s, *p))
			return refuse(s, FAIL_BAD_REQUEST, why);
		p += s->state <= AT_BEGIN_LF;
	}
	uint32_t seen = s->at - s->start;
	uint32_t left = limits->size > seen ? limits->size - seen : 0;
	const char *stop = (size_t)(end - p) > left ? p + left : end;

	enum failure bad = FAIL_NONE;
	const char *was = p;
	p = scan_lines(s, p, stop, limits, &bad);
	s->at += (uint32_t)(p - was);
	if (bad != FAIL_NONE)
		return refuse(s, bad, why);
	if (s->state == IS_OVER)
		return SCAN_DONE;
	return p == end ? SCAN_MORE : refuse(s, FAIL_HEAD_TOO_LARGE, why);
}
