/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leaving.h - clients that go while they wait: what they hold is given back at
 * once.
 *
 * Who waits isn't read for long: a block of it may be read ahead, a bandwidth
 * may hold it, or it has sent FIN.  Then it is minded: its reset is noticed in
 * any state, and its FIN where that says that it has gone,
 *
 *	- while it waits to be admitted or connected, unless the FIN came with
 *	  the request: then it says that there is no more to ask;
 *	- in the middle of a body whose length is known, which then never comes.
 *
 * An exchange that isn't held up is never minded, and pays nothing.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_LEAVING_H
#define PENSTOCK_PROXY_LEAVING_H

#include "proxy/exchange.h"

struct stream;

/* Its client, whose stream that is, isn't read for a while; harmless twice. */
void leaving_mind(struct exchange *x, struct stream *client);

/* It waits, and its client has ended already: then nothing is read of it. */
static inline void
leaving_waits(struct exchange *x)
{
	if (UNLIKELY(x->half_closed))
		leaving_mind(x, x->client->stream(x->session));
}

/* The exchange is over. */
void leaving_stop(struct exchange *x);

/* The client's FIN was read. */
void leaving_on_end(struct exchange *x);

#endif
