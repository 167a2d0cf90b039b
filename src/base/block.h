/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block.h - memory for bytes that wait, within one budget.
 *
 * Heads, bodies and queues are kept in blocks of four sizes.  All workers'
 * blocks count against one budget (keyword `buffers`), and who asks says for
 * what: the nearer to the end an exchange is, the deeper it may dip.
 *
 *	0            1/2               7/8      all
 *	|-- HEAD ------|
 *	|-- BODY -------------------------|
 *	|-- PERMIT ---------------------------------|
 *
 * So new requests can't use up what the running ones need to end.
 *
 * Blocks that nobody uses are kept, to be used again, but only so many.  What
 * is kept and what is in use is twice the budget at most, and besides that the
 * first piece of each size of each worker: block_memory().
 *
 * Owner:    whoever took a block gives it back to the same struct blocks.
 * Threads:  a struct blocks is one worker's; the budget is everybody's.
 * Errors:   block_take() returns NULL and counts it.
 */
#ifndef PENSTOCK_BASE_BLOCK_H
#define PENSTOCK_BASE_BLOCK_H

#include <stdatomic.h>

#include "base/slab.h"
#include "base/stats.h"

enum block_use { BLOCK_HEAD, BLOCK_BODY, BLOCK_PERMIT, BLOCK_USES };

struct block_budget {
	_Atomic uint64_t	used;		/* bytes, of all workers */
	_Atomic uint64_t	limit;
	_Atomic uint64_t	held;		/* in pieces, but the first */
	_Atomic unsigned	sharers;	/* structs blocks */
};

struct block {
	struct block	*next;		/* the owner's, for its queue */
	uint32_t	 size;		/* of data[] */
	uint32_t	 start;		/* the owner's: first byte kept */
	uint32_t	 end;		/* the owner's: after the last */
	uint32_t	 class;
	uint8_t		 data[];
};

/*
 * Bytes of a block, header included.  The largest holds the largest head with
 * its fields, or that head and one read after it.
 */
enum { BLOCK_CLASSES = 5 };
#define BLOCK_SIZES	{ 1024, 4096, 16384, 66560, 147456 }

struct blocks {
	struct slab		 slabs[BLOCK_CLASSES];
	struct block_budget	*budget;
	uint64_t		 held;		/* its part of the budget's */
	uint64_t		 most_idle;	/* of it */
	uint64_t		 stuck;		/* idle after it was trimmed */
	uint64_t		 half;		/* of what was in use then */
	uint64_t		 rest;		/* gives until it is again */
	counter_t		 used;		/* this worker's, for metrics */
	counter_t		 refused;
};

void block_budget_init(struct block_budget *b, uint64_t limit);

/*
 * Another limit; what is in use beyond it is given back as it comes free.  Each
 * struct blocks of it is to be adjusted then.
 */
void block_budget_set(struct block_budget *b, uint64_t limit);
void blocks_adjust(struct blocks *b);

/* Most bytes that blocks take from the system, with so many structs blocks. */
uint64_t block_memory(uint64_t limit, unsigned sharers);

void blocks_init(struct blocks *b, struct block_budget *budget);
void blocks_fini(struct blocks *b);

/*
 * The smallest block with room for `want` bytes, or the largest there is if
 * that is less; empty (start == end == 0).  NULL when `use` may not have it.
 */
struct block *block_take(struct blocks *b, size_t want,
    enum block_use use) MUST_USE;

/* Give *block back and clear it; NULL in it is fine. */
void block_give(struct blocks *b, struct block **block);

/*
 * Add n bytes to those in *block, in one piece: takes a first block, or a
 * larger one in its place.  False, and nothing added, when they don't fit the
 * largest or there is no memory.
 */
bool block_keep(struct blocks *b, struct block **block, const void *bytes,
    size_t n, enum block_use use) MUST_USE;

/* Would a block for `use` be refused now?  A hint: others take meanwhile. */
bool blocks_are_short(const struct blocks *b, enum block_use use);

#endif
