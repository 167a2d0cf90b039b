/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limit_saying.c - what limits say of themselves: dry run, quotas, the
 * peak and the self-check; src/base/limit_*.c and what they ask of gates.
 */
#include <check.h>
#include <string.h>

#include "base/crew.h"
#include "base/limit_own.h"
#include "base/rng.h"
#include "harness.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

enum { GUESTS = 12, ROUNDS = 20000 };

/* A limit, and some who pass it, each on a worker of its own. */
struct house {
	struct limit_spec	 spec;
	struct limit		*limit;
	struct limit_pass	 guests[GUESTS];
};

static struct limits *registry;
static struct house house, twin;
static nsec_t now;
static int served;

static void
on_served(struct gate_waiter *w, enum failure how)
{
	(void)w;
	served += how == FAIL_NONE;
}

/* Ask for it with the numbers as they are now, as a reload does. */
static void
reload(struct house *h)
{
	struct limit *old = h->limit;

	h->spec.gate.dry = h->spec.dry_run;
	h->limit = limits_get(registry, &h->spec, LIMIT_AT_ROUTE, 0, now);
	ck_assert(old == NULL || old == h->limit);
	limit_unref(registry, &old);
	crew_settle();
}

static void
furnish(struct house *h, const char *name, int keyed)
{
	h->spec.name = name;
	h->spec.rate_span = SEC;
	if (h->spec.keys == 0)
		h->spec.keys = 64;
	h->spec.gate.queue_timeout = SEC;
	if (keyed)
		h->spec.key.what = LIMIT_KEY_CLIENT_ADDRESS;
	reload(h);
	for (int i = 0; i < GUESTS; i++)
		limit_pass_init(&h->guests[i], h->limit,
		    keyed ? UINT64_C(77) << 40 : 0, on_served);
}

static void
set_up(void)
{
	crew_setup();
	registry = limits_new(CREW, crew_wake, NULL);
	memset(&house, 0, sizeof house);
	memset(&twin, 0, sizeof twin);
	now = 1000 * SEC;
	served = 0;
}

static void
leave(struct house *h, int i)
{
	limit_leave(&h->guests[i], (unsigned)i % CREW, now, FAIL_NONE);
	limit_session_end(&h->guests[i]);
	crew_settle();
}

static int64_t
unaccounted(const struct house *h)
{
	int64_t permits;

	ck_assert(limit_unaccounted(h->limit, &permits));
	return permits;
}

static void
empty(struct house *h)
{
	if (h->limit == NULL)
		return;
	for (int i = 0; i < GUESTS; i++)
		leave(h, i);
	ck_assert_int_eq(unaccounted(h), 0);
	limit_unref(registry, &h->limit);
}

static void
clean_up(void)
{
	empty(&house);
	empty(&twin);
	limits_free(&registry);
}

static enum failure why;

static enum gate_result
enter(struct house *h, int i)
{
	return limit_enter(&h->guests[i], (unsigned)i % CREW, now, &why);
}

/* --- what limits_look() says ------------------------------------------- */

struct seen {
	const char		*name;
	struct gate_state	 gate;
	uint64_t		 peak, holders, would_wait;
	uint64_t		 refused[FAIL_COUNT], would[FAIL_COUNT];
};

static void
on_look(void *arg, const struct limit_state *s)
{
	struct seen *v = arg;

	if (strcmp(s->name, v->name) != 0)
		return;
	v->gate = s->gate;
	v->peak = s->peak;
	v->holders = s->holders;
	v->would_wait = s->would_wait;
	memcpy(v->refused, s->refused, sizeof v->refused);
	memcpy(v->would, s->would_refuse, sizeof v->would);
}

static struct seen
look(const struct house *h)
{
	struct seen v = { .name = h->spec.name };

	limits_look(registry, now, on_look, &v);
	return v;
}

/* --- dry run; each with and without a key ------------------------------ */

static void
dry_house(int keyed, uint64_t permits, uint64_t queue)
{
	house.spec.dry_run = true;
	house.spec.gate.limit = permits;
	house.spec.gate.queue = queue;
	furnish(&house, "house", keyed);
}

