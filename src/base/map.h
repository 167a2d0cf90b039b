/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * map.h - hash map from byte strings to whatever embeds a node.
 *
 * The node points at its key, which is usually another field of the same
 * owner.  The hash is seeded, so a client that chooses the keys can't choose
 * who shares a bucket.
 *
 * A map of a fixed number of buckets never allocates after map_init().  One
 * that grows doubles when it holds as many nodes as buckets; without memory
 * it stays as it is and gets slower.
 *
 * Owner:    the caller, of map, nodes and keys; map_fini() frees the buckets
 *           and asserts that the map is empty.
 * Threads:  one at a time.
 */
#ifndef PENSTOCK_BASE_MAP_H
#define PENSTOCK_BASE_MAP_H

#include "base/defs.h"
#include "base/str.h"

enum { MAP_SEED = 16 };			/* bytes */

struct map_node {
	struct map_node	*next;
	uint64_t	 hash;
	struct str	 key;
};

struct map {
	struct map_node	**buckets;
	size_t		 mask;		/* buckets - 1, a power of 2 - 1 */
	size_t		 count;
	bool		 grows;
	uint8_t		 seed[MAP_SEED];
};

/*
 * An empty map.  `buckets` is fixed, and rounded up to a power of two; 0 for
 * a small map that grows.
 */
void map_init(struct map *m, const uint8_t seed[MAP_SEED], size_t buckets);
/* Bytes that a map takes that was made for so many. */
size_t map_memory(size_t buckets);
void map_fini(struct map *m);

static inline size_t
map_count(const struct map *m)
{
	return m->count;
}

/* The node with this key, or NULL. */
struct map_node *map_find(const struct map *m, struct str key);

/*
 * Add n under `key`, whose bytes must stay until it is removed.  The caller
 * has looked: no other node may have that key.
 */
void map_add(struct map *m, struct map_node *n, struct str key);

/* Remove n, which is in the map. */
void map_remove(struct map *m, struct map_node *n);

/* Walk in no particular order: the first node, the one after n; NULL ends. */
struct map_node *map_first(const struct map *m);
struct map_node *map_next(const struct map *m, const struct map_node *n);

/* Walk; the body may remove n itself, and must not add. */
#define MAP_FOR_EACH(n, m)						\
	for (struct map_node *n = map_first(m),				\
	    *n##_next = n == NULL ? NULL : map_next(m, n);		\
	    n != NULL;							\
	    n = n##_next, n##_next = n == NULL ? NULL : map_next(m, n))

#endif
