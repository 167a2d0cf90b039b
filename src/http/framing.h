/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * framing.h - how long a message's body is: RFC 9112 section 6, strictly.
 *
 * Framing fields are never passed on: they are read here, dropped by
 * rewrite.h, and computed anew for the other side.
 *
 * Threads:  any; pure functions.
 */
#ifndef PENSTOCK_HTTP_FRAMING_H
#define PENSTOCK_HTTP_FRAMING_H

#include "http/head.h"

enum framing_kind {
	FRAMING_NONE,		/* no body at all */
	FRAMING_LENGTH,		/* `length` bytes, which may be 0 */
	FRAMING_CHUNKED,
	FRAMING_CLOSE,		/* responses: until the connection ends */
	FRAMING_TUNNEL,		/* responses: what follows isn't HTTP */
};

struct framing {
	enum framing_kind	kind;
	uint64_t		length;
	/* Content-Length said without a body: HEAD, 304 and 205. */
	bool			has_length;
};

/* FAIL_NONE, or why the request must be refused and its connection closed. */
enum failure framing_of_request(const struct head *h, struct framing *out)
    MUST_USE;

/*
 * `to` is the method of the request that this answers.  FAIL_NONE, or
 * FAIL_RESPONSE_INVALID.  For 1xx other than 101 the kind is NONE.
 */
enum failure framing_of_response(const struct head *h, enum method to,
    struct framing *out) MUST_USE;

#endif