START_TEST(all_are_let_in_and_counted_by_what_would_have_been)
{
	dry_house(_i, 2, 1);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(enter(&house, i), GATE_TAKEN);
	ck_assert(house.guests[2].inside && !house.guests[3].inside);
	ck_assert_int_eq(house.guests[2].would, FAIL_NONE);
	ck_assert_int_eq(house.guests[3].would, FAIL_QUEUE_FULL);
	ck_assert_uint_eq(look(&house).would_wait, 1);
	ck_assert_uint_eq(look(&house).would[FAIL_QUEUE_FULL], 2);
	ck_assert_uint_eq(look(&house).refused[FAIL_QUEUE_FULL], 0);
	ck_assert_uint_eq(look(&house).gate.in_use, 3);
	ck_assert_uint_eq(look(&house).gate.waiting, 0);
	leave(&house, 4);
	leave(&house, 0);
	ck_assert_uint_eq(look(&house).gate.in_use, 2);
	ck_assert_int_eq(enter(&house, 5), GATE_TAKEN);
	ck_assert_uint_eq(look(&house).would_wait, 2);
}
END_TEST

/* Where nobody would wait, the dry run knows exactly. */
START_TEST(as_many_would_be_refused_as_are)
{
	static bool in[GUESTS];
	uint64_t rng = 7;

	dry_house(_i, 4, 0);
	twin.spec = house.spec;
	twin.spec.dry_run = false;
	furnish(&twin, "twin", _i);
	memset(in, 0, sizeof in);
	for (int n = 0; n < ROUNDS; n++) {
		int i = (int)rng_below(&rng, GUESTS);

		if (in[i]) {
			leave(&house, i);
			leave(&twin, i);
			in[i] = false;
			continue;
		}
		house.guests[i].would = FAIL_NONE;
		ck_assert_int_eq(enter(&house, i), GATE_TAKEN);
		in[i] = enter(&twin, i) == GATE_TAKEN;
		ck_assert(in[i] == (house.guests[i].would == FAIL_NONE));
	}
	ck_assert_uint_gt(look(&twin).refused[FAIL_QUEUE_FULL], ROUNDS / 10);
	ck_assert_uint_eq(look(&twin).refused[FAIL_QUEUE_FULL],
	    look(&house).would[FAIL_QUEUE_FULL]);
	ck_assert_uint_eq(look(&house).would_wait, 0);
}
END_TEST

static nsec_t
charge(struct house *h, int i)
{
	h->guests[i].charged = false;
	h->guests[i].would = FAIL_NONE;
	return limit_rate(&h->guests[i], now);
}

START_TEST(as_many_tokens_would_be_missing_as_are)
{
	uint64_t rng = 8;

	house.spec.rate = 50;
	house.spec.burst = 5;
	house.spec.wait = 30 * MSEC;
	twin.spec = house.spec;
	house.spec.dry_run = true;
	furnish(&house, "house", _i);
	furnish(&twin, "twin", _i);
	uint64_t late = 0;
	for (int n = 0; n < ROUNDS; n++) {
		now += rng_below(&rng, 30 * MSEC);
		nsec_t wait = charge(&twin, 0);
		ck_assert_uint_eq(charge(&house, 0), 0);
		ck_assert(house.guests[0].charged == twin.guests[0].charged);
		late += wait > 0 && twin.guests[0].charged;
	}
	ck_assert_uint_gt(late, 0);
	ck_assert_uint_eq(look(&house).would_wait, late);
	ck_assert_uint_gt(look(&twin).refused[FAIL_RATE_LIMITED], 100);
	ck_assert_uint_eq(look(&twin).refused[FAIL_RATE_LIMITED],
	    look(&house).would[FAIL_RATE_LIMITED]);
}
END_TEST

