/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pool.c - src/upstream/pool.c
 */
#include "upstream/pool.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/block.h"
#include "harness.h"
#include "net/stream.h"

enum { MAX = 8 };

static struct loop		*loop;
static struct block_budget	 budget;
static struct blocks		 blocks;
static struct stream_totals	 totals;
static struct stream_pool	*streams;
static struct worker_stats	 stats;
static struct upstream_stats	 group_stats;
static struct pool		*pool;
static struct pool_group	 group;
static struct wheel_timer	 end;
static int			 peers[MAX];
static unsigned			 peer_count;

static void
on_end(struct wheel_timer *t)
{
	(void)t;
	loop_stop(loop);
}

/* Run the loop until `after` has passed. */
static void
run_for(nsec_t after)
{
	loop_arm(loop, &end, after);
	loop_run(loop);
}

static void
a_pool(void)
{
	loop = loop_new();
	block_budget_init(&budget, 1024 * 1024);
	blocks_init(&blocks, &budget);
	loop_set_blocks(loop, &blocks);
	streams = stream_pool_new(loop, MAX, &totals);
	pool = pool_new(loop, MAX, &stats);
	pool_group_init(&group, 2, 3600 * NSEC_PER_SEC, &group_stats);
	wheel_timer_init(&end, on_end);
	run_for(1);
}

static void
no_pool(void)
{
	pool_free(&pool);
	ck_assert_uint_eq(stat_read(&totals.open), 0);
	ck_assert_uint_eq(stat_read(&group_stats.pool_idle), 0);
	ck_assert_uint_eq(stat_read(&group_stats.pool_busy), 0);
	stream_pool_free(&streams);
	blocks_fini(&blocks);
	loop_cancel(loop, &end);
	loop_free(&loop);
	for (unsigned i = 0; i < peer_count; i++)
		if (peers[i] != -1)
			close(peers[i]);
	peer_count = 0;
}

/* A busy connection, whose other end is peers[]. */
static struct conn *
dial_one(struct pool_group *g)
{
	struct addr to = { .family = ADDR_UNIX, .path = "" };
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    fds), 0);
	peers[peer_count++] = fds[1];

	struct conn *c = conn_new(pool, g, stream_new(streams, fds[0]), &to);
	ck_assert_ptr_nonnull(c);
	return c;
}

START_TEST(the_newest_idle_one_is_taken_first)
{
	struct conn *a = dial_one(&group), *b = dial_one(&group);
	struct conn *first = a, *second = b;

	ck_assert_ptr_null(pool_take(pool, &group));
	ck_assert_uint_eq(group.busy_count, 2);
	conn_give(&a, NSEC_NEVER);
	conn_give(&b, NSEC_NEVER);
	ck_assert_ptr_null(a);
	ck_assert_uint_eq(stat_read(&group_stats.pool_idle), 2);
	a = pool_take(pool, &group);
	b = pool_take(pool, &group);
	ck_assert_ptr_eq(a, second);
	ck_assert_ptr_eq(b, first);
	ck_assert_ptr_null(pool_take(pool, &group));
	conn_close(&a);
	conn_close(&b);
}
END_TEST

START_TEST(beyond_max_the_coldest_is_closed)
{
	struct conn *c[3], *coldest;

	for (unsigned i = 0; i < 3; i++)
		c[i] = dial_one(&group);
	coldest = c[0];
	for (unsigned i = 0; i < 3; i++)
		conn_give(&c[i], NSEC_NEVER);
	ck_assert_uint_eq(group.idle_count, 2);
	ck_assert_uint_eq(stat_read(&stats.pool_expired), 1);
	for (unsigned i = 0; i < 2; i++) {
		c[i] = pool_take(pool, &group);
		ck_assert_ptr_ne(c[i], coldest);
		conn_close(&c[i]);
	}
}
END_TEST

START_TEST(with_other_numbers_only_as_many_stay_idle)
{
	struct conn *c[3], *coldest;

	for (unsigned i = 0; i < 3; i++)
		c[i] = dial_one(&group);
	coldest = c[0];
	conn_give(&c[0], NSEC_NEVER);
	conn_give(&c[1], NSEC_NEVER);
	pool_group_set(&group, 1, 3600 * NSEC_PER_SEC);
	ck_assert_uint_eq(group.idle_count, 1);
	c[1] = pool_take(pool, &group);
	ck_assert_ptr_ne(c[1], coldest);
	pool_group_set(&group, 0, 3600 * NSEC_PER_SEC);
	conn_give(&c[1], NSEC_NEVER);
	ck_assert(!pool_group_is_empty(&group));
	conn_give(&c[2], NSEC_NEVER);
	ck_assert(pool_group_is_empty(&group));
}
END_TEST

