/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_credentials.c - src/http/credentials.c: whom a request names.
 */
#include <check.h>
#include <string.h>

#include "http/credentials.h"
#include "harness.h"

#define LONG_NAME \
	"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh" \
	"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh" \
	"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh" \
	"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh" \
	"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh" \
	"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE6Yg=="

static const struct {
	const char	*text, *user;
} cases[] = {
	{ "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin" },  /* RFC 7617, 2 */
	{ "basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin" },
	{ "BASIC   QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin" },
	{ "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ", "Aladdin" },
	{ "Basic YTo=",		"a" },
	{ "Basic Og==",		"" },
	{ "Basic YTpiOmM=",	"a" },
	/* No colon, no base64, too long: all of it. */
	{ "Basic YQ==",		"Basic YQ==" },
	{ "Basic Y*Q=",		"Basic Y*Q=" },
	{ "Basic",		"Basic" },
	{ "Basic ",		"Basic " },
	{ "Basic " LONG_NAME,	"Basic " LONG_NAME },
	{ "",			"" },
	{ "Bearer abc:def",	"Bearer abc:def" },
	{ "Basics YTo=",	"Basics YTo=" },
};

START_TEST(a_user_is_what_basic_names_and_else_all_of_it)
{
	char decoded[CREDENTIALS_USER_MAX];
	struct str user = credentials_user(str_of(cases[_i].text), decoded);

	ck_assert_uint_eq(user.len, strlen(cases[_i].user));
	ck_assert_mem_eq(user.at, cases[_i].user, user.len);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/credentials");
	TCase *t = tcase_create("http/credentials");

	tcase_add_loop_test(t, a_user_is_what_basic_names_and_else_all_of_it,
	    0, (int)ARRAY_LEN(cases));
	suite_add_tcase(s, t);
	return run_suite(s);
}
