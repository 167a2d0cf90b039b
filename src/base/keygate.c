/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keygate.c - gates by key; see keygate.h.
 *
 * Why no wake-up is lost.  Call a row ripe while it has both room and waiters.
 * Whoever makes a row ripe, or finds it so after taking one of its waiters
 * away, has it looked at: by this worker if it has waiters of that row, or by
 * all others that have any waiters.
 *
 *  - Room comes by a release or a raised limit; waiters only join when there
 *    is no room, or when others wait already.
 *  - A worker that is told still has waiters of the row when it looks, and
 *    then serves them as long as there is room; or else they have gone, and
 *    whoever took the last one away has looked itself.
 *  - A worker counts its waiter in `waiting` before the row does, so whoever
 *    sees the row's count sees the worker's.
 *
 * Which rows to look at is a bit a row, and a bit a word of those; set in that
 * order, and cleared in the other.
 */
#include "base/keygate.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/keytable.h"

enum {
	HEADS = 256,			/* of a worker's table of rows */
	WORD_BITS = 64,
};

struct side {
	/* Read and written by all. */
	_Alignas(CACHE_LINE) atomic_bool called;	/* mail under way */
	atomic_bool		 all_rows;	/* look at every row */
	_Atomic nsec_t		 told;		/* time of the last call */
	_Atomic uint64_t	*rows;		/* to be looked at */
	_Atomic uint64_t	*words;		/* of `rows` that aren't 0 */

	/* Written by the worker alone. */
	_Alignas(CACHE_LINE) _Atomic uint64_t waiting;
	_Atomic int64_t		 in_use;	/* taken here, less released */
	_Atomic int64_t		 most;		/* of it since peak_since */
	_Atomic int64_t		 most_before;	/* in the span before that */
	bool			 others_turn;
	struct keygate		*gate;
	struct mail		 mail;
	struct list		 leaders[HEADS];
};

struct keygate {
	struct keytable		*table;
	_Atomic uint64_t	 limit;
	_Atomic uint64_t	 queue;
	atomic_bool		 dry;
	_Alignas(CACHE_LINE) _Atomic uint64_t mails;
	nsec_t			 peak_since;
	uint64_t		 row_words;
	unsigned		 workers;
	gate_wake_fn		*wake;
	void			*arg;
	struct side		 sides[];
};

static mail_fn	on_mail;
static uint64_t	limit_of(const struct gate_spec *spec);

/* A table rounds up, by less than a line. */
static uint64_t
words_for(uint64_t bits)
{
	return (bits + 2 * WORD_BITS - 1) / WORD_BITS;
}

static void
side_init(struct side *s, struct keygate *g)
{
	s->gate = g;
	s->rows = xcalloc(g->row_words, sizeof *s->rows);
	s->words = xcalloc(words_for(g->row_words), sizeof *s->words);
	mail_init(&s->mail, on_mail);
	for (int i = 0; i < HEADS; i++)
		list_init(&s->leaders[i]);
}

struct keygate *
keygate_new(const struct gate_spec *spec, uint64_t rows, unsigned workers,
    gate_wake_fn *wake, void *arg)
{
	ASSERT(workers >= 1 && workers <= GATE_WORKERS);

	struct keygate *g = xcalloc_lines(sizeof *g +
	    workers * sizeof g->sides[0]);

	g->table = keytable_new(rows);
	g->row_words = words_for(rows);
	g->workers = workers;
	g->wake = wake;
	g->arg = arg;
	atomic_init(&g->limit, limit_of(spec));
	atomic_init(&g->queue, spec->queue);
	atomic_init(&g->dry, spec->dry);
	for (unsigned i = 0; i < workers; i++)
		side_init(&g->sides[i], g);
	return g;
}

void
keygate_free(struct keygate **g)
{
	if (*g == NULL)
		return;
	for (unsigned i = 0; i < (*g)->workers; i++) {
		struct side *s = &(*g)->sides[i];

		ASSERT(atomic_load(&s->waiting) == 0);
		free(s->rows);
		free(s->words);
	}
	keytable_free(&(*g)->table);
	free(*g);
	*g = NULL;
}

size_t
keygate_memory(uint64_t rows, unsigned workers)
{
	uint64_t words = words_for(rows);

	return keytable_memory(rows) + sizeof(struct keygate) + workers *
	    (sizeof(struct side) + (words + words_for(words)) * 8);
}

