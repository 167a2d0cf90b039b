/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan.h - find the end of a head, and refuse what must not reach a parser.
 *
 * The scan runs over the raw bytes before llhttp sees any of them, since that
 * accepts lines that RFC 9112 section 2.2 forbids: it demands CRLF at the end
 * of every line, and no bare CR, LF or NUL, no folded line, no empty name, no
 * space before a colon.  It counts bytes and fields against their limits as
 * they come, so a head that is too large is refused while it streams in.
 *
 * It resumes: each byte is looked at once, however slowly a head arrives, and
 * never one beyond a limit: so the result is the same in whatever pieces it
 * arrives.
 *
 * Owner:    the caller, who embeds the struct.
 * Threads:  one.
 */
#ifndef PENSTOCK_HTTP_SCAN_H
#define PENSTOCK_HTTP_SCAN_H

#include "http/head.h"

enum scan_kind { SCAN_REQUEST, SCAN_RESPONSE, SCAN_TRAILERS };

struct scan {
	uint32_t	at;		/* bytes looked at */
	uint32_t	start;		/* where the head begins */
	uint32_t	line;		/* bytes of the start line so far */
	uint16_t	fields;
	uint8_t		kind;
	uint8_t		state;
};

enum scan_result {
	SCAN_MORE,		/* not complete, fine so far */
	SCAN_DONE,		/* head is bytes start to at */
	SCAN_BAD,		/* *why */
};

void scan_init(struct scan *s, enum scan_kind kind);

/*
 * Look at `bytes`, all n received so far, from where the last call ended.
 * Requests may begin with up to two empty lines.  *why is FAIL_BAD_REQUEST,
 * FAIL_METHOD_UNSUPPORTED (no method is that long), FAIL_URI_TOO_LONG or
 * FAIL_HEAD_TOO_LARGE for requests and trailers; FAIL_RESPONSE_INVALID or
 * FAIL_RESPONSE_TOO_LARGE for responses.  After SCAN_DONE or SCAN_BAD a scan
 * only goes on after scan_init().
 */
enum scan_result scan_run(struct scan *s, const char *bytes, size_t n,
    const struct head_limits *limits, enum failure *why);

/*
 * The same, given only the n bytes that follow those of the last call; how
 * many of them were used is what s->at grew by.  For trailers, which need not
 * be kept to be checked.
 */
enum scan_result scan_feed(struct scan *s, const char *bytes, size_t n,
    const struct head_limits *limits, enum failure *why);

#endif
