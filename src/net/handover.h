/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handover.h - accepted connections, given to the loop that has fewer.
 *
 * The kernel spreads connections over the sockets of an address by hash, as
 * dice would; and a unix address has one socket, so that one loop gets them
 * all.  A loop that has accepted one gives it away if it has over a quarter
 * more than another, and over HANDOVER_SLACK more: of few, a quarter is less
 * than one.
 *
 *	member 0, accepts            member 1
 *	  [ parcels ] ---- mail ----> its loop: `taken` is called
 *	  [ open    ]                [ open + coming ]  what it has
 *
 * What a member has are the connections it has open and those on their way to
 * it.  Idle ones count like busy ones: which of them will be busy in a second
 * nobody knows.  A giver looks at two others each time: the next in turn, and
 * the one that had the fewest of those it looked at before; so the price is
 * the same for any number, and the least loaded is found within a round.
 *
 * Nothing waits and nothing fails: a parcel is one of HANDOVER_PARCELS that
 * each member has from the start.  Is none free, or has the other been told
 * to close, or too much on its way to it, then the giver keeps what it has.
 *
 * Owner:    handover_new() gives a handle; handover_free() when no loop runs.
 * Threads:  handover_join() before the loops run; the others the member's own,
 *           except the figures.
 * Promise:  what handover_give() took is given to the other's `taken` exactly
 *           once, as long as its loop runs until handover_is_quiet(); and
 *           closed by handover_free() if that loop never ran.
 */
#ifndef PENSTOCK_NET_HANDOVER_H
#define PENSTOCK_NET_HANDOVER_H

#include "base/addr.h"
#include "base/stats.h"

struct handover;
struct loop;

enum {
	HANDOVER_PARCELS = 1024,	/* of a member, on their way at once */
	HANDOVER_COMING = 256,	/* to one member, from all others */
	HANDOVER_SLACK = 2,
};

/* A connection, and where it came in: something that all members know. */
struct handover_item {
	const void	*door;
	int		 fd;
	struct addr	 from;
};

/* One has come: its descriptor is the callee's. */
typedef void handover_fn(void *arg, const struct handover_item *item);

struct handover_opts {
	struct loop	*loop;
	counter_t	*open;		/* connections that the member has */
	handover_fn	*taken;
	void		*arg;
};

/* A team of so many, who join before the first loop runs. */
struct handover *handover_new(unsigned members);
void handover_free(struct handover **h);

/* The member has that loop, and takes what comes.  One alone never does. */
void handover_join(struct handover *h, unsigned member,
    const struct handover_opts *opts);

/*
 * Give it to a member that has fewer, if there is one.  False: it stays the
 * caller's.
 */
bool handover_give(struct handover *h, unsigned member,
    const struct handover_item *item);

/* Take no more; what is on its way still comes. */
void handover_close(struct handover *h, unsigned member);

/* It takes no more, and nothing is on its way any more. */
bool handover_is_quiet(const struct handover *h, unsigned member);

/* How many it gave and took; from any thread. */
uint64_t handover_given(const struct handover *h, unsigned member);
uint64_t handover_taken(const struct handover *h, unsigned member);

#endif
