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

static bool
is_candidate(const struct upstream *u, unsigned index, uint64_t tried,
    bool backup)
{
	const struct server *s = &u->servers[index];

	if (s->backup != backup || atomic_load(&s->addr_count) == 0)
		return false;
	return index >= 64 || (tried & (UINT64_C(1) << index)) == 0;
}

static HOT struct server *
choose_in_turn(struct upstream *u, uint64_t tried, bool backup)
{
	uint64_t turn = atomic_fetch_add_explicit(&u->turn, 1,
	    memory_order_relaxed);

	for (unsigned i = 0; i < u->wheel_size; i++) {
		unsigned at = u->wheel[(turn + i) % u->wheel_size];

		if (is_candidate(u, at, tried, backup))
			return &u->servers[at];
	}
	return NULL;
}

static struct server *
choose_first(struct upstream *u, uint64_t tried, bool backup)
{
	for (unsigned i = 0; i < u->count; i++)
		if (is_candidate(u, i, tried, backup))
			return &u->servers[i];
	return NULL;
}

/* Over all workers; each figure may be a moment old. */
static uint64_t
load_of(const struct server *s)
{
	uint64_t in_use = 0;

	for (unsigned w = 0; w < s->upstream->workers; w++)
		in_use += stat_read(&s->local[w].stats.in_use);
	return in_use;
}

/*
 * The less busy of two that are next in turn, by load per weight.  Two are
 * enough (Mitzenmacher, "The Power of Two Choices", 2001), and looking at all
 * would send every worker to the same one.
 */
static struct server *
choose_less_busy(struct upstream *u, uint64_t tried, bool backup)
{
	struct server *a = choose_in_turn(u, tried, backup);
	struct server *b;

	if (a == NULL)
		return NULL;
	if (server_index(a) < 64)
		tried |= UINT64_C(1) << server_index(a);
	b = choose_in_turn(u, tried, backup);
	if (b == NULL || b == a)
		return a;
	return load_of(b) * a->weight < load_of(a) * b->weight ? b : a;
}

static HOT struct server *
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
upstream_choose(struct upstream *u, uint64_t tried)
{
	struct server *s = choose(u, tried, false);

	return s != NULL ? s : choose(u, tried, true);
}
