/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parse.h - one complete, scanned head to a struct head; llhttp's only file.
 *
 * Two must agree before a head is accepted: the scan and llhttp in strict
 * mode.  What both leave to their caller is checked here: versions, Host,
 * methods, target characters, status codes, the tokens of Connection.
 *
 * Decided where the RFCs leave a choice:
 *	- Connection is a list of tokens; what is none names no field.  More
 *	  than PARSE_NAMED names of fields are refused.
 *	- A request whose Connection names a field of framing, credentials or
 *	  addresses (Content-Length, Transfer-Encoding, Authorization, Cookie,
 *	  Forwarded, X-Forwarded-*) is refused: it would have us take away
 *	  what the next hop relies on.  Host in it is overlooked, since
 *	  our own goes on anyway.
 *	- Proxy-Connection means nothing.
 *	- Max-Forwards that can't be read, or stands twice, is refused with
 *	  OPTIONS and TRACE, and means nothing elsewhere.
 *	- HTTP/1.2 and above are refused with 505, as 2.0 is.
 *
 * Owner:    parser_new() gives a handle, one for each worker: a head is
 *           parsed in one go, so no connection ever owns a parser.
 * Threads:  one.
 */
#ifndef PENSTOCK_HTTP_PARSE_H
#define PENSTOCK_HTTP_PARSE_H

#include "http/head.h"

/* Fields that Connection may name, known options aside. */
enum { PARSE_NAMED = 64 };

struct parser;

struct parser *parser_new(void);
void parser_free(struct parser **parser);

/*
 * A head that scan.h found complete, and the number of fields it found.
 * FAIL_NONE and *out, whose spans point into `bytes` and whose fields are the
 * parser's until its next use; or FAIL_BAD_REQUEST, FAIL_METHOD_UNSUPPORTED,
 * FAIL_VERSION_UNSUPPORTED.
 */
enum failure parse_request(struct parser *p, struct str bytes, unsigned fields,
    struct head *out) MUST_USE;

/*
 * Bytes of a request that could not be read: do they begin as HEAD does?  Its
 * answer has no content, whatever else is wrong (RFC 9110, 9.3.2).
 */
bool parse_is_to_head(const char *bytes, size_t n);

/* The same for a response: FAIL_NONE or FAIL_RESPONSE_INVALID. */
enum failure parse_response(struct parser *p, struct str bytes,
    unsigned fields, struct head *out) MUST_USE;

/* "llhttp 8.1.0": for -V and the log. */
const char *parse_library(void);

#endif
