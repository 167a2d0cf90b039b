/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block.c - blocks and their budget; see block.h.
 *
 * A block counts with its whole size, header included, from its taking to its
 * giving back.  The budget is compared and swapped, not added to and then
 * corrected: a large block that is refused must not make others fail.
 *
 * Slabs keep what is given back, each for its own size and worker, so that all
 * of them together could keep ten times what was ever in use at once.  So a
 * worker whose blocks are idle beyond its share gives pieces back to the
 * system, and none takes more from there than HELD budgets in all.  Both are
 * looked at when a piece is needed, and when a block comes back.
 */
#include "base/block.h"

#include <string.h>

#include <assert.h>

static const size_t block_sizes[] = BLOCK_SIZES;

static_assert(ARRAY_LEN(block_sizes) == BLOCK_CLASSES, "one size a class");
enum {
	HELD = 2,			/* budgets that may be held */
	IDLE_SHARE = 2,			/* of a budget may be idle: 1/2 */
	WORTH_SHARE = 32,		/* to be idle anew, before a trim */
	LOOKED_AT = 2,			/* unused blocks, for each that came
					   back while pieces were stuck */
};

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
	atomic_init(&b->held, 0);
	atomic_init(&b->sharers, 0);
}

void
block_budget_set(struct block_budget *b, uint64_t limit)
{
	atomic_store_explicit(&b->limit, limit, memory_order_relaxed);
}

void
blocks_init(struct blocks *b, struct block_budget *budget)
{
	/* The budget bounds the slabs. */
	for (size_t i = 0; i < BLOCK_CLASSES; i++)
		slab_init_mapped(&b->slabs[i], block_sizes[i], SIZE_MAX);
	b->budget = budget;
	b->held = b->most_idle = b->stuck = b->half = b->rest = 0;
	atomic_fetch_add(&budget->sharers, 1);
	atomic_init(&b->used, 0);
	atomic_init(&b->refused, 0);
}

void
blocks_fini(struct blocks *b)
{
	for (size_t i = 0; i < BLOCK_CLASSES; i++)
		slab_fini(&b->slabs[i]);
	atomic_fetch_sub(&b->budget->held, b->held);
	atomic_fetch_sub(&b->budget->sharers, 1);
}

uint64_t
block_memory(uint64_t limit, unsigned sharers)
{
	uint64_t first = 0;

	for (size_t i = 0; i < BLOCK_CLASSES; i++) {
		struct slab s;

		slab_init_mapped(&s, block_sizes[i], SIZE_MAX);
		first += slab_next_piece(&s);
	}
	return HELD * limit + sharers * first;
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

/* --- what is held ------------------------------------------------------ */

static uint64_t
limit_of(const struct blocks *b)
{
	return atomic_load_explicit(&b->budget->limit, memory_order_relaxed);
}

static uint64_t
idle(const struct blocks *b)
{
	uint64_t used = stat_read(&b->used);

	return b->held > used ? b->held - used : 0;
}

/* As much may be idle or stuck as there is budget, whatever it is for. */
static bool
hold(struct blocks *b, uint64_t bytes, enum block_use use)
{
	uint64_t limit = limit_of(b);
	uint64_t share = block_share(limit, use) + (HELD - 1) * limit;
	uint64_t held = atomic_load_explicit(&b->budget->held,
	    memory_order_relaxed);

	do {
		if (bytes > share || held > share - bytes)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&b->budget->held,
	    &held, held + bytes, memory_order_relaxed, memory_order_relaxed));
	b->held += bytes;
	return true;
}

static void
let_go(struct blocks *b, uint64_t bytes)
{
	b->held -= bytes;
	atomic_fetch_sub_explicit(&b->budget->held, bytes,
	    memory_order_relaxed);
}

/* Give pieces back until no more than `most` is idle, or what is is stuck. */
static void
trim(struct blocks *b, uint64_t most)
{
	uint64_t unused = 0;

	for (size_t i = BLOCK_CLASSES; i-- > 0;) {
		struct slab *s = &b->slabs[i];

		if (idle(b) > most)
			let_go(b, slab_trim(s, idle(b) - most));
		unused += s->total - s->in_use;
	}
	b->stuck = idle(b);
	b->half = stat_read(&b->used) / 2;
	b->rest = idle(b) > most ? unused / LOOKED_AT : 0;
}

/*
 * More is idle than should be.  If it was just now, then in pieces of which a
 * little is in use.  Another look is at all that is unused, and so isn't worth
 * it before half of what is in use is back, or as many came back as pay for it.
 */
static APART void
trim_idle(struct blocks *b)
{
	if (b->rest > 0 && stat_read(&b->used) > b->half)
		b->rest--;
	else
		trim(b, b->most_idle / 2);
}

static uint64_t
share_of_idle(const struct blocks *b)
{
	return limit_of(b) / IDLE_SHARE / atomic_load(&b->budget->sharers);
}

void
blocks_adjust(struct blocks *b)
{
	if (b->most_idle != 0)
		b->most_idle = share_of_idle(b);
}

/* The slab has nothing at hand: take from another piece, if there may be. */
static APART struct block *
take_new(struct blocks *b, struct slab *s, enum block_use use)
{
	size_t piece = s->pieces == NULL ? 0 : slab_next_piece(s);
	struct block *block;

	b->stuck = MIN(b->stuck, idle(b));
	if (piece != 0 && !hold(b, piece, use)) {
		if (idle(b) < b->stuck + limit_of(b) / WORTH_SHARE)
			return NULL;
		trim(b, 0);
		if (!hold(b, piece, use))
			return NULL;
	}
	/* The first: all who share are there by now. */
	if (b->most_idle == 0)
		b->most_idle = share_of_idle(b);
	block = slab_take(s);
	if (block == NULL)
		let_go(b, piece);
	return block;
}

/* --- blocks ------------------------------------------------------------ */

static uint32_t
class_for(size_t want)
{
	uint32_t class = 0;

	while (class < BLOCK_CLASSES - 1 &&
	    want > block_sizes[class] - sizeof(struct block))
		class++;
	return class;
}

HOT struct block *
block_take(struct blocks *b, size_t want, enum block_use use)
{
	uint32_t class = class_for(want);
	size_t bytes = block_sizes[class];

	if (!budget_take(b->budget, bytes, use))
		goto refuse;

	struct slab *s = &b->slabs[class];
	struct block *block = LIKELY(slab_has(s)) ? slab_take(s) :
	    take_new(b, s, use);
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

HOT void
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
	if (UNLIKELY(b->held > stat_read(&b->used) + b->most_idle))
		trim_idle(b);
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
