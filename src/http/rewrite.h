/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rewrite.h - the head that goes on, made from the one that came.
 *
 * One pass over the received fields.  Hop-by-hop fields go (RFC 9110 section
 * 7.6.1: those always so, and those named in Connection), framing is written
 * anew, Via is added; everything else passes in its order, to the byte but
 * for white space around values.
 *
 * Where a client's address is told (`forwarded`), what clients say about
 * themselves counts only if they are trusted: X-Forwarded-For gets our client
 * appended to its list, -Proto and -Host stay where given, Forwarded passes.
 * From others the three are replaced, and Forwarded is dropped.
 *
 * TE says what its sender takes, so ours is not the client's: it is "trailers"
 * and nothing else, where the client asks for those (trailers.h) and has named
 * TE in its Connection as RFC 9110 section 10.1.4 demands.  A TE that is not
 * named may have come from farther away than our client, and is not believed
 * that far.
 *
 * Threads:  any; pure functions over the caller's memory.
 * Errors:   an `out` that overflowed (str.h) is the only one.
 */
#ifndef PENSTOCK_HTTP_REWRITE_H
#define PENSTOCK_HTTP_REWRITE_H

#include "http/framing.h"
#include "http/uri.h"

struct forwarded {
	struct str	client;		/* address, no port; empty: add none */
	const char	*proto;		/* "http" */
	struct str	host;		/* the Host that was asked for */
	bool		trusted;	/* keep what the client had sent */
};

/* Our line of Via, made of a pseudonym once; the version is put right in it. */
#define VIA_LINE(pseudonym)	"Via: 1.1 " pseudonym "\r\n"

struct request_rewrite {
	const struct target	*target;
	struct str		 host;		/* value of Host to send */
	struct str		 via;		/* VIA_LINE() */
	struct framing		 framing;	/* of the body as sent on */
	struct forwarded	 forwarded;
	bool			 upgrade;	/* pass it on, if h->upgrade */
	bool			 close;		/* ask for Connection: close */
	/* Max-Forwards of OPTIONS and TRACE goes on one less. */
};

/* The request's head, with the empty line. */
void rewrite_request(struct out *o, const struct head *h,
    const struct request_rewrite *r);

struct response_rewrite {
	const char		*date;		/* of date.h: if missing */
	struct str		 via;		/* VIA_LINE() */
	struct framing		 framing;	/* of the body as sent on */
	bool			 close;		/* say Connection: close */
	bool			 keep_alive;	/* say so, to HTTP/1.0 */
	bool			 upgrade;	/* pass it on, as 426 does */
	bool			 trailers;	/* go on, and Trailer so too */
};

/* The response's head (or that of a 1xx: no Date), with the empty line. */
void rewrite_response(struct out *o, const struct head *h,
    const struct response_rewrite *r);

/* Has this request passed a proxy of that pseudonym before? */
bool via_has(const struct head *h, struct str pseudonym);

/* RFC 9110 section 7.6.2.  -1: none given or unreadable. */
int64_t max_forwards(const struct head *h);

#endif
