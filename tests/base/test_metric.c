/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_metric.c - src/base/metric.c
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

#include "base/exemplar.h"
#include "base/hist.h"
#include "base/metric.h"

static struct metrics m;

static void
no_metrics(void)
{
	metrics_init(&m);
}

static void
free_metrics(void)
{
	metrics_fini(&m);
}

static void
check_text(const char *want)
{
	struct str text;

	ck_assert(metrics_text(&m, &text));
	ck_assert_msg(str_equal(text, str_of(want)), "\"%.*s\" is not \"%s\"",
	    STR_ARG(text), want);
}

START_TEST(nothing_written_is_no_text)
{
	check_text("");
}
END_TEST

START_TEST(a_metric_is_a_head_and_lines)
{
	metric_head(&m, "a_total", METRIC_COUNTER, "What a \\ is.\nYes \"a\".");
	metric_line(&m, "a_total", NO_LABELS, 0);
	metric_line(&m, "a_total", LABELS({ "x", "1" }), UINT64_MAX);
	metric_line(&m, "a_total", LABELS({ "x", "1" }, { "y", "" }), 7);
	check_text("# HELP penstock_a_total What a \\\\ is.\\nYes \"a\".\n"
	    "# TYPE penstock_a_total counter\n"
	    "penstock_a_total 0\n"
	    "penstock_a_total{x=\"1\"} 18446744073709551615\n"
	    "penstock_a_total{x=\"1\",y=\"\"} 7\n");
}
END_TEST

START_TEST(process_metrics_have_no_prefix)
{
	metric_head(&m, "process_open_fds", METRIC_GAUGE, "Open files.");
	metric_line(&m, "process_open_fds", NO_LABELS, 3);
	check_text("# HELP process_open_fds Open files.\n"
	    "# TYPE process_open_fds gauge\n"
	    "process_open_fds 3\n");
}
END_TEST

/* { value, as it is written } */
static const struct { const char *value, *written; } values[] = {
	{ "a b",		"a b" },
	{ "\"",			"\\\"" },
	{ "\\",			"\\\\" },
	{ "a\nb",		"a\\nb" },
	{ "\"} 1\npenstock_x 2", "\\\"} 1\\npenstock_x 2" },
	{ "\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac" },
	{ "\xe4x",		"\\\\xe4x" },
	{ "\xc3",		"\\\\xc3" },
};

START_TEST(a_label_can_hold_any_bytes)
{
	char want[128];

	metric_line(&m, "x", LABELS({ "l", values[_i].value }), 1);
	snprintf(want, sizeof want, "penstock_x{l=\"%s\"} 1\n",
	    values[_i].written);
	check_text(want);
}
END_TEST

/* { nanoseconds, as seconds } */
static const struct { nsec_t value; const char *written; } spans[] = {
	{ 0,				"0" },
	{ 1,				"0.000000001" },
	{ 100000,			"0.0001" },
	{ NSEC_PER_SEC,			"1" },
	{ 10 * NSEC_PER_SEC,		"10" },
	{ 1500 * NSEC_PER_MSEC,		"1.5" },
	{ UINT64_MAX,			"18446744073.709551615" },
};

START_TEST(spans_are_exact_seconds)
{
	char want[64];

	metric_seconds(&m, "x", NO_LABELS, spans[_i].value);
	snprintf(want, sizeof want, "penstock_x %s\n", spans[_i].written);
	check_text(want);
}
END_TEST

/* { number, as it is written } */
static const struct { double value; const char *written; } reals[] = {
	{ 0.5,		"0.5" },
	{ 0,		"0" },
	{ 1e18,		"1e+18" },
	{ NAN,		"NaN" },
	{ INFINITY,	"+Inf" },
	{ -INFINITY,	"-Inf" },
};

START_TEST(reals_are_what_prometheus_reads)
{
	char want[64];

	metric_real(&m, "x", NO_LABELS, reals[_i].value);
	snprintf(want, sizeof want, "penstock_x %s\n", reals[_i].written);
	check_text(want);
}
END_TEST

START_TEST(a_histogram_is_cumulative)
{
	struct hist h = { 0 };
	struct str text;

	hist_add(&h, 50000);
	hist_add(&h, 3 * NSEC_PER_MSEC);
	hist_add(&h, 3 * NSEC_PER_MSEC);
	hist_add(&h, 100 * NSEC_PER_SEC);
	metric_hist(&m, "h_seconds", LABELS({ "l", "x" }), &h);
	ck_assert(metrics_text(&m, &text));
	char *copy = strndup(text.at, text.len);
#define HAS(line)	ck_assert_msg(strstr(copy, line "\n") != NULL, \
			    "%s is not in:\n%s", line, copy)
	HAS("penstock_h_seconds_bucket{l=\"x\",le=\"0.0001\"} 1");
	HAS("penstock_h_seconds_bucket{l=\"x\",le=\"0.002\"} 1");
	HAS("penstock_h_seconds_bucket{l=\"x\",le=\"0.005\"} 3");
	HAS("penstock_h_seconds_bucket{l=\"x\",le=\"60\"} 3");
	HAS("penstock_h_seconds_bucket{l=\"x\",le=\"+Inf\"} 4");
	HAS("penstock_h_seconds_sum{l=\"x\"} 100.00605");
	HAS("penstock_h_seconds_count{l=\"x\"} 4");
#undef HAS
	free(copy);
}
END_TEST

