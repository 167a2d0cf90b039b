/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slab.h - bounded pools of objects of one size.
 *
 * A slab grows in pieces of 64 KiB (or one object, if that is larger) up to
 * its bound, and keeps what it has: after the first rush nothing is
 * allocated.  Objects given back are handed out again newest first, which is
 * where the cache still is.  Memory that was never handed out is not touched,
 * and so not there: a slab costs as many objects as were ever in use.
 *
 * Those of a mapped slab can be had back: slab_trim().
 *
 * Owner:    the caller, who embeds the struct; slab_fini() frees the pieces
 *           and asserts that every object came back.
 * Threads:  one.
 * Errors:   slab_take() returns NULL at the bound, or without memory, and
 *           counts it in `refused`.
 */
#ifndef PENSTOCK_BASE_SLAB_H
#define PENSTOCK_BASE_SLAB_H

#include <assert.h>

#include "base/defs.h"

struct slab_piece;
struct slab_free;

struct slab {
	struct slab_free	*free;
	struct slab_piece	*pieces;
	unsigned char		*fresh;		/* never handed out: the */
	size_t			 fresh_count;	/* newest piece's rest */
	size_t			 size;		/* of an object, rounded up */
	size_t			 max;		/* objects */
	size_t			 total;		/* objects in pieces */
	size_t			 in_use;
	size_t			 peak;		/* most in use ever */
	uint64_t		 refused;
	bool			 mapped;
};

enum { SLAB_ALIGN = 8 };

/* Objects of `size` bytes, aligned to SLAB_ALIGN, at most `max` of them. */
void slab_init(struct slab *s, size_t size, size_t max);

/* The same for objects of a type, which must not ask for more. */
#define SLAB_INIT(s, type, max) do {					\
	static_assert(_Alignof(type) <= SLAB_ALIGN,			\
	    "a slab does not align so much");				\
	slab_init((s), sizeof(type), (max));				\
} while (0)

/* The same, but each piece is the kernel's own, so that it can go back. */
void slab_init_mapped(struct slab *s, size_t size, size_t max);

void slab_fini(struct slab *s);

/* Most bytes that a slab takes for so many objects of a size. */
uint64_t slab_memory(size_t size, uint64_t objects);

/* Is there an object at hand, so that slab_take() needs no further piece? */
static inline bool
slab_has(const struct slab *s)
{
	return s->free != NULL || s->fresh_count != 0;
}

/* Bytes of the piece that it will need otherwise. */
size_t slab_next_piece(const struct slab *s);

/*
 * Of a mapped slab: give back pieces none of whose objects is in use, but for
 * the oldest, until `enough` bytes are back or there is none.  The bytes.
 * Looks at every free object.
 */
size_t slab_trim(struct slab *s, size_t enough);

/* An object whose bytes are undefined, or NULL. */
void *slab_take(struct slab *s) MUST_USE;

/* The same, all of whose bytes are zero. */
void *slab_take_zeroed(struct slab *s) MUST_USE;
void slab_give(struct slab *s, void *object);

#endif
