/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gate_order.c - src/base/gate.c: who is next, by key and by class, and
 * who must leave a full queue.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/fair.h"
#include "base/gate_guests.h"
#include "harness.h"

/* Keys as a hash would make them: all bits differ. */
static uint64_t
key_of(char name)
{
	return UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)name;
}

static void
ask_for(bool by_key, bool adaptive)
{
	spec.by_key = by_key;
	spec.adaptive = adaptive;
	spec.queue_timeout = 1000 * SEC;
	gate_set(g, &spec, 0, now);
}

/* Guests come one by one, guest i with key names[i]; the first gets in. */
static void
come(const char *names, unsigned over_workers)
{
	for (int i = 0; names[i] != '\0'; i++) {
		guests[i].w.key = key_of(names[i]);
		guests[i].w.class = names[i] == 'H' ? GATE_HIGH : GATE_NORMAL;
		(void)!take(i, (unsigned)i % over_workers);
		now += MSEC / 100;
	}
}

static int
who_is_inside(void)
{
	for (int i = 0; i < GUESTS; i++)
		if (guests[i].inside)
			return i;
	return -1;
}

/* The names of those who are served, in turn. */
static const char *
serve_all(const char *names)
{
	static char order[GUESTS + 1];
	int n = 0;

	for (int i = who_is_inside(); i != -1; i = who_is_inside()) {
		order[n++] = names[i];
		now += MSEC / 100;
		release(i);
		crew_settle();
		gate_validate(g, count_inside());
	}
	order[n] = '\0';
	return order;
}

static const struct order_case {
	const char	*come, *served;
	unsigned	 workers;
	bool		 by_key;
} orders[] = {
	/* Without keys, in order of arrival. */
	{ "aaaabbc",	 "aaaabbc",	1, false },
	/* One a round: the first of each before anyone's second. */
	{ "aaaabbc",	 "aabcaba",	1, true },
	{ "zaaaaaaab",	 "zabaaaaaa",	1, true },
	{ "zabcabcabc",	 "zabcabcabc",	1, true },
	{ "zaaabbbccc",	 "zabcabcabc",	1, true },
	/* High before normal, but for one turn in eight. */
	{ "znnHHH",	 "zHHHnn",	1, false },
	{ "znnHHHHHHHHHH", "zHHHHHHHnHHHn", 1, false },
	{ "znnHHHHHHHHHH", "zHHHHHHHnHHHn", 1, true },
	{ "znnHHHHHHHHHH", "zHHHHHHHnHHHn", 3, false },
};

START_TEST(turns_are_in_order)
{
	const struct order_case *c = &orders[_i];

	open_gate(1, 20);
	ask_for(c->by_key, false);
	come(c->come, c->workers);
	ck_assert_str_eq(serve_all(c->come), c->served);
}
END_TEST

/* Whatever workers they are on: each has as many turns as others, +-1. */
START_TEST(a_key_on_all_workers_gets_no_more_than_one_on_one)
{
	const char *names = "zaaaaaaaaaaaab";
	int turns = 0;

	open_gate(1, 20);
	ask_for(true, false);
	come(names, 4);
	/* The second key is on one worker, and there with two more. */
	guests[14].w.key = guests[15].w.key = key_of('b');
	(void)!take(14, 1);
	(void)!take(15, 1);
	for (int served_b = 0; served_b < 3; turns++) {
		int i = who_is_inside();

		release(i);
		crew_settle();
		served_b += who_is_inside() >= 13;
	}
	ck_assert_int_ge(turns, 5);
	ck_assert_int_le(turns, 10);
}
END_TEST

START_TEST(who_asks_one_by_one_does_not_starve_who_asks_for_much)
{
	int turns_of_a = 0;

	open_gate(1, 20);
	ask_for(true, false);
	come("baaaaaaaaaa", 1);
	for (int n = 0; n < 10; n++) {
		int i = who_is_inside();

		turns_of_a += i != 0;
		release(i);
		if (i != 0 && !gate_is_waiting(&guests[0].w))
			(void)!take(0, 0);
		crew_settle();
		if (who_is_inside() != 0 && !gate_is_waiting(&guests[0].w))
			(void)!take(0, 0);
	}
	ck_assert_int_ge(turns_of_a, 4);
	ck_assert_int_le(turns_of_a, 6);
}
END_TEST

START_TEST(who_leaves_takes_no_turn_along)
{
	const char *names = "zaaaab";

	open_gate(1, 20);
	ask_for(true, false);
	come(names, 1);
	gate_leave(g, 0, &guests[1].w, now);
	gate_leave(g, 0, &guests[2].w, now);
	gate_validate(g, 1);
	ck_assert_str_eq(serve_all(names), "zaba");
}
END_TEST

START_TEST(who_came_before_the_order_changed_is_served_first)
{
	const char *names = "zabaabb";

	open_gate(1, 20);
	ask_for(false, false);
	come("zab", 1);
	ask_for(true, false);
	for (int i = 3; names[i] != '\0'; i++) {
		guests[i].w.key = key_of(names[i]);
		(void)!take(i, 0);
	}
	ck_assert_str_eq(serve_all(names), "zabab" "ab");
}
END_TEST

START_TEST(order_can_be_switched_off_while_keys_wait)
{
	const char *names = "zaabba";

	open_gate(1, 20);
	ask_for(true, false);
	come("zaabb", 1);
	ask_for(false, false);
	guests[5].w.key = key_of('a');
	(void)!take(5, 0);
	ck_assert_str_eq(serve_all(names), "zababa");
}
END_TEST

/* --- a full queue ------------------------------------------------------ */

