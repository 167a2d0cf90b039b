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
#include <string.h>

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

enum { SLAB_PIECE = 64 * 1024 };

struct slab_free {
	struct slab_free	*next;
};

struct slab_piece {
	_Alignas(SLAB_ALIGN) struct slab_piece *next;
	size_t			 bytes;		/* of objects[] */
	_Alignas(SLAB_ALIGN) unsigned char objects[];
};

static void *take_fresh(struct slab *s);

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
	s->total = s->fresh_count = 0;
}

void *
slab_take(struct slab *s)
{
	struct slab_free *f = s->free;

	if (f != NULL) {
		ASAN_UNPOISON_MEMORY_REGION(f, s->size);
		s->free = f->next;
	} else {
		f = take_fresh(s);
		if (f == NULL)
			return NULL;
	}
	s->in_use++;
	if (s->in_use > s->peak)
		s->peak = s->in_use;
	return f;
}

void *
slab_take_zeroed(struct slab *s)
{
	void *object = slab_take(s);

	return object == NULL ? NULL : memset(object, 0, s->size);
}

void
slab_give(struct slab *s, void *object)
{
	struct slab_free *f = object;

	ASSERT(object != NULL && object != s->free && s->in_use > 0);
	s->in_use--;
	f->next = s->free;
	s->free = f;
	ASAN_POISON_MEMORY_REGION(object, s->size);
}

/* Another piece: its memory is touched as its objects are handed out. */
static bool
grow(struct slab *s)
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
	s->fresh = p->objects;
	s->fresh_count = n;
	ASAN_POISON_MEMORY_REGION(p->objects, p->bytes);
	return true;
}

static APART void *
take_fresh(struct slab *s)
{
	void *object;

	if (s->fresh_count == 0 && !grow(s)) {
		s->refused++;
		return NULL;
	}
	object = s->fresh;
	s->fresh += s->size;
	s->fresh_count--;
	ASAN_UNPOISON_MEMORY_REGION(object, s->size);
	return object;
}
