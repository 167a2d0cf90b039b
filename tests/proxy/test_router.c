/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_router.c - src/proxy/router.c
 */
#include "proxy/router.h"

#include <stdio.h>

#include "config/config.h"
#include "harness.h"
#include "proxy/setup.h"

static struct router *router;
static struct route	routes[8];

/* Have routes[index] take one host (NULL: any) and one path. */
static void
add(unsigned index, const char *host, const char *path)
{
	const char *hosts[] = { host }, *paths[] = { path };
	struct conf_route conf = {
		.host = { hosts, host != NULL },
		.path = { paths, 1 },
	};

	router_add(router, &conf, &routes[index]);
}

static int
find(const char *host, const char *path)
{
	const struct route *r = router_find(router, str_of(host),
	    str_of(path));

	return r != NULL ? (int)(r - routes) : -1;
}

static void
a_few_routes(void)
{
	router = router_new();
	add(0, "www.example.com", "/");
	add(1, "www.example.com", "/a/");
	add(2, "www.example.com", "/a/b");
	add(3, "*.example.com", "/");
	add(4, "*.deep.example.com", "/");
	add(5, NULL, "/open/");
	add(6, "only.example.com", "/x/");
	router_build(router);
}

static void
no_router(void)
{
	router_free(&router);
}

static const struct {
	const char	*host;
	const char	*path;
	int		 route;
} cases[] = {
	{ "www.example.com",		"/",		0 },
	{ "www.example.com",		"/z",		0 },
	{ "www.example.com",		"/a",		0 },
	{ "www.example.com",		"/a/",		1 },
	{ "www.example.com",		"/a/a",		1 },
	{ "www.example.com",		"/a/b",		2 },
	{ "www.example.com",		"/a/bc",	2 },
	{ "www.example.com",		"/a/c",		1 },
	{ "WWW.Example.COM",		"/",		0 },
	{ "www.example.com.",		"/",		0 },
	{ "other.example.com",		"/",		3 },
	{ "a.b.example.com",		"/",		3 },
	{ "a.deep.example.com",		"/",		4 },
	{ "deep.example.com",		"/",		3 },
	{ "example.com",		"/",		-1 },
	{ "notexample.com",		"/",		-1 },
	{ "elsewhere.org",		"/open/x",	5 },
	{ "elsewhere.org",		"/",		-1 },
	{ "",				"/open/",	5 },
	{ "",				"/",		-1 },
	/* The better host has no such path: the next best is asked. */
	{ "only.example.com",		"/x/",		6 },
	{ "only.example.com",		"/y",		3 },
	{ "example.com",		"/open/",	5 },
};

START_TEST(the_best_host_and_then_the_longest_path_wins)
{
	ck_assert_int_eq(find(cases[_i].host, cases[_i].path),
	    cases[_i].route);
}
END_TEST

START_TEST(a_host_too_long_to_be_a_name_is_taken_by_any_only)
{
	char host[1000];

	for (size_t i = 0; i < sizeof host - 1; i++)
		host[i] = 'a';
	host[sizeof host - 1] = '\0';
	ck_assert_int_eq(find(host, "/open/"), 5);
	ck_assert_int_eq(find(host, "/"), -1);
}
END_TEST

/* Against the plain way: look at all, keep the longest. */
START_TEST(a_thousand_paths_are_found_as_by_looking_at_all)
{
	enum { PATHS = 1000 };
	static char paths[PATHS][32];
	static struct route many[PATHS];
	unsigned seed = 1;

	no_router();
	router = router_new();
	for (unsigned i = 0; i < PATHS; i++) {
		const char *path = paths[i];
		struct conf_route conf = { .path = { &path, 1 } };

		snprintf(paths[i], sizeof paths[i], &"/%u/%u/%u"[3 * (i % 3)],
		    i % 7, i % 11, i);
		router_add(router, &conf, &many[i]);
	}
	router_build(router);
	for (unsigned n = 0; n < 20000; n++) {
		char path[48];
		size_t longest = 0;

		seed = seed * 1103515245 + 12345;
		snprintf(path, sizeof path, &"/%u/%u/%u"[3 * ((seed >> 8) % 3)],
		    (seed >> 16) % 7, (seed >> 16) % 11, (seed >> 16) % PATHS);
		for (unsigned i = 0; i < PATHS; i++)
			if (str_starts(str_of(path), str_of(paths[i])))
				longest = MAX(longest, strlen(paths[i]));
		const struct route *r = router_find(router, STR("h"),
		    str_of(path));
		if (longest == 0)
			ck_assert_ptr_null(r);
		else
			ck_assert_uint_eq(strlen(paths[r - many]), longest);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("router");
	TCase *t = tcase_create("router");

	tcase_add_checked_fixture(t, a_few_routes, no_router);
	tcase_add_loop_test(t, the_best_host_and_then_the_longest_path_wins,
	    0, (int)ARRAY_LEN(cases));
	tcase_add_test(t, a_host_too_long_to_be_a_name_is_taken_by_any_only);
	tcase_add_test(t, a_thousand_paths_are_found_as_by_looking_at_all);
	suite_add_tcase(s, t);
	return run_suite(s);
}
