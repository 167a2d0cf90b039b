/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slab.c - bounded pools; see slab.h.
 *
 * The free list runs through the free objects themselves.  Under the address
 * sanitizer they are poisoned, so using an object after slab_give() is found
 * as using memory after free() would be.
 *
 * A mapped slab's pieces begin at multiples of SLAB_PIECE, so that slab_trim()
 * finds an object's piece by its address.  How many of a piece's objects are
 * free is counted only then: taking and giving touch no header.
 */
#include "base/slab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

enum { SLAB_PIECE = 64 * 1024, PAGE = 4096 };

struct slab_free {
	struct slab_free	*next;
};

struct slab_piece {
	_Alignas(SLAB_ALIGN) struct slab_piece *next;
	size_t			 bytes;		/* of objects[] */
	size_t			 unused;	/* slab_trim(): objects */
	bool			 goes;		/* and so it is given back */
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
slab_init_mapped(struct slab *s, size_t size, size_t max)
{
	slab_init(s, size, max);
	s->mapped = true;
}

/* --- pieces ------------------------------------------------------------ */

/* How many objects the next piece has; 0 at the bound. */
static size_t
objects_of_next(const struct slab *s)
{
	size_t n = (SLAB_PIECE - sizeof(struct slab_piece)) / s->size;

	return MIN(MAX(n, 1), s->max - s->total);
}

/* With its header; of a mapped one, whole pages. */
static size_t
piece_size(const struct slab *s, size_t objects)
{
	size_t bytes = sizeof(struct slab_piece) + objects * s->size;

	if (!s->mapped)
		return bytes;
	return bytes <= SLAB_PIECE ? SLAB_PIECE :
	    (bytes + PAGE - 1) / PAGE * PAGE;
}

static void
unmap(void *at, size_t bytes)
{
	/* Too many maps: the addresses are lost, the memory is not. */
	if (bytes != 0 && munmap(at, bytes) == -1)
		(void)madvise(at, bytes, MADV_DONTNEED);
}

static void *
map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* At a multiple of SLAB_PIECE; those in a row are by themselves. */
static void *
map_piece(size_t bytes)
{
	unsigned char *at = map(bytes);

	if (at == NULL || bytes > SLAB_PIECE || (uintptr_t)at % SLAB_PIECE == 0)
		return at;
	unmap(at, bytes);
	at = map(2 * SLAB_PIECE);
	if (at == NULL)
		return NULL;

	size_t before = SLAB_PIECE - (uintptr_t)at % SLAB_PIECE;
	unmap(at, before);
	unmap(at + before + SLAB_PIECE, SLAB_PIECE - before);
	return at + before;
}

static void
free_piece(const struct slab *s, struct slab_piece *p)
{
	ASAN_UNPOISON_MEMORY_REGION(p->objects, p->bytes);
	if (s->mapped)
		unmap(p, piece_size(s, p->bytes / s->size));
	else
		free(p);
}

void
slab_fini(struct slab *s)
{
	ASSERT(s->in_use == 0);
	while (s->pieces != NULL) {
		struct slab_piece *p = s->pieces;

		s->pieces = p->next;
		free_piece(s, p);
	}
	s->free = NULL;
	s->total = s->fresh_count = 0;
}

/* --- objects ----------------------------------------------------------- */

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
	size_t n = objects_of_next(s);
	size_t bytes = piece_size(s, n);

	if (n == 0)
		return false;

	struct slab_piece *p = s->mapped ? map_piece(bytes) : malloc(bytes);
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

size_t
slab_next_piece(const struct slab *s)
{
	return piece_size(s, objects_of_next(s));
}

uint64_t
slab_memory(size_t size, uint64_t objects)
{
	struct slab s;
	uint64_t each;

	slab_init(&s, size, SIZE_MAX);
	each = objects_of_next(&s);
	/* Whole pieces; what malloc() adds fits into what they leave over. */
	return (objects + each - 1) / each * MAX(piece_size(&s, each),
	    (uint64_t)SLAB_PIECE);
}

/* --- giving pieces back ------------------------------------------------ */

static struct slab_piece *
piece_of(const struct slab *s, struct slab_free *f)
{
	if (piece_size(s, 1) > SLAB_PIECE)
		return (struct slab_piece *)(void *)((unsigned char *)f -
		    offsetof(struct slab_piece, objects));
	return (struct slab_piece *)(void *)
	    ((unsigned char *)f - (uintptr_t)f % SLAB_PIECE);
}

static struct slab_free *
next_of(struct slab_free *f)
{
	ASAN_UNPOISON_MEMORY_REGION(f, sizeof *f);

	struct slab_free *next = f->next;

	ASAN_POISON_MEMORY_REGION(f, sizeof *f);
	return next;
}

static void
set_next(struct slab_free *f, struct slab_free *next)
{
	ASAN_UNPOISON_MEMORY_REGION(f, sizeof *f);
	f->next = next;
	ASAN_POISON_MEMORY_REGION(f, sizeof *f);
}

static void
count_unused(struct slab *s)
{
	for (struct slab_piece *p = s->pieces; p != NULL; p = p->next) {
		p->unused = 0;
		p->goes = false;
	}
	if (s->pieces != NULL)
		s->pieces->unused = s->fresh_count;
	for (struct slab_free *f = s->free; f != NULL; f = next_of(f))
		piece_of(s, f)->unused++;
}

/* Those that stay, in the same order. */
static void
keep_free_that_stay(struct slab *s)
{
	struct slab_free *f = s->free, *last = NULL;

	s->free = NULL;
	for (; f != NULL; f = next_of(f)) {
		if (piece_of(s, f)->goes)
			continue;
		if (last == NULL)
			s->free = f;
		else
			set_next(last, f);
		last = f;
	}
	if (last != NULL)
		set_next(last, NULL);
}

size_t
slab_trim(struct slab *s, size_t enough)
{
	size_t bytes = 0;

	ASSERT(s->mapped);
	count_unused(s);
	for (struct slab_piece *p = s->pieces; p != NULL && bytes < enough;
	    p = p->next) {
		size_t n = p->bytes / s->size;

		p->goes = p->unused == n && p->next != NULL;
		bytes += p->goes ? piece_size(s, n) : 0;
	}
	if (bytes == 0)
		return 0;
	keep_free_that_stay(s);
	if (s->pieces->goes)
		s->fresh_count = 0;
	for (struct slab_piece **at = &s->pieces; *at != NULL;) {
		struct slab_piece *p = *at;

		if (!p->goes) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		s->total -= p->bytes / s->size;
		free_piece(s, p);
	}
	return bytes;
}