START_TEST(one_whose_server_closes_is_closed_at_once)
{
	struct conn *c = dial_one(&group);

	conn_give(&c, NSEC_NEVER);
	close(peers[0]);
	peers[0] = -1;
	run_for(20 * NSEC_PER_MSEC);
	ck_assert_uint_eq(group.idle_count, 0);
	ck_assert_uint_eq(stat_read(&stats.stale_closed), 1);
}
END_TEST

START_TEST(one_that_says_something_unasked_is_closed_at_once)
{
	struct conn *c = dial_one(&group);

	conn_give(&c, NSEC_NEVER);
	ck_assert_int_eq(write(peers[0], "HTTP/1.1 200 OK\r\n", 17), 17);
	run_for(20 * NSEC_PER_MSEC);
	ck_assert_uint_eq(group.idle_count, 0);
	ck_assert_uint_eq(stat_read(&stats.stale_bytes), 1);
}
END_TEST

/* A descriptor that is ready in the same turn as a connection. */
struct taker {
	struct watch	 watch;
	unsigned	 calls;
};

static void
on_taker(struct watch *w, unsigned ready)
{
	struct taker *t = container_of(w, struct taker, watch);

	(void)ready;
	watch_stop(w);
	t->calls++;
	ck_assert_ptr_null(pool_take(pool, &group));
}

/*
 * One of the two takers is called before the connection's own event, whatever
 * order the kernel and the loop have.
 */
START_TEST(one_that_has_just_said_something_is_not_taken)
{
	struct conn *c = dial_one(&group);
	struct watch_kind kind = { loop, on_taker };
	struct taker takers[2] = { 0 };
	int pipes[2][2];

	conn_give(&c, NSEC_NEVER);
	run_for(1);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(pipe(pipes[i]), 0);
		watch_init(&takers[i].watch, &kind, pipes[i][0]);
		watch_want(&takers[i].watch, WATCH_READ);
	}
	ck_assert_int_eq(write(pipes[0][1], "x", 1), 1);
	ck_assert_int_eq(write(peers[0], "HTTP/1.1 200 OK\r\n", 17), 17);
	ck_assert_int_eq(write(pipes[1][1], "x", 1), 1);
	run_for(20 * NSEC_PER_MSEC);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(takers[i].calls, 1);
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	ck_assert_uint_eq(group.idle_count, 0);
	ck_assert_uint_eq(stat_read(&stats.stale_bytes), 1);
}
END_TEST

/* A read of just the answer doesn't find what lies behind it. */
START_TEST(one_with_more_than_its_answer_is_not_taken)
{
	struct conn *c = dial_one(&group);
	char answer[2];

	ck_assert_int_eq(write(peers[0], "okX", 3), 3);
	ck_assert_int_eq(stream_recv(conn_stream(c), answer, 2), 2);
	conn_give(&c, NSEC_NEVER);
	ck_assert_ptr_null(pool_take(pool, &group));
	ck_assert_uint_eq(stat_read(&stats.stale_bytes), 1);

	c = dial_one(&group);
	ck_assert_int_eq(write(peers[1], "ok", 2), 2);
	ck_assert_int_eq(stream_recv(conn_stream(c), answer, 2), 2);
	conn_give(&c, NSEC_NEVER);
	c = pool_take(pool, &group);
	ck_assert_ptr_nonnull(c);
	conn_close(&c);
}
END_TEST

START_TEST(a_server_is_old_for_a_while)
{
	ck_assert(!pool_group_is_old(&group, 1));
	pool_group_spoke(&group, 0, 1);
	ck_assert(pool_group_is_old(&group, 1));
	ck_assert(pool_group_is_old(&group, POOL_OLD));
	ck_assert(!pool_group_is_old(&group, POOL_OLD + 1));
	pool_group_spoke(&group, 1, 2);
	ck_assert(!pool_group_is_old(&group, 2));
}
END_TEST

START_TEST(one_is_kept_no_longer_than_the_server_keeps_it)
{
	struct conn *c = dial_one(&group), *d = dial_one(&group);

	conn_give(&c, 10 * NSEC_PER_MSEC);
	conn_give(&d, 0);
	ck_assert_uint_eq(group.idle_count, 1);
	run_for(300 * NSEC_PER_MSEC);
	ck_assert_uint_eq(group.idle_count, 0);
	ck_assert_uint_eq(stat_read(&stats.pool_expired), 1);
}
END_TEST