START_TEST(a_newcomer_takes_the_place_of_the_longest_keys_newest)
{
	const char *names = "zaaabb";

	open_gate(1, 5);
	ask_for(true, false);
	come(names, (unsigned)_i);
	guests[6].w.key = key_of('c');
	ck_assert_int_eq(take(6, 0), GATE_WAITS);
	ck_assert_int_eq(served, 0);
	crew_settle();
	ck_assert_int_eq(guests[3].why, FAIL_QUEUE_FULL);
	ck_assert(!guests[3].inside);
	ck_assert_uint_eq(look().waiting, 5);
	gate_validate(g, 1);
	/* Now all are as long as the longest, or nearly. */
	guests[7].w.key = key_of('a');
	ck_assert_int_eq(take(7, 0), GATE_REFUSED);
	ck_assert_int_eq(why, FAIL_QUEUE_FULL);
	guests[8].w.key = key_of('c');
	ck_assert_int_eq(take(8, 0), GATE_REFUSED);
}
END_TEST

START_TEST(as_many_newcomers_as_come_take_places_at_once)
{
	open_gate(1, 8);
	ask_for(true, false);
	come("zaaaaaaaa", 3);
	for (int i = 9; i < 14; i++) {
		guests[i].w.key = key_of((char)i);
		ck_assert_int_eq(take(i, (unsigned)i % 3), GATE_WAITS);
	}
	crew_settle();
	ck_assert_uint_eq(look().waiting, 8);
	for (int i = 9; i < 14; i++)
		ck_assert(gate_is_waiting(&guests[i].w));
	gate_validate(g, 1);
}
END_TEST

START_TEST(a_high_newcomer_takes_the_place_of_the_newest_normal)
{
	open_gate(1, 3);
	ask_for(false, false);
	come("znnn", 2);
	guests[4].w.class = GATE_HIGH;
	ck_assert_int_eq(take(4, 1), GATE_WAITS);
	crew_settle();
	ck_assert_uint_eq(look().waiting, 3);
	ck_assert(gate_is_waiting(&guests[4].w));
	ck_assert(guests[2].why == FAIL_QUEUE_FULL ||
	    guests[3].why == FAIL_QUEUE_FULL);
	gate_validate(g, 1);
}
END_TEST

START_TEST(the_high_class_is_refused_when_it_fills_the_queue)
{
	open_gate(1, 2);
	come("zHH", 1);
	guests[3].w.class = GATE_HIGH;
	ck_assert_int_eq(take(3, 0), GATE_REFUSED);
	ck_assert_int_eq(why, FAIL_QUEUE_FULL);
}
END_TEST

/* --- both at once ------------------------------------------------------ */

START_TEST(in_overload_each_keys_newest_comes_first)
{
	int in = 0;

	open_gate(1, 20);
	ask_for(true, true);
	come("zaaabbb", 1);
	/* The first in line waits over the target for over an interval. */
	now += 30 * MSEC;
	release(in);
	crew_settle();
	in = who_is_inside();
	ck_assert_int_eq(in, 1);
	for (int i = 7; i < 15; i++) {
		guests[i].w.key = key_of(i % 2 == 0 ? 'a' : 'b');
		(void)!take(i, 0);
	}
	now += 110 * MSEC;
	release(in);
	crew_settle();
	/* The old were shed, and of the keys' newest one is in. */
	in = who_is_inside();
	ck_assert_int_ge(in, -1);
	for (int i = 2; i < 7; i++)
		ck_assert_int_eq(guests[i].why, FAIL_QUEUE_SHED);
	gate_validate(g, count_inside());
}
END_TEST

/* More keys than there are rows for: nobody is refused, some share turns. */
START_TEST(any_number_of_keys_may_wait)
{
	enum { MANY = FAIR_KEYS + 500 };
	static struct gate_waiter many[MANY];
	struct guest *v = &guests[0];

	open_gate(1, MANY + 10);
	ask_for(true, false);
	(void)!take(0, 0);
	for (int i = 0; i < MANY; i++) {
		gate_waiter_init(&many[i], v->w.fn);
		many[i].key = key_of(1) * (uint64_t)(i + 1);
		ck_assert_int_eq(gate_take(g, 0, &many[i], now, &why),
		    GATE_WAITS);
	}
	gate_validate(g, 1);
	for (int i = 0; i < MANY; i++)
		gate_leave(g, 0, &many[i], now);
	gate_validate(g, 1);
	release(0);
	ck_assert(gate_is_idle(g));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gate order");
	TCase *t = tcase_create("gate order");

	tcase_add_checked_fixture(t, two_permits_and_a_queue, close_gate);
	tcase_add_loop_test(t, turns_are_in_order, 0,
	    (int)ARRAY_LEN(orders));
	tcase_add_test(t, a_key_on_all_workers_gets_no_more_than_one_on_one);
	tcase_add_test(t,
	    who_asks_one_by_one_does_not_starve_who_asks_for_much);
	tcase_add_test(t, who_leaves_takes_no_turn_along);
	tcase_add_test(t,
	    who_came_before_the_order_changed_is_served_first);
	tcase_add_test(t, order_can_be_switched_off_while_keys_wait);
	tcase_add_loop_test(t,
	    a_newcomer_takes_the_place_of_the_longest_keys_newest, 1, 4);
	tcase_add_test(t, as_many_newcomers_as_come_take_places_at_once);
	tcase_add_test(t,
	    a_high_newcomer_takes_the_place_of_the_newest_normal);
	tcase_add_test(t, the_high_class_is_refused_when_it_fills_the_queue);
	tcase_add_test(t, in_overload_each_keys_newest_comes_first);
	tcase_add_test(t, any_number_of_keys_may_wait);
	suite_add_tcase(s, t);
	return run_suite(s);
}
