/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply.h - responses of our own: failures, and the plain 200 of a CONNECT.
 *
 * A failure says its reason three times, in the same word: in the body for
 * the person, in Proxy-Status (RFC 9209) for the program, and by its status.
 *
 * Threads:  any; pure functions over the caller's memory.
 */
#ifndef PENSTOCK_HTTP_REPLY_H
#define PENSTOCK_HTTP_REPLY_H

#include "base/failure.h"
#include "http/head.h"

struct reply {
	enum failure	 why;
	const char	*via;		/* our pseudonym, for Proxy-Status */
	const char	*date;
	uint64_t	 retry_after;	/* seconds; 0: not said */
	const char	*allow;		/* for 405; or NULL */
	struct str	 fields;	/* whole lines of a failure; or "" */
	bool		 close;		/* say Connection: close */
	bool		 keep_alive;	/* say so, to HTTP/1.0 */
	bool		 head;		/* answer to HEAD: no body */
};

/* A whole response: head and a short text body, whose bytes are returned. */
size_t reply_failure(struct out *o, const struct reply *r);

/* "HTTP/1.1 200 OK" and nothing after it: the tunnel begins. */
void reply_connected(struct out *o, const char *via, const char *date);

/* A whole 200 response without a body: to OPTIONS with Max-Forwards: 0. */
void reply_options(struct out *o, const struct reply *r);

#endif
