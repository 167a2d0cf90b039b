/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limit.c - src/base/limit.c and limits.c
 */
#include <check.h>
#include <string.h>

#include "base/addr.h"
#include "base/crew.h"
#include "base/limit.h"
#include "harness.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

enum { PASSES = 8 };

#define KEY		(UINT64_C(1234567) << 40)
#define OTHER_KEY	(UINT64_C(7654321) << 40)

static struct limits *registry;
static struct limit *l;
static struct limit_spec spec;
static struct limit_pass passes[PASSES];
static int served;
static enum failure last_why, why;
static nsec_t now;

static void
on_served(struct gate_waiter *w, enum failure how)
{
	struct limit_pass *p = container_of(w, struct limit_pass, waiter);

	ck_assert_int_eq(p->inside, how == FAIL_NONE);
	ck_assert_ptr_eq(p->owner, passes);
	served++;
	last_why = how;
}

static void
set_up_passes(uint64_t key)
{
	for (int i = 0; i < PASSES; i++) {
		limit_pass_init(&passes[i], l, key, on_served);
		passes[i].owner = passes;
	}
}

static void
get_limit(void)
{
	limit_unref(registry, &l);
	l = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0, now);
	set_up_passes(spec.key.what == LIMIT_KEY_NONE ? 0 : KEY);
}

static void
nothing_limited(void)
{
	crew_setup();
	now = 1000 * SEC;
	served = 0;
	registry = limits_new(CREW, crew_wake, NULL);
	spec = (struct limit_spec){
		.name = "some",
		.gate = { .queue_timeout = SEC, .queue = 2 },
		.keys = 64,
	};
	l = NULL;
}

static void
two_places(void)
{
	nothing_limited();
	spec.gate.limit = 2;
	get_limit();
}

static void
ten_a_second_burst_three(void)
{
	nothing_limited();
	spec.rate = 10;
	spec.rate_span = SEC;
	spec.burst = 3;
	get_limit();
}

static void
clean_up(void)
{
	for (int i = 0; i < PASSES; i++) {
		if (passes[i].limit == NULL)
			continue;
		limit_leave(&passes[i], 0, now, FAIL_NONE);
		limit_session_end(&passes[i]);
	}
	crew_settle();
	limit_unref(registry, &l);
	limits_free(&registry);
	ck_assert_ptr_null(registry);
	memset(passes, 0, sizeof passes);
}

static enum gate_result
enter(int i)
{
	return limit_enter(&passes[i], 0, now, &why);
}

/* --- what limits_look() says ------------------------------------------- */

static struct seen {
	int			 lines;
	struct gate_state	 gate;
	uint64_t		 refused[FAIL_COUNT];
	uint64_t		 waits;
} seen;

static limit_look_fn on_look;

static void
on_look(void *arg, const struct limit_state *s)
{
	struct seen *v = arg;

	ck_assert_str_eq(s->name, "some");
	v->lines++;
	v->gate = s->gate;
	memcpy(v->refused, s->refused, sizeof v->refused);
	v->waits = hist_total(&s->waits);
}

static const struct seen *
look(void)
{
	seen = (struct seen){ .lines = 0 };
	limits_look(registry, now, on_look, &seen);
	return &seen;
}

/* --- concurrency; each with and without a key -------------------------- */

static void
with_key_or_without(int key)
{
	spec.key.what = key != 0 ? LIMIT_KEY_CLIENT_ADDRESS : LIMIT_KEY_NONE;
	get_limit();
}

START_TEST(places_are_taken_waited_for_and_refused)
{
	with_key_or_without(_i);
	ck_assert_int_eq(enter(0), GATE_TAKEN);
	ck_assert_int_eq(enter(1), GATE_TAKEN);
	ck_assert_int_eq(enter(2), GATE_WAITS);
	ck_assert_int_eq(enter(3), GATE_WAITS);
	ck_assert_int_eq(enter(4), GATE_REFUSED);
	ck_assert_int_eq(why, FAIL_QUEUE_FULL);
	ck_assert(passes[0].inside && !passes[2].inside);
	ck_assert_uint_eq(look()->gate.in_use, 2);
	ck_assert_uint_eq(look()->gate.waiting, 2);
	ck_assert_uint_eq(look()->gate.limit, 2);
	ck_assert_uint_eq(look()->refused[FAIL_QUEUE_FULL], 1);
}
END_TEST

