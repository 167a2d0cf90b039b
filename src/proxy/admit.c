/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admit.c - walk an exchange through its limits; see admit.h.
 */
#include "proxy/admit.h"

#include "proxy/keys.h"
#include "proxy/leaving.h"
#include "proxy/session.h"
#include "proxy/throttling.h"
#include "proxy/worker.h"

/* What takes longer is a stream. */
#define SAMPLE_MOST	(10 * NSEC_PER_SEC)

static gate_fn	on_waited;

/* --- what a refusal says ----------------------------------------------- */

/*
 * Whole seconds, rounded up, and up to a quarter more, so that those who were
 * refused together don't come back together.  Never less than the true wait.
 */
static uint64_t
retry_after(const struct exchange *x, nsec_t wait)
{
	uint64_t seconds = (wait + NSEC_PER_SEC - 1) / NSEC_PER_SEC;

	seconds = MAX(seconds, 1);
	return seconds + (x->id >> 32) % (seconds / 4 + 1);
}

/*
 * When all limits have a token for it: the one that refuses may not be the one
 * that takes longest.  What it took goes back first, and is nothing to wait
 * for.
 */
static nsec_t
tokens_due(struct exchange *x, nsec_t now)
{
	nsec_t due = 0;

	for (unsigned i = 0; i < x->pass_count; i++) {
		limit_rate_undo(&x->passes[i]);
		due = MAX(due, limit_token_due(&x->passes[i], now));
	}
	return due;
}

/* By p; nobody is to come again before `wait` is over. */
static enum exchange_state
refuse(struct exchange *x, struct limit_pass *p, enum failure why,
    nsec_t wait)
{
	nsec_t now = worker_now(x->worker);
	nsec_t due = MAX(tokens_due(x, now), wait);

	x->retry_after = retry_after(x, MAX(due, limit_retry_after(p, now)));
	x->refused_by = p->limit;
	return exchange_failed(x, why);
}

/* --- the walk ---------------------------------------------------------- */

/*
 * A token from every bucket.  True, and *wait is how long to hold the exchange
 * until the last of them is due; or false, if one is missing.
 */
static bool
take_tokens(struct exchange *x, nsec_t *wait)
{
	nsec_t now = worker_now(x->worker), hold = 0;

	for (; x->charged < x->pass_count; x->charged++) {
		struct limit_pass *p = &x->passes[x->charged];

		*wait = limit_rate(p, now);
		if (*wait > 0 && !p->charged)
			return false;
		if (*wait > 0)
			limit_note_hold(p, x->worker->id, *wait);
		hold = MAX(hold, *wait);
	}
	*wait = hold;
	return true;
}

static enum exchange_state
hold(struct exchange *x, nsec_t wait)
{
	leaving_waits(x);
	x->holds = true;
	exchange_arm(x, worker_now(x->worker) + wait);
	return XS_ADMIT;
}

static enum exchange_state
go_in(struct exchange *x)
{
	x->times.admitted = worker_now(x->worker);
	x->engaged = true;
	return XS_RESOLVE;
}

/*
 * Where bytes are limited: those that came with the head, or since.  They are
 * charged last, so that who is refused uses up nothing of what others may send.
 */
static APART enum exchange_state
take_early(struct exchange *x)
{
	struct limit_pass *late;
	nsec_t wait;

	throttling_set_up(x);
	late = throttling_admit(x, &wait);
	if (late != NULL)
		return refuse(x, late, FAIL_RATE_LIMITED, wait);
	return wait == 0 ? go_in(x) : hold(x, wait);
}

static HOT enum exchange_state
pass_gates(struct exchange *x)
{
	struct worker *w = x->worker;
	nsec_t now = worker_now(w);

	for (; x->admitted < x->pass_count; x->admitted++) {
		struct limit_pass *p = &x->passes[x->admitted];
		enum failure why;

		switch (limit_enter(p, w->id, now, &why)) {
		case GATE_TAKEN:
			break;
		case GATE_WAITS:
			leaving_waits(x);
			exchange_arm(x, now +
			    limit_spec(p->limit)->gate.queue_timeout);
			return XS_ADMIT;
		case GATE_REFUSED:
			return refuse(x, p, why, 0);
		}
	}
	if (UNLIKELY(x->route->paced) && x->throttles == NULL)
		return take_early(x);
	return go_in(x);
}

static void
set_up_passes(struct exchange *x)
{
	x->pass_count = x->route->limit_count;
	for (unsigned i = 0; i < x->pass_count; i++) {
		struct limit *l = x->route->limits[i].limit;
		const struct limit_spec *spec = limit_spec(l);
		struct limit_pass *p = &x->passes[i];

		limit_pass_init(p, l, key_of_exchange(x, &spec->key),
		    on_waited);
		limit_pass_stand(p, key_of_exchange(x, &spec->turns),
		    x->route->class);
		p->owner = x;
	}
}

HOT enum exchange_state
admit_enter(struct exchange *x)
{
	nsec_t wait = 0;

	/* Before it has cost anything, and with nothing to be given back. */
	if (UNLIKELY(loop_is_late(x->worker->loop)))
		return exchange_failed(x, FAIL_OVERLOAD);
	set_up_passes(x);
	if (!take_tokens(x, &wait))
		return refuse(x, &x->passes[x->charged], FAIL_RATE_LIMITED, 0);
	return wait == 0 ? pass_gates(x) : hold(x, wait);
}

