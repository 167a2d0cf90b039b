/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slab.c - bounded pools; see slab.h.
 *
 * The free list runs through the free objects themselves.  Under the address
 * sanitizer they are poisoned, so using an object after slab_give() is found
 * as using memory after free() would be.
 */
#include "base/slab.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define SLAB_POISONS	1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_POISONS	1
#endif
#endif

#ifdef SLAB_POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, size)	((void)(p), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(p, size)	((void)(p), (void)(size))
#endif

enum {
	SLAB_ALIGN = 16,
	SLAB_PIECE = 64 * 1024,
};

struct slab_free {
	struct slab_free	*next;
};

struct slab_piece {
	_Alignas(SLAB_ALIGN) struct slab_piece *next;
	size_t			 bytes;		/* of objects[] */
	_Alignas(SLAB_ALIGN) unsigned char objects[];
};

static bool slab_grow(struct slab *s);
static void slab_push(struct slab *s, void *object);

void
slab_init(struct slab *s, size_t size, size_t max)
{
	ASSERT(size >= 1 && size < SIZE_MAX / 2);
	*s = (struct slab){
		.size = (size + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN,
		.max = max,
	};
}

void
slab_fini(struct slab *s)
{
	ASSERT(s->in_use == 0);
	while (s->pieces != NULL) {
		struct slab_piece *p = s->pieces;

		s->pieces = p->next;
		ASAN_UNPOISON_MEMORY_REGION(p->objects, p->bytes);
		free(p);
	}
	s->free = NULL;
	s->total = 0;
}

void *
slab_take(struct slab *s)
{
	struct slab_free *f = s->free;

	if (UNLIKELY(f == NULL)) {
		if (!slab_grow(s)) {
			s->refused++;
			return NULL;
		}
		f = s->free;
	}
	ASAN_UNPOISON_MEMORY_REGION(f, s->size);
	s->free = f->next;
	s->in_use++;
	if (s->in_use > s->peak)
		s->peak = s->in_use;
	return f;
}

void
slab_give(struct slab *s, void *object)
{
	ASSERT(object != NULL && object != s->free && s->in_use > 0);
	s->in_use--;
	slab_push(s, object);
}

static bool
slab_grow(struct slab *s)
{
	size_t n = (SLAB_PIECE - sizeof(struct slab_piece)) / s->size;

	n = MIN(MAX(n, 1), s->max - s->total);
	if (n == 0)
		return false;

	struct slab_piece *p = malloc(sizeof *p + n * s->size);
	if (p == NULL)
		return false;
	p->next = s->pieces;
	p->bytes = n * s->size;
	s->pieces = p;
	s->total += n;
	/* Backwards, so that they are handed out in order of address. */
	while (n-- > 0)
		slab_push(s, p->objects + n * s->size);
	return true;
}

static void
slab_push(struct slab *s, void *object)
{
	struct slab_free *f = object;

	f->next = s->free;
	s->free = f;
	ASAN_POISON_MEMORY_REGION(object, s->size);
}
