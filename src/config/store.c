/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.c - the memory of one configuration; see store.h.
 *
 * Arrays double, and leave their former place unused: at most half of the
 * memory is lost, and nobody has to know which pointers own what.
 */
#include "config/store.h"

#include <stdalign.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 4, CHUNK_BYTES = 16384 };

struct store_chunk {
	struct store_chunk	*next;
	size_t			 used, size;
	alignas(max_align_t) char bytes[];
};

struct conf_store *
store_new(void)
{
	return xcalloc(1, sizeof(struct conf_store));
}

void
store_free(struct conf_store **s)
{
	if (*s == NULL)
		return;
	for (struct store_chunk *c = (*s)->chunks, *next; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	free(*s);
	*s = NULL;
}

static void
add_chunk(struct conf_store *s, size_t n)
{
	size_t size = MAX(n, (size_t)CHUNK_BYTES);
	struct store_chunk *c = xcalloc(1, sizeof *c + size);

	c->size = size;
	c->next = s->chunks;
	s->chunks = c;
}

void *
store_take(struct conf_store *s, size_t n)
{
	const size_t unit = alignof(max_align_t);

	n = (n + unit - 1) / unit * unit;
	if (s->chunks == NULL || s->chunks->size - s->chunks->used < n)
		add_chunk(s, n);
	void *at = s->chunks->bytes + s->chunks->used;
	s->chunks->used += n;
	return at;
}

const char *
store_text(struct conf_store *s, struct str text)
{
	char *copy = store_take(s, text.len + 1);

	if (text.len > 0)
		memcpy(copy, text.at, text.len);
	return copy;
}

void *
store_grow(struct conf_store *s, void *at, size_t count, size_t size)
{
	bool is_full = count == 0 || (count >= FIRST_CAPACITY &&
	    (count & (count - 1)) == 0);

	if (!is_full)
		return at;
	void *roomy = store_take(s, MAX(2 * count, (size_t)FIRST_CAPACITY) *
	    size);
	if (count > 0)
		memcpy(roomy, at, count * size);
	return roomy;
}
