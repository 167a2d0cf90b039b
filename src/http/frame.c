/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame.c - the pieces of one send; see frame.h.
 */
#include "http/frame.h"

static void
add(struct frame *f, const void *at, size_t n)
{
	if (n > 0)
		f->iov[f->count++] = (struct iovec){ (void *)at, n };
}

void
frame_head(struct frame *f, struct str head)
{
	ASSERT(f->count == 0);
	add(f, head.at, head.len);
}

size_t
frame_bytes(const struct iovec *iov, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

void
frame_content(struct frame *f, enum framing_kind kind,
    const struct iovec *iov, int n, bool last)
{
	bool chunked = kind == FRAMING_CHUNKED;
	size_t bytes = chunked ? frame_bytes(iov, n) : 0;

	ASSERT(f->count <= 1 && n <= BODY_SPANS);
	if (bytes > 0)
		add(f, f->line, body_chunk_line(f->line, bytes));
	for (int i = 0; i < n; i++)
		add(f, iov[i].iov_base, iov[i].iov_len);
	if (bytes > 0)
		add(f, BODY_CHUNK_END, sizeof BODY_CHUNK_END - 1);
	if (chunked && last)
		add(f, BODY_LAST_CHUNK, sizeof BODY_LAST_CHUNK - 1);
}

void
frame_trailers(struct frame *f, struct str trailers)
{
	ASSERT(str_ends(trailers, STR("\r\n")));
	add(f, BODY_LAST_LINE, sizeof BODY_LAST_LINE - 1);
	add(f, trailers.at, trailers.len);
}