START_TEST(who_leaves_lets_a_waiter_in)
{
	with_key_or_without(_i);
	for (int i = 0; i < 4; i++)
		(void)!enter(i);
	now += 5 * MSEC;
	limit_leave(&passes[0], 0, now, FAIL_NONE);
	limit_leave(&passes[0], 0, now, FAIL_NONE);
	crew_settle();
	ck_assert_int_eq(served, 1);
	ck_assert_int_eq(last_why, FAIL_NONE);
	ck_assert(passes[2].inside);
	ck_assert_uint_eq(look()->waits, 1);
	ck_assert_uint_eq(look()->gate.in_use, 2);
}
END_TEST

START_TEST(a_wait_that_ends_is_counted_with_its_reason)
{
	with_key_or_without(_i);
	for (int i = 0; i < 3; i++)
		(void)!enter(i);
	now += SEC;
	limit_leave(&passes[2], 0, now, FAIL_QUEUE_TIMEOUT);
	limit_leave(&passes[1], 0, now, FAIL_QUEUE_TIMEOUT);
	ck_assert_uint_eq(look()->refused[FAIL_QUEUE_TIMEOUT], 1);
	ck_assert_uint_eq(look()->waits, 1);
	ck_assert_uint_eq(look()->gate.waiting, 0);
	ck_assert_uint_eq(look()->gate.in_use, 1);
	crew_settle();
	ck_assert_int_eq(served, 0);
}
END_TEST

START_TEST(a_raised_limit_lets_waiters_in)
{
	with_key_or_without(_i);
	for (int i = 0; i < 4; i++)
		(void)!enter(i);
	spec.gate.limit = 3;
	struct limit *again = limits_get(registry, &spec, LIMIT_AT_LISTENER,
	    0, now);
	ck_assert_ptr_eq(again, l);
	crew_settle();
	ck_assert_int_eq(served, 1);
	spec.gate.limit = 0;
	limit_unref(registry, &again);
	again = limits_get(registry, &spec, LIMIT_AT_LISTENER, 0, now);
	crew_settle();
	ck_assert_int_eq(served, 2);
	ck_assert_uint_eq(look()->gate.in_use, 4);
	limit_unref(registry, &again);
}
END_TEST

START_TEST(a_gate_can_come_in_a_reload)
{
	with_key_or_without(_i);
	ck_assert_int_eq(enter(0), GATE_TAKEN);
	ck_assert(!passes[0].inside);
	spec.gate.limit = 1;
	struct limit *again = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0,
	    now);
	ck_assert_int_eq(enter(1), GATE_TAKEN);
	ck_assert_int_eq(enter(2), GATE_WAITS);
	limit_leave(&passes[0], 0, now, FAIL_NONE);
	crew_settle();
	ck_assert_int_eq(served, 0);
	limit_unref(registry, &again);
}
END_TEST

START_TEST(keys_do_not_touch_each_other)
{
	with_key_or_without(1);
	passes[2].key = OTHER_KEY;
	passes[3].key = OTHER_KEY;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(enter(i), GATE_TAKEN);
	ck_assert_int_eq(enter(4), GATE_WAITS);
}
END_TEST

START_TEST(a_full_table_refuses_or_allows)
{
	spec.keys = 1;
	spec.allow_when_full = _i != 0;
	with_key_or_without(1);
	for (uint64_t i = 0; i < PASSES; i++)
		passes[i].key = (i + 1) << 40;
	for (int i = 0; i < 7; i++)
		ck_assert_int_eq(enter(i), GATE_TAKEN);
	ck_assert_int_eq(enter(7), _i != 0 ? GATE_TAKEN : GATE_REFUSED);
	ck_assert(_i != 0 || why == FAIL_KEYS_FULL);
	ck_assert_uint_eq(look()->gate.in_use, 7);
	limit_leave(&passes[7], 0, now, FAIL_NONE);
	ck_assert_uint_eq(look()->gate.in_use, 7);
}
END_TEST

/* --- rate; each with and without a key --------------------------------- */

START_TEST(a_burst_passes_and_then_the_wait_is_said)
{
	with_key_or_without(_i);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(limit_rate(&passes[i], now), 0);
	ck_assert_uint_eq(limit_rate(&passes[3], now), SEC / 10);
	ck_assert(passes[2].charged && !passes[3].charged);
	ck_assert_uint_eq(limit_retry_after(&passes[3], now), SEC / 10);
	ck_assert_uint_eq(look()->refused[FAIL_RATE_LIMITED], 1);
	now += SEC / 10;
	ck_assert_uint_eq(limit_retry_after(&passes[3], now), 1);
	ck_assert_uint_eq(limit_rate(&passes[3], now), 0);
}
END_TEST