START_TEST(who_would_be_refused_takes_neither_place_nor_token)
{
	house.spec.rate = 1;
	house.spec.burst = 2;
	dry_house(_i, 1, 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(limit_rate(&house.guests[i], now), 0);
		ck_assert_int_eq(enter(&house, i), GATE_TAKEN);
	}
	/* The second got its token back, which the third has taken. */
	ck_assert_int_eq(house.guests[1].would, FAIL_QUEUE_FULL);
	ck_assert(!house.guests[1].charged);
	ck_assert_int_eq(house.guests[2].would, FAIL_QUEUE_FULL);
	leave(&house, 0);
	ck_assert_uint_eq(limit_rate(&house.guests[3], now), 0);
	ck_assert_uint_eq(limit_rate(&house.guests[4], now), 0);
	ck_assert_int_eq(house.guests[4].would, FAIL_RATE_LIMITED);
	/* So it has no business at the gate. */
	ck_assert_int_eq(enter(&house, 4), GATE_TAKEN);
	ck_assert_uint_eq(look(&house).gate.in_use, 0);
	ck_assert_int_eq(enter(&house, 3), GATE_TAKEN);
	ck_assert_uint_eq(look(&house).gate.in_use, 1);
}
END_TEST

START_TEST(a_reload_lets_in_who_waits_and_loses_no_permit)
{
	dry_house(_i, 2, 4);
	house.spec.dry_run = false;
	reload(&house);
	for (int i = 0; i < 6; i++)
		(void)!enter(&house, i);
	ck_assert_int_eq(enter(&house, 6), GATE_REFUSED);
	ck_assert_uint_eq(look(&house).gate.waiting, 4);
	house.spec.dry_run = true;
	house.spec.gate.queue = 1;
	reload(&house);
	ck_assert_int_eq(served, 4);
	ck_assert_uint_eq(look(&house).gate.in_use, 6);
	ck_assert_int_eq(enter(&house, 6), GATE_TAKEN);
	ck_assert_int_eq(house.guests[6].would, FAIL_QUEUE_FULL);
	house.spec.dry_run = false;
	reload(&house);
	/* A debt, as if the limit had been lowered. */
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(enter(&house, 7), GATE_WAITS);
		leave(&house, 7);
		leave(&house, i);
	}
	ck_assert_int_eq(enter(&house, 7), GATE_WAITS);
	leave(&house, 4);
	ck_assert(house.guests[7].inside);
	ck_assert_uint_eq(look(&house).gate.in_use, 2);
	ck_assert_int_eq(unaccounted(&house), 0);
}
END_TEST

START_TEST(sessions_too)
{
	house.spec.connections = 2;
	dry_house(_i, 0, 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(limit_session_begin(&house.guests[i]),
		    FAIL_NONE);
	ck_assert_int_eq(house.guests[2].would, FAIL_CONNECTION_LIMIT);
	ck_assert_uint_eq(look(&house).would[FAIL_CONNECTION_LIMIT], 2);
	limit_session_end(&house.guests[2]);
	limit_session_end(&house.guests[1]);
	ck_assert_int_eq(limit_session_begin(&house.guests[4]), FAIL_NONE);
	ck_assert_int_eq(house.guests[4].would, FAIL_NONE);
}
END_TEST

/* A line has seven rows. */
START_TEST(a_full_table_would_refuse)
{
	house.spec.keys = 1;
	dry_house(1, 1, 4);
	for (int i = 0; i < 9; i++) {
		house.guests[i].key = (uint64_t)(i + 1) << 40;
		ck_assert_int_eq(enter(&house, i), GATE_TAKEN);
		ck_assert_int_eq(house.guests[i].would,
		    i < 7 ? FAIL_NONE : FAIL_KEYS_FULL);
	}
	ck_assert_uint_eq(look(&house).would[FAIL_KEYS_FULL], 2);
}
END_TEST

/* --- quotas ------------------------------------------------------------ */

static struct limit_quota
quota(void)
{
	struct limit_quota q;

	ck_assert(limit_quota(&house.guests[0], now, &q));
	return q;
}

START_TEST(a_quota_is_what_is_left)
{
	house.spec.rate = 10;
	house.spec.burst = 3;
	house.spec.wait = 250 * MSEC;
	furnish(&house, "house", _i);
	ck_assert_uint_eq(quota().most, 3);
	ck_assert_uint_eq(quota().span, 300 * MSEC);
	ck_assert_uint_eq(quota().left, 3);
	ck_assert_uint_eq(quota().more, 0);
	(void)!charge(&house, 0);
	ck_assert_uint_eq(quota().left, 2);
	ck_assert_uint_eq(quota().more, 100 * MSEC);
	now += 40 * MSEC;
	ck_assert_uint_eq(quota().more, 60 * MSEC);
	(void)!charge(&house, 0);
	ck_assert_uint_eq(quota().left, 1);
	ck_assert_uint_eq(quota().more, 60 * MSEC);
	(void)!charge(&house, 0);
	ck_assert_uint_eq(quota().left, 0);
	ck_assert_uint_eq(quota().more, 60 * MSEC);
	/* One that was charged before it was there is owed, too. */
	ck_assert_uint_eq(charge(&house, 0), 60 * MSEC);
	ck_assert_uint_eq(quota().left, 0);
	ck_assert_uint_eq(quota().more, 160 * MSEC);
	ck_assert_uint_eq(limit_retry_after(&house.guests[0], now),
	    160 * MSEC);
}
END_TEST

START_TEST(without_a_rate_there_is_no_quota)
{
	struct limit_quota q;

	house.spec.gate.limit = 1;
	furnish(&house, "house", _i);
	ck_assert(!limit_quota(&house.guests[0], now, &q));
}
END_TEST

/* --- peak and self-check ----------------------------------------------- */

START_TEST(a_peak_is_seen_for_a_minute_by_all_and_then_forgotten)
{
	house.spec.gate.limit = 8;
	furnish(&house, "house", _i);
	now += 100 * SEC;
	ck_assert_uint_eq(look(&house).peak, 0);
	for (int i = 0; i < 5; i++)
		(void)!enter(&house, i);
	for (int i = 0; i < 4; i++)
		leave(&house, i);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(look(&house).gate.in_use, 1);
		ck_assert_uint_eq(look(&house).peak, 5);
		now += 40 * SEC;
	}
	/* In the span that the last of these began there was only one. */
	now += 20 * SEC;
	ck_assert_uint_eq(look(&house).peak, 1);
	ck_assert_uint_eq(look(&house).peak, 1);
	(void)!enter(&house, 0);
	ck_assert_uint_eq(look(&house).peak, 2);
}
END_TEST