static uint64_t
waiting_in_all(const struct keygate *g)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < g->workers; i++)
		n += atomic_load(&g->sides[i].waiting);
	return n;
}

bool
keygate_is_idle(const struct keygate *g)
{
	return waiting_in_all(g) == 0 && atomic_load(&g->mails) == 0 &&
	    keytable_used(g->table) == 0;
}

static uint64_t
limit_of(const struct gate_spec *spec)
{
	return spec->limit != 0 ? spec->limit : UINT64_MAX;
}

bool
keygate_is_dry(const struct keygate *g)
{
	return atomic_load_explicit(&g->dry, memory_order_relaxed);
}

/*
 * How many may be in use once somebody waits.  Stored in this order by
 * keygate_set(), so whoever sees its limit sees whether it is a dry run.
 */
static uint64_t
room_for_waiters(const struct keygate *g)
{
	uint64_t limit = atomic_load(&g->limit);

	return keygate_is_dry(g) ? UINT64_MAX : limit;
}

/* --- a worker's waiters ------------------------------------------------ */

/*
 * The waiters of a row hang on one of them, the leader; only leaders are in
 * the table.  So a row with many waiters does not hide another one.
 */

static struct keygate_waiter *
waiter_at(struct list *link)
{
	return container_of(link, struct keygate_waiter, gate.link);
}

static struct keygate_waiter *
find_leader(struct side *s, uint32_t row)
{
	LIST_FOR_EACH(l, &s->leaders[row % HEADS]) {
		struct keygate_waiter *w = container_of(l,
		    struct keygate_waiter, leaders);

		if (w->row == row)
			return w;
	}
	return NULL;
}

static void
add_waiter(struct side *s, struct keygate_waiter *w)
{
	struct keygate_waiter *leader = find_leader(s, w->row);

	if (leader == NULL) {
		leader = w;
		w->count = 0;
		list_add_last(&s->leaders[w->row % HEADS], &w->leaders);
	}
	leader->count++;
	list_add_last(&leader->row_waiters, &w->gate.link);
}

/* The leader is the first of its row, and the second follows it. */
static void
remove_waiter(struct side *s, struct keygate_waiter *w)
{
	struct keygate_waiter *leader = find_leader(s, w->row);

	list_remove(&w->gate.link);
	leader->count--;
	if (leader != w)
		return;
	if (!list_is_empty(&w->row_waiters)) {
		struct keygate_waiter *next = waiter_at(w->row_waiters.next);

		next->count = w->count;
		list_move_all(&next->row_waiters, &w->row_waiters);
		list_add_before(&w->leaders, &next->leaders);
	}
	list_remove(&w->leaders);
}

static void
add_to_waiting(struct side *s, int by)
{
	atomic_store(&s->waiting, atomic_load_explicit(&s->waiting,
	    memory_order_relaxed) + (uint64_t)by);
}

static void
add_to_in_use(struct side *s, int by)
{
	int64_t n = atomic_load_explicit(&s->in_use,
	    memory_order_relaxed) + by;

	atomic_store_explicit(&s->in_use, n, memory_order_relaxed);
	if (n > atomic_load_explicit(&s->most, memory_order_relaxed))
		atomic_store_explicit(&s->most, n, memory_order_relaxed);
}

/* --- having a row looked at -------------------------------------------- */

static void
call(struct keygate *g, struct side *s, nsec_t now)
{
	atomic_store_explicit(&s->told, now, memory_order_relaxed);
	if (atomic_exchange(&s->called, true))
		return;
	atomic_fetch_add(&g->mails, 1);
	g->wake(g->arg, (unsigned)(s - g->sides), &s->mail);
}

static void
mark(struct side *s, uint32_t row)
{
	uint32_t word = row / WORD_BITS;

	atomic_fetch_or(&s->rows[word], UINT64_C(1) << row % WORD_BITS);
	atomic_fetch_or(&s->words[word / WORD_BITS],
	    UINT64_C(1) << word % WORD_BITS);
}

static void
tell(struct keygate *g, struct side *s, uint32_t row, nsec_t now)
{
	mark(s, row);
	call(g, s, now);
}

/* The row is left with these counts: if it is ripe, have it looked at. */
static void
pass_on(struct keygate *g, struct side *own, uint32_t row,
    struct key_count left, nsec_t now)
{
	if (left.waiting == 0 || left.in_use >= room_for_waiters(g))
		return;

