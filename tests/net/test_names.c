/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_names.c - src/net/names.c and src/net/reach.c
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "harness.h"
#include "net/names.h"
#include "net/reach.h"

#define SEC	NSEC_PER_SEC
#define HOUR	(3600 * SEC)

enum { ROOM = 4 };

static struct names t;

static void
an_empty_table(void)
{
	names_init(&t, ROOM);
}

static void
no_table(void)
{
	names_fini(&t);
}

static struct name *
find(const char *key)
{
	return names_find(&t, key, strlen(key));
}

static struct name *
add(const char *key)
{
	struct name *name = names_add(&t, key, strlen(key));

	ck_assert_ptr_nonnull(name);
	return name;
}

static struct addr_set
set_of(const char *a, const char *b)
{
	struct addr_set set = { 0 };
	struct addr one;

	ck_assert(addr_parse_ip(&one, a, strlen(a), 0));
	addr_set_add(&set, &one);
	if (b == NULL)
		return set;
	ck_assert(addr_parse_ip(&one, b, strlen(b), 0));
	addr_set_add(&set, &one);
	return set;
}

static const char long_label[] = "a123456789b123456789c123456789d123456789"
    "e123456789f123456789abc";

static const struct { const char *text; bool good; } texts[] = {
	{ "a", true },
	{ "localhost", true },
	{ "Example.COM.", true },
	{ "_dmarc.example.com", true },
	{ "-odd-.example", true },
	{ "1.2.3.4.example", true },
	{ "1a", true },
	{ "0xyz", true },
	{ "", false },
	{ ".", false },
	{ "..", false },
	{ "a..b", false },
	{ ".a", false },
	{ "a..", false },
	{ "a b", false },
	{ "a/b", false },
	{ "a%b", false },
	{ "a:80", false },
	{ "[::1]", false },
	{ "::1", false },
	{ "fe80::1%lo", false },
	{ "\xc3\xa9.example", false },
	{ "1.2.3.4", false },
	{ "1.2.3.4.", false },
	{ "127.1", false },
	{ "2130706433", false },
	{ "0x7f000001", false },
	{ "0X7F.1", false },
	{ "a.0x", false },
	{ "a.0x1f", false },
	{ "a.0X1F", false },
	{ "example.1", false },
};

START_TEST(names_are_told_from_others)
{
	const char *text = texts[_i].text;

	ck_assert_msg(resolver_is_name(text, strlen(text)) == texts[_i].good,
	    "%s", text);
}
END_TEST

START_TEST(a_nul_is_in_no_name)
{
	ck_assert(!resolver_is_name("a\0b", 3));
}
END_TEST

START_TEST(lengths_have_limits)
{
	char text[300];
	int n = snprintf(text, sizeof text, "%s.%s.%s.%.61s", long_label,
	    long_label, long_label, long_label);

	ck_assert_int_eq(n, 253);
	ck_assert_uint_eq(strlen(long_label), 63);
	ck_assert(resolver_is_name(long_label, 63));
	ck_assert(resolver_is_name(text, 253));
	text[253] = '.';
	ck_assert(resolver_is_name(text, 254));
	text[253] = 'x';
	ck_assert(!resolver_is_name(text, 254));
	text[63] = 'x';
	ck_assert(!resolver_is_name(text, 64));
}
END_TEST

START_TEST(keys_ignore_case_and_the_final_dot)
{
	char key[NAME_MAX_BYTES + 1];

	ck_assert_uint_eq(name_key(key, "WwW.Example.", 12), 11);
	ck_assert_str_eq(key, "www.example");
	ck_assert_uint_eq(name_key(key, "no name", 7), 0);
}
END_TEST

START_TEST(a_new_name_has_no_answer)
{
	struct addr_set out;

	ck_assert_int_eq(name_answer(add("a"), 0, &out), RESOLVE_WAITS);
	ck_assert(!name_last_good(find("a"), 0, &out));
	ck_assert_ptr_null(find("b"));
}
END_TEST

/* { TTL of the answer, seconds that it is used } */
static const struct { unsigned ttl; nsec_t used; } ttls[] = {
	{ 0, 1 }, { 1, 1 }, { 60, 60 }, { 3600, 3600 }, { 3601, 3600 },
	{ UINT32_MAX, 3600 },
};

