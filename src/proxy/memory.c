/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c - how much memory in the worst case; see memory.h.
 */
#include "proxy/memory.h"

#include "net/batch.h"
#include "net/dial.h"
#include "net/handover.h"
#include "net/resolver.h"
#include "net/stream.h"
#include "proxy/exchange.h"
#include "proxy/session.h"
#include "proxy/worker.h"
#include "upstream/pool.h"

enum {
	/* Code and data, our own and of libraries; what malloc() adds. */
	PROGRAM = 16 * 1024 * 1024,
	STACK = 256 * 1024,	/* of a thread, as deep as they go */
};

/* Passes of limits that count connections are the session's. */
static uint64_t
clients(const struct memory_opts *o)
{
	const struct config *c = o->config;
	uint64_t passes = 0;

	for (size_t i = 0; i < c->limit_count; i++)
		passes += c->limit[i].connections != 0;
	passes = MIN(passes, ROUTE_LIMITS) * sizeof(struct limit_pass);
	return o->workers * (slab_memory(sizeof(struct session), o->sessions) +
	    stream_pool_memory(o->sessions)) + o->sessions * passes;
}

/* At most one dial each. */
static uint64_t
exchanges(const struct memory_opts *o)
{
	return o->workers * (slab_memory(sizeof(struct exchange),
	    o->sessions) + dial_pool_memory(o->sessions));
}

/* Idle ones, over all workers; a worker's share is rounded up. */
static uint64_t
most_idle(const struct memory_opts *o)
{
	const struct config *c = o->config;
	uint64_t n = 0;

	for (size_t i = 0; i < c->listener_count; i++)
		if (c->listener[i].mode == MODE_FORWARD)
			return o->descriptors;
	for (size_t i = 0; i < c->upstream_count; i++)
		n += c->upstream[i].server.count *
		    (c->upstream[i].pool_max + o->workers);
	return n;
}

/* At most one for each exchange, besides idle ones. */
static uint64_t
connections(const struct memory_opts *o)
{
	uint64_t most = MIN(o->descriptors, o->sessions + most_idle(o));

	return o->workers * (stream_pool_memory(most) + pool_memory(most));
}

static uint64_t
limits(const struct memory_opts *o)
{
	uint64_t n = 0;

	for (size_t i = 0; i < o->config->limit_count; i++) {
		struct limit_spec spec = setup_limit_spec(
		    &o->config->limit[i]);

		n += limit_memory(&spec, o->workers + 1);
	}
	return n;
}

/* Main has a loop and a resolver, too. */
static uint64_t
loops(const struct memory_opts *o)
{
	return o->workers * (sizeof(struct worker) + batch_memory()) +
	    (o->workers + 1) * (loop_memory(o->descriptors) + STACK) +
	    o->config->listener_count * o->workers *
	    sizeof(struct listener_stats);
}

uint64_t
memory_worst(const struct memory_opts *o, struct memory_row rows[MEMORY_ROWS])
{
	const struct memory_row all[] = {
		{ "program", PROGRAM + o->logs, "workers, if there is an "
		    "access log" },
		{ "admin listener", o->admin, "limits, servers, listeners, "
		    "workers" },
		{ "workers", loops(o), "workers, descriptors" },
		{ "clients", clients(o), "max_connections x workers" },
		{ "exchanges", exchanges(o), "max_connections x workers" },
		{ "connections to servers", connections(o),
		    "(max_connections + pool_max) x workers" },
		{ "bytes that wait", block_memory(
		    o->config->penstock.buffers, o->workers), "buffers x 2" },
		{ "limits", limits(o), "limits x workers, keys, "
		    "queue_fair_by" },
		{ "names", (o->workers + 1) * resolver_memory(o->sessions),
		    "workers" },
	};
	uint64_t sum = 0;

	static_assert(ARRAY_LEN(all) == MEMORY_ROWS, "a row each");
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		rows[i] = all[i];
		sum += all[i].bytes;
	}
	return sum;
}
