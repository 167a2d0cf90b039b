/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pace.h - a bucket of bytes: how much may pass, for one or for each key.
 *
 * A pace lets `burst` bytes through at once, and `rate` a second in the long
 * run.  Who is about to read asks pace_take() how much of it may be read, and
 * gives back what did not come.  Who is let read nothing waits, by a timer of
 * its own, until the time that pace_wait_begin() says, and asks again:
 *
 *	take -> 0, wait_begin ... (that time) ... wait_end, take -> n
 *
 * Less than a quantum isn't let through, or reads would be many and small: as
 * much as comes in 8 ms, but 1 to 64 KiB, and a quarter of a burst at most.  Of
 * those who wait, each is told a time a quantum later than the one before, so
 * that they neither wake all together nor starve; who comes anew while others
 * wait gets only what these leave.  What is there more than that is shared.
 * All of them look again each second, since some may have gone.
 *
 * In dry run everything passes at once, and is charged when it has; whoever has
 * taken more than there was isn't, but is counted.
 *
 * A meter runs that counts, at the rate, bytes that could have come.  As in a
 * token bucket (bucket.h) the whole state is when it will be full again, which
 * here is what the meter will say then.
 *
 * Owner:    the caller, who embeds a pace, and a struct pace_use for each that
 *           asks; pace_fini() frees what keys need.  Specs are the caller's,
 *           and stay where they are as long as the pace.
 * Threads:  any; a use is one thread's.  pace_init(), pace_set() and
 *           pace_fini(): one.
 * Promise:  what is taken and not given back in any time W is at most burst +
 *           rate * W; if pace_set() came between, of the larger burst, and of
 *           the rate that there was at each time.  Giving back counts as
 *           if it had not been taken, if it comes before the bucket could
 *           have been filled again.
 * Limits:   a burst of PACE_MAX_BURST, and of what comes in PACE_MAX_DEPTH;
 *           takes of PACE_MOST.
 */
#ifndef PENSTOCK_BASE_PACE_H
#define PENSTOCK_BASE_PACE_H

#include <stdatomic.h>

#include "base/defs.h"

enum { PACE_MOST = 2 * 1024 * 1024 };

#define PACE_MAX_DEPTH	(3600 * NSEC_PER_SEC)
#define PACE_MAX_RATE	(UINT64_C(1) << 40)
#define PACE_MAX_BURST	(UINT64_C(1) << 37)

struct keybuckets;

struct pace_spec {
	uint64_t	rate;		/* bytes a second; 0: any */
	uint64_t	burst;		/* bytes */
	uint64_t	quantum;	/* bytes */
	bool		dry;		/* any, but what passes is charged */
	nsec_t		since;		/* the meter runs: pace_set()'s */
	uint64_t	from;		/* what it said then */
};

struct pace {
	_Alignas(CACHE_LINE) _Atomic uint64_t full_at;	/* without keys */
	_Atomic uint64_t	 passed;
	_Atomic uint32_t	 waiting;	/* without keys */
	_Atomic uint64_t	 waited;	/* uses, each once */
	_Atomic uint64_t	 would_wait;	/* the same, in dry run */
	_Alignas(CACHE_LINE) _Atomic(const struct pace_spec *) spec;
	struct keybuckets	*table;		/* with keys */
};

/* What one who reads has to do with one pace. */
struct pace_use {
	struct pace	*pace;
	void		*owner;		/* the caller's, untouched */
	uint64_t	 key;
	nsec_t		 due;		/* its turn, if it waits or did */
	uint32_t	 number;	/* while it waits: keybucket.h's */
	bool		 waits;
	bool		 waited;	/* and it was counted */
	bool		 turn;		/* has come */
	bool		 would;		/* wait; in dry run */
	bool		 free;		/* what it took last cost nothing */
};

/*
 * 1 <= rate <= PACE_MAX_RATE.  A burst should take 20 ms to come, or some of
 * the rate is lost to timers; one that is larger than the limits is cut to
 * them.
 */
void pace_spec_init(struct pace_spec *s, uint64_t rate, uint64_t burst);

/* A pace that lets everything pass, and is full; without keys. */
void pace_init(struct pace *p);
void pace_fini(struct pace *p);

/* By key from now on, before anybody uses it; does nothing if it is already. */
void pace_make_table(struct pace *p, uint64_t rows);

/* Bytes that its table takes. */
size_t pace_memory(uint64_t rows);

/*
 * Other numbers, from now on: *spec, which begins here.  As much may be taken
 * at once as before, if that is no more than the new burst; and nobody waits
 * for more to come than by the new rate, whatever the old one was.
 */
void pace_set(struct pace *p, struct pace_spec *spec, nsec_t now);

/* Bytes that have passed, by any key. */
uint64_t pace_passed(const struct pace *p);

/* Uses that have had to wait, at least once. */
uint64_t pace_waited(const struct pace *p);

/* Uses that would have had to wait, had it not been in dry run. */
uint64_t pace_would_wait(const struct pace *p);

/* *u is for `key`, which counts with a table only; not waiting, nobody's. */
void pace_use_init(struct pace_use *u, struct pace *p, uint64_t key);

/* Would anything be let through?  Takes nothing. */
bool pace_is_open(const struct pace_use *u, nsec_t now);

/* Take up to `want` bytes, at least 1; how many.  0: wait. */
uint64_t pace_take(struct pace_use *u, uint64_t want, nsec_t now) MUST_USE;

/* Undo a part of a taking, of n bytes. */
void pace_give_back(struct pace_use *u, uint64_t n);

/* Count n bytes that were taken, and have passed. */
void pace_count(struct pace_use *u, uint64_t n, nsec_t now);

/*
 * Take n bytes that have come already, for a caller who holds them until they
 * may pass: the time until then.  If that is more than max_wait nothing was
 * taken; which is PACE_MAX_DEPTH at most.
 */
nsec_t pace_charge(struct pace_use *u, uint64_t n, nsec_t max_wait, nsec_t now)
    MUST_USE;

/*
 * Wait, from now on until pace_wait_end(); when to do that, after now.  Whoever
 * has nothing to take then waits on, in the same place.
 */
nsec_t pace_wait_begin(struct pace_use *u, nsec_t now) MUST_USE;

/* Its time may have come.  Does nothing if it doesn't wait. */
void pace_wait_end(struct pace_use *u, nsec_t now);

#endif
