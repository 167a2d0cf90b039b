/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log_ring.c - lines put into a ring; see log_ring.h.
 */
#include "base/log_ring.h"

#include <string.h>

#include "base/log_writer.h"

static void
copy_in(struct log_ring *r, uint64_t at, const char *bytes, size_t n)
{
	size_t start = at & (r->size - 1);
	size_t first = MIN(n, r->size - start);

	memcpy(r->bytes + start, bytes, first);
	memcpy(r->bytes, bytes + first, n - first);
}

static bool
drop(struct log_ring *r)
{
	uint64_t n = atomic_load_explicit(&r->dropped, memory_order_relaxed);

	atomic_store_explicit(&r->dropped, n + 1, memory_order_relaxed);
	return false;
}

bool
log_put(struct log_ring *r, const char *line, size_t n)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint64_t next = head + n + 1;

	if (n > LOG_LINE_MAX)
		return drop(r);
	if (next - r->tail_seen > r->size)
		r->tail_seen = atomic_load(&r->tail);
	if (next - r->tail_seen > r->size)
		return drop(r);
	copy_in(r, head, line, n);
	copy_in(r, head + n, "\n", 1);
	atomic_store(&r->head, next);

	if (next - r->tail_seen < r->size / 2)
		return true;
	r->tail_seen = atomic_load(&r->tail);
	if (next - r->tail_seen >= r->size / 2 &&
	    (int64_t)(head - r->tail_seen) < (int64_t)(r->size / 2))
		log_writer_wake(r->writer);
	return true;
}
