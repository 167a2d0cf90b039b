/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_own.h - what a limit consists of; for limit*.c alone.
 *
 * Numbers never change once they are published: a reload publishes others,
 * and the old ones are kept until all workers have come to the end of what they
 * were doing (limits_settle()), so one in the middle of reading finds them
 * consistent.  Parts are made when a spec first asks for them and stay.
 */
#ifndef PENSTOCK_BASE_LIMIT_OWN_H
#define PENSTOCK_BASE_LIMIT_OWN_H

#include <pthread.h>
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
	nsec_t			 most_owed;	/* 0, or limit_settle() cuts */
	struct limit_numbers	*before;	/* until limit_settle() */
};

/* Written by its worker alone. */
struct limit_side {
	_Alignas(CACHE_LINE) _Atomic uint64_t entered;	/* with a permit */
	_Atomic uint64_t	 left;
	struct hist		 waits;
};

/* What one worker saw of the responses, since ever; it alone writes. */
struct limit_tally {
	_Alignas(CACHE_LINE) _Atomic uint64_t count;
	_Atomic uint64_t	 lost;
	_Atomic nsec_t		 time;
	_Atomic uint64_t	 in_use;
};

/*
 * How a limit finds itself.  Whichever worker finds a step due makes it, unless
 * another is about to: no worker waits for the lock, but main in a reload.
 */
struct limit_adapt {
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	struct adapt		 adapt;
	struct adapt_seen	 before;	/* tallies, at the last step */
	bool			 on;		/* by the spec there is */
	unsigned		 workers;
	_Alignas(CACHE_LINE) _Atomic nsec_t look_at;	/* not before */
	struct limit_tally	 tallies[];
};

struct limit {
	_Alignas(CACHE_LINE) struct bucket bucket;
	_Alignas(CACHE_LINE) _Atomic uint64_t sessions;	/* unkeyed */
	struct pace		 pace[LIMIT_WAYS];

	_Alignas(CACHE_LINE) _Atomic(struct limit_numbers *) numbers;
	_Atomic(struct gate *)	 gate;		/* NULL: never had one */
	_Atomic(struct limit_adapt *) adapt;	/* NULL: never did */
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

/* --- limit_numbers.c: other numbers ------------------------------------ */

/* From now on by those; the parts were made before, for who sees them. */
void limit_publish(struct limit *l, const struct limit_spec *spec, nsec_t now);

/* No worker is in the middle of reading old numbers: see limits_settle(). */
void limit_settle(struct limit *l, nsec_t now);

static inline bool
limit_is_same_rate(const struct limit_spec *a, const struct limit_spec *b)
{
	return a->rate == b->rate && a->rate_span == b->rate_span &&
	    a->burst == b->burst && a->wait == b->wait;
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

/* What holders have done, since ever. */
struct limit_account {
	uint64_t	entered;
	uint64_t	left;
};

/*
 * limit_unaccounted(), of one reading: the holders' account before and after it
 * was read how many permits the gate had given out.
 */
bool limit_is_sure(const struct limit_account *before, uint64_t given,
    const struct limit_account *after, int64_t *out) MUST_USE;

/* --- limit_dry.c: dry run ---------------------------------------------- */

/* Count that p would have been refused. */
void limit_dry_refuse(struct limit_pass *p, enum failure why);

/* Its token is late, or there is none. */
void limit_dry_rate(struct limit_pass *p);

/*
 * Its gate has refused it: let it in all the same, and count.  False if the
 * gate isn't in dry run, and so the refusal is one.
 */
bool limit_dry_enter(struct limit_pass *p, const struct keygate_call *call,
    enum failure why) MUST_USE;

/*
 * Let *l find its number in these bounds from now on, beginning with the
 * number it has, or go on from where it was; or, with bounds of 0, stop that.
 * Main's, before limit_adapt_set_gate().
 */
void limit_adapt_set(struct limit *l, const struct limit_spec *spec,
    nsec_t now);

/* Give the gate its spec, with the number that was found if it adapts. */
void limit_adapt_set_gate(struct limit *l, const struct gate_spec *spec,
    unsigned worker, nsec_t now);

/* The number it begins with, for a gate that is to be made; no later. */
uint64_t limit_adapt_first(const struct limit *l);

/* Does it adapt, and from which base? */
bool limit_adapt_look(struct limit *l, nsec_t *base);

void limit_adapt_free(struct limit *l);

/* Bytes that this takes. */
size_t limit_adapt_memory(unsigned workers);

#endif