START_TEST(an_answer_is_fresh_for_its_ttl_within_bounds)
{
	struct addr_set set = set_of("127.0.0.2", NULL), out;
	struct name *name = add("a");
	nsec_t used = ttls[_i].used * SEC;

	name_set_known(name, &set, ttls[_i].ttl, 7);
	ck_assert_int_eq(name_answer(name, 7 + used - 1, &out), RESOLVE_KNOWN);
	ck_assert_uint_eq(out.count, 1);
	ck_assert(addr_equal(&out.addrs[0], &set.addrs[0]));
	ck_assert_int_eq(name_answer(name, 7 + used, &out), RESOLVE_WAITS);
}
END_TEST

START_TEST(no_such_name_is_kept_for_five_seconds)
{
	struct name *name = add("a");
	struct addr_set out;

	name_set_none(name, SEC);
	ck_assert_int_eq(name_answer(name, 6 * SEC - 1, &out), RESOLVE_NONE);
	ck_assert_int_eq(name_answer(name, 6 * SEC, &out), RESOLVE_WAITS);
}
END_TEST

START_TEST(a_failure_is_kept_for_a_second)
{
	struct name *name = add("a");
	struct addr_set out;

	name_set_failed(name, SEC);
	ck_assert_int_eq(name_answer(name, 2 * SEC - 1, &out), RESOLVE_FAILED);
	ck_assert_int_eq(name_answer(name, 2 * SEC, &out), RESOLVE_WAITS);
	name_set_late(name, 3 * SEC);
	ck_assert_int_eq(name_answer(name, 4 * SEC - 1, &out), RESOLVE_LATE);
	ck_assert_int_eq(name_answer(name, 4 * SEC, &out), RESOLVE_WAITS);
}
END_TEST

START_TEST(after_failures_the_last_good_answer_serves_an_hour)
{
	struct addr_set set = set_of("127.0.0.2", NULL), out;
	struct name *name = add("a");

	name_set_known(name, &set, 10, 0);
	name_set_failed(name, 10 * SEC);
	ck_assert_int_eq(name_answer(name, 10 * SEC, &out), RESOLVE_KNOWN);
	ck_assert(addr_equal(&out.addrs[0], &set.addrs[0]));
	ck_assert_int_eq(name_answer(name, 11 * SEC, &out), RESOLVE_WAITS);

	nsec_t end = 10 * SEC + HOUR;
	ck_assert(name_last_good(name, end - 1, &out));
	ck_assert(!name_last_good(name, end, &out));
	name_set_failed(name, end);
	ck_assert_int_eq(name_answer(name, end, &out), RESOLVE_FAILED);
}
END_TEST

START_TEST(no_such_name_ends_the_last_good_answer)
{
	struct addr_set set = set_of("127.0.0.2", NULL), out;
	struct name *name = add("a");

	name_set_known(name, &set, 10, 0);
	name_set_none(name, 20 * SEC);
	ck_assert(!name_last_good(name, 20 * SEC, &out));
	name_set_failed(name, 30 * SEC);
	ck_assert_int_eq(name_answer(name, 30 * SEC, &out), RESOLVE_FAILED);
}
END_TEST

START_TEST(the_name_unwanted_for_longest_makes_room)
{
	const char *keys[ROOM] = { "a", "b", "c", "d" };

	for (size_t i = 0; i < ROOM; i++)
		names_unpin(&t, add(keys[i]));
	names_unpin(&t, find("a"));
	names_unpin(&t, add("e"));
	ck_assert_ptr_null(find("b"));
	ck_assert_ptr_nonnull(find("a"));
	names_unpin(&t, add("f"));
	ck_assert_ptr_null(find("c"));
	ck_assert_ptr_nonnull(find("a"));
	ck_assert_ptr_nonnull(find("e"));
}
END_TEST

START_TEST(a_pinned_name_stays)
{
	const char *keys[ROOM] = { "a", "b", "c", "d" };

	for (size_t i = 0; i < ROOM; i++)
		add(keys[i]);
	ck_assert_ptr_null(names_add(&t, "e", 1));
	names_unpin(&t, find("c"));
	names_unpin(&t, find("d"));
	names_pin(find("c"));
	add("e");
	ck_assert_ptr_null(names_add(&t, "f", 1));
	ck_assert_ptr_null(find("d"));
	ck_assert_ptr_nonnull(find("c"));
}
END_TEST

START_TEST(a_reused_place_has_no_old_answer)
{
	struct addr_set set = set_of("127.0.0.2", NULL), out;
	char key[2] = "a";

	for (size_t i = 0; i < ROOM; i++, key[0]++) {
		struct name *name = add(key);

		name_set_known(name, &set, 3600, 0);
		names_unpin(&t, name);
	}
	ck_assert_int_eq(name_answer(add("z"), 1, &out), RESOLVE_WAITS);
	ck_assert(!name_last_good(find("z"), 1, &out));
}
END_TEST