START_TEST(a_token_may_be_waited_for)
{
	spec.wait = SEC / 5;
	with_key_or_without(_i);
	for (int i = 0; i < 3; i++)
		(void)!limit_rate(&passes[i], now);
	ck_assert_uint_eq(limit_rate(&passes[3], now), SEC / 10);
	ck_assert(passes[3].charged);
	ck_assert_uint_eq(limit_rate(&passes[4], now), SEC / 5);
	ck_assert_uint_eq(limit_rate(&passes[5], now), 3 * SEC / 10);
	ck_assert(!passes[5].charged);
}
END_TEST

START_TEST(a_token_given_back_can_be_taken_again)
{
	with_key_or_without(_i);
	for (int i = 0; i < 3; i++)
		(void)!limit_rate(&passes[i], now);
	limit_rate_undo(&passes[0]);
	limit_rate_undo(&passes[0]);
	ck_assert_uint_eq(limit_rate(&passes[3], now), 0);
	ck_assert_uint_gt(limit_rate(&passes[4], now), 0);
}
END_TEST

START_TEST(a_reload_keeps_what_is_owed)
{
	with_key_or_without(_i);
	for (int i = 0; i < 3; i++)
		(void)!limit_rate(&passes[i], now);
	spec.rate = 20;
	struct limit *again = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0,
	    now);
	ck_assert_ptr_eq(again, l);
	ck_assert_uint_gt(limit_rate(&passes[3], now), 0);
	spec.rate = 0;
	limit_unref(registry, &again);
	again = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0, now);
	ck_assert_uint_eq(limit_rate(&passes[4], now), 0);
	limit_rate_undo(&passes[0]);
	limit_unref(registry, &again);
}
END_TEST

START_TEST(retry_after_counts_the_queue)
{
	spec.gate.limit = 1;
	spec.rate = 0;
	get_limit();
	for (int i = 0; i < 16; i++) {
		ck_assert_int_eq(enter(0), GATE_TAKEN);
		now += 100 * MSEC;
		limit_leave(&passes[0], 0, now, FAIL_NONE);
	}
	for (int i = 0; i < 3; i++)
		(void)!enter(i);
	ck_assert_uint_ge(limit_retry_after(&passes[4], now), 250 * MSEC);
	ck_assert_uint_le(limit_retry_after(&passes[4], now), 350 * MSEC);
}
END_TEST

/* --- sessions ---------------------------------------------------------- */

START_TEST(sessions_are_counted)
{
	spec.connections = 2;
	with_key_or_without(_i);
	ck_assert_int_eq(limit_session_begin(&passes[0]), FAIL_NONE);
	ck_assert_int_eq(limit_session_begin(&passes[1]), FAIL_NONE);
	ck_assert_int_eq(limit_session_begin(&passes[2]),
	    FAIL_CONNECTION_LIMIT);
	ck_assert_uint_eq(look()->refused[FAIL_CONNECTION_LIMIT], 1);
	limit_session_end(&passes[0]);
	limit_session_end(&passes[0]);
	limit_session_end(&passes[2]);
	ck_assert_int_eq(limit_session_begin(&passes[2]), FAIL_NONE);
	ck_assert_int_eq(limit_session_begin(&passes[3]),
	    FAIL_CONNECTION_LIMIT);
	passes[3].key = OTHER_KEY;
	ck_assert_int_eq(limit_session_begin(&passes[3]),
	    _i ? FAIL_NONE : FAIL_CONNECTION_LIMIT);
}
END_TEST

START_TEST(sessions_whose_keys_are_too_many_say_so)
{
	spec.connections = 2;
	spec.keys = 1;
	spec.allow_when_full = _i != 0;
	with_key_or_without(1);
	for (uint64_t i = 0; i < PASSES; i++)
		passes[i].key = (i + 1) << 40;
	for (int i = 0; i < 7; i++)
		ck_assert_int_eq(limit_session_begin(&passes[i]), FAIL_NONE);
	ck_assert_int_eq(limit_session_begin(&passes[7]),
	    _i != 0 ? FAIL_NONE : FAIL_KEYS_FULL);
	ck_assert_uint_eq(look()->refused[FAIL_KEYS_FULL], _i == 0);
}
END_TEST