enum exchange_state
admit_on_late(struct exchange *x)
{
	struct limit_pass *p;
	enum exchange_state next;

	if (x->holds) {
		x->holds = false;
		return pass_gates(x);
	}
	p = &x->passes[x->admitted];
	next = refuse(x, p, FAIL_QUEUE_TIMEOUT, 0);
	limit_leave(p, x->worker->id, worker_now(x->worker),
	    FAIL_QUEUE_TIMEOUT);
	return next;
}

/*
 * In a crowd, what has waited for long is in no cache any more.  Nearly all of
 * an exchange is read and written on its way on, and the head behind its
 * passes: asked for at once, the lines come together, not one by one.
 */
static void
fetch(const struct exchange *x, const struct limit_pass *p)
{
	enum { HEAD_BYTES = 512 };

	for (size_t at = 0; at < sizeof *x; at += CACHE_LINE)
		__builtin_prefetch((const char *)x + at, 1);
	for (size_t at = 0; at < HEAD_BYTES; at += CACHE_LINE)
		__builtin_prefetch((const char *)(p + 1) + at);
	for (size_t at = 0; at < sizeof(struct session); at += CACHE_LINE)
		__builtin_prefetch((const char *)x->session + at, 1);
}

/* The gate has given a permit, or thrown us out. */
static HOT void
on_waited(struct gate_waiter *waiter, enum failure why)
{
	struct limit_pass *p = container_of(waiter, struct limit_pass, waiter);
	struct exchange *x = p->owner;

	fetch(x, p);
	ASSERT(x->state == XS_ADMIT && p == &x->passes[x->admitted]);
	if (why != FAIL_NONE) {
		exchange_run(x, refuse(x, p, why, 0));
		return;
	}
	x->admitted++;
	exchange_run(x, pass_gates(x));
}

/* --- giving back ------------------------------------------------------- */

/* For how long was it the client that was waited for, or took no more? */
static nsec_t
client_time(const struct exchange *x)
{
	const struct exchange_times *t = &x->times;
	nsec_t body = t->requested - MIN(t->requested, t->connected);

	return flow_sink_time(&x->down) +
	    body - MIN(body, flow_sink_time(&x->up));
}

/* A whole request was sent, and nobody waited until there was a response. */
static bool
is_lost(const struct exchange *x, nsec_t time)
{
	if (x->times.requested == 0 || x->has_response || x->begun)
		return false;
	return x->why == FAIL_RESPONSE_TIMEOUT ||
	    (x->why == FAIL_CLIENT_CLOSED && time <= SAMPLE_MOST);
}

/*
 * To a limit that adapts, whole responses tell how long it takes upstream, and
 * so does what is too late for anybody to wait for it.  What failed otherwise
 * does not, nor a tunnel or a stream, which lasts as its ends like, nor what
 * was held up for want of bandwidth, nor the time that a client takes.  An
 * error of the server may be quicker than any response: it is of what was
 * turned away, and so is a 429.
 */
static APART void
sample(const struct exchange *x, struct limit_pass *p, nsec_t now)
{
	nsec_t time = now - MIN(now, x->times.admitted);
	bool lost = is_lost(x, time);
	bool came = x->why == FAIL_NONE && time <= SAMPLE_MOST &&
	    x->response_status >= 200;
	bool away = x->response_status >= 500 || x->response_status == 429;

	if (p->inside && (lost || came) && !throttling_held(x))
		limit_sample(p, x->worker->id, lost ? LIMIT_LOST :
		    away ? LIMIT_TURNED_AWAY : LIMIT_SERVED,
		    time - MIN(time, client_time(x)), now);
}

static void
leave(struct exchange *x, struct limit_pass *p, nsec_t now, enum failure why)
{
	if (p->adapts)
		sample(x, p, now);
	limit_leave(p, x->worker->id, now, why);
}

void
admit_leave_upstream(struct exchange *x)
{
	nsec_t now = worker_now(x->worker);

	for (unsigned i = 0; i < x->pass_count; i++)
		if (x->route->limits[i].of_upstream)
			leave(x, &x->passes[i], now, FAIL_NONE);
}

void
admit_leave(struct exchange *x)
{
	nsec_t now = worker_now(x->worker);
	bool admitted = x->times.admitted != 0;

	for (unsigned i = 0; i < x->pass_count; i++) {
		struct limit_pass *p = &x->passes[i];

		leave(x, p, now, admitted ? FAIL_NONE : x->why);
		if (!admitted)
			limit_rate_undo(p);
	}
}

/* --- dry run ----------------------------------------------------------- */

static const struct limit_pass *
first_refusal(const struct limit_pass *passes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (passes[i].would != FAIL_NONE)
			return &passes[i];
	return NULL;
}

const struct limit_pass *
admit_would_refuse(const struct exchange *x)
{
	const struct limit_pass *p = first_refusal(x->passes, x->pass_count);

	if (p == NULL && x->session->passes != NULL)
		p = first_refusal(x->session->passes,
		    x->service->session_limit_count);
	return p;
}