START_TEST(a_set_has_each_address_once_and_eight_at_most)
{
	struct addr_set set = { 0 };
	struct addr a = { .family = ADDR_IP4 };

	for (uint8_t i = 0; i < RESOLVER_ADDRS; i++) {
		a.ip[3] = i;
		ck_assert(addr_set_add(&set, &a));
		ck_assert(addr_set_add(&set, &a));
		ck_assert_uint_eq(set.count, i + 1u);
	}
	a.ip[3] = RESOLVER_ADDRS;
	ck_assert(!addr_set_add(&set, &a));
}
END_TEST

/* --- reach --- */

static bool
to_all(const struct addr *a)
{
	(void)a;
	return true;
}

static bool
to_ip4(const struct addr *a)
{
	return a->family == ADDR_IP4;
}

static bool
not_to_2(const struct addr *a)
{
	return a->ip[a->family == ADDR_IP4 ? 3 : 15] != 2;
}

static const struct { reach_fn *fn; const char *order[4]; } orders[] = {
	{ to_all,	{ "::2", "10.0.0.2", "::3", "10.0.0.3" } },
	{ to_ip4,	{ "10.0.0.2", "10.0.0.3", "::2", "::3" } },
	{ not_to_2,	{ "::3", "10.0.0.3", "::2", "10.0.0.2" } },
};

START_TEST(families_take_turns_after_routes)
{
	struct addr_set ip6 = set_of("::2", "::3"), out;
	struct addr_set ip4 = set_of("10.0.0.2", "10.0.0.3");
	char text[ADDR_TEXT];

	reach_order(&out, &ip6, &ip4, orders[_i].fn);
	ck_assert_uint_eq(out.count, 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert_str_eq(addr_print_ip(&out.addrs[i], text,
		    sizeof text), orders[_i].order[i]);
}
END_TEST

START_TEST(both_families_get_their_share_of_the_eight)
{
	struct addr_set ip6 = { 0 }, ip4 = { 0 }, out;

	for (uint8_t i = 1; i <= RESOLVER_ADDRS; i++) {
		struct addr a = { .family = ADDR_IP4, .ip = { 10, 0, 0, i } };
		struct addr b = { .family = ADDR_IP6, .ip = { 0xfd, i } };

		addr_set_add(&ip4, &a);
		addr_set_add(&ip6, &b);
	}
	reach_order(&out, &ip6, &ip4, to_all);
	ck_assert_uint_eq(out.count, RESOLVER_ADDRS);
	ck_assert_int_eq(out.addrs[6].family, ADDR_IP6);
	ck_assert_int_eq(out.addrs[7].family, ADDR_IP4);
	ck_assert_uint_eq(out.addrs[7].ip[3], 4);
}
END_TEST

START_TEST(loopback_has_a_route)
{
	struct addr_set set = set_of("127.0.0.1", NULL);

	ck_assert(reach_has_route(&set.addrs[0]));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("names");
	TCase *c = tcase_create("names");

	tcase_add_checked_fixture(c, an_empty_table, no_table);
	tcase_add_loop_test(c, names_are_told_from_others, 0,
	    (int)ARRAY_LEN(texts));
	tcase_add_test(c, a_nul_is_in_no_name);
	tcase_add_test(c, lengths_have_limits);
	tcase_add_test(c, keys_ignore_case_and_the_final_dot);
	tcase_add_test(c, a_new_name_has_no_answer);
	tcase_add_loop_test(c, an_answer_is_fresh_for_its_ttl_within_bounds, 0,
	    (int)ARRAY_LEN(ttls));
	tcase_add_test(c, no_such_name_is_kept_for_five_seconds);
	tcase_add_test(c, a_failure_is_kept_for_a_second);
	tcase_add_test(c, after_failures_the_last_good_answer_serves_an_hour);
	tcase_add_test(c, no_such_name_ends_the_last_good_answer);
	tcase_add_test(c, the_name_unwanted_for_longest_makes_room);
	tcase_add_test(c, a_pinned_name_stays);
	tcase_add_test(c, a_reused_place_has_no_old_answer);
	tcase_add_test(c, a_set_has_each_address_once_and_eight_at_most);
	tcase_add_loop_test(c, families_take_turns_after_routes, 0,
	    (int)ARRAY_LEN(orders));
	tcase_add_test(c, both_families_get_their_share_of_the_eight);
	tcase_add_test(c, loopback_has_a_route);
	suite_add_tcase(s, c);
	return run_suite(s);
}
