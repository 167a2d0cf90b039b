/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_list.c - src/base/list.h
 */
#include "harness.h"

#include "base/list.h"

struct item {
	int		 value;
	struct list	 link;
};

static struct list head;
static struct item items[4];

static void
an_empty_list_and_four_items(void)
{
	list_init(&head);
	for (int i = 0; i < 4; i++) {
		items[i].value = i;
		list_init(&items[i].link);
	}
}

static void
add_all(void)
{
	for (int i = 0; i < 4; i++)
		list_add_last(&head, &items[i].link);
}

/* The values on a list, as decimal digits after a leading 9. */
static int
digits(struct list *l)
{
	int n = 9;

	LIST_FOR_EACH(link, l)
		n = n * 10 + container_of(link, struct item, link)->value;
	return n;
}

/* The same, read backwards: both directions must agree. */
static int
digits_backwards(const struct list *l)
{
	int n = 9;

	for (struct list *link = l->prev; link != l; link = link->prev)
		n = n * 10 + container_of(link, struct item, link)->value;
	return n;
}

START_TEST(a_new_list_is_empty)
{
	ck_assert(list_is_empty(&head));
	ck_assert_ptr_null(list_pop_first(&head));
	ck_assert_int_eq(digits(&head), 9);
}
END_TEST

START_TEST(what_is_added_last_comes_out_last)
{
	add_all();
	ck_assert_int_eq(digits(&head), 90123);
	ck_assert_int_eq(digits_backwards(&head), 93210);
	for (int i = 0; i < 4; i++)
		ck_assert_ptr_eq(list_pop_first(&head), &items[i].link);
	ck_assert_ptr_null(list_pop_first(&head));
}
END_TEST

START_TEST(what_is_added_first_comes_out_first)
{
	for (int i = 0; i < 4; i++)
		list_add_first(&head, &items[i].link);
	ck_assert_int_eq(digits(&head), 93210);
	ck_assert_int_eq(digits_backwards(&head), 90123);
}
END_TEST

START_TEST(a_link_can_go_before_any_other)
{
	list_add_last(&head, &items[0].link);
	list_add_last(&head, &items[1].link);
	list_add_before(&items[1].link, &items[2].link);
	ck_assert_int_eq(digits(&head), 9021);
	ck_assert_int_eq(digits_backwards(&head), 9120);
}
END_TEST

START_TEST(removing_twice_is_harmless)
{
	add_all();
	list_remove(&items[1].link);
	list_remove(&items[1].link);
	ck_assert(list_is_empty(&items[1].link));
	ck_assert_int_eq(digits(&head), 9023);
	ck_assert_int_eq(digits_backwards(&head), 9320);
}
END_TEST

START_TEST(moving_all_leaves_the_old_list_empty)
{
	struct list to;

	add_all();
	list_move_all(&to, &head);
	ck_assert(list_is_empty(&head));
	ck_assert_int_eq(digits(&to), 90123);
	ck_assert_int_eq(digits_backwards(&to), 93210);
	list_move_all(&head, &to);
	list_remove(&items[3].link);
	ck_assert_int_eq(digits(&head), 9012);
}
END_TEST

START_TEST(moving_nothing_makes_an_empty_list)
{
	struct list to;

	list_move_all(&to, &head);
	ck_assert(list_is_empty(&to));
	ck_assert(list_is_empty(&head));
}
END_TEST

START_TEST(a_walk_may_remove_where_it_stands)
{
	int seen = 0;

	add_all();
	LIST_FOR_EACH(l, &head) {
		seen++;
		if (container_of(l, struct item, link)->value != 2)
			list_remove(l);
	}
	ck_assert_int_eq(seen, 4);
	ck_assert_int_eq(digits(&head), 92);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("list");
	TCase *t = tcase_create("list");

	tcase_add_checked_fixture(t, an_empty_list_and_four_items, NULL);
	tcase_add_test(t, a_new_list_is_empty);
	tcase_add_test(t, what_is_added_last_comes_out_last);
	tcase_add_test(t, what_is_added_first_comes_out_first);
	tcase_add_test(t, a_link_can_go_before_any_other);
	tcase_add_test(t, removing_twice_is_harmless);
	tcase_add_test(t, moving_all_leaves_the_old_list_empty);
	tcase_add_test(t, moving_nothing_makes_an_empty_list);
	tcase_add_test(t, a_walk_may_remove_where_it_stands);
	suite_add_tcase(s, t);
	return run_suite(s);
}
