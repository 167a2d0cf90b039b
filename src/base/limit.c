/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit.c - passing a limit; see limit.h.  The registry is in limits.c.
 */
#include "base/limit.h"

#include "base/limit_own.h"

static gate_fn	on_waited;

static void
count_refusal(struct limit *l, enum failure why)
{
	atomic_fetch_add_explicit(&l->refused[why], 1, memory_order_relaxed);
}

void
limit_pass_init(struct limit_pass *p, struct limit *limit, uint64_t key,
    gate_fn *waited)
{
	*p = (struct limit_pass){
		.limit = limit,
		.key = key,
		.waited = waited,
	};
	keygate_waiter_init(&p->keyed, on_waited);
}

void
limit_pass_stand(struct limit_pass *p, uint64_t turns_key,
    enum gate_class class)
{
	p->waiter.key = turns_key;
	p->waiter.class = (uint8_t)class;
}

/* --- rate -------------------------------------------------------------- */

/* For how long that holds it, or that it is refused. */
static nsec_t
token_is_late(struct limit_pass *p, bool dry_run, nsec_t wait)
{
	if (dry_run) {
		limit_dry_rate(p);
		return 0;
	}
	if (!p->charged)
		count_refusal(p->limit, FAIL_RATE_LIMITED);
	return wait;
}

nsec_t
limit_rate(struct limit_pass *p, nsec_t now)
{
	struct limit *l = p->limit;
	const struct limit_numbers *n = limit_numbers(l);
	nsec_t wait;

	ASSERT(!p->charged);
	if (n->spec.rate == 0)
		return 0;
	if (!limit_is_keyed(&n->spec)) {
		wait = bucket_take_late(&l->bucket, &n->bucket, 1,
		    n->spec.wait, now);
		p->charged = wait <= n->spec.wait;
	} else {
		wait = keybucket_take(l->keybuckets, p->key, &n->keybucket,
		    now);
		p->charged = wait <= n->keybucket.wait * KEYBUCKET_UNIT;
	}
	return LIKELY(wait == 0) ? 0 :
	    token_is_late(p, n->spec.dry_run, wait);
}

void
limit_rate_undo(struct limit_pass *p)
{
	const struct limit_numbers *n = limit_numbers(p->limit);

	if (!p->charged)
		return;
	p->charged = false;
	/* If they have changed, so has what it took. */
	if (n->spec.rate == 0)
		return;
	if (!limit_is_keyed(&n->spec))
		bucket_give_back(&p->limit->bucket, &n->bucket, 1);
	else
		keybucket_give_back(p->limit->keybuckets, p->key,
		    &n->keybucket);
}

void
limit_note_hold(const struct limit_pass *p, unsigned worker, nsec_t wait)
{
	hist_add(&p->limit->sides[worker].waits, wait);
}

void
limit_note_refusal(const struct limit_pass *p, enum failure why)
{
	count_refusal(p->limit, why);
}

nsec_t
limit_token_due(const struct limit_pass *p, nsec_t now)
{
	const struct limit *l = p->limit;
	const struct limit_numbers *n = limit_numbers(l);
	nsec_t full_at, owed;

	if (n->spec.rate == 0 || n->spec.dry_run)
		return 0;
	if (limit_is_keyed(&n->spec))
		return keybucket_due(l->keybuckets, p->key, &n->keybucket,
		    now);
	full_at = atomic_load_explicit(&l->bucket.full_at,
	    memory_order_relaxed);
	owed = MAX(full_at, now) - now + n->bucket.gap;
	return owed - MIN(owed, n->bucket.depth);
}

nsec_t
limit_retry_after(const struct limit_pass *p, nsec_t now)
{
	nsec_t after = limit_token_due(p, now);
	const struct gate *g = p->limit->gate;
	struct gate_state s;

	if (g != NULL) {
		gate_look(g, now, &s);
		after = MAX(after, s.wait_estimate);
	}
	return MAX(after, 1);
}

/* --- concurrency ------------------------------------------------------- */

/* Inside without one is only who found the table full. */
static bool
has_permit(const struct limit_pass *p)
{
	return p->limit->gate != NULL || p->keyed.row != KEYGATE_NO_ROW;
}

static enum gate_result
enter_keyed(struct limit_pass *p, struct keygate *g,
    const struct keygate_call *call, enum failure *why)
{
	enum gate_result r = keygate_take(g, call, &p->keyed, why);

	if (r == GATE_REFUSED && *why == FAIL_KEYS_FULL &&
	    limit_numbers(p->limit)->spec.allow_when_full) {
		p->keyed.row = KEYGATE_NO_ROW;
		return GATE_TAKEN;
	}
	return r;
}

/*
 * A gate refuses in dry run, too: whoever finds no permit free.  Its limit does
 * not, but counts what would have been.
 */
static APART enum gate_result
gate_has_refused(struct limit_pass *p, const struct keygate_call *call,
    enum failure why)
{
	if (limit_dry_enter(p, call, why))
		return GATE_TAKEN;
	count_refusal(p->limit, why);
	return GATE_REFUSED;
}

