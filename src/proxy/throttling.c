/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * throttling.c - bodies and tunnels, within the bandwidth of their limits; see
 * throttling.h.
 */
#include "proxy/throttling.h"

#include <assert.h>

#include "base/block.h"
#include "net/stream.h"
#include "proxy/leaving.h"
#include "proxy/relaying.h"
#include "proxy/worker.h"

static_assert((int)THROTTLE_PACES >= (int)ROUTE_LIMITS,
    "a throttle has a pace of each limit that is passed");
static_assert(sizeof(struct limit_pass) % _Alignof(struct throttle) == 0,
    "throttles lie behind passes");

/* Permits aren't kept for a client that has gone. */
static void
on_held(struct throttle *t)
{
	const struct limit_pass *p = t->uses[0].owner;

	leaving_mind(p->owner, t->stream);
}

static bool
may_tunnel(const struct exchange *x)
{
	return !x->has_head || x->upgrades ||
	    x->request.method == METHOD_CONNECT;
}

APART void
throttling_set_up(struct exchange *x)
{
	x->throttles = (struct throttle *)(void *)
	    (x->arena->data + throttling_offset(x->service));
	for (int way = 0; way < LIMIT_WAYS; way++) {
		struct throttle *t = &x->throttles[way];

		throttle_init(t);
		if (way == LIMIT_IN) {
			t->holds = on_held;
			/* A tunnel is followed by nothing, and may idle. */
			t->counts_late = !may_tunnel(x);
		}
		for (unsigned i = 0; i < x->pass_count; i++) {
			struct limit_pass *p = &x->passes[i];
			struct pace *pace = limit_pace(p->limit,
			    (enum limit_way)way);

			if (pace != NULL)
				throttle_add(t, pace, p->key)->owner = p;
		}
	}
}

/* Is there more from the client than a head, or may there be? */
static bool
has_more(const struct exchange *x)
{
	return may_tunnel(x) || x->framing.kind == FRAMING_CHUNKED ||
	    (x->framing.kind == FRAMING_LENGTH && x->framing.length > 0);
}

static nsec_t
longest_hold(const struct exchange *x)
{
	nsec_t time = relay_time(x, FW_REQUEST_SOURCE);

	return time == 0 ? PACE_MAX_DEPTH : MIN(time, PACE_MAX_DEPTH);
}

struct limit_pass *
throttling_admit(struct exchange *x, nsec_t *wait)
{
	struct throttle *t = throttling_of(x, LIMIT_IN);
	nsec_t most = longest_hold(x), waits[THROTTLE_PACES];
	struct limit_pass *late = NULL;
	bool fits;

	*wait = 0;
	if (t == NULL || !has_more(x))
		return NULL;
	fits = throttle_charge(t, relay_early(x), most,
	    worker_now(x->worker), waits);
	for (unsigned i = 0; i < t->count; i++) {
		struct limit_pass *p = t->uses[i].owner;

		*wait = MAX(*wait, waits[i]);
		if (fits && waits[i] > 0)
			limit_note_hold(p, x->worker->id, waits[i]);
		if (late == NULL && waits[i] > most)
			late = p;
	}
	if (late == NULL)
		throttling_ahead(x);
	else
		limit_note_refusal(late, FAIL_RATE_LIMITED);
	return late;
}

APART void
throttling_ahead(struct exchange *x)
{
	struct throttle *t = throttling_of(x, LIMIT_IN);

	if (t != NULL && has_more(x))
		stream_set_throttle(x->client->stream(x->session), t);
}

APART void
throttling_keep_heads(struct exchange *x)
{
	struct throttle *t = throttling_of(x, LIMIT_OUT);

	if (t != NULL)
		stream_take_shown(t->stream, 0);
}

/* What nobody will ask for needn't wait. */
APART size_t
throttling_begin_body(struct exchange *x, size_t n)
{
	struct throttle *t = throttling_of(x, LIMIT_OUT);
	const struct framing *f = &x->response_framing;

	if (t == NULL)
		return n;
	if (f->kind == FRAMING_NONE ||
	    (f->kind == FRAMING_LENGTH && f->length == 0)) {
		stream_take_shown(t->stream, 0);
	} else {
		stream_take_shown(t->stream, n);
		n = 0;
	}
	t->peeks = false;
	return n;
}

nsec_t
throttling_time(const struct exchange *x, enum limit_way way)
{
	return x->throttles == NULL ? 0 : x->throttles[way].waited;
}

nsec_t
throttling_total(const struct exchange *x)
{
	nsec_t total = throttling_time(x, LIMIT_IN) +
	    throttling_time(x, LIMIT_OUT);

	return total != 0 ? total : NSEC_NEVER;
}

APART void
throttling_end(struct exchange *x)
{
	throttle_early_dropped(&x->throttles[LIMIT_IN]);
	for (int way = 0; way < LIMIT_WAYS; way++)
		if (x->throttles[way].stream != NULL)
			stream_set_throttle(x->throttles[way].stream, NULL);
}