/* Of a gate, whose peak is exact, also when the limit moves. */
START_TEST(a_peak_keeps_its_measure_when_the_limit_moves)
{
	house.spec.gate.limit = 4;
	house.spec.gate.queue = 4;
	furnish(&house, "house", 0);
	for (int i = 0; i < 3; i++)
		(void)!enter(&house, i);
	leave(&house, 2);
	ck_assert_uint_eq(look(&house).peak, 3);
	house.spec.gate.limit = 1;
	reload(&house);
	ck_assert_uint_eq(look(&house).peak, 3);
	house.spec.gate.limit = 100;
	reload(&house);
	ck_assert_uint_eq(look(&house).peak, 3);
	for (int i = 2; i < 6; i++)
		(void)!enter(&house, i);
	ck_assert_uint_eq(look(&house).peak, 6);
}
END_TEST

START_TEST(who_waited_is_in_the_peak_and_among_the_holders)
{
	house.spec.gate.limit = 1;
	house.spec.gate.queue = 4;
	furnish(&house, "house", _i);
	for (int i = 0; i < 4; i++)
		(void)!enter(&house, i);
	ck_assert_uint_eq(look(&house).holders, 1);
	house.spec.gate.limit = 4;
	reload(&house);
	ck_assert_uint_eq(look(&house).holders, 4);
	ck_assert_uint_eq(look(&house).gate.in_use, 4);
	for (int i = 0; i < 4; i++)
		leave(&house, i);
	ck_assert_uint_eq(look(&house).peak, 4);
	ck_assert_uint_eq(look(&house).holders, 0);
}
END_TEST

static struct keygate_waiter secret;

static bool
take_secretly(void)
{
	struct keygate_call call = { house.guests[0].key, 0, now };

	if (house.limit->gate != NULL)
		return gate_try(house.limit->gate);
	keygate_waiter_init(&secret, on_served);
	return keygate_take(house.limit->keygate, &call, &secret, &why) ==
	    GATE_TAKEN;
}

static void
give_secretly(void)
{
	if (house.limit->gate != NULL)
		gate_release(house.limit->gate, 0, now);
	else
		keygate_release(house.limit->keygate, 0, secret.row, now);
}

