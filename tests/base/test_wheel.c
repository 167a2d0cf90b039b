/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_wheel.c - src/base/wheel.c
 *
 * The clock is simulated.  The oracle is a plain array: what is armed, and
 * for when.
 */
#include "harness.h"

#include <string.h>

#include "base/wheel.h"
#include "rng.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

/* ck_assert() notes each success in a file: too slow for the innermost. */
#define CHECK(x) \
	do { if (!(x)) ck_abort_msg("not true: " #x); } while (0)

enum { ITEMS = 3000 };

struct item {
	struct wheel_timer	 timer;
	nsec_t			 due;		/* the oracle's; or NEVER */
	nsec_t			 latest;	/* to have fired at */
	size_t			 index;
};

static struct wheels *wheels;
static nsec_t now;
static struct item *items[ITEMS];
static uint64_t rng;
static unsigned fired;

static wheel_fn on_fire;

static void
new_item(size_t i)
{
	items[i] = calloc(1, sizeof *items[i]);
	items[i]->index = i;
	items[i]->due = NSEC_NEVER;
	wheel_timer_init(&items[i]->timer, on_fire);
}

static void
free_item(size_t i)
{
	wheel_cancel(wheels, &items[i]->timer);
	memset(items[i], 0xdb, sizeof *items[i]);
	free(items[i]);
	items[i] = NULL;
}

static void
wheels_at_0_and_many_timers(void)
{
	now = 0;
	fired = 0;
	rng = 1;
	wheels = wheels_new(now);
	for (size_t i = 0; i < ITEMS; i++)
		new_item(i);
}

static void
free_all(void)
{
	for (size_t i = 0; i < ITEMS; i++)
		free_item(i);
	wheels_validate(wheels);
	ck_assert_uint_eq(wheels_count(wheels), 0);
	ck_assert_uint_eq(wheels_next(wheels), NSEC_NEVER);
	wheels_free(&wheels);
	ck_assert_ptr_null(wheels);
}

/* One bucket of the wheel it goes to, from when it is due or armed. */
static void
arm(struct item *it, nsec_t due)
{
	nsec_t from = MAX(due, now);

	it->due = due;
	it->latest = from + (from - now < 2 * SEC ? WHEEL_FINE_WIDTH :
	    WHEEL_COARSE_WIDTH);
	wheel_arm(wheels, &it->timer, due);
	CHECK(wheel_is_armed(&it->timer));
}

/* From the past, through soon, to beyond the span of the coarse wheel. */
static nsec_t
random_due(void)
{
	static const nsec_t span[] = {
		20 * MSEC, 500 * MSEC, 3 * SEC, 10 * SEC, 200 * SEC,
	};
	nsec_t due = now + rng_below(&rng, span[rng_below(&rng, 5)]);

	if (rng_below(&rng, 20) == 0)
		due -= MIN(due, 100 * MSEC);
	if (rng_below(&rng, 5) == 0)
		due -= due % WHEEL_FINE_WIDTH;
	return due;
}

static void
do_something(struct item *it)
{
	switch (rng_below(&rng, 10)) {
	case 0:
		wheel_disarm(&it->timer);
		it->due = NSEC_NEVER;
		CHECK(!wheel_is_armed(&it->timer));
		break;
	case 1:
		wheel_cancel(wheels, &it->timer);
		it->due = NSEC_NEVER;
		break;
	case 2: {
		size_t i = it->index;

		free_item(i);
		new_item(i);
		break;
	}
	case 3:
	case 4:
	case 5:
		/* As activity does: later than before. */
		if (it->due != NSEC_NEVER) {
			arm(it, it->due + rng_below(&rng, 5 * SEC));
			break;
		}
		/* fall through */
	default:
		arm(it, random_due());
	}
}

static void
on_fire(struct wheel_timer *t)
{
	struct item *it = container_of(t, struct item, timer);

	size_t index = it->index;

	fired++;
	CHECK(!wheel_is_armed(t));
	if (it->due > now)
		ck_abort_msg("%zu fired early, or twice", index);
	it->due = NSEC_NEVER;

	if (rng_below(&rng, 3) == 0)
		do_something(items[rng_below(&rng, ITEMS)]);
	/* This may be another by now, if that was the same and was freed. */
	if (rng_below(&rng, 3) == 0)
		do_something(items[index]);
}

static void
assert_none_is_late(void)
{
	for (size_t i = 0; i < ITEMS; i++)
		if (items[i]->due != NSEC_NEVER && items[i]->latest <= now)
			ck_abort_msg("%zu is late by %ju us", i,
			    (uintmax_t)(now - items[i]->latest) / 1000);
}

/* Advance until nothing is left over. */
static void
drain(void)
{
	do {
		unsigned before = fired;
		unsigned n = wheels_advance(wheels, now);

		CHECK(n == fired - before);
		CHECK(n <= WHEEL_MAX_FIRES);
	} while (wheels_next(wheels) == 0);
	CHECK(wheels_next(wheels) > now);
	assert_none_is_late();
}

static nsec_t
random_step(void)
{
	switch (rng_below(&rng, 100)) {
	case 0:
		return 700 * SEC;	/* a suspended machine */
	case 1:
	case 2:
		return rng_below(&rng, 70 * SEC);
	case 3:
	case 4:
	case 5:
	case 6:
		return rng_below(&rng, 3 * SEC);
	default:
		return rng_below(&rng, 20 * MSEC);
	}
}

START_TEST(random_use_equals_the_oracle)
{
	rng = 1000 + (uint64_t)_i;
	now = _i == 0 ? 0 : rng_below(&rng, 1000 * SEC);
	wheels_advance(wheels, now);
	for (int n = 0; n < 500000; n++) {
		if (rng_below(&rng, 100) != 0) {
			do_something(items[rng_below(&rng, ITEMS)]);
			continue;
		}
		now += random_step();
		/* Now and then leave work over for the next time. */
		if (rng_below(&rng, 4) == 0)
			wheels_advance(wheels, now);
		else
			drain();
		if (rng_below(&rng, 8) == 0)
			wheels_validate(wheels);
	}
	drain();
	ck_assert_uint_gt(fired, 50000);
}
END_TEST

START_TEST(a_loop_that_sleeps_until_next_is_never_late)
{
	for (size_t i = 0; i < ITEMS; i++)
		arm(items[i], random_due());
	for (int n = 0; n < 5000; n++) {
		nsec_t next = wheels_next(wheels);

		CHECK(next > now);
		if (next == NSEC_NEVER)
			break;
		now = next;
		drain();
		do_something(items[rng_below(&rng, ITEMS)]);
	}
	ck_assert_uint_gt(fired, ITEMS);
}
END_TEST

/* { due, first time that wheels_next() names }, armed at 0 */
static const struct { nsec_t due, next; } nexts[] = {
	{ 0,				WHEEL_FINE_WIDTH },
	{ 1,				WHEEL_FINE_WIDTH },
	{ WHEEL_FINE_WIDTH,		WHEEL_FINE_WIDTH },
	{ WHEEL_FINE_WIDTH + 1,		2 * WHEEL_FINE_WIDTH },
	{ 256 * WHEEL_FINE_WIDTH,	256 * WHEEL_FINE_WIDTH },
	{ 256 * WHEEL_FINE_WIDTH + 1,	17 * WHEEL_COARSE_WIDTH },
	{ 512 * WHEEL_COARSE_WIDTH,	512 * WHEEL_COARSE_WIDTH },
	{ 513 * WHEEL_COARSE_WIDTH,	512 * WHEEL_COARSE_WIDTH },
	{ NSEC_NEVER - 1,		512 * WHEEL_COARSE_WIDTH },
};

START_TEST(a_time_is_rounded_up_to_its_bucket)
{
	wheel_arm(wheels, &items[0]->timer, nexts[_i].due);
	wheels_validate(wheels);
	ck_assert_uint_eq(wheels_next(wheels), nexts[_i].next);
	items[0]->due = nexts[_i].due;
	now = nexts[_i].next - 1;
	ck_assert_uint_eq(wheels_advance(wheels, now), 0);
	now++;
	ck_assert_uint_eq(wheels_advance(wheels, now),
	    nexts[_i].due <= now ? 1 : 0);
}
END_TEST

START_TEST(moving_to_later_only_stores)
{
	struct wheel_timer *t = &items[0]->timer;
	struct list link;

	wheel_arm(wheels, t, 100 * MSEC);
	link = t->link;
	wheel_arm(wheels, t, 30 * SEC);
	ck_assert_mem_eq(&link, &t->link, sizeof link);
	ck_assert_uint_eq(wheels_next(wheels), 104 * MSEC);

	/* The look puts it on. */
	now = 104 * MSEC;
	ck_assert_uint_eq(wheels_advance(wheels, now), 0);
	ck_assert_uint_gt(wheels_next(wheels), 29 * SEC);
	wheels_validate(wheels);
}
END_TEST

static struct item *first_fired;

static void
on_first(struct wheel_timer *t)
{
	if (first_fired == NULL)
		first_fired = container_of(t, struct item, timer);
}

/* Who is linked anew would be the last of its bucket. */
START_TEST(moving_within_a_bucket_only_stores)
{
	static const nsec_t widths[] = {
		WHEEL_FINE_WIDTH, WHEEL_COARSE_WIDTH,
	};
	nsec_t width = widths[_i], due = width == WHEEL_FINE_WIDTH ?
	    SEC : 10 * SEC;

	due -= due % width;
	first_fired = NULL;
	for (size_t i = 0; i < 2; i++) {
		wheel_timer_init(&items[i]->timer, on_first);
		wheel_arm(wheels, &items[i]->timer, due);
	}
	wheel_arm(wheels, &items[0]->timer, due - width + 1);
	wheels_validate(wheels);
	wheels_advance(wheels, due);
	ck_assert_ptr_eq(first_fired, items[0]);
	ck_assert(!wheel_is_armed(&items[1]->timer));
}
END_TEST

START_TEST(moved_by_the_least_time_is_not_early)
{
	wheel_arm(wheels, &items[0]->timer, WHEEL_FINE_WIDTH);
	wheel_arm(wheels, &items[0]->timer, WHEEL_FINE_WIDTH + 1);
	now = WHEEL_FINE_WIDTH;
	ck_assert_uint_eq(wheels_advance(wheels, now), 0);
	ck_assert_uint_eq(wheels_next(wheels), 2 * WHEEL_FINE_WIDTH);
}
END_TEST

START_TEST(a_disarmed_timer_is_forgotten_when_looked_at)
{
	struct wheel_timer *t = &items[0]->timer;

	wheel_arm(wheels, t, 100 * MSEC);
	wheel_disarm(t);
	ck_assert_uint_eq(wheels_count(wheels), 1);
	now = SEC;
	ck_assert_uint_eq(wheels_advance(wheels, now), 0);
	ck_assert_uint_eq(wheels_count(wheels), 0);
	ck_assert_uint_eq(wheels_next(wheels), NSEC_NEVER);
}
END_TEST

START_TEST(arming_for_never_is_disarming)
{
	struct wheel_timer *t = &items[0]->timer;

	wheel_arm(wheels, t, NSEC_NEVER);
	ck_assert(!wheel_is_armed(t));
	ck_assert_uint_eq(wheels_count(wheels), 0);
	wheel_arm(wheels, t, SEC);
	wheel_arm(wheels, t, NSEC_NEVER);
	now = 2 * SEC;
	ck_assert_uint_eq(wheels_advance(wheels, now), 0);
}
END_TEST

START_TEST(a_cancelled_timer_wakes_nobody)
{
	struct wheel_timer *t = &items[0]->timer;

	wheel_arm(wheels, t, 100 * MSEC);
	wheel_cancel(wheels, t);
	wheel_cancel(wheels, t);
	ck_assert_uint_eq(wheels_next(wheels), NSEC_NEVER);
	wheel_arm(wheels, t, 100 * SEC);
	wheel_cancel(wheels, t);
	ck_assert_uint_eq(wheels_next(wheels), NSEC_NEVER);
}
END_TEST

START_TEST(many_at_once_are_fired_in_portions)
{
	unsigned calls = 0;

	for (size_t i = 0; i < ITEMS; i++) {
		wheel_timer_init(&items[i]->timer, on_fire);
		arm(items[i], 100 * MSEC);
	}
	rng = 1;
	now = 100 * SEC;
	while (calls++ == 0 || wheels_next(wheels) == 0) {
		unsigned n = wheels_advance(wheels, now);

		ck_assert_uint_le(n, WHEEL_MAX_FIRES);
		wheels_validate(wheels);
		if (calls == 1)
			ck_assert_uint_eq(n, WHEEL_MAX_FIRES);
	}
	assert_none_is_late();
}
END_TEST

START_TEST(many_that_moved_are_looked_at_in_portions)
{
	enum { MANY = 2 * WHEEL_MAX_LOOKS + 1 };
	struct wheel_timer *t = calloc(MANY, sizeof *t);

	for (size_t i = 0; i < MANY; i++) {
		wheel_timer_init(&t[i], on_fire);
		wheel_arm(wheels, &t[i], MSEC);
		wheel_arm(wheels, &t[i], 30 * SEC);
	}
	for (int i = 0; i < 3; i++) {
		now += SEC;
		ck_assert_uint_eq(wheels_advance(wheels, now), 0);
		ck_assert((wheels_next(wheels) == 0) == (i < 2));
		wheels_validate(wheels);
	}
	ck_assert_uint_eq(wheels_count(wheels), MANY);
	for (size_t i = 0; i < MANY; i++)
		wheel_cancel(wheels, &t[i]);
	free(t);
}
END_TEST

static void
free_all_others(struct wheel_timer *t)
{
	struct item *self = container_of(t, struct item, timer);
	size_t index = self->index;

	for (size_t i = 0; i < ITEMS; i++) {
		if (i == index)
			continue;
		free_item(i);
		new_item(i);
	}
	free_item(index);
	new_item(index);
	fired++;
}

START_TEST(all_may_be_freed_while_they_are_being_fired)
{
	for (size_t i = 0; i < ITEMS; i++) {
		wheel_timer_init(&items[i]->timer, free_all_others);
		wheel_arm(wheels, &items[i]->timer, 5 * MSEC + i % 8 * MSEC);
	}
	now = SEC;
	ck_assert_uint_eq(wheels_advance(wheels, now), 1);
	ck_assert_uint_eq(fired, 1);
	ck_assert_uint_eq(wheels_count(wheels), 0);
}
END_TEST

static void
arm_again_for_now(struct wheel_timer *t)
{
	fired++;
	wheel_arm(wheels, t, now);
}

START_TEST(one_that_arms_itself_for_now_fires_once_a_call)
{
	struct wheel_timer t;

	wheel_timer_init(&t, arm_again_for_now);
	wheel_arm(wheels, &t, 0);
	for (unsigned i = 1; i <= 100; i++) {
		now += WHEEL_FINE_WIDTH;
		ck_assert_uint_eq(wheels_advance(wheels, now), 1);
		ck_assert_uint_eq(fired, i);
	}
	wheel_cancel(wheels, &t);
}
END_TEST

START_TEST(wheels_that_were_not_advanced_for_long_fire_in_time)
{
	/* Nothing was armed, so nobody had to advance them. */
	now = 500 * SEC;
	arm(items[0], now + SEC);
	items[0]->latest = now + SEC + WHEEL_COARSE_WIDTH;
	while (fired == 0) {
		now = MAX(now, wheels_next(wheels));
		drain();
	}
	ck_assert_uint_ge(now, 501 * SEC);
}
END_TEST

START_TEST(freed_wheels_leave_their_timers_unlinked)
{
	struct wheels *other = wheels_new(0);
	struct wheel_timer t;

	wheel_timer_init(&t, on_fire);
	wheel_arm(other, &t, SEC);
	wheels_free(&other);
	ck_assert(list_is_empty(&t.link));
	wheels_free(&other);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wheel");
	TCase *t = tcase_create("wheel");

	tcase_set_timeout(t, 240);
	tcase_add_checked_fixture(t, wheels_at_0_and_many_timers, free_all);
	tcase_add_loop_test(t, random_use_equals_the_oracle, 0, 3);
	tcase_add_test(t, a_loop_that_sleeps_until_next_is_never_late);
	tcase_add_loop_test(t, a_time_is_rounded_up_to_its_bucket, 0,
	    (int)ARRAY_LEN(nexts));
	tcase_add_test(t, moving_to_later_only_stores);
	tcase_add_loop_test(t, moving_within_a_bucket_only_stores, 0, 2);
	tcase_add_test(t, moved_by_the_least_time_is_not_early);
	tcase_add_test(t, a_disarmed_timer_is_forgotten_when_looked_at);
	tcase_add_test(t, arming_for_never_is_disarming);
	tcase_add_test(t, a_cancelled_timer_wakes_nobody);
	tcase_add_test(t, many_at_once_are_fired_in_portions);
	tcase_add_test(t, many_that_moved_are_looked_at_in_portions);
	tcase_add_test(t, all_may_be_freed_while_they_are_being_fired);
	tcase_add_test(t, one_that_arms_itself_for_now_fires_once_a_call);
	tcase_add_test(t, wheels_that_were_not_advanced_for_long_fire_in_time);
	tcase_add_test(t, freed_wheels_leave_their_timers_unlinked);
	suite_add_tcase(s, t);
	return run_suite(s);
}
