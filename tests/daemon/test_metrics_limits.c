/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_metrics_limits.c - src/daemon/metrics_limits.c
 *
 * The linker is told to put the __wrap_ functions in front of the real ones.
 */
#include "daemon/metrics_limits.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "proxy/setup.h"

enum { LIMITS = 3 };

static struct limits *registry;
static struct limit *held[LIMITS];
static struct setup setup;
static struct metrics page;
static unsigned looks;
static bool goes_meanwhile, has_no_memory;

void __real_limits_look(struct limits *l, nsec_t now, limit_look_fn *fn,
    void *arg);
void __wrap_limits_look(struct limits *l, nsec_t now, limit_look_fn *fn,
    void *arg);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

/* As if the last exchange of an old configuration ended just after it. */
void
__wrap_limits_look(struct limits *l, nsec_t now, limit_look_fn *fn, void *arg)
{
	looks++;
	__real_limits_look(l, now, fn, arg);
	if (goes_meanwhile)
		limit_unref(registry, &held[1]);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return has_no_memory ? NULL : __real_calloc(n, size);
}

static void
wake(void *arg, unsigned worker, struct mail *m)
{
	(void)arg;
	(void)worker;
	m->kind->fn(m);
}

static void
set_up(void)
{
	static const char *const names[LIMITS] = { "a", "b", "c" };

	registry = limits_new(2, wake, NULL);
	setup = (struct setup){ .registry = registry };
	for (int i = 0; i < LIMITS; i++) {
		struct limit_spec spec = {
			.name = names[i],
			.gate = { .limit = 1 + (uint64_t)i },
			.keys = 64,
		};

		if (i == 1)
			spec.key.what = LIMIT_KEY_CLIENT_ADDRESS;
		held[i] = limits_get(registry, &spec, LIMIT_AT_ROUTE, 0, 0);
	}
	metrics_init(&page);
	looks = 0;
	goes_meanwhile = has_no_memory = false;
}

static void
tear_down(void)
{
	metrics_fini(&page);
	/* No reference was kept. */
	for (int i = 0; i < LIMITS; i++)
		limit_unref(registry, &held[i]);
	ck_assert_uint_eq(limits_count(registry), 0);
	limits_free(&registry);
}

static const char *
gather(void)
{
	static char copy[64 * 1024];
	struct str text;

	metrics_gather_limits(&page, &(struct metrics_source){
		.setup = &setup,
	});
	ck_assert(metrics_text(&page, &text) && text.len < sizeof copy);
	memcpy(copy, text.at, text.len);
	copy[text.len] = '\0';
	return copy;
}

static void
assert_lines(const char *text)
{
	ck_assert_ptr_nonnull(strstr(text,
	    "penstock_limit_permits{limit=\"a\"} 1\n"
	    "penstock_limit_permits{limit=\"b\"} 2\n"
	    "penstock_limit_permits{limit=\"c\"} 3\n"));
	ck_assert_ptr_nonnull(strstr(text,
	    "penstock_limit_unaccounted{limit=\"a\"} 0\n"
	    "penstock_limit_unaccounted{limit=\"b\"} 0\n"
	    "penstock_limit_unaccounted{limit=\"c\"} 0\n"));
}

START_TEST(all_metrics_come_of_one_look)
{
	assert_lines(gather());
	ck_assert_uint_eq(looks, 1);
}
END_TEST

START_TEST(a_limit_that_goes_meanwhile_is_printed_and_then_gone)
{
	goes_meanwhile = true;
	assert_lines(gather());
	ck_assert_uint_eq(limits_count(registry), LIMITS - 1);
}
END_TEST

START_TEST(without_limits_there_are_heads)
{
	for (int i = 0; i < LIMITS; i++)
		limit_unref(registry, &held[i]);
	const char *text = gather();
	ck_assert_ptr_nonnull(strstr(text, "# TYPE penstock_limit_permits "));
	ck_assert_ptr_null(strstr(text, "{limit="));
}
END_TEST

START_TEST(without_memory_the_page_says_so)
{
	struct str text;

	has_no_memory = true;
	metrics_gather_limits(&page, &(struct metrics_source){
		.setup = &setup,
	});
	has_no_memory = false;
	ck_assert(!metrics_text(&page, &text));
}
END_TEST

static void
on_glance(void *arg, const struct limit_state *s)
{
	unsigned *seen = arg;

	if (strcmp(s->name, "a") != 0)
		return;
	++*seen;
	ck_assert_uint_eq(s->gate.in_use, 0);
	ck_assert_uint_eq(s->refused[FAIL_QUEUE_FULL], 1);
	ck_assert_uint_eq(s->peak, 0);
}

static uint64_t peak_seen;

static void
on_peak(void *arg, const struct limit_state *s)
{
	(void)arg;
	if (strcmp(s->name, "a") == 0)
		peak_seen = s->peak;
}

/* So that who looks only now and then misses no peak. */
START_TEST(a_glance_leaves_the_peak_alone)
{
	struct limit_pass p, q;
	enum failure why;
	nsec_t now = 1000 * NSEC_PER_SEC;
	unsigned seen = 0;

	limit_pass_init(&p, held[0], 0, NULL);
	limit_pass_init(&q, held[0], 0, NULL);
	ck_assert_int_eq(limit_enter(&p, 0, now, &why), GATE_TAKEN);
	ck_assert_int_eq(limit_enter(&q, 0, now, &why), GATE_REFUSED);
	limit_leave(&p, 0, now, FAIL_NONE);
	for (int i = 0; i < 200; i++)
		limits_glance(registry, now += NSEC_PER_SEC, on_glance,
		    &seen);
	ck_assert_uint_eq(seen, 200);
	__real_limits_look(registry, now, on_peak, NULL);
	ck_assert_uint_eq(peak_seen, 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("daemon/metrics_limits");
	TCase *t = tcase_create("metrics_limits");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, all_metrics_come_of_one_look);
	tcase_add_test(t,
	    a_limit_that_goes_meanwhile_is_printed_and_then_gone);
	tcase_add_test(t, without_limits_there_are_heads);
	tcase_add_test(t, without_memory_the_page_says_so);
	tcase_add_test(t, a_glance_leaves_the_peak_alone);
	return run_suite(s);
}