START_TEST(without_a_number_sessions_are_not_counted)
{
	with_key_or_without(_i);
	ck_assert_int_eq(limit_session_begin(&passes[0]), FAIL_NONE);
	ck_assert(!passes[0].session);
	limit_session_end(&passes[0]);
}
END_TEST

/* --- the registry ------------------------------------------------------ */

START_TEST(ranks_are_in_order_unique_and_kept)
{
	static const enum limit_site sites[] = {
		LIMIT_AT_LISTENER, LIMIT_AT_ROUTE, LIMIT_AT_UPSTREAM,
	};
	struct limit *limits[5];
	char name[] = "a";

	for (int i = 0; i < 5; i++) {
		spec.key.what = i == 3 ? LIMIT_KEY_CLIENT_ADDRESS :
		    LIMIT_KEY_NONE;
		spec.name = name;
		limits[i] = limits_get(registry, &spec, sites[i % 3], 0, now);
		name[0]++;
	}
	/* keyed, upstream, the two routes in order, listener */
	ck_assert_uint_lt(limit_rank(limits[3]), limit_rank(limits[2]));
	ck_assert_uint_lt(limit_rank(limits[2]), limit_rank(limits[1]));
	ck_assert_uint_lt(limit_rank(limits[1]), limit_rank(limits[4]));
	ck_assert_uint_lt(limit_rank(limits[4]), limit_rank(limits[0]));

	uint32_t rank = limit_rank(limits[0]);
	spec.key.what = LIMIT_KEY_NONE;
	spec.name = "a";
	spec.gate.limit = 77;
	struct limit *again = limits_get(registry, &spec, LIMIT_AT_UPSTREAM,
	    0, now);
	ck_assert_uint_eq(limit_rank(again), rank);
	ck_assert_str_eq(limit_spec(again)->name, "a");
	ck_assert_uint_eq(limit_spec(again)->gate.limit, 77);
	limit_unref(registry, &again);
	for (int i = 0; i < 5; i++)
		limit_unref(registry, &limits[i]);
}
END_TEST

START_TEST(another_key_makes_another_limit)
{
	(void)!enter(0);
	spec.key.what = LIMIT_KEY_CLIENT_ADDRESS;
	struct limit *other = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0,
	    now);
	ck_assert_ptr_ne(other, l);
	ck_assert_uint_ne(limit_rank(other), limit_rank(l));
	/* Only the new one is shown; the old one still works. */
	ck_assert_int_eq(look()->lines, 1);
	ck_assert_uint_eq(look()->gate.in_use, 0);
	ck_assert_int_eq(enter(1), GATE_TAKEN);
	ck_assert_int_eq(enter(2), GATE_WAITS);
	limit_leave(&passes[0], 0, now, FAIL_NONE);
	crew_settle();
	ck_assert_int_eq(served, 1);
	limit_unref(registry, &other);
}
END_TEST

START_TEST(a_limit_with_mail_under_way_lives_on)
{
	for (int i = 0; i < 3; i++)
		(void)!enter(i);
	limit_leave(&passes[0], 0, now, FAIL_NONE);
	limit_leave(&passes[2], 0, now, FAIL_CLIENT_CLOSED);
	limit_leave(&passes[1], 0, now, FAIL_NONE);
	memset(passes, 0, sizeof passes);
	limit_unref(registry, &l);
	ck_assert_int_eq(look()->lines, 0);
	/* The mail would find freed memory otherwise. */
	ck_assert_uint_eq(crew_read(0), 1);
	get_limit();
	ck_assert_int_eq(look()->lines, 1);
	ck_assert_uint_eq(look()->gate.in_use, 0);
}
END_TEST

START_TEST(addresses_have_keys)
{
	struct addr a = { .family = ADDR_IP4, .ip = { 10, 0, 0, 1 } };
	struct addr b = { .family = ADDR_IP6, .ip = { 0x20, 1, 0xd, 0xb8 } };
	struct limit_by by = { .ip4_bits = 32, .ip6_bits = 64 };
	uint64_t key;

	key = limit_key_of_addr(registry, &by, &a);
	ck_assert_uint_ne(key, 0);
	a.port = 99;
	ck_assert_uint_eq(limit_key_of_addr(registry, &by, &a), key);
	a.ip[3] = 2;
	ck_assert_uint_ne(limit_key_of_addr(registry, &by, &a), key);

	key = limit_key_of_addr(registry, &by, &b);
	b.ip[15] = 1;
	ck_assert_uint_eq(limit_key_of_addr(registry, &by, &b), key);
	b.ip[7] = 1;
	ck_assert_uint_ne(limit_key_of_addr(registry, &by, &b), key);
}
END_TEST

