/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tunnel.h - two flows between two streams, until both have ended.
 *
 * A FIN is carried through once what came before it has been sent; the other
 * direction goes on until it ends, or nothing has passed for `half_closed`.  A
 * reset on one side becomes a reset on the other, except that a side which had
 * sent its FIN before has that carried through first.
 *
 * Owner:    the caller, who embeds the struct, and keeps both streams: they
 *           are closed (or reset) by the tunnel just before `ended`, or by
 *           tunnel_stop().
 * Threads:  the loop's.
 * Promise:  `ended` is called once, never from tunnel_start() or
 *           tunnel_stop(), nor after the latter.
 */
#ifndef PENSTOCK_NET_TUNNEL_H
#define PENSTOCK_NET_TUNNEL_H

#include "base/failure.h"
#include "net/flow.h"

struct tunnel;

/*
 * FAIL_NONE: both sides ended.  FAIL_CLIENT_CLOSED, FAIL_UPSTREAM_CLOSED: that
 * side reset.  FAIL_TUNNEL_IDLE, FAIL_HALF_CLOSED: a time ran out.
 * FAIL_CLIENT_TIMEOUT, FAIL_UPSTREAM_BLOCKED: that side took nothing for
 * `send`, while so much waited for it that the other wasn't read.
 * FAIL_MEMORY: bytes could not be kept.
 */
typedef void tunnel_ended_fn(struct tunnel *t, enum failure why);

struct tunnel_opts {
	struct stream	*client;
	struct stream	*upstream;
	struct throttle	*throttle_up;	/* of the client; or NULL */
	struct throttle	*throttle_down;	/* of the upstream; or NULL */
	size_t		 high;		/* bytes, each way */
	size_t		 low;
	nsec_t		 idle;		/* without a byte either way, nor a
					   throttle that holds one up */
	nsec_t		 half_closed;	/* the same, after one side ended */
	nsec_t		 send;		/* for what holds a side's source up */
	bool		 splice;	/* see flow.h */
	tunnel_ended_fn	*ended;
};

struct tunnel {
	struct flow		 up;		/* client to upstream */
	struct flow		 down;
	struct stream		*client;
	struct stream		*upstream;
	struct wheel_timer	 timer;
	nsec_t			 idle;
	nsec_t			 half_closed;
	tunnel_ended_fn		*ended;
	bool			 half;		/* one side has ended */
	enum failure		 why;		/* found, but one drains yet */
};

/* *opts is copied; both streams are the tunnel's from now on. */
void tunnel_start(struct tunnel *t, const struct tunnel_opts *opts);

/* Bytes the client (or upstream) had sent before the tunnel began. */
void tunnel_push_up(struct tunnel *t, uint8_t *bytes, size_t n);
void tunnel_push_down(struct tunnel *t, uint8_t *bytes, size_t n);

/* The client had sent FIN before the tunnel began; after its bytes. */
void tunnel_push_end(struct tunnel *t);

/* End now: both streams are reset. */
void tunnel_stop(struct tunnel *t);

#endif
