/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dial.h - open one connection to the first of some addresses that answers.
 *
 * The addresses are tried in turn, each for at most `timeout`.
 *
 * Owner:    dial_start() gives the caller a handle.  It is the caller's
 *           until `done` runs or dial_cancel() is called, and gone after.
 * Promise:  `done` runs exactly once, and never before dial_start() has
 *           returned; after dial_cancel() it does not run at all.
 * Threads:  the loop's.
 * Errors:   a connection to ourselves (the kernel may pick the destination
 *           port as our own on loopback) counts as refused.
 */
#ifndef PENSTOCK_NET_DIAL_H
#define PENSTOCK_NET_DIAL_H

#include "base/addr.h"
#include "net/loop.h"

struct dial;
struct dial_pool;
struct stream;
struct stream_pool;

enum { DIAL_ADDRS = 8 };

/*
 * The connection is open: the stream is now the callee's, err is 0, and
 * `tried` is the index of its address.  Or it is not: stream is NULL and err
 * says why the last address failed, as a positive errno.
 */
typedef void dial_done_fn(void *arg, struct stream *stream, int err,
    unsigned tried);

struct dial_opts {
	const struct addr	*to;		/* copied */
	unsigned		 count;		/* 1 to DIAL_ADDRS */
	nsec_t			 timeout;	/* for each; more than 0 */
	dial_done_fn		*done;
	void			*arg;		/* passed to done, untouched */
};

/* Where a loop's dials come from, at most `max` at once. */
struct dial_pool *dial_pool_new(struct loop *loop, struct stream_pool *streams,
    size_t max);
/* Most bytes that it takes for so many dials. */
uint64_t dial_pool_memory(uint64_t max);
void dial_pool_free(struct dial_pool **p);

/* 0 and a handle in *out; or -ENOMEM, and *out is NULL. */
int dial_start(struct dial **out, struct dial_pool *pool,
    const struct dial_opts *opts) MUST_USE;

/* Give up, and set *dial to NULL.  Does nothing if it is NULL already. */
void dial_cancel(struct dial **dial);

#endif
