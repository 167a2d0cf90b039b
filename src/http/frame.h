/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame.h - the pieces of one send: a head, and content framed for whoever it
 * goes to.
 *
 *	head | chunk line | content ... | CRLF | last chunk | trailers
 *
 * Content is pointed at, not copied.
 *
 * Owner:    the caller, who embeds the struct; the pieces point into it.
 * Threads:  one.
 */
#ifndef PENSTOCK_HTTP_FRAME_H
#define PENSTOCK_HTTP_FRAME_H

#include "http/body.h"

struct frame {
	struct iovec	iov[BODY_SPANS + 5];
	int		count;
	char		line[BODY_CHUNK_LINE];
};

static inline void
frame_init(struct frame *f)
{
	f->count = 0;
}

/* The head goes first; once, before any content. */
void frame_head(struct frame *f, struct str head);

/*
 * n pieces of content, at most BODY_SPANS, once; `last` if the message ends
 * with them.
 */
void frame_content(struct frame *f, enum framing_kind kind,
    const struct iovec *iov, int n, bool last);

/*
 * The end of a chunked message whose content was not `last`: `trailers` are
 * its field lines with the empty line after them.
 */
void frame_trailers(struct frame *f, struct str trailers);

/* Bytes in n pieces. */
size_t frame_bytes(const struct iovec *iov, int n);

#endif
