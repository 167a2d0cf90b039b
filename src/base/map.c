/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * map.c - hash map with embedded nodes; see map.h.
 */
#include "base/map.h"

#include <stdlib.h>

#include "base/siphash.h"

enum { FIRST_BUCKETS = 16 };

static size_t
size_for(size_t buckets)
{
	size_t n = buckets > 0 ? 1 : FIRST_BUCKETS;

	while (n < buckets)
		n *= 2;
	return n;
}

size_t
map_memory(size_t buckets)
{
	return size_for(buckets) * sizeof(struct map_node *);
}

void
map_init(struct map *m, const uint8_t seed[MAP_SEED], size_t buckets)
{
	size_t n = size_for(buckets);

	m->buckets = xcalloc(n, sizeof(struct map_node *));
	m->mask = n - 1;
	m->count = 0;
	m->grows = buckets == 0;
	memcpy(m->seed, seed, MAP_SEED);
}

void
map_fini(struct map *m)
{
	ASSERT(m->count == 0);
	free(m->buckets);
	m->buckets = NULL;
}

static uint64_t
hash_of(const struct map *m, struct str key)
{
	return siphash(m->seed, key.at, key.len);
}

struct map_node *
map_find(const struct map *m, struct str key)
{
	uint64_t hash = hash_of(m, key);
	struct map_node *n = m->buckets[hash & m->mask];

	while (n != NULL && (n->hash != hash || !str_equal(n->key, key)))
		n = n->next;
	return n;
}

static void
link_node(struct map_node **buckets, size_t mask, struct map_node *n)
{
	struct map_node **first = &buckets[n->hash & mask];

	n->next = *first;
	*first = n;
}

static void
grow(struct map *m)
{
	size_t old = m->mask + 1;
	struct map_node **buckets = calloc(old, 2 * sizeof *buckets);

	if (buckets == NULL)
		return;
	for (size_t i = 0; i < old; i++) {
		struct map_node *n = m->buckets[i];

		while (n != NULL) {
			struct map_node *next = n->next;

			link_node(buckets, 2 * old - 1, n);
			n = next;
		}
	}
	free(m->buckets);
	m->buckets = buckets;
	m->mask = 2 * old - 1;
}

void
map_add(struct map *m, struct map_node *n, struct str key)
{
	if (m->grows && m->count > m->mask)
		grow(m);
	n->hash = hash_of(m, key);
	n->key = key;
	link_node(m->buckets, m->mask, n);
	m->count++;
}

void
map_remove(struct map *m, struct map_node *n)
{
	struct map_node **at = &m->buckets[n->hash & m->mask];

	while (*at != n) {
		ASSERT(*at != NULL);
		at = &(*at)->next;
	}
	*at = n->next;
	n->next = NULL;
	m->count--;
}

/* The first node in bucket i or a later one. */
static struct map_node *
first_from(const struct map *m, size_t i)
{
	for (; i <= m->mask; i++)
		if (m->buckets[i] != NULL)
			return m->buckets[i];
	return NULL;
}

struct map_node *
map_first(const struct map *m)
{
	return first_from(m, 0);
}

struct map_node *
map_next(const struct map *m, const struct map_node *n)
{
	return n->next != NULL ? n->next :
	    first_from(m, (n->hash & m->mask) + 1);
}
