/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buf.h - a queue of bytes, kept in blocks.
 *
 * Bytes go in at the end and come out in front.  An empty queue holds no
 * block.
 *
 * Owner:    the caller, who embeds the struct; buf_clear() gives all back.
 * Threads:  one.
 * Errors:   buf_append() takes all bytes or none.
 */
#ifndef PENSTOCK_BASE_BUF_H
#define PENSTOCK_BASE_BUF_H

#include <sys/uio.h>

#include "base/block.h"

struct buf {
	struct blocks	*blocks;
	struct block	*first;
	struct block	*last;
	size_t		 length;	/* bytes in it */
};

/* Empty; its blocks come from and go back to *blocks. */
static inline void
buf_init(struct buf *b, struct blocks *blocks)
{
	b->blocks = blocks;
	b->first = b->last = NULL;
	b->length = 0;
}

/*
 * Append the bytes of n pieces, without the first `skip` of them.  False, and
 * nothing appended, when there is no memory for `use`.
 */
bool buf_append(struct buf *b, const struct iovec *iov, int n, size_t skip,
    enum block_use use) MUST_USE;

/* Point at most n pieces at the bytes in front; the number used. */
int buf_peek(const struct buf *b, struct iovec *iov, int n);

/* Drop n bytes in front, n <= length. */
void buf_consume(struct buf *b, size_t n);

void buf_clear(struct buf *b);

#endif
