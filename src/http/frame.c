/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame.c - the pieces of one send; see frame.h.
 */
#include "http/frame.h"

void
frame_chunks(struct frame *f, const struct iovec *iov, int n, bool last)
{
	size_t bytes = frame_bytes(iov, n);

	if (bytes > 0) {
		frame_add(f, f->line, body_chunk_line(f->line, bytes));
		frame_pieces(f, iov, n);
		frame_add(f, BODY_CHUNK_END, sizeof BODY_CHUNK_END - 1);
	}
	if (last)
		frame_add(f, BODY_LAST_CHUNK, sizeof BODY_LAST_CHUNK - 1);
}

void
frame_trailers(struct frame *f, struct str trailers)
{
	ASSERT(str_ends(trailers, STR("\r\n")));
	frame_add(f, BODY_LAST_LINE, sizeof BODY_LAST_LINE - 1);
	frame_add(f, trailers.at, trailers.len);
}