enum gate_result
limit_enter(struct limit_pass *p, unsigned worker, nsec_t now,
    enum failure *why)
{
	struct limit *l = p->limit;
	struct gate *g = l->gate;
	struct keygate *kg = l->keygate;
	struct keygate_call call = { p->key, worker, now };
	enum gate_result r;

	ASSERT(worker < l->workers && !p->inside);
	if (UNLIKELY(p->would != FAIL_NONE))
		return GATE_TAKEN;	/* it would have come no further */
	if (g != NULL)
		r = gate_take(g, worker, &p->waiter, now, why);
	else if (kg != NULL)
		r = enter_keyed(p, kg, &call, why);
	else
		return GATE_TAKEN;

	p->inside = r == GATE_TAKEN;
	p->adapts = atomic_load_explicit(&l->adapt, memory_order_acquire) !=
	    NULL;
	p->entered = now;
	p->worker = worker;
	if (UNLIKELY(r == GATE_REFUSED))
		r = gate_has_refused(p, &call, *why);
	if (p->inside && has_permit(p))
		limit_count(&l->sides[worker].entered);
	return r;
}

static HOT void
on_waited(struct gate_waiter *w, enum failure why)
{
	struct limit_pass *p = container_of(w, struct limit_pass, waiter);
	struct limit *l = p->limit;

	hist_add(&l->sides[p->worker].waits, w->waited);
	p->inside = why == FAIL_NONE;
	if (p->inside)
		limit_count(&l->sides[p->worker].entered);
	else
		count_refusal(l, why);
	p->waited(w, why);
}

static void
stop_waiting(struct limit_pass *p, nsec_t now)
{
	struct limit *l = p->limit;

	hist_add(&l->sides[p->worker].waits, now - MIN(now, p->entered));
	if (l->gate != NULL)
		gate_leave(l->gate, p->worker, &p->waiter, now);
	else
		keygate_leave(l->keygate, p->worker, &p->keyed, now);
}

HOT void
limit_leave(struct limit_pass *p, unsigned worker, nsec_t now,
    enum failure why)
{
	struct limit *l = p->limit;

	if (gate_is_waiting(&p->waiter)) {
		stop_waiting(p, now);
		if (why != FAIL_NONE)
			count_refusal(l, why);
		return;
	}
	if (!p->inside)
		return;
	p->inside = false;
	if (!has_permit(p))
		return;
	limit_count(&l->sides[worker].left);
	if (l->gate != NULL)
		gate_release(l->gate, worker, now);
	else
		keygate_release(l->keygate, worker, p->keyed.row, now);
}

/* --- sessions ---------------------------------------------------------- */

static enum failure
begin_unkeyed(struct limit *l, uint64_t most)
{
	uint64_t n = atomic_load(&l->sessions);

	while (n < most)
		if (atomic_compare_exchange_weak(&l->sessions, &n, n + 1))
			return FAIL_NONE;
	return FAIL_CONNECTION_LIMIT;
}

static enum failure
begin_keyed(struct limit_pass *p, const struct limit_spec *s)
{
	struct limit *l = p->limit;
	struct key_bounds b = { .limit = s->connections };

	switch (keytable_enter(l->keysessions, p->key, &b, &p->session_row)) {
	case KEY_TAKEN:
		return FAIL_NONE;
	case KEY_NO_ROW:
		p->session_row = KEYGATE_NO_ROW;
		return s->allow_when_full ? FAIL_NONE : FAIL_KEYS_FULL;
	default:
		return FAIL_CONNECTION_LIMIT;
	}
}

static enum failure
count_session(struct limit_pass *p, const struct limit_spec *s)
{
	enum failure why = limit_is_keyed(s) ?
	    begin_keyed(p, s) : begin_unkeyed(p->limit, s->connections);

	p->session = why == FAIL_NONE;
	return why;
}

void
limit_session_count(struct limit_pass *p)
{
	const struct limit_spec *s = &limit_numbers(p->limit)->spec;

	if (s->connections != 0)
		(void)count_session(p, s);
}

void
limit_session_move(struct limit_pass *to, struct limit_pass *from)
{
	ASSERT(to->limit == from->limit && to->key == from->key);
	to->session = from->session;
	to->session_row = from->session_row;
	from->session = false;
}

enum failure
limit_session_begin(struct limit_pass *p)
{
	const struct limit_spec *s = &limit_numbers(p->limit)->spec;

	ASSERT(!p->session);
	if (s->connections == 0)
		return FAIL_NONE;

	enum failure why = count_session(p, s);

	if (!p->session && s->dry_run) {
		limit_dry_refuse(p, why);
		return FAIL_NONE;
	}
	if (!p->session)
		count_refusal(p->limit, why);
	return why;
}

void
limit_session_end(struct limit_pass *p)
{
	struct limit *l = p->limit;

	if (!p->session)
		return;
	p->session = false;
	if (!limit_is_keyed(&limit_numbers(l)->spec))
		atomic_fetch_sub(&l->sessions, 1);
	else if (p->session_row != KEYGATE_NO_ROW)
		keytable_leave(l->keysessions, p->session_row);
}
