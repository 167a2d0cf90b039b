/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body.h - take a body's content out of what is received, whatever frames it;
 * and frame it anew for whoever it goes to.
 *
 * The decoder is ours, not llhttp's: a proxy must know to the byte where a
 * message ends, must bound extensions and trailers, and must not pay a
 * callback for every chunk.  It is strict: CRLF only, at most 16 hex digits,
 * RFC 9112 section 7.1, no white space but where the grammar has it, which is
 * around the ";" and "=" of chunk extensions.
 *
 * Owner:    the caller, who embeds the structs.
 * Threads:  one.
 * Limits:   BODY_EXTENSION bytes of chunk extensions a message plus one
 *           sixteenth of its content; BODY_TRAILER bytes of trailers, in
 *           BODY_TRAILER_FIELDS fields.
 */
#ifndef PENSTOCK_HTTP_BODY_H
#define PENSTOCK_HTTP_BODY_H

#include <sys/uio.h>

#include "http/framing.h"
#include "http/scan.h"

enum {
	BODY_EXTENSION = 16384,
	BODY_TRAILER = 16384,
	BODY_TRAILER_FIELDS = 100,
	BODY_SPANS = 16,
};

enum body_result {
	BODY_MORE,		/* all bytes used, more to come */
	BODY_SPANS_FULL,	/* not all used: call again with the rest */
	BODY_DONE,		/* ended after `used` bytes */
	BODY_BAD,		/* can't be a body */
};

struct body {
	struct framing		 framing;
	uint64_t		 left;		/* of length or this chunk */
	uint64_t		 content;	/* bytes of content so far */
	uint64_t		 extension;	/* bytes spent on it */
	struct scan		 scan;		/* of the trailers */
	uint8_t			 state;
	uint8_t			 digits;	/* of this chunk's size */
};

void body_init(struct body *b, const struct framing *f);

/* Content that was found in bytes, and how many of them that took. */
struct body_content {
	struct iovec	iov[BODY_SPANS];
	int		count;
	size_t		used;
	size_t		trailers;	/* bytes of them at the end of used */
};

/*
 * Take content out of n bytes.  Points the pieces of *to at it (short ones are
 * moved together: the bytes may be changed).  Trailers are checked, with the
 * empty line after them, and are left where they are: for the caller to drop,
 * or to put together and send on (trailers.h).  A body that has no bytes is
 * BODY_DONE at once, with used == 0.
 */
enum body_result body_decode(struct body *b, uint8_t *bytes, size_t n,
    struct body_content *to);

/*
 * The connection ended: true if that ends the body properly (FRAMING_CLOSE,
 * or nothing was missing).
 */
bool body_ends_at_close(const struct body *b);

/* Has ended: nothing more belongs to it. */
bool body_is_done(const struct body *b);

/*
 * Bytes of content that follow and that nothing frames; of a body that lasts
 * until the connection ends, no end of them.  0 in one that is chunked.
 */
uint64_t body_plain(const struct body *b);

/* n of them have come, and were not looked at. */
void body_pass(struct body *b, uint64_t n);

/* The line before a chunk of n bytes, n > 0; its length. */
enum { BODY_CHUNK_LINE = 18 };
size_t body_chunk_line(char out[BODY_CHUNK_LINE], uint64_t n);

/* What follows each chunk, and what ends the message. */
#define BODY_CHUNK_END	"\r\n"
#define BODY_LAST_LINE	"0\r\n"	/* trailers and an empty line follow */
#define BODY_LAST_CHUNK	BODY_LAST_LINE "\r\n"

#endif
