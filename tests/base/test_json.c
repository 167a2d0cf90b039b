/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_json.c - src/base/json.c
 */
#include "base/json.h"

#include <math.h>

#include "harness.h"

static struct metrics page;
static struct json j;

static void
set_up(void)
{
	metrics_init(&page);
	json_init(&j, &page);
}

static void
tear_down(void)
{
	metrics_fini(&page);
}

static void
expect(const char *wanted)
{
	struct str text;
	char copy[4096];

	ck_assert(metrics_text(&page, &text));
	ck_assert_uint_lt(text.len, sizeof copy);
	memcpy(copy, text.at, text.len);
	copy[text.len] = '\0';
	ck_assert_str_eq(copy, wanted);
}

START_TEST(commas_stand_between_values_only)
{
	json_open_object(&j, NULL);
	json_number(&j, "a", 1);
	json_open_array(&j, "b");
	json_close_array(&j);
	json_open_array(&j, "c");
	json_number(&j, NULL, UINT64_MAX);
	json_open_object(&j, NULL);
	json_close_object(&j);
	json_flag(&j, NULL, false);
	json_close_array(&j);
	json_flag(&j, "d", true);
	json_null(&j, "e");
	json_close_object(&j);
	expect("{\"a\":1,\"b\":[],\"c\":[18446744073709551615,{},false],"
	    "\"d\":true,\"e\":null}");
}
END_TEST

START_TEST(numbers_are_such_as_json_has)
{
	json_open_array(&j, NULL);
	json_seconds(&j, NULL, 0);
	json_seconds(&j, NULL, 1500 * NSEC_PER_MSEC);
	json_real(&j, NULL, 0.25);
	json_real(&j, NULL, -2);
	json_real(&j, NULL, NAN);
	json_real(&j, NULL, HUGE_VAL);
	json_close_array(&j);
	expect("[0.000000000,1.500000000,0.25,-2,null,null]");
}
END_TEST

START_TEST(no_byte_ends_a_string)
{
	json_open_object(&j, NULL);
	json_text(&j, "q\"", STR("a\"b\\c\n\xff</script>"));
	json_close_object(&j);
	expect("{\"q\\\"\":\"a\\\"b\\\\c\\u000a\\u00ff</script>\"}");
}
END_TEST

/* A character that lies across the end of a piece stays one. */
START_TEST(a_long_string_is_one_string)
{
	char text[1000], wanted[2048] = "\"";

	for (size_t shift = 0; shift < 4; shift++) {
		size_t n = shift;

		memset(text, 'x', shift);
		for (; n + 3 < 700; n += 3)
			memcpy(text + n, "\xe2\x82\xac", 3);
		metrics_fini(&page);
		json_init(&j, &page);
		json_text(&j, NULL, str_make(text, n));
		memcpy(wanted + 1, text, n);
		memcpy(wanted + 1 + n, "\"", 2);
		expect(wanted);
	}
}
END_TEST

/* Six bytes for each, as many as fit a piece and more. */
START_TEST(the_longest_escapes_fit)
{
	char text[300];
	struct str made;

	memset(text, 1, sizeof text);
	json_text(&j, NULL, str_make(text, sizeof text));
	ck_assert(metrics_text(&page, &made));
	ck_assert_uint_eq(made.len, 6 * sizeof text + 2);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("json");
	TCase *t = tcase_create("json");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, commas_stand_between_values_only);
	tcase_add_test(t, numbers_are_such_as_json_has);
	tcase_add_test(t, no_byte_ends_a_string);
	tcase_add_test(t, a_long_string_is_one_string);
	tcase_add_test(t, the_longest_escapes_fit);
	suite_add_tcase(s, t);
	return run_suite(s);
}
