/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log_ring.h - the rings of a log's writer; for its own files.
 *
 * A ring is a plain queue of bytes: lines are separated by their newlines, so
 * that a whole ring is written with one call.  `head` and `tail` only grow.
 *
 * Nobody misses a ring that gets half full.  The producer moves `head` and
 * then looks at `tail`; the writer moves `tail` and looks at `head` once more
 * before it sleeps; all four sequentially consistent.  So either the producer
 * sees the move that made it cross the middle, and signals, or the writer sees
 * the crossing, and doesn't sleep.
 *
 * Owner:    the writer.
 * Threads:  one producer, which puts lines, and the writer's.
 */
#ifndef PENSTOCK_BASE_LOG_RING_H
#define PENSTOCK_BASE_LOG_RING_H

#include <stdatomic.h>

#include "base/defs.h"

struct log_writer;

struct log_ring {
	/* The producer's. */
	_Alignas(CACHE_LINE) _Atomic uint64_t head;
	_Atomic uint64_t	 dropped;
	uint64_t		 tail_seen;	/* tail is there or further */

	/* The writer's. */
	_Alignas(CACHE_LINE) _Atomic uint64_t tail;

	/* Never changed. */
	_Alignas(CACHE_LINE) char *bytes;
	uint64_t		 size;
	struct log_writer	*writer;
};

#endif
