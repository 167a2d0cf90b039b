/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buf.c - byte queue; see buf.h.
 */
#include "base/buf.h"

#include <string.h>

/* A chain of blocks with room for `want` bytes in all, or NULL. */
static struct block *
take_chain(struct blocks *from, size_t want, enum block_use use)
{
	struct block *first = NULL, **link = &first;

	while (want > 0) {
		struct block *block = block_take(from, want, use);
		if (block == NULL)
			goto give_back;
		*link = block;
		link = &block->next;
		want -= MIN(want, block->size);
	}
	return first;

give_back:
	while (first != NULL) {
		struct block *next = first->next;

		block_give(from, &first);
		first = next;
	}
	return NULL;
}

/* Copy into `to` and the blocks that follow it; the last one written to. */
static struct block *
fill(struct block *to, const uint8_t *from, size_t n)
{
	while (n > 0) {
		if (to->end == to->size)
			to = to->next;

		size_t part = MIN(n, to->size - to->end);
		memcpy(to->data + to->end, from, part);
		to->end += (uint32_t)part;
		from += part;
		n -= part;
	}
	return to;
}

static size_t
bytes_in(const struct iovec *iov, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

bool
buf_append(struct buf *b, const struct iovec *iov, int n, size_t skip,
    enum block_use use)
{
	size_t bytes = bytes_in(iov, n);
	size_t room = b->last != NULL ? b->last->size - b->last->end : 0;

	ASSERT(skip <= bytes);
	bytes -= skip;
	if (bytes > room) {
		struct block *more = take_chain(b->blocks, bytes - room,
		    use);
		if (more == NULL)
			return false;
		if (b->last != NULL)
			b->last->next = more;
		else
			b->first = b->last = more;
	}
	b->length += bytes;
	for (int i = 0; i < n; i++) {
		size_t part = MIN(skip, iov[i].iov_len);

		skip -= part;
		if (part < iov[i].iov_len)
			b->last = fill(b->last,
			    (const uint8_t *)iov[i].iov_base + part,
			    iov[i].iov_len - part);
	}
	return true;
}

int
buf_peek(const struct buf *b, struct iovec *iov, int n)
{
	int i = 0;

	for (struct block *block = b->first; block != NULL && i < n;
	    block = block->next)
		iov[i++] = (struct iovec){
			.iov_base = block->data + block->start,
			.iov_len = block->end - block->start,
		};
	return i;
}

void
buf_consume(struct buf *b, size_t n)
{
	ASSERT(n <= b->length);
	b->length -= n;
	while (n > 0) {
		struct block *block = b->first;
		size_t part = MIN(n, block->end - block->start);

		n -= part;
		block->start += (uint32_t)part;
		if (block->start < block->end)
			return;
		b->first = block->next;
		block_give(b->blocks, &block);
	}
	if (b->first == NULL)
		b->last = NULL;
}

void
buf_clear(struct buf *b)
{
	buf_consume(b, b->length);
}
