/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keygate.h - gates by key: for each key a semaphore with a timed queue.
 *
 * Who is in and who waits is counted in a keytable; whoever waits is on a
 * list of its worker.  Where permits are few and keys are many, nothing but
 * the key's row is shared:
 *
 *	           row of the key [ in use | waiting ]
 *	             |                        |
 *	 worker 0: waiters of the row     worker 1: waiters of the row
 *
 * Releasing tells a worker that has waiters of the row to look at it: the own
 * one, and in turn all others, so that each gets its share.  Whoever looks
 * moves waiters from waiting to in use while there is room.
 *
 * Owner:    keygate_new() gives a handle; keygate_free() when nobody holds or
 *           waits, and no mail is under way: keygate_is_idle().
 * Threads:  every worker, each with its own number below `workers`;
 *           keygate_set() one at a time.
 * Promise:  as in gate.h, for each key; but waiters of one key are served in
 *           order of arrival only within a worker, always the first first,
 *           and there is no prediction.  In dry run, as there.
 * Limits:   KEYTABLE_MAX_COUNT permits and waiters for a key.
 */
#ifndef PENSTOCK_BASE_KEYGATE_H
#define PENSTOCK_BASE_KEYGATE_H

#include "base/gate.h"
#include "base/list.h"

struct keygate;

/* Row of one who was let in without being counted: see keygate_take(). */
#define KEYGATE_NO_ROW	UINT32_MAX

struct keygate_waiter {
	struct gate_waiter	 gate;
	uint32_t		 row;
	uint32_t		 count;	/* leader: waiters of the row here */
	struct list		 row_waiters; /* leader: they; itself first */
	struct list		 leaders; /* leader: in its worker's table */
};

/* A table with `rows` rows; what the spec says goes for each key. */
struct keygate *keygate_new(const struct gate_spec *spec, uint64_t rows,
    unsigned workers, gate_wake_fn *wake, void *arg);
void keygate_free(struct keygate **g);

/* Bytes that such a gate takes. */
size_t keygate_memory(uint64_t rows, unsigned workers);

bool keygate_is_idle(const struct keygate *g);

static inline void
keygate_waiter_init(struct keygate_waiter *w, gate_fn *fn)
{
	gate_waiter_init(&w->gate, fn);
	w->row = KEYGATE_NO_ROW;
	w->count = 0;
	list_init(&w->row_waiters);
	list_init(&w->leaders);
}

/* Who asks, and when. */
struct keygate_call {
	uint64_t	key;
	unsigned	worker;
	nsec_t		now;
};

/*
 * Take a permit for the key, or queue *w, or say in *why why not; w->row is
 * where it is counted.  FAIL_KEYS_FULL: the table has no row for the key.
 */
enum gate_result keygate_take(struct keygate *g,
    const struct keygate_call *call, struct keygate_waiter *w,
    enum failure *why) MUST_USE;

bool keygate_is_dry(const struct keygate *g);

/*
 * Of one whom keygate_take() refused in dry run: as gate_take_dry(), in *row.
 */
bool keygate_take_dry(struct keygate *g, const struct keygate_call *call,
    uint32_t *row) MUST_USE;

/* Give back a permit of w->row. */
void keygate_release(struct keygate *g, unsigned worker, uint32_t row,
    nsec_t now);

/* Leave the queue; does nothing if *w waits no more. */
void keygate_leave(struct keygate *g, unsigned worker,
    struct keygate_waiter *w, nsec_t now);

/* Change what the gate allows; as gate_set(). */
void keygate_set(struct keygate *g, const struct gate_spec *spec,
    nsec_t now);

/* Sums over all keys; limit is a key's.  No estimate. */
void keygate_look(const struct keygate *g, struct gate_state *out);

/*
 * As gate_peak(), of all keys together; but each worker's most is added up,
 * which may have been at different times: it was no more than that.
 */
uint64_t keygate_peak(struct keygate *g, nsec_t now);

/* In use, as the rows have it; looks at each. */
uint64_t keygate_count(const struct keygate *g);

/*
 * Assert that nobody was forgotten, with in_use permits held; only while
 * nobody else uses the gate and no mail is under way.
 */
void keygate_validate(const struct keygate *g, uint64_t in_use);

#endif
