/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block.c - blocks and their budget; see block.h.
 *
 * A block counts with its whole size, header included, from its taking to its
 * giving back.  The budget is compared and swapped, not added to and then
 * corrected: a large block that is refused must not make others fail.
 */
#include "base/block.h"

#include <string.h>

#include <assert.h>

static const size_t block_sizes[] = BLOCK_SIZES;

static_assert(ARRAY_LEN(block_sizes) == BLOCK_CLASSES, "one size a class");
static_assert(BLOCK_USES == 3, "block_share() knows three");

/* What may be in use, of a budget of `limit`, after taking for `use`. */
static uint64_t
block_share(uint64_t limit, enum block_use use)
{
	switch (use) {
	case BLOCK_HEAD:
		return limit / 2;
	case BLOCK_BODY:
		return limit - limit / 8;
	default:
		return limit;
	}
}

void
block_budget_init(struct block_budget *b, uint64_t limit)
{
	atomic_init(&b->used, 0);
	atomic_init(&b->limit, limit);
}

void
blocks_init(struct blocks *b, struct block_budget *budget)
{
	/* The budget bounds the slabs. */
	for (size_t i = 0; i < BLOCK_CLASSES; i++)
		slab_init(&b->slabs[i], block_sizes[i], SIZE_MAX);
	b->budget = budget;
	atomic_init(&b->used, 0);
	atomic_init(&b->refused, 0);
}

void
blocks_fini(struct blocks *b)
{
	for (size_t i = 0; i < BLOCK_CLASSES; i++)
		slab_fini(&b->slabs[i]);
}

/* --- taking and giving back --- */

static bool
budget_take(struct block_budget *b, uint64_t bytes, enum block_use use)
{
	uint64_t share = block_share(
	    atomic_load_explicit(&b->limit, memory_order_relaxed), use);
	uint64_t used = atomic_load_explicit(&b->used, memory_order_relaxed);

	/* A lowered limit may be below what is used. */
	do {
		if (bytes > share || used > share - bytes)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&b->used, &used,
	    used + bytes, memory_order_relaxed, memory_order_relaxed));
	return true;
}

static void
budget_give(struct block_budget *b, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&b->used, bytes, memory_order_relaxed);
}

static uint32_t
class_for(size_t want)
{
	uint32_t class = 0;

	while (class < BLOCK_CLASSES - 1 &&
	    want > block_sizes[class] - sizeof(struct block))
		class++;
	return class;
}

struct block *
block_take(struct blocks *b, size_t want, enum block_use use)
{
	uint32_t class = class_for(want);
	size_t bytes = block_sizes[class];

	if (!budget_take(b->budget, bytes, use))
		goto refuse;

	struct block *block = slab_take(&b->slabs[class]);
	if (block == NULL)
		goto give_budget;
	*block = (struct block){
		.size = (uint32_t)(bytes - sizeof *block),
		.class = class,
	};
	stat_add(&b->used, bytes);
	return block;

give_budget:
	budget_give(b->budget, bytes);
refuse:
	stat_increment(&b->refused);
	return NULL;
}

void
block_give(struct blocks *b, struct block **block)
{
	if (*block == NULL)
		return;

	uint32_t class = (*block)->class;
	ASSERT(class < BLOCK_CLASSES);
	size_t bytes = block_sizes[class];

	slab_give(&b->slabs[class], *block);
	*block = NULL;
	stat_add(&b->used, -(uint64_t)bytes);
	budget_give(b->budget, bytes);
}

bool
blocks_are_short(const struct blocks *b, enum block_use use)
{
	uint64_t share = block_share(atomic_load_explicit(&b->budget->limit,
	    memory_order_relaxed), use);
	uint64_t used = atomic_load_explicit(&b->budget->used,
	    memory_order_relaxed);

	/* Not even the smallest fits. */
	return used + block_sizes[0] > share;
}

/* Make room behind the bytes of old, which move to the front. */
static struct block *
grow(struct blocks *b, struct block *old, size_t n, enum block_use use)
{
	size_t held = old != NULL ? old->end - old->start : 0;
	struct block *block = old;

	if (old == NULL || held + n > old->size)
		block = block_take(b, held + n, use);
	if (block == NULL)
		return NULL;
	if (held + n > block->size) {
		if (block != old)
			block_give(b, &block);
		return NULL;
	}
	if (held > 0)
		memmove(block->data, old->data + old->start, held);
	block->start = 0;
	block->end = (uint32_t)held;
	if (block != old)
		block_give(b, &old);
	return block;
}

bool
block_keep(struct blocks *b, struct block **kept, const void *bytes, size_t n,
    enum block_use use)
{
	struct block *block = *kept;

	if (block == NULL || n > block->size - block->end)
		block = grow(b, block, n, use);
	if (block == NULL)
		return false;
	memcpy(block->data + block->end, bytes, n);
	block->end += (uint32_t)n;
	*kept = block;
	return true;
}
