/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wheel.c - timer wheels; see wheel.h.
 *
 * A wheel counts time in ticks of its width.  Bucket (tick mod size) holds
 * the timers to be looked at when now >= tick * width, and `tick` is the
 * first that has not come yet, so every timer's is in [tick, tick + size):
 * a bucket never holds two ticks at once.
 *
 * wheels_advance() first moves all that has come onto the list `ready`, and
 * then looks at that, as far as it may.  So the wheels are always in order
 * when a timer's function runs, what is left over needs no cursor, and after
 * a stall of whatever length each bucket is visited once.  A timer on `ready`
 * is linked like any other: cancelling it there works.
 *
 * A timer's tick is its time rounded up, so it is due when it is looked at,
 * unless it was moved or is beyond the span of the wheel; then it is put on.
 */
#include "base/wheel.h"

#include <assert.h>
#include <stdlib.h>

enum {
	FINE = 0,
	COARSE = FINE + WHEEL_FINE_BUCKETS,
	READY = COARSE + WHEEL_COARSE_BUCKETS,
	HEADS,
	BITS = 64,			/* in a word */
};

static_assert(WHEEL_FINE_BUCKETS % BITS == 0 &&
    (WHEEL_FINE_BUCKETS & (WHEEL_FINE_BUCKETS - 1)) == 0, "whole words");
static_assert(WHEEL_COARSE_BUCKETS % BITS == 0 &&
    (WHEEL_COARSE_BUCKETS & (WHEEL_COARSE_BUCKETS - 1)) == 0, "whole words");

struct wheel {
	nsec_t		 width;
	uint64_t	 tick;		/* the first that has not come */
	unsigned	 first;		/* its first bucket among `heads` */
	unsigned	 size;		/* buckets, a power of two */
};

struct wheels {
	struct wheel	 fine;
	struct wheel	 coarse;
	nsec_t		 now;
	size_t		 count;
	wheel_mark_fn	*mark;
	void		*mark_arg;
	uint64_t	 used[HEADS / BITS + 1]; /* buckets not empty */
	struct list	 heads[HEADS];
};

struct wheels *
wheels_new(nsec_t now)
{
	struct wheels *w = xcalloc(1, sizeof *w);

	w->fine = (struct wheel){
		.width = WHEEL_FINE_WIDTH,
		.tick = now / WHEEL_FINE_WIDTH + 1,
		.first = FINE,
		.size = WHEEL_FINE_BUCKETS,
	};
	w->coarse = (struct wheel){
		.width = WHEEL_COARSE_WIDTH,
		.tick = now / WHEEL_COARSE_WIDTH + 1,
		.first = COARSE,
		.size = WHEEL_COARSE_BUCKETS,
	};
	w->now = now;
	for (size_t i = 0; i < HEADS; i++)
		list_init(&w->heads[i]);
	return w;
}

size_t
wheels_memory(void)
{
	return sizeof(struct wheels);
}

void
wheels_free(struct wheels **w)
{
	if (*w == NULL)
		return;
	for (size_t i = 0; i < HEADS; i++)
		while (list_pop_first(&(*w)->heads[i]) != NULL)
			;
	free(*w);
	*w = NULL;
}

/* --- linking --- */

static void
put_into(struct wheels *w, unsigned bucket, struct wheel_timer *t)
{
	list_add_last(&w->heads[bucket], &t->link);
	w->used[bucket / BITS] |= UINT64_C(1) << bucket % BITS;
	w->count++;
}

static void
unlink_timer(struct wheels *w, struct wheel_timer *t)
{
	struct list *head = t->link.next;
	bool alone = head == t->link.prev;

	list_remove(&t->link);
	w->count--;
	if (alone) {
		size_t bucket = (size_t)(head - w->heads);

		w->used[bucket / BITS] &= ~(UINT64_C(1) << bucket % BITS);
	}
}

/* Rounded up, but not into what has come already. */
static uint64_t
tick_of(nsec_t due, nsec_t width, uint64_t first)
{
	uint64_t tick = due / width + (due % width != 0);

	return MAX(tick, first);
}

/* The bucket for t->due, as seen from the last `now`; and when it comes up. */
static unsigned
bucket_of(const struct wheels *w, const struct wheel_timer *t, nsec_t *look)
{
	uint64_t last = w->fine.tick + WHEEL_FINE_BUCKETS - 1;
	uint64_t tick;

	if (t->due <= last * WHEEL_FINE_WIDTH) {
		tick = tick_of(t->due, WHEEL_FINE_WIDTH, w->fine.tick);
		*look = tick * WHEEL_FINE_WIDTH;
		return FINE + tick % WHEEL_FINE_BUCKETS;
	}
	tick = tick_of(t->due, WHEEL_COARSE_WIDTH, w->coarse.tick);
	tick = MIN(tick, w->coarse.tick + WHEEL_COARSE_BUCKETS - 1);
	*look = tick * WHEEL_COARSE_WIDTH;
	return COARSE + tick % WHEEL_COARSE_BUCKETS;
}

void
wheel_link(struct wheels *w, struct wheel_timer *t)
{
	bool linked = !list_is_empty(&t->link);
	unsigned bucket;
	nsec_t look;

	if (t->due == NSEC_NEVER) {
		if (linked)
			unlink_timer(w, t);
		return;
	}
	bucket = bucket_of(w, t, &look);
	/* It stays where it is looked at no later than it would be. */
	if (linked && t->look == look)
		return;
	if (linked)
		unlink_timer(w, t);
	t->look = look;
	put_into(w, bucket, t);
}