START_TEST(a_busy_one_is_not_closed_by_the_time_it_was_idle_for)
{
	struct conn *c = dial_one(&group);

	conn_give(&c, 10 * NSEC_PER_MSEC);
	c = pool_take(pool, &group);
	ck_assert_ptr_nonnull(c);
	run_for(300 * NSEC_PER_MSEC);
	ck_assert_uint_eq(group.busy_count, 1);
	conn_close(&c);
}
END_TEST

START_TEST(the_oldest_of_all_groups_is_evicted)
{
	struct pool_group other;
	struct conn *c, *d;

	pool_group_init(&other, 2, 3600 * NSEC_PER_SEC, NULL);
	c = dial_one(&other);
	d = dial_one(&group);
	conn_give(&c, NSEC_NEVER);
	conn_give(&d, NSEC_NEVER);
	ck_assert(pool_evict(pool));
	ck_assert_uint_eq(other.idle_count, 0);
	ck_assert_uint_eq(group.idle_count, 1);
	ck_assert(pool_evict(pool));
	ck_assert(!pool_evict(pool));
}
END_TEST

START_TEST(each_destination_is_found_whichever_was_asked_for_before)
{
	struct pool_group *a = pool_destination(pool, STR("p a:80"), 2,
	    NSEC_PER_SEC);
	struct pool_group *b = pool_destination(pool, STR("p b:80"), 2,
	    NSEC_PER_SEC);
	struct pool_group *again = pool_destination(pool, STR("p a:80"), 2,
	    NSEC_PER_SEC);

	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(a, again);
	pool_group_done(pool, &again);
	pool_group_done(pool, &a);
	/* It was the last, and has gone: what is asked for now is new. */
	a = pool_destination(pool, STR("p a:80"), 3, NSEC_PER_SEC);
	ck_assert_uint_eq(a->max, 3);
	pool_group_done(pool, &a);
	pool_group_done(pool, &b);
}
END_TEST

START_TEST(a_destination_lives_while_it_has_connections)
{
	struct pool_group *g = pool_destination(pool, STR("p a:80"), 2,
	    NSEC_PER_SEC);
	struct pool_group *same = pool_destination(pool, STR("p a:80"), 2,
	    NSEC_PER_SEC);
	struct conn *c;

	ck_assert_ptr_eq(g, same);
	pool_group_done(pool, &same);
	c = dial_one(g);
	conn_give(&c, NSEC_NEVER);
	pool_group_done(pool, &g);
	ck_assert_ptr_null(g);
	g = pool_destination(pool, STR("p a:80"), 2, NSEC_PER_SEC);
	c = pool_take(pool, g);
	ck_assert_ptr_nonnull(c);
	pool_group_done(pool, &g);
	conn_close(&c);
	g = pool_destination(pool, STR("p a:80"), 2, NSEC_PER_SEC);
	ck_assert_ptr_null(pool_take(pool, g));
	pool_group_done(pool, &g);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("pool");
	TCase *t = tcase_create("pool");

	tcase_add_checked_fixture(t, a_pool, no_pool);
	tcase_add_test(t, the_newest_idle_one_is_taken_first);
	tcase_add_test(t, beyond_max_the_coldest_is_closed);
	tcase_add_test(t, with_other_numbers_only_as_many_stay_idle);
	tcase_add_test(t, one_whose_server_closes_is_closed_at_once);
	tcase_add_test(t, one_that_says_something_unasked_is_closed_at_once);
	tcase_add_test(t, one_that_has_just_said_something_is_not_taken);
	tcase_add_test(t, one_with_more_than_its_answer_is_not_taken);
	tcase_add_test(t, a_server_is_old_for_a_while);
	tcase_add_test(t, one_is_kept_no_longer_than_the_server_keeps_it);
	tcase_add_test(t,
	    a_busy_one_is_not_closed_by_the_time_it_was_idle_for);
	tcase_add_test(t, the_oldest_of_all_groups_is_evicted);
	tcase_add_test(t,
	    each_destination_is_found_whichever_was_asked_for_before);
	tcase_add_test(t, a_destination_lives_while_it_has_connections);
	suite_add_tcase(s, t);
	return run_suite(s);
}
