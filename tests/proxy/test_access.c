/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_access.c - src/proxy/access.c
 */
#include "proxy/access.h"

#include <stdio.h>

#include "harness.h"
#include "proxy/setup.h"

static struct config	*config;
static struct access	*access_;

/* An access section with these lines in it. */
static void
with(const char *lines)
{
	char text[2048];
	int n = snprintf(text, sizeof text,
	    "[listener p]\nmode = forward\nbind = 0.0.0.0:1\naccess = a\n"
	    "[access a]\n%s\n", lines);

	config = config_parse("test", text, (size_t)n, stderr);
	ck_assert_ptr_nonnull(config);
	access_ = access_new(&config->access[0]);
}

static void
done(void)
{
	if (access_ != NULL)
		access_free(&access_);
	config_free(&config);
}

static struct addr
at(const char *text)
{
	struct addr a;

	ck_assert(addr_parse(&a, text));
	return a;
}

static bool
client(const char *text)
{
	struct addr a = at(text);

	return access_client(access_, &a);
}

static bool
reach(const char *text, bool listed)
{
	struct addr a = at(text);

	return access_addr(access_, &a, listed) == FAIL_NONE;
}

START_TEST(without_a_section_only_loopback_clients_may_and_everywhere)
{
	access_ = access_new(NULL);
	ck_assert(client("127.0.0.1:1"));
	ck_assert(client("[::1]:1"));
	ck_assert(!client("10.0.0.1:1"));
	ck_assert(reach("127.0.0.1:80", false));
	ck_assert(reach("10.0.0.1:80", false));
	ck_assert(access_connect_port(access_, 22));
}
END_TEST

START_TEST(a_client_that_no_rule_fits_is_denied)
{
	with("allow = 10.0.0.0/8\ndeny = 10.1.0.0/16");
	ck_assert(client("10.0.0.1:1"));
	ck_assert(!client("10.1.2.3:1"));
	ck_assert(!client("192.168.0.1:1"));
	ck_assert(!client("127.0.0.1:1"));
}
END_TEST

START_TEST(the_more_specific_rule_wins_and_of_two_alike_the_denial)
{
	with("allow = 10.1.2.3 10.0.0.0/8\ndeny = 10.1.0.0/16 10.0.0.0/8");
	ck_assert(client("10.1.2.3:1"));
	ck_assert(!client("10.1.2.4:1"));
	ck_assert(!client("10.2.0.1:1"));
}
END_TEST

START_TEST(without_rules_for_destinations_only_public_ones_are_reached)
{
	with("allow = all");
	ck_assert(reach("8.8.8.8:80", false));
	ck_assert(!reach("10.0.0.1:80", false));
	ck_assert(!reach("127.0.0.1:80", false));
	ck_assert(!reach("169.254.169.254:80", false));
	ck_assert(!reach("[::1]:80", false));
	ck_assert(!reach("[::ffff:127.0.0.1]:80", false));
	ck_assert(!reach("0.0.0.0:80", false));
}
END_TEST

START_TEST(an_allowed_block_opens_just_that)
{
	with("allow = all\nallow_destination = 10.1.2.0/24:443");
	ck_assert(reach("10.1.2.3:443", false));
	ck_assert(!reach("10.1.2.3:80", false));
	ck_assert(!reach("8.8.8.8:443", false));
}
END_TEST

START_TEST(an_allowed_name_opens_public_addresses_and_no_others)
{
	with("allow = all\nallow_destination = *.example.com example.org:443\n"
	    "deny_destination = bad.example.com");
	ck_assert_int_eq(access_name(access_, STR("A.example.COM"), 80),
	    ACCESS_LISTED);
	ck_assert_int_eq(access_name(access_, STR("a.example.com."), 80),
	    ACCESS_LISTED);
	ck_assert_int_eq(access_name(access_, STR("example.com"), 80),
	    ACCESS_UNLISTED);
	ck_assert_int_eq(access_name(access_, STR("xexample.com"), 80),
	    ACCESS_UNLISTED);
	ck_assert_int_eq(access_name(access_, STR("bad.example.com"), 80),
	    ACCESS_DENIED);
	ck_assert_int_eq(access_name(access_, STR("example.org"), 443),
	    ACCESS_LISTED);
	ck_assert_int_eq(access_name(access_, STR("example.org"), 80),
	    ACCESS_UNLISTED);
	ck_assert(reach("8.8.8.8:80", true));
	ck_assert(!reach("10.0.0.1:80", true));
	ck_assert(!reach("8.8.8.8:80", false));
}
END_TEST

START_TEST(connect_goes_to_443_unless_told_otherwise)
{
	with("allow = all");
	ck_assert(access_connect_port(access_, 443));
	ck_assert(!access_connect_port(access_, 80));
	done();
	with("allow = all\nconnect_ports = 22 8000-8002");
	ck_assert(access_connect_port(access_, 22));
	ck_assert(access_connect_port(access_, 8002));
	ck_assert(!access_connect_port(access_, 8003));
	ck_assert(!access_connect_port(access_, 443));
}
END_TEST

START_TEST(our_own_listeners_are_found_by_any_local_address)
{
	struct addr own[] = { at("0.0.0.0:8080"), at("127.0.0.2:9000") };
	struct addr local[] = { at("10.9.8.7:1") };
	struct own_addrs all = { .own = own, .own_count = 2, .local = local,
	    .local_count = 1 };
	static const struct { const char *to; bool own; } cases[] = {
		{ "127.0.0.1:8080", true }, { "127.9.9.9:8080", true },
		{ "0.0.0.0:8080", true }, { "10.9.8.7:8080", true },
		{ "10.9.8.8:8080", false }, { "127.0.0.1:8081", false },
		{ "127.0.0.2:9000", true }, { "127.0.0.1:9000", false },
		{ "0.0.0.0:9000", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct addr to = at(cases[i].to);

		ck_assert_msg(access_is_own(&all, &to) == cases[i].own,
		    "%s", cases[i].to);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("access");
	TCase *t = tcase_create("access");

	tcase_add_checked_fixture(t, NULL, done);
	tcase_add_test(t,
	    without_a_section_only_loopback_clients_may_and_everywhere);
	tcase_add_test(t, a_client_that_no_rule_fits_is_denied);
	tcase_add_test(t,
	    the_more_specific_rule_wins_and_of_two_alike_the_denial);
	tcase_add_test(t,
	    without_rules_for_destinations_only_public_ones_are_reached);
	tcase_add_test(t, an_allowed_block_opens_just_that);
	tcase_add_test(t,
	    an_allowed_name_opens_public_addresses_and_no_others);
	tcase_add_test(t, connect_goes_to_443_unless_told_otherwise);
	tcase_add_test(t, our_own_listeners_are_found_by_any_local_address);
	suite_add_tcase(s, t);
	return run_suite(s);
}
