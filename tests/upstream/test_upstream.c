/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_upstream.c - src/upstream/upstream.c: one after another of a name
 */
#include "upstream/upstream.h"

#include "harness.h"

enum { WORKERS = 2, MOST = 4 };

static struct upstream *
make(const char *servers, uint64_t pool_max, const struct upstream *before)
{
	static struct conf_server confs[MOST];
	static char texts[MOST][2];
	struct conf_upstream conf = {
		.name_ = "u", .pool_max = pool_max,
		.pool_idle = NSEC_PER_SEC,
		.server = { confs, strlen(servers) },
	};

	for (unsigned i = 0; i < conf.server.count; i++) {
		texts[i][0] = servers[i];
		confs[i] = (struct conf_server){ .text = texts[i],
		    .weight = i + 1 };
		ck_assert(addr_parse_ip(&confs[i].addr, "127.0.0.1", 9,
		    (uint16_t)servers[i]));
	}
	return upstream_new(&conf, WORKERS, before);
}

static const struct pool_group *
group(const struct upstream *u, unsigned i)
{
	return &u->servers[i].server->local[1].pool;
}

START_TEST(servers_are_kept_wherever_they_stand)
{
	struct upstream *a = make("xyz", 4, NULL), *b;
	struct server *x = a->servers[0].server, *z = a->servers[2].server;

	b = make("zax", 4, a);
	ck_assert_ptr_eq(b->servers[0].server, z);
	ck_assert_ptr_eq(b->servers[2].server, x);
	ck_assert_ptr_ne(b->servers[1].server, a->servers[1].server);
	ck_assert_uint_eq(b->servers[0].weight, 1);
	ck_assert_uint_eq(a->servers[2].weight, 3);
	ck_assert_ptr_eq(a->stats, b->stats);
	upstream_free(&a);
	ck_assert_str_eq(x->text, "x");
	ck_assert_str_eq(b->name, "u");
	ck_assert_uint_eq(atomic_load(&z->addr_count), 1);
	upstream_free(&b);
}
END_TEST

START_TEST(a_server_that_is_there_twice_is_two)
{
	struct upstream *a = make("xx", 4, NULL), *b = make("xx", 4, a);

	ck_assert_ptr_ne(a->servers[0].server, a->servers[1].server);
	ck_assert_ptr_eq(a->servers[0].server, b->servers[0].server);
	ck_assert_ptr_eq(a->servers[1].server, b->servers[1].server);
	upstream_free(&b);
	b = make("xxx", 4, a);
	ck_assert_ptr_ne(b->servers[2].server, b->servers[0].server);
	ck_assert_ptr_ne(b->servers[2].server, b->servers[1].server);
	upstream_free(&a);
	upstream_free(&b);
}
END_TEST

START_TEST(nothing_is_kept_idle_for_a_server_that_is_gone)
{
	struct upstream *a = make("xy", 4, NULL), *b = make("y", 8, a);

	upstream_use(a, 1, 1);
	ck_assert_uint_eq(group(a, 0)->max, 2);
	upstream_use(b, 1, 2);
	upstream_disuse(a, 1, 2);
	ck_assert_uint_eq(group(a, 0)->max, 0);
	ck_assert_uint_eq(group(b, 0)->max, 4);
	ck_assert_uint_eq(a->servers[1].server->local[0].pool.max, 2);
	upstream_free(&a);
	upstream_free(&b);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("upstream");
	TCase *t = tcase_create("reload");

	tcase_add_test(t, servers_are_kept_wherever_they_stand);
	tcase_add_test(t, a_server_that_is_there_twice_is_two);
	tcase_add_test(t, nothing_is_kept_idle_for_a_server_that_is_gone);
	suite_add_tcase(s, t);
	return run_suite(s);
}
