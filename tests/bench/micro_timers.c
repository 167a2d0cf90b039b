/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * micro_timers.c - re-arming: the wheel, libev's heap, and a plain one.
 *
 * Timers are embedded in owners of 256 bytes, as in a session, and are
 * re-armed in a random order, as clients ask.  So each owner is a cache miss
 * as soon as there are many, which is the greater part of the cost: the row
 * that only writes a word of each says how great a part on this machine.
 */
#include "bench/micro.h"

#include <ev.h>

#include "base/defs.h"
#include "base/wheel.h"
#include "bench/bench.h"

enum { OWNER_BYTES = 256, REARMINGS = 500000 };

#define SPAN	(60 * NSEC_PER_SEC)

struct heap_timer {
	uint64_t	 due;
	uint64_t	 at;		/* its place in the heap */
};

/* One kind at a time, in the middle of what its owner has besides. */
struct owner {
	uint64_t	 before[8];
	union {
		struct wheel_timer	wheel;
		struct heap_timer	heap;
		ev_timer		ev;
		uint64_t		whole[24];
	} timer;
};

_Static_assert(sizeof(struct owner) == OWNER_BYTES, "as a session");

struct field {
	struct owner		*owners;
	uint32_t		*order;
	uint64_t		 count;
	uint64_t		 next;		/* of the order */
	nsec_t			 due;
	struct wheels		*wheels;
	struct ev_loop		*loop;
	struct heap_timer	**heap;
};

static struct owner *
next_owner(struct field *f)
{
	struct owner *o = &f->owners[f->order[f->next]];

	if (++f->next == f->count)
		f->next = 0;
	return o;
}

/* --- the wheel --------------------------------------------------------- */

static void
on_due(struct wheel_timer *t)
{
	(void)t;
}

/* Later than before, as with each request of a client. */
static void
arm_later(void *arg, uint64_t n)
{
	struct field *f = arg;

	while (n-- > 0)
		wheel_arm(f->wheels, &next_owner(f)->timer.wheel, f->due++);
}

/* What whoever embeds a timer pays at least. */
static void
write_word(void *arg, uint64_t n)
{
	struct field *f = arg;

	while (n-- > 0)
		next_owner(f)->timer.wheel.due = f->due++;
}

/*
 * Sooner than it would be looked at, so it must be moved.  Of a thousand,
 * each is moved 5,000 times: that is less than SPAN.
 */
static void
arm_sooner(void *arg, uint64_t n)
{
	struct field *f = arg;

	while (n-- > 0) {
		if (f->next == 0)
			f->due -= WHEEL_FINE_WIDTH;
		wheel_arm(f->wheels, &next_owner(f)->timer.wheel, f->due);
	}
}

static void
wheel_setup(struct field *f)
{
	f->wheels = wheels_new(0);
	f->due = SPAN;
	for (uint64_t i = 0; i < f->count; i++)
		wheel_timer_init(&f->owners[i].timer.wheel, on_due);
	arm_later(f, f->count);
}

static void
wheel_teardown(struct field *f)
{
	for (uint64_t i = 0; i < f->count; i++)
		wheel_cancel(f->wheels, &f->owners[i].timer.wheel);
	wheels_free(&f->wheels);
}

/* --- libev ------------------------------------------------------------- */

static void
on_ev_timer(EV_P_ ev_timer *t, int events)
{
	(void)loop;
	(void)t;
	(void)events;
}

static void
ev_later(void *arg, uint64_t n)
{
	struct field *f = arg;

	while (n-- > 0) {
		ev_timer *t = &next_owner(f)->timer.ev;

		t->repeat = (double)f->due++ / 1e9;
		ev_timer_again(f->loop, t);
	}
}

static void
ev_setup(struct field *f)
{
	f->loop = ev_loop_new(EVFLAG_AUTO);
	if (f->loop == NULL)
		die("ev_loop_new");
	f->due = SPAN;
	for (uint64_t i = 0; i < f->count; i++)
		ev_timer_init(&f->owners[i].timer.ev, on_ev_timer, 0, 60);
	ev_later(f, f->count);
}

