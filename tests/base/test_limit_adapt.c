/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limit_adapt.c - src/base/limit_adapt.c: limits that find their number.
 */
#include <check.h>
#include <pthread.h>

#include "base/crew.h"
#include "base/limit.h"
#include "harness.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

enum { PASSES = 8 };

static struct limits *registry;
static struct limit *l;
static struct limit_spec spec;
static struct limit_pass passes[PASSES];
static int served;
static nsec_t now;

static void
on_served(struct gate_waiter *w, enum failure how)
{
	(void)w;
	ck_assert_int_eq(how, FAIL_NONE);
	served++;
}

static void
get_limit(void)
{
	limit_unref(registry, &l);
	l = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0, now);
	for (int i = 0; i < PASSES; i++)
		limit_pass_init(&passes[i], l, 0, on_served);
}

static void
adaptive(void)
{
	crew_setup();
	now = 1000 * SEC;
	registry = limits_new(CREW, crew_wake, NULL);
	spec = (struct limit_spec){
		.name = "some",
		.gate = { .queue_timeout = 100 * SEC, .queue = PASSES },
		.adapt = { 1, 100 },
	};
	get_limit();
}

static void
clean_up(void)
{
	for (int i = 0; i < PASSES; i++)
		limit_leave(&passes[i], 0, now, FAIL_NONE);
	crew_settle();
	limit_unref(registry, &l);
	limits_free(&registry);
}

static enum gate_result
enter(int i)
{
	enum failure why;

	return limit_enter(&passes[i], 0, now, &why);
}

static void
on_look(void *arg, const struct limit_state *s)
{
	*(struct limit_state *)arg = *s;
}

static struct limit_state
look(void)
{
	struct limit_state s = { .name = NULL };

	limits_look(registry, now, on_look, &s);
	ck_assert_str_eq(s.name, "some");
	return s;
}

/*
 * So many are inside at once, or as many as may be, for so long, again and
 * again for a second; and all but `good` of them fail there.
 */
static void
be_inside_or_fail(int most, int good, nsec_t time)
{
	for (nsec_t end = now + SEC; now < end;) {
		int count = (int)MIN(look().gate.limit, (uint64_t)most);

		for (int i = 0; i < count; i++)
			ck_assert_int_eq(enter(i), GATE_TAKEN);
		now += time;
		for (int i = 0; i < count; i++) {
			unsigned worker = (unsigned)i % CREW;

			limit_sample(&passes[i], worker, i < good ?
			    LIMIT_SERVED : LIMIT_TURNED_AWAY, time, now);
			limit_leave(&passes[i], worker, now, FAIL_NONE);
		}
	}
}

static void
be_inside(int count, nsec_t time)
{
	be_inside_or_fail(count, count, time);
}

/* A reload. */
static void
reload(void)
{
	struct limit *again = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0,
	    now);

	ck_assert_ptr_eq(again, l);
	limit_unref(registry, &again);
}

START_TEST(it_begins_low_and_grows_while_nothing_queues)
{
	ck_assert_uint_eq(look().gate.limit, ADAPT_FIRST);
	ck_assert(look().adapts);
	ck_assert_uint_eq(look().base, 0);
	be_inside(ADAPT_FIRST, 10 * MSEC);
	be_inside(ADAPT_FIRST, 10 * MSEC);
	ck_assert_uint_gt(look().gate.limit, ADAPT_FIRST);
	ck_assert_uint_eq(look().base, 10 * MSEC);
	ck_assert_uint_eq(look().gate.in_use, 0);
}
END_TEST

/* They take as long as ever, but no more of them are any good. */
START_TEST(it_does_not_grow_into_what_is_turned_away)
{
	enum { TAKEN = 3 };

	for (int i = 0; i < 30; i++)
		be_inside_or_fail(PASSES, TAKEN, 10 * MSEC);
	ck_assert_uint_ge(look().gate.limit, TAKEN);
	ck_assert_uint_le(look().gate.limit, TAKEN + 2);
	ck_assert_uint_le(look().base, 12 * MSEC);
}
END_TEST

START_TEST(what_only_fails_tells_nothing)
{
	for (int i = 0; i < 30; i++)
		be_inside_or_fail(ADAPT_FIRST, 0, 10 * MSEC);
	ck_assert_uint_eq(look().gate.limit, ADAPT_FIRST);
	ck_assert_uint_eq(look().base, 0);
	be_inside(ADAPT_FIRST, 10 * MSEC);
	ck_assert_uint_eq(look().base, 10 * MSEC);
}
END_TEST

