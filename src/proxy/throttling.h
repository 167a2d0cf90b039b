/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * throttling.h - bodies and tunnels, within the bandwidth of their limits.
 *
 * An exchange that passes limits with a bandwidth has two throttles: for what
 * is read from the client, and from the upstream.  Its flows put them to use;
 * before those begin, what a client sends ahead is throttled too.  What came
 * with the head of a request, or while it waited to be admitted, has been read
 * already: that is charged once all else lets the exchange in, which is held
 * until it may go on, and given back if it never does.  A reset of the client
 * is noticed though it isn't read.
 *
 * Which stream has which throttle:
 *
 *	state		the client's stream (in)	upstream's (out)
 *	ROUTE		-				-
 *	ADMIT		if more than a head may come	-
 *	RESOLVE, CONNECT	as in ADMIT		-
 *	RELAY		until the flow has read the	while the flow reads;
 *			body; as in ADMIT, if it	peeks until the final
 *			begins again			head is there
 *	TUNNEL		while its flow reads		while its flow reads
 *	REPLY, OVER	-				-
 *
 * What is counted is what is read, the framing of bodies included.  Heads are
 * not, nor is what is dropped.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_THROTTLING_H
#define PENSTOCK_PROXY_THROTTLING_H

#include "net/throttle.h"
#include "proxy/exchange.h"
#include "proxy/worker.h"

/* The arena's part for limits: passes for the most there are, throttles. */
static inline size_t
throttling_offset(const struct service *s)
{
	return s->most_limits * sizeof(struct limit_pass);
}

static inline size_t
throttling_pass_bytes(const struct service *s)
{
	return throttling_offset(s) +
	    (s->paced ? LIMIT_WAYS * sizeof(struct throttle) : 0);
}

/* The passes are set up, and some of their limits have a bandwidth. */
void throttling_set_up(struct exchange *x);

/*
 * Charge what came with the head, and throttle what comes ahead.  NULL: hold
 * the exchange for *wait; or the first limit that would have it held for too
 * long, and *wait is the longest.
 */
struct limit_pass *throttling_admit(struct exchange *x, nsec_t *wait) MUST_USE;

/* The session reads ahead again: what the flow did was not the last try. */
void throttling_ahead(struct exchange *x);

/* Take the throttles, which there are, from the streams, which are too. */
void throttling_end(struct exchange *x);

/* Nothing is throttled from here on. */
static inline void
throttling_stop(struct exchange *x)
{
	if (UNLIKELY(x->throttles != NULL))
		throttling_end(x);
}

/* What was charged as early goes on now. */
static inline void
throttling_early_passes(struct exchange *x)
{
	if (UNLIKELY(x->throttles != NULL))
		throttle_early_passes(&x->throttles[LIMIT_IN],
		    worker_now(x->worker));
}

/* The last n bytes from the client are of its next request. */
static inline void
throttling_not_its_own(struct exchange *x, size_t n)
{
	if (UNLIKELY(x->throttles != NULL))
		throttle_give_back(&x->throttles[LIMIT_IN], n);
}

/* For the source of that way, or NULL. */
static inline struct throttle *
throttling_of(const struct exchange *x, enum limit_way way)
{
	if (LIKELY(x->throttles == NULL) || x->throttles[way].count == 0)
		return NULL;
	return &x->throttles[way];
}

/* The same for a response, whose heads come as they may. */
static inline struct throttle *
throttling_of_response(struct exchange *x)
{
	struct throttle *t = throttling_of(x, LIMIT_OUT);

	if (UNLIKELY(t != NULL))
		t->peeks = true;
	return t;
}

/*
 * What was just read from the upstream is of heads, all of it; or is but for
 * the last n bytes, with which the body begins, or another protocol.  How many
 * of those are there to go on with: if they are throttled, none as yet.
 */
void throttling_keep_heads(struct exchange *x);
size_t throttling_begin_body(struct exchange *x, size_t n);

static inline void
throttling_all_heads(struct exchange *x)
{
	if (UNLIKELY(x->throttles != NULL))
		throttling_keep_heads(x);
}

static inline size_t
throttling_behind_head(struct exchange *x, size_t n)
{
	return LIKELY(x->throttles == NULL) ? n : throttling_begin_body(x, n);
}

/* How long nothing was read of it for want of bandwidth, all together. */
nsec_t throttling_time(const struct exchange *x, enum limit_way way);

/* The same of both ways; NSEC_NEVER: it wasn't throttled. */
nsec_t throttling_total(const struct exchange *x);

static inline bool
throttling_held(const struct exchange *x)
{
	return UNLIKELY(x->throttles != NULL) &&
	    throttling_total(x) != NSEC_NEVER;
}

#endif
