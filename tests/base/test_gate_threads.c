/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gate_threads.c - src/base/gate.c under many threads.
 *
 * Each thread is a worker with a few guests who come, stay and go at random.
 * When all its guests wait, it sleeps until there is mail.  So a lost wake-up
 * stops the test, and Check's timeout reports it.
 *
 * A gate of one permit, that nobody leaves, has an order that holds whatever
 * the threads do: while somebody waits, whoever is let in has come no more than
 * GATE_OWN_FIRST later.  So no worker's guests wait for longer than that more.
 */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "base/crew.h"
#include "base/gate.h"
#include "harness.h"

enum { GUESTS = 6, TURNS = 1000000 };

enum place { OUTSIDE, WAITING, INSIDE };

struct guest {
	struct gate_waiter	 w;
	struct worker		*worker;
	enum place		 place;
	nsec_t			 came;
	nsec_t			 seen;		/* waits, and all can know */
};

struct worker {
	pthread_t		 thread;
	unsigned		 number;
	uint64_t		 seed;
	uint64_t		 entered;
	nsec_t			 now;
	_Atomic nsec_t		 longest;	/* least `seen` of its guests */
	struct guest		 guests[GUESTS];
};

static const struct setup {
	unsigned	threads;
	uint64_t	limit;
	uint64_t	queue;
	bool		leaves;		/* guests give up at times */
	bool		changes;	/* the limit does */
	bool		adaptive;
	bool		by_key;		/* and in two classes */
} setups[] = {
	{ 2, 1,   1000, false, false, false, false },
	{ 8, 1,   1000, false, false, false, false },
	{ 2, 3,   1000, true,  false, false, false },
	{ 4, 1,   1000, true,  false, false, false },
	{ 4, 5,   8,    true,  true,  false, false },
	{ 8, 1,   1000, false, false, true,  false },
	{ 8, 7,   1000, true,  true,  true,  false },
	{ 8, 100, 1000, true,  true,  false, false },
	{ 8, 2,   0,    false, true,  false, false },
	{ 2, 1,   1000, false, false, false, true },
	{ 4, 2,   6,    true,  false, false, true },
	{ 8, 7,   1000, true,  true,  true,  true },
	{ 8, 3,   9,    true,  true,  false, true },
};

static const struct setup *setup;
static struct gate *g;
static struct worker workers[CREW];
static atomic_uint running;

/* The time of all, so that they agree on who was first. */
static _Atomic nsec_t shared_clock;

static bool
has_order(void)
{
	return setup->limit == 1 && !setup->leaves && !setup->changes &&
	    !setup->adaptive && !setup->by_key;
}

/* So long a step that a few of them make GATE_OWN_FIRST, if that matters. */
static nsec_t
time_goes_on(void)
{
	nsec_t step = has_order() ? GATE_OWN_FIRST / 4 : 10000;

	return atomic_fetch_add(&shared_clock, step) + step;
}

static void
note_longest(struct worker *k)
{
	nsec_t longest = NSEC_NEVER;

	for (int i = 0; i < GUESTS; i++)
		if (k->guests[i].place == WAITING)
			longest = MIN(longest, k->guests[i].seen);
	atomic_store(&k->longest, longest);
}

static void
is_in_order(const struct guest *v)
{
	for (unsigned i = 0; has_order() && i < setup->threads; i++) {
		nsec_t longest = atomic_load(&workers[i].longest);

		CREW_ASSERT(v->came <= longest ||
		    v->came - longest <= GATE_OWN_FIRST);
	}
}

/*
 * Counted after a permit is got, and before it is given back; so never more
 * than the limit, as long as that stays.
 */
static _Atomic int64_t inside;

static void
enter(struct guest *v)
{
	int64_t n = atomic_fetch_add(&inside, 1) + 1;

	if (!setup->changes)
		CREW_ASSERT(n <= (int64_t)setup->limit);
	v->place = INSIDE;
	v->worker->entered++;
	note_longest(v->worker);
	is_in_order(v);
}

static void
on_served(struct gate_waiter *w, enum failure why)
{
	struct guest *v = container_of(w, struct guest, w);

	CREW_ASSERT(v->place == WAITING);
	v->place = OUTSIDE;
	if (why == FAIL_NONE)
		enter(v);
}

static void
come(struct guest *v)
{
	struct worker *k = v->worker;
	enum failure why;

	if (setup->by_key) {
		v->w.key = UINT64_C(0x9e3779b97f4a7c15) *
		    (1 + crew_random(&k->seed, 5));
		v->w.class = (uint8_t)crew_random(&k->seed, GATE_CLASSES);
	}
	v->came = k->now;
	switch (gate_take(g, k->number, &v->w, k->now, &why)) {
	case GATE_TAKEN:
		enter(v);
		break;
	case GATE_WAITS:
		v->place = WAITING;
		v->seen = atomic_load(&shared_clock);
		note_longest(k);
		break;
	case GATE_REFUSED:
		CREW_ASSERT(why == FAIL_QUEUE_FULL || why == FAIL_QUEUE_LATE);
		if (gate_is_dry(g) && gate_take_dry(g))
			enter(v);
		break;
	}
}

