/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_date.c - IMF-fixdate.
 */
#include "http/date.h"

#include "harness.h"

static const struct {
	time_t		 now;
	const char	*text;
} dates[] = {
	{ 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
	{ 784111777, "Sun, 06 Nov 1994 08:49:37 GMT" },	/* RFC 9110, 5.6.7 */
	{ 951782399, "Mon, 28 Feb 2000 23:59:59 GMT" },
	{ 951782400, "Tue, 29 Feb 2000 00:00:00 GMT" },
	{ 1735689599, "Tue, 31 Dec 2024 23:59:59 GMT" },	/* row 262 */
	{ 1735689600, "Wed, 01 Jan 2025 00:00:00 GMT" },
	{ 4102444800, "Fri, 01 Jan 2100 00:00:00 GMT" },
	{ 253402300799, "Fri, 31 Dec 9999 23:59:59 GMT" },
	{ 253402300800, "Thu, 01 Jan 1970 00:00:00 GMT" },
};

START_TEST(a_time_is_written_as_http_wants_it)
{
	struct date d = { 0 };

	ck_assert_str_eq(date_text(&d, dates[_i].now), dates[_i].text);
	ck_assert_str_eq(date_text(&d, dates[_i].now), dates[_i].text);
}
END_TEST

START_TEST(the_text_follows_the_time)
{
	struct date d = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(dates); i++)
		ck_assert_str_eq(date_text(&d, dates[i].now), dates[i].text);
	ck_assert_str_eq(date_text(&d, dates[0].now), dates[0].text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/date");
	TCase *t = tcase_create("date");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, a_time_is_written_as_http_wants_it, 0,
	    ARRAY_LEN(dates));
	tcase_add_test(t, the_text_follows_the_time);
	return run_suite(s);
}