START_TEST(a_permit_given_back_twice_or_lost_shows)
{
	house.spec.gate.limit = 4;
	furnish(&house, "house", _i);
	for (int i = 0; i < 3; i++)
		(void)!enter(&house, i);
	ck_assert_int_eq(unaccounted(&house), 0);
	if (_i == 0)
		gate_release(house.limit->gate, 0, now);
	else
		keygate_release(house.limit->keygate, 0,
		    house.guests[0].keyed.row, now);
	ck_assert_int_eq(unaccounted(&house), -1);
	/* And what was lost. */
	for (int i = 0; i < 2; i++)
		ck_assert(take_secretly());
	ck_assert_int_eq(unaccounted(&house), 1);
	ck_assert_uint_eq(look(&house).holders, 3);
	limit_count(&house.limit->sides[0].entered);
	ck_assert_int_eq(unaccounted(&house), 0);
	limit_count(&house.limit->sides[0].left);
	give_secretly();
}
END_TEST

/* Holders: a have entered and b left before, c and d after. */
struct reading {
	uint64_t	a, b;
	uint64_t	given;
	uint64_t	c, d;
	bool		sure;
	int64_t		permits;
};

START_TEST(only_what_is_sure_is_said)
{
	static const struct reading readings[] = {
		/* Nobody comes or goes. */
		{ 10, 4, 6, 10, 4, true, 0 },
		{ 10, 4, 7, 10, 4, true, 1 },
		{ 10, 4, 5, 10, 4, true, -1 },
		/* Two come and three go: six to eight are held, or three. */
		{ 10, 4, 8, 12, 7, false, 0 },
		{ 10, 4, 3, 12, 7, false, 0 },
		{ 10, 4, 9, 12, 7, true, 1 },
		{ 10, 4, 12, 12, 7, true, 4 },
		{ 10, 4, 2, 12, 7, true, -1 },
		{ 10, 4, 0, 12, 7, true, -3 },
	};
	const struct reading *r = &readings[_i];
	struct limit_account before = { r->a, r->b }, after = { r->c, r->d };
	int64_t permits;

	ck_assert(_i < (int)ARRAY_LEN(readings));
	ck_assert(limit_is_sure(&before, r->given, &after, &permits) ==
	    r->sure);
	if (r->sure)
		ck_assert_int_eq(permits, r->permits);
}
END_TEST

static void
add_dry(Suite *s)
{
	TCase *t = tcase_create("dry run");

	tcase_add_checked_fixture(t, set_up, clean_up);
	tcase_add_loop_test(t,
	    all_are_let_in_and_counted_by_what_would_have_been, 0, 2);
	tcase_add_loop_test(t, as_many_would_be_refused_as_are, 0, 2);
	tcase_add_loop_test(t, as_many_tokens_would_be_missing_as_are, 0, 2);
	tcase_add_loop_test(t,
	    who_would_be_refused_takes_neither_place_nor_token, 0, 2);
	tcase_add_loop_test(t, a_reload_lets_in_who_waits_and_loses_no_permit,
	    0, 2);
	tcase_add_loop_test(t, sessions_too, 0, 2);
	tcase_add_test(t, a_full_table_would_refuse);
	suite_add_tcase(s, t);
}

static void
add_saying(Suite *s)
{
	TCase *t = tcase_create("saying");

	tcase_add_checked_fixture(t, set_up, clean_up);
	tcase_add_loop_test(t, a_quota_is_what_is_left, 0, 2);
	tcase_add_loop_test(t, without_a_rate_there_is_no_quota, 0, 2);
	tcase_add_loop_test(t,
	    a_peak_is_seen_for_a_minute_by_all_and_then_forgotten, 0, 2);
	tcase_add_test(t, a_peak_keeps_its_measure_when_the_limit_moves);
	tcase_add_loop_test(t,
	    who_waited_is_in_the_peak_and_among_the_holders, 0, 2);
	tcase_add_loop_test(t, a_permit_given_back_twice_or_lost_shows, 0, 2);
	tcase_add_loop_test(t, only_what_is_sure_is_said, 0, 9);
	suite_add_tcase(s, t);
}

int
main(void)
{
	Suite *s = suite_create("limit_saying");

	add_dry(s);
	add_saying(s);
	return run_suite(s);
}
