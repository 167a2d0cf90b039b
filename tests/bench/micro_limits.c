/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * micro_limits.c - taking and refusing: buckets and gates, plain and by key.
 */
#include "bench/micro.h"

#include "base/bucket.h"
#include "base/gate.h"
#include "base/keybucket.h"
#include "base/keygate.h"
#include "bench/bench.h"

enum { TAKINGS = 500000, KEY_TAKINGS = 500000, LINE_BUCKETS = 7 };

#define KIB	UINT64_C(1024)

/* --- buckets ----------------------------------------------------------- */

struct bucket_case {
	struct bucket		bucket;
	struct bucket_spec	spec;
};

/* Time goes on, so that there is a token each time, even for two. */
static void
take_tokens(void *arg, uint64_t n)
{
	struct bucket_case *c = arg;
	nsec_t now = atomic_load(&c->bucket.full_at);

	while (n-- > 0) {
		now += 2 * c->spec.gap;
		micro_use(bucket_take(&c->bucket, &c->spec, 1, now));
	}
}

static void
be_refused(void *arg, uint64_t n)
{
	struct bucket_case *c = arg;

	while (n-- > 0)
		micro_use(bucket_take(&c->bucket, &c->spec, 1, 1));
}

static void
plain_buckets(void)
{
	struct bucket_case c = { .bucket = { 0 } };

	bucket_spec_init(&c.spec, 1000000, NSEC_PER_SEC, 1000);
	micro_row("bucket: token taken", micro_time(take_tokens, &c,
	    TAKINGS), 10);
	micro_row("bucket: token taken, two threads at one",
	    micro_time_two(take_tokens, &c, TAKINGS), 0);

	/* Empty for ever, as seen from time 1. */
	atomic_store(&c.bucket.full_at, 1 + c.spec.depth);
	micro_row("bucket: refused", micro_time(be_refused, &c, TAKINGS), 2);
}

/* --- buckets by key ---------------------------------------------------- */

struct key_case {
	struct keybuckets	*table;
	struct keybucket_spec	 spec;
	uint64_t		 keys;
	uint64_t		 random;
	nsec_t			 now;
};

/* As good as a hash: keys are told apart by their low and high bits. */
static uint64_t
key_of(uint64_t number)
{
	uint64_t key = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return key ^ key >> 32;
}

static void
take_by_key(void *arg, uint64_t n)
{
	struct key_case *c = arg;

	while (n-- > 0) {
		uint64_t key = key_of(next_random(&c->random) % c->keys);

		c->now += 1000;
		micro_use(keybucket_take(c->table, key, &c->spec, c->now));
	}
}

static void
by_key(uint64_t bytes, double most)
{
	uint64_t rows = bytes / CACHE_LINE * LINE_BUCKETS;
	struct key_case c = { .keys = rows / 2, .random = 1,
	    .now = NSEC_PER_SEC };
	char text[64];

	c.table = keybuckets_new(rows);
	keybucket_spec_init(&c.spec, 10, NSEC_PER_SEC, 1000, 0);
	take_by_key(&c, rows);
	snprintf(text, sizeof text, "bucket by key: taken, table of %ju KiB",
	    (uintmax_t)(bytes / KIB));
	micro_row(text, micro_time(take_by_key, &c, KEY_TAKINGS), most);
	keybuckets_free(&c.table);
}

/* --- gates ------------------------------------------------------------- */

static struct mail *letter;		/* that waits to be read */

static void
on_wake(void *arg, unsigned worker, struct mail *m)
{
	(void)arg;
	(void)worker;
	letter = m;
}

static void
on_turn(struct gate_waiter *w, enum failure why)
{
	(void)w;
	micro_use(why);
}

static void
take_permits(void *arg, uint64_t n)
{
	struct gate *g = arg;
	struct gate_waiter w;
	enum failure why;

	gate_waiter_init(&w, on_turn);
	while (n-- > 0) {
		if (gate_take(g, 0, &w, 1, &why) == GATE_TAKEN)
			gate_release(g, 0, 1);
	}
}

/* The one permit goes from hand to hand: wait, release, be served. */
static void
hand_over(void *arg, uint64_t n)
{
	struct gate *g = arg;
	struct gate_waiter w;
	enum failure why;

	gate_waiter_init(&w, on_turn);
	micro_use(gate_take(g, 0, &w, 1, &why));
	while (n-- > 0) {
		micro_use(gate_take(g, 0, &w, 1, &why));
		gate_release(g, 0, 1);
		letter->kind->fn(letter);
	}
	gate_release(g, 0, 1);
}

static void
be_turned_away(void *arg, uint64_t n)
{
	struct gate *g = arg;
	struct gate_waiter w;
	enum failure why;

	gate_waiter_init(&w, on_turn);
	while (n-- > 0)
		micro_use(gate_take(g, 0, &w, 1, &why));
}