START_TEST(whoever_waits_gets_what_it_grows_by)
{
	for (int i = 0; i < PASSES; i++)
		(void)!enter(i);
	ck_assert_uint_eq(look().gate.waiting, 3);
	for (int i = 0; i < 1000 && look().gate.waiting > 0; i++) {
		now += 10 * MSEC;
		limit_sample(&passes[0], 0, LIMIT_SERVED, 10 * MSEC, now);
		crew_settle();
	}
	ck_assert_int_eq(served, 3);
	ck_assert(passes[7].inside);
}
END_TEST

START_TEST(it_is_not_without_being_told)
{
	spec.adapt = (struct adapt_bounds){ 0, 0 };
	spec.gate.limit = 8;
	get_limit();
	ck_assert_int_eq(enter(0), GATE_TAKEN);
	ck_assert(!passes[0].adapts && !look().adapts);
}
END_TEST

START_TEST(a_reload_keeps_what_was_found)
{
	for (int i = 0; i < 5; i++)
		be_inside(ADAPT_FIRST, 10 * MSEC);
	uint64_t found = look().gate.limit;
	ck_assert_uint_gt(found, ADAPT_FIRST);
	spec.gate.queue = 7;
	reload();
	ck_assert_uint_eq(look().gate.limit, found);

	spec.adapt = (struct adapt_bounds){ 1, 3 };
	reload();
	ck_assert_uint_eq(look().gate.limit, 3);
	spec.adapt = (struct adapt_bounds){ 50, 60 };
	reload();
	ck_assert_uint_eq(look().gate.limit, 50);
	ck_assert_uint_eq(look().base, 10 * MSEC);

	spec.adapt = (struct adapt_bounds){ 0, 0 };
	spec.gate.limit = 4;
	reload();
	ck_assert_uint_eq(look().gate.limit, 4);
	ck_assert(!look().adapts);
	be_inside(4, 10 * MSEC);
	ck_assert_uint_eq(look().gate.limit, 4);

	spec.adapt = (struct adapt_bounds){ 1, 100 };
	spec.gate.limit = 0;
	reload();
	ck_assert_uint_eq(look().gate.limit, 50);
	ck_assert_uint_eq(look().base, 10 * MSEC);
}
END_TEST

START_TEST(a_number_is_where_it_begins)
{
	spec.adapt = (struct adapt_bounds){ 0, 0 };
	spec.gate.limit = 20;
	get_limit();
	spec.gate.limit = 0;
	spec.adapt = (struct adapt_bounds){ 1, 100 };
	reload();
	ck_assert_uint_eq(look().gate.limit, 20);
}
END_TEST

/* --- threads -------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 20000 };

static void *
come_and_go(void *arg)
{
	unsigned worker = (unsigned)(uintptr_t)arg;
	struct limit_pass *p = &passes[worker];
	nsec_t mine = 1000 * SEC;
	enum failure w;

	for (int i = 0; i < ROUNDS; i++) {
		mine += MSEC;
		if (limit_enter(p, worker, mine, &w) == GATE_TAKEN)
			limit_sample(p, worker, i % 8 == 0 ? LIMIT_LOST :
			    LIMIT_SERVED, MSEC, mine);
		limit_leave(p, worker, mine, FAIL_NONE);
		crew_read(worker);
	}
	return NULL;
}

START_TEST(workers_step_and_main_reloads)
{
	static const struct adapt_bounds bounds[] = {
		{ 1, 100 }, { 0, 0 }, { 2, 3 }, { 10, 10 },
	};
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, come_and_go,
		    (void *)(uintptr_t)i);
	for (int i = 0; i < 200; i++) {
		spec.adapt = bounds[i % (int)ARRAY_LEN(bounds)];
		spec.gate.limit = limit_is_adaptive(&spec) ? 0 : 2;
		struct limit *again = limits_get(registry, &spec,
		    LIMIT_AT_ROUTE, CREW - 1, now);
		(void)look();
		limit_unref(registry, &again);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	crew_settle();
	ck_assert_uint_eq(look().gate.in_use, 0);
	ck_assert_uint_eq(look().gate.waiting, 0);
	ck_assert_uint_eq(look().gate.limit, 10);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("limit_adapt");
	TCase *t = tcase_create("adaptive");

	tcase_add_checked_fixture(t, adaptive, clean_up);
	tcase_add_test(t, it_begins_low_and_grows_while_nothing_queues);
	tcase_add_test(t, it_does_not_grow_into_what_is_turned_away);
	tcase_add_test(t, what_only_fails_tells_nothing);
	tcase_add_test(t, whoever_waits_gets_what_it_grows_by);
	tcase_add_test(t, it_is_not_without_being_told);
	tcase_add_test(t, a_reload_keeps_what_was_found);
	tcase_add_test(t, a_number_is_where_it_begins);
	tcase_add_test(t, workers_step_and_main_reloads);
	suite_add_tcase(s, t);
	return run_suite(s);
}