	struct keygate_waiter *leader = find_leader(own, row);
	uint32_t mine = leader != NULL ? leader->count : 0;

	if (mine != 0 && (mine >= left.waiting || !own->others_turn)) {
		own->others_turn = true;
		tell(g, own, row, now);
		return;
	}
	own->others_turn = false;
	for (unsigned i = 0; i < g->workers; i++) {
		struct side *s = &g->sides[i];

		if (s != own && atomic_load(&s->waiting) != 0)
			tell(g, s, row, now);
	}
}

/* --- taking and releasing ---------------------------------------------- */

enum gate_result
keygate_take(struct keygate *g, const struct keygate_call *c,
    struct keygate_waiter *w, enum failure *why)
{
	ASSERT(c->worker < g->workers && !gate_is_waiting(&w->gate));

	struct side *s = &g->sides[c->worker];
	struct key_bounds b = { .limit = atomic_load(&g->limit) };
	enum key_result r = keytable_enter(g->table, c->key, &b, &w->row);

	b.queue = atomic_load_explicit(&g->queue, memory_order_relaxed);
	if (r == KEY_REFUSED && b.queue != 0 && !keygate_is_dry(g)) {
		add_to_waiting(s, 1);
		/* Again: keygate_set() looks at `waiting` after changing. */
		b.limit = room_for_waiters(g);
		r = keytable_enter(g->table, c->key, &b, &w->row);
		if (r != KEY_WAITS)
			add_to_waiting(s, -1);
	}
	switch (r) {
	case KEY_TAKEN:
		add_to_in_use(s, 1);
		return GATE_TAKEN;
	case KEY_WAITS:
		w->gate.arrived = c->now;
		add_waiter(s, w);
		return GATE_WAITS;
	default:
		*why = r == KEY_NO_ROW ? FAIL_KEYS_FULL : FAIL_QUEUE_FULL;
		return GATE_REFUSED;
	}
}

bool
keygate_take_dry(struct keygate *g, const struct keygate_call *c,
    uint32_t *row)
{
	uint64_t limit = atomic_load(&g->limit);
	uint64_t queue = atomic_load(&g->queue);
	struct key_bounds b = { MIN(limit, KEYTABLE_MAX_COUNT) + queue, 0 };

	ASSERT(c->worker < g->workers);
	if (queue == 0 ||
	    keytable_enter(g->table, c->key, &b, row) != KEY_TAKEN)
		return false;
	add_to_in_use(&g->sides[c->worker], 1);
	return true;
}

void
keygate_release(struct keygate *g, unsigned worker, uint32_t row, nsec_t now)
{
	ASSERT(worker < g->workers);

	struct side *s = &g->sides[worker];

	add_to_in_use(s, -1);
	pass_on(g, s, row, keytable_leave(g->table, row), now);
}

void
keygate_leave(struct keygate *g, unsigned worker, struct keygate_waiter *w,
    nsec_t now)
{
	ASSERT(worker < g->workers);
	if (!gate_is_waiting(&w->gate))
		return;

	struct side *s = &g->sides[worker];
	struct key_count left;

	remove_waiter(s, w);
	left = keytable_quit(g->table, w->row);
	add_to_waiting(s, -1);
	pass_on(g, s, w->row, left, now);
}

/* --- looking ----------------------------------------------------------- */

/* Let in this worker's waiters of a row while there is room. */
static void
look_at(struct keygate *g, struct side *s, uint32_t row, nsec_t now)
{
	struct keygate_waiter *leader;
	bool any = false;

	while ((leader = find_leader(s, row)) != NULL) {
		struct gate_waiter *w = &leader->gate;

		if (!keytable_promote(g->table, row, room_for_waiters(g)))
			return;
		remove_waiter(s, leader);
		add_to_waiting(s, -1);
		add_to_in_use(s, 1);
		w->waited = now > w->arrived ? now - w->arrived : 0;
		w->fn(w, FAIL_NONE);
		any = true;
	}
	if (any)
		pass_on(g, s, row, keytable_look(g->table, row), now);
}

static void
mark_all_rows(struct side *s)
{
	for (int i = 0; i < HEADS; i++)
		LIST_FOR_EACH(l, &s->leaders[i])
			mark(s, container_of(l, struct keygate_waiter,
			    leaders)->row);
}