static void
plain_gates(void)
{
	struct gate_spec spec = { .limit = 100, .queue = 100,
	    .queue_timeout = NSEC_PER_SEC };
	struct gate *g = gate_new(&spec, 2, on_wake, NULL);
	enum failure why;
	struct gate_waiter w;

	micro_row("gate: permit taken and released",
	    micro_time(take_permits, g, TAKINGS), 16);
	micro_row("gate: the same, two threads at one",
	    micro_time_two(take_permits, g, TAKINGS), 0);
	gate_free(&g);

	spec.limit = 1;
	g = gate_new(&spec, 2, on_wake, NULL);
	micro_row("gate: waited, released, served",
	    micro_time(hand_over, g, TAKINGS), 0);
	gate_free(&g);

	spec.queue = 0;
	g = gate_new(&spec, 2, on_wake, NULL);
	gate_waiter_init(&w, on_turn);
	micro_use(gate_take(g, 0, &w, 1, &why));
	micro_row("gate: turned away", micro_time(be_turned_away, g,
	    TAKINGS), 0);
	gate_release(g, 0, 1);
	gate_free(&g);
}

/* --- a full queue with turns by key ------------------------------------ */

enum { CROWD = 10000, CROWD_KEYS = 2000 };

static struct gate_waiter crowd[CROWD];

/* One key has most of the places, many others have one. */
static struct gate *
crowded_gate(void)
{
	struct gate_spec spec = { .limit = 1, .queue = CROWD,
	    .queue_timeout = NSEC_PER_SEC, .by_key = true };
	struct gate *g = gate_new(&spec, 2, on_wake, NULL);
	enum failure why;

	micro_use(gate_try(g));
	for (uint64_t i = 0; i < CROWD; i++) {
		gate_waiter_init(&crowd[i], on_turn);
		crowd[i].key = key_of(i < CROWD_KEYS ? i : 0);
		micro_use(gate_take(g, 0, &crowd[i], 1 + i, &why));
	}
	return g;
}

/* One of many keys takes the place of the longest's newest, and goes again. */
static void
displace(void *arg, uint64_t n)
{
	struct gate *g = arg;
	struct gate_waiter w, back;
	enum failure why;

	gate_waiter_init(&w, on_turn);
	gate_waiter_init(&back, on_turn);
	back.key = key_of(0);
	while (n-- > 0) {
		w.key = key_of(CROWD_KEYS + n);
		micro_use(gate_take(g, 0, &w, 2 * CROWD, &why));
		letter->kind->fn(letter);
		gate_leave(g, 0, &w, 2 * CROWD);
		micro_use(gate_take(g, 0, &back, 2 * CROWD, &why));
	}
	gate_leave(g, 0, &back, 2 * CROWD);
}

/* The longest key has no place more, and asks all the same. */
static void
be_turned_away_by_key(void *arg, uint64_t n)
{
	struct gate_waiter w;
	enum failure why;

	gate_waiter_init(&w, on_turn);
	w.key = key_of(0);
	while (n-- > 0)
		micro_use(gate_take(arg, 0, &w, 2 * CROWD, &why));
}

static void
gates_with_turns(void)
{
	struct gate *g = crowded_gate();

	micro_row("gate, turns by key: turned away from a full queue",
	    micro_time(be_turned_away_by_key, g, TAKINGS / 10), 500);
	micro_row("gate, turns by key: another's place taken",
	    micro_time(displace, g, TAKINGS / 10), 2000);
	for (int i = 0; i < CROWD; i++)
		gate_leave(g, 0, &crowd[i], 1);
	gate_release(g, 0, 1);
	gate_free(&g);
}

/* --- gates by key ------------------------------------------------------ */

struct keygate_case {
	struct keygate	*gate;
	uint64_t	 keys;
	uint64_t	 random;
};

static void
on_key_turn(struct gate_waiter *w, enum failure why)
{
	(void)w;
	(void)why;
}

static void
take_by_gate(void *arg, uint64_t n)
{
	struct keygate_case *c = arg;
	struct keygate_call call = { .worker = 0, .now = 1 };
	struct keygate_waiter w;
	enum failure why;

	keygate_waiter_init(&w, on_key_turn);
	while (n-- > 0) {
		call.key = key_of(next_random(&c->random) % c->keys);
		if (keygate_take(c->gate, &call, &w, &why) == GATE_TAKEN)
			keygate_release(c->gate, 0, w.row, 1);
	}
}

static void
gates_by_key(uint64_t rows)
{
	struct gate_spec spec = { .limit = 4, .queue = 4,
	    .queue_timeout = NSEC_PER_SEC };
	struct keygate_case c = { .keys = rows / 2, .random = 1 };
	char text[64];

	c.gate = keygate_new(&spec, rows, 2, on_wake, NULL);
	snprintf(text, sizeof text, "gate by key: taken and released, %ju rows",
	    (uintmax_t)rows);
	micro_row(text, micro_time(take_by_gate, &c, KEY_TAKINGS), 0);
	keygate_free(&c.gate);
}

void
micro_limits(void)
{
	plain_buckets();
	by_key(1024 * KIB, 0);
	by_key(8 * 1024 * KIB, 25);
	by_key(64 * 1024 * KIB, 0);
	plain_gates();
	gates_with_turns();
	gates_by_key(65536);
	gates_by_key(1 << 20);
}
