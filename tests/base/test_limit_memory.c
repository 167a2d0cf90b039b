/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limit_memory.c - what a limit takes: src/base/limits.c
 */
#include <check.h>
#include <malloc.h>
#include <stdio.h>

#include "base/crew.h"
#include "base/limit.h"
#include "harness.h"

static struct limits *registry;
static struct limit_spec spec;

static void
set_up(void)
{
	crew_setup();
	registry = limits_new(CREW, crew_wake, NULL);
	spec = (struct limit_spec){
		.name = "some",
		.gate = { .queue_timeout = NSEC_PER_SEC, .limit = 2 },
		.keys = 64,
	};
}

static void
clean_up(void)
{
	limits_free(&registry);
}

START_TEST(the_size_of_tables_is_known_before)
{
	spec.keys = 65536;
	ck_assert_uint_eq(limit_tables(&spec, 1), 0);
	spec.key.what = LIMIT_KEY_CLIENT_ADDRESS;
	ck_assert_uint_ge(limit_tables(&spec, 1), 65536 * 8);
	size_t with_gate = limit_tables(&spec, 1);
	spec.rate = 1;
	ck_assert_uint_ge(limit_tables(&spec, 1), with_gate + 65536 * 8);
}
END_TEST

/* What malloc() has given; always 0 under a sanitizer. */
static size_t
allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

enum { FEW = 50 };

/* So many limits of the spec take what is said, and not far less. */
static void
check_memory(void)
{
	struct limit *few[FEW];
	size_t said = FEW * limit_memory(&spec, CREW);
	size_t before = allocated();
	char name[8];

	for (int i = 0; i < FEW; i++) {
		snprintf(name, sizeof name, "n%d", i);
		spec.name = name;
		few[i] = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0, 0);
	}
	size_t taken = allocated() - before;
	for (int i = 0; i < FEW; i++)
		limit_unref(registry, &few[i]);
	if (before == 0)
		return;
	ck_assert_uint_le(taken, said);
	ck_assert_uint_gt(taken, said / 2);
}

START_TEST(memory_is_known_before)
{
	spec.gate.limit = 0;
	spec.rate = 1;
	spec.rate_span = NSEC_PER_SEC;
	spec.burst = 1;
	check_memory();
	spec.gate.limit = 10;
	check_memory();
	spec.gate.by_key = true;
	spec.gate.queue = 10;
	check_memory();
	spec.gate.limit = 0;
	spec.adapt = (struct adapt_bounds){ 1, 100 };
	check_memory();
	spec.adapt = (struct adapt_bounds){ 0, 0 };
	spec.gate.by_key = false;
	spec.gate.limit = 10;
	spec.key.what = LIMIT_KEY_CLIENT_ADDRESS;
	check_memory();
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("limit/memory");
	TCase *t = tcase_create("memory");

	tcase_add_checked_fixture(t, set_up, clean_up);
	tcase_add_test(t, the_size_of_tables_is_known_before);
	tcase_add_test(t, memory_is_known_before);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	return run_suite(suite());
}
