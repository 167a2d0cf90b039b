/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_balance.c - src/upstream/balance.c
 */
#include "upstream/upstream.h"

#include "harness.h"

enum { MAX_SERVERS = 8 };

static struct upstream *u;
static struct conf_server confs[MAX_SERVERS];

/* `count` servers on ports 1 to count, each with this weight. */
static void
with(enum balance balance, const unsigned weights[], unsigned count)
{
	struct conf_upstream conf = {
		.name_ = "u", .balance = balance, .pool_max = 2,
		.pool_idle = NSEC_PER_SEC,
		.server = { confs, count },
	};

	for (unsigned i = 0; i < count; i++) {
		confs[i].text = "server";
		ck_assert(addr_parse_ip(&confs[i].addr, "127.0.0.1", 9,
		    (uint16_t)(i + 1)));
		confs[i].weight = weights[i];
	}
	u = upstream_new(&conf, 2, NULL);
}

static void
done(void)
{
	upstream_free(&u);
	memset(confs, 0, sizeof confs);
}

static int
choose(uint64_t tried)
{
	uint64_t before = tried;
	struct server *s = upstream_choose(u, &tried);

	for (unsigned i = 0; i < u->count; i++)
		if (u->servers[i].server == s) {
			ck_assert_uint_eq(tried, before | UINT64_C(1) << i);
			return (int)i;
		}
	ck_assert_ptr_null(s);
	ck_assert_uint_eq(tried, before);
	return -1;
}

START_TEST(round_robin_gives_each_server_its_weight_evenly_spread)
{
	unsigned counts[3] = { 0 }, run = 0, longest = 0;
	int last = -1;

	with(BALANCE_ROUND_ROBIN, (unsigned[]){ 5, 3, 2 }, 3);
	for (unsigned i = 0; i < 1000; i++) {
		int s = choose(0);

		counts[s]++;
		run = s == last ? run + 1 : 1;
		longest = MAX(longest, run);
		last = s;
	}
	ck_assert_uint_eq(counts[0], 500);
	ck_assert_uint_eq(counts[1], 300);
	ck_assert_uint_eq(counts[2], 200);
	ck_assert_uint_le(longest, 2);
}
END_TEST

START_TEST(a_server_that_was_tried_is_passed_over)
{
	with(BALANCE_ROUND_ROBIN, (unsigned[]){ 1, 1, 1 }, 3);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(choose(1 | 4), 1);
	ck_assert_int_eq(choose(7), -1);
}
END_TEST

START_TEST(a_server_without_an_address_is_passed_over)
{
	with(BALANCE_ROUND_ROBIN, (unsigned[]){ 1, 1 }, 2);
	server_set_addrs(u->servers[0].server,
	    &(struct addr_set){ .count = 0 });
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(choose(0), 1);
}
END_TEST

START_TEST(a_backup_is_used_only_when_no_other_is_left)
{
	confs[0].backup = true;
	with(BALANCE_ROUND_ROBIN, (unsigned[]){ 1, 1 }, 2);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(choose(0), 1);
	ck_assert_int_eq(choose(2), 0);
}
END_TEST

START_TEST(first_always_takes_the_first_it_can)
{
	with(BALANCE_FIRST, (unsigned[]){ 1, 1, 1 }, 3);
	ck_assert_int_eq(choose(0), 0);
	ck_assert_int_eq(choose(0), 0);
	ck_assert_int_eq(choose(1), 1);
}
END_TEST

START_TEST(least_busy_of_two_takes_the_one_with_less_load_per_weight)
{
	with(BALANCE_LEAST_BUSY, (unsigned[]){ 4, 1 }, 2);
	stat_add(&u->servers[0].server->local[0].stats.in_use, 3);
	stat_add(&u->servers[1].server->local[1].stats.in_use, 1);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(choose(0), 0);
	stat_add(&u->servers[0].server->local[1].stats.in_use, 3);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(choose(0), 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("balance");
	TCase *t = tcase_create("balance");

	tcase_add_checked_fixture(t, NULL, done);
	tcase_add_test(t,
	    round_robin_gives_each_server_its_weight_evenly_spread);
	tcase_add_test(t, a_server_that_was_tried_is_passed_over);
	tcase_add_test(t, a_server_without_an_address_is_passed_over);
	tcase_add_test(t, a_backup_is_used_only_when_no_other_is_left);
	tcase_add_test(t, first_always_takes_the_first_it_can);
	tcase_add_test(t,
	    least_busy_of_two_takes_the_one_with_less_load_per_weight);
	suite_add_tcase(s, t);
	return run_suite(s);
}