static const struct { uint8_t bits, ip[4]; bool same; } prefixes[] = {
	{ 32, { 10, 1, 2, 3 }, true },	{ 32, { 10, 1, 2, 2 }, false },
	{ 31, { 10, 1, 2, 2 }, true },	{ 31, { 10, 1, 2, 1 }, false },
	{ 24, { 10, 1, 2, 99 }, true },	{ 24, { 10, 1, 3, 3 }, false },
	{ 20, { 10, 1, 15, 3 }, true },	{ 20, { 10, 1, 16, 3 }, false },
	{ 1, { 127, 9, 9, 9 }, true },	{ 1, { 128, 1, 2, 3 }, false },
};

START_TEST(clients_differ_in_so_many_bits)
{
	struct addr a = { .family = ADDR_IP4, .ip = { 10, 1, 2, 3 } };
	struct addr b = { .family = ADDR_IP4 };
	struct limit_by by = { .ip4_bits = prefixes[_i].bits };

	memcpy(b.ip, prefixes[_i].ip, 4);
	ck_assert((limit_key_of_addr(registry, &by, &a) ==
	    limit_key_of_addr(registry, &by, &b)) == prefixes[_i].same);
}
END_TEST

START_TEST(texts_have_keys_that_nobody_else_has)
{
	uint64_t key = limit_key_of_text(registry, STR("a"));

	ck_assert_uint_eq(limit_key_of_text(registry, STR("a")), key);
	ck_assert_uint_ne(limit_key_of_text(registry, STR("b")), key);
	ck_assert_uint_ne(limit_key_of_text(registry, STR("")),
	    LIMIT_KEY_ABSENT);
}
END_TEST

static void
add_gates(Suite *s)
{
	TCase *t = tcase_create("concurrency");

	tcase_add_checked_fixture(t, two_places, clean_up);
	tcase_add_loop_test(t, places_are_taken_waited_for_and_refused, 0, 2);
	tcase_add_loop_test(t, who_leaves_lets_a_waiter_in, 0, 2);
	tcase_add_loop_test(t, a_wait_that_ends_is_counted_with_its_reason, 0,
	    2);
	tcase_add_loop_test(t, a_raised_limit_lets_waiters_in, 0, 2);
	tcase_add_test(t, keys_do_not_touch_each_other);
	tcase_add_loop_test(t, a_full_table_refuses_or_allows, 0, 2);
	tcase_add_loop_test(t, sessions_are_counted, 0, 2);
	tcase_add_loop_test(t, sessions_whose_keys_are_too_many_say_so, 0, 2);
	tcase_add_loop_test(t, without_a_number_sessions_are_not_counted, 0,
	    2);
	suite_add_tcase(s, t);
}

static void
add_rates(Suite *s)
{
	TCase *t = tcase_create("rate");

	tcase_add_checked_fixture(t, ten_a_second_burst_three, clean_up);
	tcase_add_loop_test(t, a_burst_passes_and_then_the_wait_is_said, 0, 2);
	tcase_add_loop_test(t, a_token_may_be_waited_for, 0, 2);
	tcase_add_loop_test(t, a_token_given_back_can_be_taken_again, 0, 2);
	tcase_add_loop_test(t, a_reload_keeps_what_is_owed, 0, 2);
	tcase_add_loop_test(t, a_gate_can_come_in_a_reload, 0, 2);
	tcase_add_test(t, retry_after_counts_the_queue);
	suite_add_tcase(s, t);
}

static void
add_registry(Suite *s)
{
	TCase *t = tcase_create("registry");

	tcase_add_checked_fixture(t, two_places, clean_up);
	tcase_add_test(t, ranks_are_in_order_unique_and_kept);
	tcase_add_test(t, another_key_makes_another_limit);
	tcase_add_test(t, a_limit_with_mail_under_way_lives_on);
	tcase_add_test(t, addresses_have_keys);
	tcase_add_loop_test(t, clients_differ_in_so_many_bits, 0,
	    (int)ARRAY_LEN(prefixes));
	tcase_add_test(t, texts_have_keys_that_nobody_else_has);
	suite_add_tcase(s, t);
}

int
main(void)
{
	Suite *s = suite_create("limit");

	add_gates(s);
	add_rates(s);
	add_registry(s);
	return run_suite(s);
}