static void
ev_teardown(struct field *f)
{
	for (uint64_t i = 0; i < f->count; i++)
		ev_timer_stop(f->loop, &f->owners[i].timer.ev);
	ev_loop_destroy(f->loop);
}

/* --- a binary heap ----------------------------------------------------- */

static void
heap_put(struct field *f, uint64_t at, struct heap_timer *t)
{
	f->heap[at] = t;
	t->at = at;
}

static void
heap_sink(struct field *f, struct heap_timer *t)
{
	uint64_t at = t->at;

	for (;;) {
		uint64_t child = 2 * at + 1;

		if (child >= f->count)
			break;
		if (child + 1 < f->count &&
		    f->heap[child + 1]->due < f->heap[child]->due)
			child++;
		if (f->heap[child]->due >= t->due)
			break;
		heap_put(f, at, f->heap[child]);
		at = child;
	}
	heap_put(f, at, t);
}

static void
heap_later(void *arg, uint64_t n)
{
	struct field *f = arg;

	while (n-- > 0) {
		struct heap_timer *t = &next_owner(f)->timer.heap;

		t->due = f->due++;
		heap_sink(f, t);
	}
}

/* What is in order of its time is a heap. */
static void
heap_setup(struct field *f)
{
	f->heap = xcalloc(f->count, sizeof *f->heap);
	f->due = SPAN;
	for (uint64_t i = 0; i < f->count; i++) {
		struct heap_timer *t = &next_owner(f)->timer.heap;

		t->due = f->due++;
		heap_put(f, i, t);
	}
}

static void
heap_teardown(struct field *f)
{
	free(f->heap);
}

/* --- all of them ------------------------------------------------------- */

static void
shuffle(uint32_t *order, uint64_t n)
{
	uint64_t random = 1;

	for (uint64_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	for (uint64_t i = n - 1; i > 0; i--) {
		uint64_t j = next_random(&random) % (i + 1);
		uint32_t was = order[i];

		order[i] = order[j];
		order[j] = was;
	}
}

/* What an arming to a later time may cost; to a sooner one has no aim. */
static double
most(uint64_t timers)
{
	if (timers <= 10000)
		return 3;
	return timers <= 100000 ? 10 : 20;
}

static void
print(const char *what, uint64_t timers, double nsec, double at_most)
{
	char text[96];

	snprintf(text, sizeof text, "%s, %ju armed", what, (uintmax_t)timers);
	micro_row(text, nsec, at_most);
}

void
micro_timers(uint64_t timers)
{
	struct field f = { .count = timers };

	f.owners = xcalloc(timers, sizeof *f.owners);
	f.order = xcalloc(timers, sizeof *f.order);
	shuffle(f.order, timers);

	print("timer's due written, no more", timers,
	    micro_time(write_word, &f, REARMINGS), 0);
	wheel_setup(&f);
	/* At first it is due before its bucket comes up; then not. */
	f.due = SPAN + 1;
	print("timer re-armed within its bucket: wheel", timers,
	    micro_time(arm_later, &f, REARMINGS), 0);
	f.due = SPAN + NSEC_PER_SEC;
	print("timer re-armed later: wheel", timers,
	    micro_time(arm_later, &f, REARMINGS), most(timers));
	f.due = SPAN;
	print("timer re-armed sooner: wheel", timers,
	    micro_time(arm_sooner, &f, REARMINGS), 0);
	wheel_teardown(&f);

	memset(f.owners, 0, timers * sizeof *f.owners);
	ev_setup(&f);
	print("timer re-armed later: ev_timer_again", timers,
	    micro_time(ev_later, &f, REARMINGS), 0);
	ev_teardown(&f);

	memset(f.owners, 0, timers * sizeof *f.owners);
	heap_setup(&f);
	print("timer re-armed later: binary heap", timers,
	    micro_time(heap_later, &f, REARMINGS), 0);
	heap_teardown(&f);

	free(f.owners);
	free(f.order);
}
