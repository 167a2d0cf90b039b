/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * balance.c - which server is next; see upstream.h.
 *
 * Round robin goes around a wheel that holds each server as often as its
 * weight, laid out once: each place goes to the server that is furthest
 * behind its share (smooth weighted round robin).  So a turn is one addition,
 * shared by all workers, and no two of them start in step.
 */
#include "upstream/balance.h"

#include <stdlib.h>

#include "upstream/upstream.h"

static unsigned
divisor(unsigned a, unsigned b)
{
	while (b != 0) {
		unsigned rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void
balance_init(struct upstream *u)
{
	int64_t *behind = xcalloc(u->count, sizeof *behind);
	unsigned common = 0, total = 0;

	for (unsigned i = 0; i < u->count; i++)
		common = divisor(u->servers[i].weight, common);
	for (unsigned i = 0; i < u->count; i++)
		total += u->servers[i].weight / common;

	u->wheel_size = total;
	u->wheel = xcalloc(total, sizeof *u->wheel);
	for (unsigned place = 0; place < total; place++) {
		unsigned most = 0;

		for (unsigned i = 0; i < u->count; i++) {
			behind[i] += u->servers[i].weight / common;
			if (behind[i] > behind[most])
				most = i;
		}
		behind[most] -= total;
		u->wheel[place] = most;
	}
	free(behind);
}

enum { NONE = -1 };

static uint64_t
bit_of(int index)
{
	return index < 64 ? UINT64_C(1) << index : 0;
}

static bool
is_candidate(const struct upstream *u, unsigned index, uint64_t tried,
    bool backup)
{
	const struct upstream_server *s = &u->servers[index];

	if (s->backup != backup || atomic_load(&s->server->addr_count) == 0)
		return false;
	return (tried & bit_of((int)index)) == 0;
}

static HOT int
choose_in_turn(struct upstream *u, uint64_t tried, bool backup)
{
	uint64_t turn = atomic_fetch_add_explicit(&u->turn, 1,
	    memory_order_relaxed);

	for (unsigned i = 0; i < u->wheel_size; i++) {
		unsigned at = u->wheel[(turn + i) % u->wheel_size];

		if (is_candidate(u, at, tried, backup))
			return (int)at;
	}
	return NONE;
}

static int
choose_first(struct upstream *u, uint64_t tried, bool backup)
{
	for (unsigned i = 0; i < u->count; i++)
		if (is_candidate(u, i, tried, backup))
			return (int)i;
	return NONE;
}

/* Over all workers; each figure may be a moment old. */
static uint64_t
load_of(const struct upstream *u, int index)
{
	const struct server *s = u->servers[index].server;
	uint64_t in_use = 0;

	for (unsigned w = 0; w < u->workers; w++)
		in_use += stat_read(&s->local[w].stats.in_use);
	return in_use;
}

/*
 * The less busy of two that are next in turn, by load per weight.  Two are
 * enough (Mitzenmacher, "The Power of Two Choices", 2001), and looking at all
 * would send every worker to the same one.
 */
static int
choose_less_busy(struct upstream *u, uint64_t tried, bool backup)
{
	int a = choose_in_turn(u, tried, backup);
	int b;

	if (a == NONE)
		return NONE;
	b = choose_in_turn(u, tried | bit_of(a), backup);
	if (b == NONE || b == a)
		return a;
	return load_of(u, b) * u->servers[a].weight <
	    load_of(u, a) * u->servers[b].weight ? b : a;
}

static HOT int
choose(struct upstream *u, uint64_t tried, bool backup)
{
	switch (u->balance) {
	case BALANCE_FIRST:
		return choose_first(u, tried, backup);
	case BALANCE_LEAST_BUSY:
		return choose_less_busy(u, tried, backup);
	case BALANCE_ROUND_ROBIN:
		break;
	}
	return choose_in_turn(u, tried, backup);
}

struct server *
upstream_choose(struct upstream *u, uint64_t *tried)
{
	int index = choose(u, *tried, false);

	if (index == NONE)
		index = choose(u, *tried, true);
	if (index == NONE)
		return NULL;
	*tried |= bit_of(index);
	return u->servers[index].server;
}
