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

/* For this module: a piece, if there is anything in it; and n of them. */
static inline void
frame_add(struct frame *f, const void *at, size_t n)
{
	if (n > 0)
		f->iov[f->count++] = (struct iovec){ (void *)at, n };
}

static inline void
frame_pieces(struct frame *f, const struct iovec *iov, int n)
{
	for (int i = 0; i < n; i++)
		frame_add(f, iov[i].iov_base, iov[i].iov_len);
}

/* What frame_content() does where content is chunked. */
void frame_chunks(struct frame *f, const struct iovec *iov, int n, bool last);

/* The head goes first; once, before any content. */
static inline void
frame_head(struct frame *f, struct str head)
{
	ASSERT(f->count == 0);
	frame_add(f, head.at, head.len);
}

/*
 * n pieces of content, at most BODY_SPANS, once; `last` if the message ends
 * with them.
 */
static inline void
frame_content(struct frame *f, enum framing_kind kind, const struct iovec *iov,
    int n, bool last)
{
	ASSERT(f->count <= 1 && n <= BODY_SPANS);
	if (kind == FRAMING_CHUNKED)
		frame_chunks(f, iov, n, last);
	else
		frame_pieces(f, iov, n);
}

/*
 * The end of a chunked message whose content was not `last`: `trailers` are
 * its field lines with the empty line after them.
 */
void frame_trailers(struct frame *f, struct str trailers);

/* Bytes in n pieces. */
static inline size_t
frame_bytes(const struct iovec *iov, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

#endif
