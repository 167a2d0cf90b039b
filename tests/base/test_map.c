/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_map.c - src/base/map.c
 */
#include <stdio.h>

#include "harness.h"

#include "base/map.h"

struct thing {
	struct map_node	node;
	char		name[32];
	bool		seen;
};

enum { MANY = 1000 };

static const uint8_t seed[MAP_SEED] = { 1, 2, 3 };
static struct thing things[MANY];
static struct map m;

static void
names_for_many_things(void)
{
	memset(things, 0, sizeof things);
	for (int i = 0; i < MANY; i++)
		snprintf(things[i].name, sizeof things[i].name, "thing-%d", i);
}

static void
add_all(int n)
{
	for (int i = 0; i < n; i++)
		map_add(&m, &things[i].node, str_of(things[i].name));
}

static void
remove_all(void)
{
	MAP_FOR_EACH(n, &m)
		map_remove(&m, n);
	map_fini(&m);
}

/* 0 grows; the others make chains of any length */
static const size_t bucket_counts[] = { 0, 1, 7, 64, 4096 };

START_TEST(what_was_added_is_found_until_it_is_removed)
{
	map_init(&m, seed, bucket_counts[_i]);
	ck_assert_ptr_null(map_find(&m, STR("thing-0")));
	add_all(MANY);
	ck_assert_uint_eq(map_count(&m), MANY);
	for (int i = 0; i < MANY; i++)
		ck_assert_ptr_eq(map_find(&m, str_of(things[i].name)),
		    &things[i].node);
	for (int i = 0; i < MANY; i += 2)
		map_remove(&m, &things[i].node);
	for (int i = 0; i < MANY; i++)
		ck_assert_ptr_eq(map_find(&m, str_of(things[i].name)),
		    i % 2 == 0 ? NULL : &things[i].node);
	ck_assert_uint_eq(map_count(&m), MANY / 2);
	remove_all();
}
END_TEST

START_TEST(a_key_is_its_bytes_and_its_length)
{
	struct map_node a, b, c;

	map_init(&m, seed, 1);
	map_add(&m, &a, STR("x"));
	map_add(&m, &b, STR("x\0"));
	map_add(&m, &c, STR(""));
	ck_assert_ptr_eq(map_find(&m, STR("x")), &a);
	ck_assert_ptr_eq(map_find(&m, STR("x\0")), &b);
	ck_assert_ptr_eq(map_find(&m, str_make(NULL, 0)), &c);
	ck_assert_ptr_null(map_find(&m, STR("X")));
	remove_all();
}
END_TEST

START_TEST(a_fixed_map_keeps_its_buckets_and_another_grows)
{
	map_init(&m, seed, 100);
	add_all(MANY);
	ck_assert_uint_eq(m.mask, 127);
	remove_all();

	map_init(&m, seed, 0);
	add_all(MANY);
	ck_assert_uint_ge(m.mask + 1, MANY);
	remove_all();
}
END_TEST

START_TEST(a_walk_meets_everyone_once)
{
	int met = 0;

	map_init(&m, seed, bucket_counts[_i]);
	MAP_FOR_EACH(none, &m)
		ck_abort_msg("the map is empty");
	add_all(MANY);
	MAP_FOR_EACH(n, &m) {
		struct thing *t = container_of(n, struct thing, node);

		ck_assert(!t->seen);
		t->seen = true;
		met++;
	}
	ck_assert_int_eq(met, MANY);
	remove_all();
}
END_TEST

START_TEST(the_seed_decides_the_order)
{
	static const uint8_t other_seed[MAP_SEED] = { 9 };
	struct map_node a, b;
	struct map other;

	map_init(&m, seed, 16);
	map_init(&other, other_seed, 16);
	map_add(&m, &a, STR("key"));
	map_add(&other, &b, STR("key"));
	ck_assert_uint_ne(a.hash, b.hash);
	map_remove(&m, &a);
	map_remove(&other, &b);
	map_fini(&m);
	map_fini(&other);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("map");
	TCase *t = tcase_create("map");

	tcase_add_checked_fixture(t, names_for_many_things, NULL);
	tcase_add_loop_test(t, what_was_added_is_found_until_it_is_removed, 0,
	    (int)ARRAY_LEN(bucket_counts));
	tcase_add_test(t, a_key_is_its_bytes_and_its_length);
	tcase_add_test(t, a_fixed_map_keeps_its_buckets_and_another_grows);
	tcase_add_loop_test(t, a_walk_meets_everyone_once, 0,
	    (int)ARRAY_LEN(bucket_counts));
	tcase_add_test(t, the_seed_decides_the_order);
	suite_add_tcase(s, t);
	return run_suite(s);
}