START_TEST(a_histogram_without_labels_has_le_alone)
{
	struct hist h = { 0 };
	struct str text;

	metric_hist(&m, "h", NO_LABELS, &h);
	ck_assert(metrics_text(&m, &text));
	ck_assert(str_starts(text,
	    STR("penstock_h_bucket{le=\"0.0001\"} 0\n")));
	ck_assert(str_ends(text,
	    STR("penstock_h_sum 0\npenstock_h_count 0\n")));
}
END_TEST

START_TEST(the_text_grows_as_it_must)
{
	enum { LINES = 10000 };
	struct str text, line;
	int n = 0;

	for (int i = 0; i < LINES; i++)
		metric_line(&m, "x", LABELS({ "l", "some value" }), 1);
	ck_assert(metrics_text(&m, &text));
	while (str_split(&text, '\n', &line) && line.len > 0) {
		ck_assert(str_equal(line,
		    STR("penstock_x{l=\"some value\"} 1")));
		n++;
	}
	ck_assert_int_eq(n, LINES);
}
END_TEST

/* --- OpenMetrics -------------------------------------------------------- */

START_TEST(a_counter_s_family_has_no_total)
{
	m.open = true;
	metric_head(&m, "a_total", METRIC_COUNTER, "Say \"a\".");
	metric_line(&m, "a_total", NO_LABELS, 1);
	metric_head(&m, "b_total", METRIC_GAUGE, "A gauge may have it.");
	metric_line(&m, "b_total", NO_LABELS, 2);
	metrics_end(&m);
	check_text("# HELP penstock_a Say \\\"a\\\".\n"
	    "# TYPE penstock_a counter\n"
	    "penstock_a_total 1\n"
	    "# HELP penstock_b_total A gauge may have it.\n"
	    "# TYPE penstock_b_total gauge\n"
	    "penstock_b_total 2\n"
	    "# EOF\n");
}
END_TEST

/* Two families of one name would be refused. */
START_TEST(a_counter_beside_a_gauge_of_its_name_keeps_its_own)
{
	m.open = true;
	metric_head(&m, "a", METRIC_GAUGE, "Now.");
	metric_line(&m, "a", NO_LABELS, 1);
	metric_head(&m, "a_total", METRIC_COUNTER, "Ever.");
	metric_line(&m, "a_total", NO_LABELS, 2);
	check_text("# HELP penstock_a Now.\n"
	    "# TYPE penstock_a gauge\n"
	    "penstock_a 1\n"
	    "# HELP penstock_a_total Ever.\n"
	    "# TYPE penstock_a_total unknown\n"
	    "penstock_a_total 2\n");
}
END_TEST

START_TEST(the_older_format_has_no_end)
{
	metric_line(&m, "a", NO_LABELS, 1);
	metrics_end(&m);
	check_text("penstock_a 1\n");
}
END_TEST

static const char *
line_with(const char *part)
{
	static char copy[16384];
	struct str text;

	ck_assert(metrics_text(&m, &text));
	memcpy(copy, text.at, text.len);
	copy[text.len] = '\0';
	char *at = strstr(copy, part);
	ck_assert_msg(at != NULL, "%s is not in %s", part, copy);
	at[strcspn(at, "\n")] = '\0';
	return at;
}

START_TEST(exemplars_stand_behind_their_buckets)
{
	struct exemplar exemplars[HIST_BUCKETS] = { 0 };
	struct hist h = { 0 };

	hist_add(&h, 1500 * NSEC_PER_MSEC);
	exemplar_note(exemplars, &(struct exemplar_copy){ 0xabc,
	    1500 * NSEC_PER_MSEC, UINT64_C(1700000000123456789) });
	for (int open = 0; open < 2; open++) {
		metrics_fini(&m);
		m.open = open == 1;
		metric_hist_exemplars(&m, "x", LABELS({ "l", "v" }), &h,
		    exemplars);
		ck_assert_str_eq(line_with("le=\"2"), open == 0 ?
		    "le=\"2\"} 1" : "le=\"2.0\"} 1 # "
		    "{id=\"0000000000000abc\"} 1.5 1700000000.123");
		ck_assert_str_eq(line_with("le=\"5"), open == 0 ?
		    "le=\"5\"} 1" : "le=\"5.0\"} 1");
		ck_assert_str_eq(line_with("le=\"0.5"), "le=\"0.5\"} 0");
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("metric");
	TCase *t = tcase_create("metric");

	tcase_add_checked_fixture(t, no_metrics, free_metrics);
	tcase_add_test(t, nothing_written_is_no_text);
	tcase_add_test(t, a_metric_is_a_head_and_lines);
	tcase_add_test(t, process_metrics_have_no_prefix);
	tcase_add_loop_test(t, a_label_can_hold_any_bytes, 0,
	    (int)ARRAY_LEN(values));
	tcase_add_loop_test(t, spans_are_exact_seconds, 0,
	    (int)ARRAY_LEN(spans));
	tcase_add_loop_test(t, reals_are_what_prometheus_reads, 0,
	    (int)ARRAY_LEN(reals));
	tcase_add_test(t, a_histogram_is_cumulative);
	tcase_add_test(t, a_histogram_without_labels_has_le_alone);
	tcase_add_test(t, the_text_grows_as_it_must);
	tcase_add_test(t, a_counter_s_family_has_no_total);
	tcase_add_test(t, a_counter_beside_a_gauge_of_its_name_keeps_its_own);
	tcase_add_test(t, the_older_format_has_no_end);
	tcase_add_test(t, exemplars_stand_behind_their_buckets);
	suite_add_tcase(s, t);
	return run_suite(s);
}
