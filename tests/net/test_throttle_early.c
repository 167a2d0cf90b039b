/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_throttle_early.c - what came before there was a stream to be throttled:
 * src/net/throttle.c
 */
#include <check.h>

#include "harness.h"
#include "net/throttle.h"

enum { BURST = 65536, RATE = 4000000 };

#define NOW	NSEC_PER_SEC

static struct pace pace;
static struct pace_spec spec;
static struct throttle throttle;

static void
set_up(void)
{
	pace_init(&pace);
	pace_spec_init(&spec, RATE, BURST);
	pace_set(&pace, &spec, 0);
	throttle_init(&throttle);
	throttle_add(&throttle, &pace, 0);
}

START_TEST(what_came_before_is_charged)
{
	nsec_t waits[THROTTLE_PACES];

	ck_assert(throttle_charge(&throttle, BURST, 0, NOW, waits));
	ck_assert_uint_eq(waits[0], 0);
	ck_assert(!throttle_charge(&throttle, RATE / 2, NSEC_PER_SEC / 4, NOW,
	    waits));
	ck_assert_uint_gt(waits[0], NSEC_PER_SEC / 4);
	ck_assert(throttle_charge(&throttle, RATE / 4, NSEC_PER_SEC / 2, NOW,
	    waits));
	ck_assert_uint_eq(waits[0], NSEC_PER_SEC / 4);
	ck_assert_uint_eq(pace_passed(&pace), 0);
	throttle_early_passes(&throttle, NOW);
	throttle_early_dropped(&throttle);
	ck_assert_uint_eq(pace_passed(&pace), BURST + RATE / 4);
}
END_TEST

START_TEST(what_came_before_and_never_passes_goes_back)
{
	nsec_t waits[THROTTLE_PACES];

	for (int i = 0; i < 10; i++) {
		ck_assert(throttle_charge(&throttle, BURST, 0, NOW, waits));
		throttle_early_dropped(&throttle);
	}
	ck_assert_uint_eq(pace_passed(&pace), 0);
}
END_TEST

/* Behind one that refuses, one for which it would take longer still. */
START_TEST(all_paces_say_how_long_and_a_refusal_is_free)
{
	struct pace wide, narrow;
	struct pace_spec wide_spec, narrow_spec;
	nsec_t waits[THROTTLE_PACES];

	pace_init(&wide);
	pace_init(&narrow);
	pace_spec_init(&wide_spec, 100 * RATE, 100 * BURST);
	pace_spec_init(&narrow_spec, RATE / 10, BURST);
	pace_set(&wide, &wide_spec, 0);
	pace_set(&narrow, &narrow_spec, 0);
	throttle_add(&throttle, &narrow, 0);
	throttle_add(&throttle, &wide, 0);
	for (int i = 0; i < 3; i++) {
		ck_assert(!throttle_charge(&throttle, BURST + RATE / 2, 0, NOW,
		    waits));
		ck_assert_uint_eq(waits[0], NSEC_PER_SEC / 2);
		ck_assert_uint_eq(waits[1], 5 * NSEC_PER_SEC);
		ck_assert_uint_eq(waits[2], 0);
	}
	throttle_early_passes(&throttle, NOW);
	ck_assert_uint_eq(pace_passed(&wide), 0);
	ck_assert(throttle_charge(&throttle, BURST, 0, NOW, waits));
	pace_fini(&wide);
	pace_fini(&narrow);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("net/throttle/early");
	TCase *t = tcase_create("early");

	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_add_test(t, what_came_before_is_charged);
	tcase_add_test(t, what_came_before_and_never_passes_goes_back);
	tcase_add_test(t, all_paces_say_how_long_and_a_refusal_is_free);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	return run_suite(suite());
}