static void
look_at_word(struct keygate *g, struct side *s, uint64_t word, nsec_t now)
{
	uint64_t rows = atomic_exchange(&s->rows[word], 0);

	for (; rows != 0; rows &= rows - 1)
		look_at(g, s, (uint32_t)(word * WORD_BITS) +
		    (uint32_t)__builtin_ctzll(rows), now);
}

static void
on_mail(struct mail *m)
{
	struct side *s = container_of(m, struct side, mail);
	struct keygate *g = s->gate;
	nsec_t now;

	/* Cleared first: what is marked from now on calls again. */
	atomic_exchange(&s->called, false);
	now = atomic_load_explicit(&s->told, memory_order_relaxed);
	if (atomic_exchange(&s->all_rows, false))
		mark_all_rows(s);
	for (uint64_t i = 0; i * WORD_BITS < g->row_words; i++) {
		uint64_t words = atomic_load_explicit(&s->words[i],
		    memory_order_relaxed);

		if (words != 0)
			words = atomic_exchange(&s->words[i], 0);
		for (; words != 0; words &= words - 1)
			look_at_word(g, s, i * WORD_BITS +
			    (uint64_t)__builtin_ctzll(words), now);
	}
	/* From here on the gate may be gone. */
	atomic_fetch_sub(&g->mails, 1);
}

/* --- changing ---------------------------------------------------------- */

void
keygate_set(struct keygate *g, const struct gate_spec *spec, nsec_t now)
{
	atomic_store(&g->dry, spec->dry);
	atomic_store(&g->limit, limit_of(spec));
	atomic_store(&g->queue, spec->queue);
	for (unsigned i = 0; i < g->workers; i++) {
		struct side *s = &g->sides[i];

		if (atomic_load(&s->waiting) == 0)
			continue;
		atomic_store(&s->all_rows, true);
		call(g, s, now);
	}
}

void
keygate_look(const struct keygate *g, struct gate_state *out)
{
	uint64_t limit = atomic_load(&g->limit);
	int64_t in_use = 0;

	for (unsigned i = 0; i < g->workers; i++)
		in_use += atomic_load_explicit(&g->sides[i].in_use,
		    memory_order_relaxed);
	*out = (struct gate_state){
		.limit = limit == UINT64_MAX ? 0 : limit,
		.in_use = (uint64_t)MAX(in_use, 0),
		.waiting = waiting_in_all(g),
	};
}

uint64_t
keygate_peak(struct keygate *g, nsec_t now)
{
	bool again = now - g->peak_since >= GATE_PEAK_SPAN;
	int64_t sum = 0;

	for (unsigned i = 0; i < g->workers; i++) {
		struct side *s = &g->sides[i];
		int64_t in_use = atomic_load(&s->in_use);
		int64_t most = MAX(atomic_load(&s->most), in_use);

		if (again)
			atomic_store(&s->most_before,
			    atomic_exchange(&s->most, in_use));
		else
			most = MAX(most, atomic_load(&s->most_before));
		sum += most;
	}
	if (again)
		g->peak_since = now;
	return (uint64_t)MAX(sum, 0);
}

uint64_t
keygate_count(const struct keygate *g)
{
	return keytable_in_use(g->table);
}

static uint64_t
validate_side(const struct keygate *g, const struct side *s)
{
	uint64_t n = 0;

	for (int i = 0; i < HEADS; i++)
		LIST_FOR_EACH(l, &s->leaders[i]) {
			const struct keygate_waiter *w = container_of(l,
			    struct keygate_waiter, leaders);
			struct key_count c = keytable_look(g->table, w->row);
			uint64_t here = 0;

			LIST_FOR_EACH(v, &w->row_waiters)
				here += waiter_at(v)->row == w->row;
			ASSERT(w->row_waiters.next == &w->gate.link);
			ASSERT(here == w->count && c.waiting >= here);
			ASSERT(c.in_use >= room_for_waiters(g));
			n += here;
		}
	return n;
}

void
keygate_validate(const struct keygate *g, uint64_t in_use)
{
	struct gate_state s;

	for (unsigned i = 0; i < g->workers; i++)
		ASSERT(validate_side(g, &g->sides[i]) ==
		    atomic_load(&g->sides[i].waiting));
	keygate_look(g, &s);
	ASSERT(s.in_use == in_use);
	ASSERT(in_use + s.waiting != 0 || keytable_used(g->table) == 0);
}