static void
go(struct guest *v)
{
	atomic_fetch_sub(&inside, 1);
	v->place = OUTSIDE;
	gate_release(g, v->worker->number, v->worker->now);
}

static void
step(struct worker *k, struct guest *v)
{
	switch (v->place) {
	case OUTSIDE:
		come(v);
		break;
	case WAITING:
		if (setup->leaves && crew_random(&k->seed, 64) == 0) {
			gate_leave(g, k->number, &v->w, k->now);
			v->place = OUTSIDE;
		}
		break;
	case INSIDE:
		go(v);
		break;
	}
}

static unsigned
count(const struct worker *k, enum place place)
{
	unsigned n = 0;

	for (int i = 0; i < GUESTS; i++)
		n += k->guests[i].place == place;
	return n;
}

static void
sleep_for_mail(struct worker *k)
{
	crew_wait(k->number);
	crew_read(k->number);
}

/* Let in all who wait; nobody gives up. */
static void
finish(struct worker *k)
{
	for (;;) {
		for (int i = 0; i < GUESTS; i++)
			if (k->guests[i].place == INSIDE)
				go(&k->guests[i]);
		if (count(k, WAITING) == 0)
			return;
		sleep_for_mail(k);
	}
}

static void *
work(void *arg)
{
	struct worker *k = arg;

	for (unsigned i = 0; i < TURNS / setup->threads; i++) {
		k->now = time_goes_on();
		step(k, &k->guests[crew_random(&k->seed, GUESTS)]);
		crew_read(k->number);
		while (count(k, WAITING) == GUESTS)
			sleep_for_mail(k);
	}
	finish(k);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/*
 * Once a debt is paid, at most `limit` are inside, and those who got in
 * before but have not counted it yet, one a thread.
 */
static void
watch_the_limit(uint64_t limit)
{
	if (limit == 0)
		return;
	while (atomic_load(&running) != 0 &&
	    atomic_load(&inside) > (int64_t)limit)
		sched_yield();
	for (int i = 0; i < 100; i++)
		CREW_ASSERT(atomic_load(&inside) <=
		    (int64_t)(limit + setup->threads));
}

/* Worker 0 has no guests and changes the limit. */
static void *
change(void *arg)
{
	struct worker *k = arg;
	struct gate_spec spec = {
		.queue = setup->queue, .queue_timeout = NSEC_PER_SEC,
		.adaptive = setup->adaptive, .queue_target = NSEC_PER_MSEC,
		.by_key = setup->by_key,
	};

	while (atomic_load(&running) != 0) {
		k->now = time_goes_on();
		spec.limit = crew_random(&k->seed, 16) == 0 ? 0 :
		    1 + crew_random(&k->seed, (unsigned)setup->limit * 2);
		spec.dry = crew_random(&k->seed, 8) == 0;
		gate_set(g, &spec, 0, k->now);
		watch_the_limit(spec.dry ? 0 : spec.limit);
		for (unsigned i = crew_random(&k->seed, 50); i > 0; i--)
			sched_yield();
	}
	return NULL;
}

static void
prepare(unsigned number)
{
	struct worker *k = &workers[number];

	*k = (struct worker){
		.number = number,
		.seed = UINT64_C(0x9e3779b97f4a7c15) * (number + 1),
		.now = NSEC_PER_SEC,
		.longest = NSEC_NEVER,
	};
	for (int i = 0; i < GUESTS; i++) {
		k->guests[i].worker = k;
		gate_waiter_init(&k->guests[i].w, on_served);
	}
}

static void
start(struct worker *k, void *(*fn)(void *))
{
	ck_assert_int_eq(pthread_create(&k->thread, NULL, fn, k), 0);
}

START_TEST(threads_keep_the_promise)
{
	setup = &setups[_i];
	crew_setup();
	g = gate_new(&(struct gate_spec){
		.limit = setup->limit, .queue = setup->queue,
		.queue_timeout = NSEC_PER_SEC, .adaptive = setup->adaptive,
		.queue_target = NSEC_PER_MSEC, .by_key = setup->by_key,
	}, setup->threads, crew_wake, NULL);
	atomic_store(&running, setup->threads - setup->changes);
	atomic_store(&shared_clock, NSEC_PER_SEC);
	for (unsigned i = 0; i < setup->threads; i++)
		prepare(i);
	for (unsigned i = 0; i < setup->threads; i++)
		start(&workers[i], i == 0 && setup->changes ? change : work);
	for (unsigned i = 0; i < setup->threads; i++)
		pthread_join(workers[i].thread, NULL);
	crew_settle();
	ck_assert_int_eq(atomic_load(&inside), 0);
	gate_validate(g, 0);
	ck_assert(gate_is_idle(g));
	/* Who finds a short queue full each time has bad luck. */
	for (unsigned i = setup->changes; i < setup->threads; i++)
		ck_assert(workers[i].entered > 0 || setup->queue < 1000);
	gate_free(&g);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gate threads");
	TCase *t = tcase_create("gate threads");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, threads_keep_the_promise, 0,
	    (int)ARRAY_LEN(setups));
	suite_add_tcase(s, t);
	return run_suite(s);
}
