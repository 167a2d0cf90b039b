/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * micro_pool.c - a connection is given back, and taken again.
 */
#include "bench/micro.h"

#include "base/addr.h"
#include "base/block.h"
#include "bench/bench.h"
#include "net/loop.h"
#include "net/stream.h"
#include "upstream/pool.h"

enum { USES = 200000, CONNECTIONS_MOST = 1000 };

struct pool_case {
	struct loop		*loop;
	struct block_budget	 budget;
	struct blocks		 blocks;
	struct stream_totals	 totals;
	struct stream_pool	*streams;
	struct worker_stats	 stats;
	struct upstream_stats	 group_stats;
	struct pool		*pool;
	struct pool_group	 group;
	struct conn		*conns[CONNECTIONS_MOST];
	int			 peers[CONNECTIONS_MOST];
	size_t			 count;
};

static void
open_pool(struct pool_case *c)
{
	c->loop = loop_new();
	if (c->loop == NULL)
		die("loop_new");
	block_budget_init(&c->budget, 1024 * 1024);
	blocks_init(&c->blocks, &c->budget);
	loop_set_blocks(c->loop, &c->blocks);
	c->streams = stream_pool_new(c->loop, CONNECTIONS_MOST, &c->totals);
	c->pool = pool_new(c->loop, CONNECTIONS_MOST, &c->stats);
	pool_group_init(&c->group, CONNECTIONS_MOST, 3600 * NSEC_PER_SEC,
	    &c->group_stats);
}

static void
add_connection(struct pool_case *c)
{
	struct addr to = { .family = ADDR_UNIX, .path = "" };
	struct stream *s;
	int fds[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds),
	    "socketpair");
	s = stream_new(c->streams, fds[0]);
	if (s == NULL)
		die("stream_new");
	c->peers[c->count] = fds[1];
	c->conns[c->count] = conn_new(c->pool, &c->group, s, &to);
	if (c->conns[c->count] == NULL)
		die("conn_new");
	c->count++;
}

static void
close_pool(struct pool_case *c)
{
	pool_free(&c->pool);
	stream_pool_free(&c->streams);
	blocks_fini(&c->blocks);
	loop_free(&c->loop);
	for (size_t i = 0; i < c->count; i++)
		close(c->peers[i]);
}

/* All are given back, and taken again, one after the other. */
static void
use_all(void *arg, uint64_t n)
{
	struct pool_case *c = arg;

	for (; n > 0; n -= c->count < n ? c->count : n) {
		for (size_t i = 0; i < c->count; i++)
			conn_give(&c->conns[i], NSEC_NEVER);
		for (size_t i = 0; i < c->count; i++)
			c->conns[i] = pool_take(c->pool, &c->group);
	}
}

static void
with(size_t connections)
{
	static struct pool_case c;
	char text[64];

	memset(&c, 0, sizeof c);
	open_pool(&c);
	while (c.count < connections)
		add_connection(&c);
	snprintf(text, sizeof text, "pool: given and taken, of %zu",
	    connections);
	micro_row(text, micro_time(use_all, &c, USES), 0);
	for (size_t i = 0; i < c.count; i++)
		conn_close(&c.conns[i]);
	close_pool(&c);
}

void
micro_pool(void)
{
	with(1);
	with(100);
	with(CONNECTIONS_MOST);
}
