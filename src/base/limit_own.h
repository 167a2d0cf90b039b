/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_own.h - what a limit consists of; for limit*.c alone.
 *
 * Numbers never change once they are published: a reload publishes others,
 * and the old ones are kept, so a worker in the middle of reading finds them
 * consistent.  Parts are made when a spec first asks for them and stay.
 */
#ifndef PENSTOCK_BASE_LIMIT_OWN_H
#define PENSTOCK_BASE_LIMIT_OWN_H

#include <stdatomic.h>

#include "base/bucket.h"
#include "base/keybucket.h"
#include "base/keytable.h"
#include "base/limit.h"
#include "base/list.h"

struct limit_numbers {
	struct limit_spec	 spec;
	struct bucket_spec	 bucket;	/* unkeyed, with a rate */
	struct keybucket_spec	 keybucket;	/* keyed, with a rate */
	struct pace_spec	 pace[LIMIT_WAYS];
	struct limit_numbers	*before;
};

/* Written by its worker alone. */
struct limit_side {
	_Alignas(CACHE_LINE) _Atomic uint64_t entered;	/* with a permit */
	_Atomic uint64_t	 left;
	struct hist		 waits;
};

struct limit {
	_Alignas(CACHE_LINE) struct bucket bucket;
	_Alignas(CACHE_LINE) _Atomic uint64_t sessions;	/* unkeyed */
	struct pace		 pace[LIMIT_WAYS];

	_Alignas(CACHE_LINE) _Atomic(struct limit_numbers *) numbers;
	_Atomic(struct gate *)	 gate;		/* NULL: never had one */
	_Atomic(struct keygate *) keygate;
	_Atomic(struct keybuckets *) keybuckets;
	_Atomic(struct keytable *) keysessions;
	char			*name;
	uint32_t		 rank;
	bool			 replaced;	/* by one with another key */
	struct list		 link;		/* of the registry */
	_Atomic uint64_t	 refs;
	_Atomic uint64_t	 refused[FAIL_COUNT];
	_Atomic uint64_t	 would_refuse[FAIL_COUNT];	/* dry run */
	_Atomic uint64_t	 would_wait;
	unsigned		 workers;
	struct limit_side	 sides[];
};

static inline const struct limit_numbers *
limit_numbers(const struct limit *l)
{
	return atomic_load_explicit(&l->numbers, memory_order_acquire);
}

/* --- limit_check.c: the self-check ------------------------------------- */

/* One more; what was before is seen by whoever sees it. */
static inline void
limit_count(_Atomic uint64_t *n)
{
	atomic_store_explicit(n, atomic_load_explicit(n,
	    memory_order_relaxed) + 1, memory_order_release);
}

uint64_t limit_holders(const struct limit *l);

/* --- limit_dry.c: dry run ---------------------------------------------- */

/* Count that p would have been refused. */
void limit_dry_refuse(struct limit_pass *p, enum failure why);

/* Its token is late, or there is none. */
void limit_dry_rate(struct limit_pass *p);

/*
 * Its gate has refused it; false if that isn't in dry run, and so the refusal
 * is one.
 */
bool limit_dry_enter(struct limit_pass *p, const struct keygate_call *call,
    enum failure why) MUST_USE;

#endif