void
wheel_cancel(struct wheels *w, struct wheel_timer *t)
{
	t->due = NSEC_NEVER;
	if (!list_is_empty(&t->link))
		unlink_timer(w, t);
}

/* --- the passing of time --- */

/* The first tick whose bucket is not empty, or UINT64_MAX. */
static HOT uint64_t
next_tick(const struct wheels *w, const struct wheel *h)
{
	const uint64_t *used = w->used + h->first / BITS;
	unsigned words = h->size / BITS;
	unsigned at = h->tick & (h->size - 1);
	uint64_t before = (UINT64_C(1) << at % BITS) - 1;

	/* Once around: the word of `at` comes first with the bits from it on,
	 * and last with those before it. */
	for (unsigned i = 0; i <= words; i++) {
		unsigned word = (at / BITS + i) & (words - 1);
		uint64_t bits = used[word];

		if (i == 0)
			bits &= ~before;
		if (i == words)
			bits &= before;
		if (bits != 0) {
			unsigned bucket = word * BITS +
			    (unsigned)__builtin_ctzll(bits);

			return h->tick + ((bucket - at) & (h->size - 1));
		}
	}
	return UINT64_MAX;
}

nsec_t
wheels_next(const struct wheels *w)
{
	uint64_t fine, coarse;
	nsec_t next = NSEC_NEVER;

	if (!list_is_empty(&w->heads[READY]))
		return 0;
	if (w->count == 0)
		return NSEC_NEVER;
	fine = next_tick(w, &w->fine);
	if (fine != UINT64_MAX)
		next = fine * WHEEL_FINE_WIDTH;
	coarse = next_tick(w, &w->coarse);
	if (coarse != UINT64_MAX)
		next = MIN(next, coarse * WHEEL_COARSE_WIDTH);
	return next;
}

/* Move the members of `from`, which has some, to the end of `to`. */
static void
append_all(struct list *to, struct list *from)
{
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

/* Move what has come by `now` to READY. */
static HOT void
collect(struct wheels *w, struct wheel *h, nsec_t now)
{
	/* The usual case, every turn of the loop: no division. */
	if (now < h->tick * h->width)
		return;

	uint64_t end = now / h->width + 1;
	uint64_t tick;

	while ((tick = next_tick(w, h)) < end) {
		unsigned bucket = h->first + (tick & (h->size - 1));

		append_all(&w->heads[READY], &w->heads[bucket]);
		w->used[bucket / BITS] &= ~(UINT64_C(1) << bucket % BITS);
		h->tick = tick + 1;
	}
	h->tick = end;
}

unsigned
wheels_advance(struct wheels *w, nsec_t now)
{
	struct list *ready = &w->heads[READY];
	unsigned fires = 0;

	ASSERT(now >= w->now);
	w->now = now;
	collect(w, &w->fine, now);
	collect(w, &w->coarse, now);

	for (unsigned looks = 0; looks < WHEEL_MAX_LOOKS &&
	    fires < WHEEL_MAX_FIRES && !list_is_empty(ready); looks++) {
		struct wheel_timer *t = container_of(ready->next,
		    struct wheel_timer, link);

		if (t->due > now) {
			wheel_link(w, t);
			continue;
		}
		unlink_timer(w, t);
		t->due = NSEC_NEVER;
		fires++;
		if (w->mark != NULL)
			w->mark(w->mark_arg, t->kind->name);
		t->kind->fn(t);
	}
	return fires;
}

void
wheels_on_fire(struct wheels *w, wheel_mark_fn *fn, void *arg)
{
	w->mark = fn;
	w->mark_arg = arg;
}

size_t
wheels_count(const struct wheels *w)
{
	return w->count;
}

/* --- for tests --- */

static void
validate_timer(const struct wheels *w, unsigned bucket,
    const struct wheel_timer *t)
{
	const struct wheel *h = bucket < COARSE ? &w->fine : &w->coarse;

	ASSERT(t->link.next->prev == &t->link);
	ASSERT(t->link.prev->next == &t->link);
	ASSERT(t->kind->fn != NULL);
	if (bucket == READY) {
		ASSERT(t->look <= w->now);
		return;
	}

	uint64_t tick = t->look / h->width;
	ASSERT(t->look == tick * h->width);
	ASSERT(tick >= h->tick && tick - h->tick < h->size);
	ASSERT(h->first + tick % h->size == bucket);
}

void
wheels_validate(const struct wheels *w)
{
	size_t count = 0;

	ASSERT(w->fine.tick == w->now / w->fine.width + 1);
	ASSERT(w->coarse.tick == w->now / w->coarse.width + 1);
	for (unsigned i = 0; i < HEADS; i++) {
		bool used = w->used[i / BITS] >> i % BITS & 1;

		if (i != READY)
			ASSERT(used == !list_is_empty(&w->heads[i]));
		LIST_FOR_EACH(l, &w->heads[i]) {
			validate_timer(w, i, container_of(l,
			    struct wheel_timer, link));
			count++;
		}
	}
	ASSERT(count == w->count);
}
