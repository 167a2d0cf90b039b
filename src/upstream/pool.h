/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - a worker's connections to servers: busy, or idle to be used again.
 *
 * Connections to one server (or one destination of a forward proxy) form a
 * group.  An idle one is taken newest first, so that few stay warm and the
 * others age out.  While idle it is watched: one that ends, or on which bytes
 * arrive that nobody asked for, is closed at once.
 *
 *	          conn_new            conn_give
 *	dial  ---------------> busy ------------> idle
 *	                        |  <------------   |
 *	             conn_close |     pool_take    | too old, ended, or bytes
 *	                        v                  v
 *	                      closed             closed
 *
 * Owner:    a busy connection is the taker's, who ends that with conn_give()
 *           or conn_close(); an idle one is the pool's.  Groups are embedded
 *           in their servers, or the pool's own for destinations.
 * Threads:  one worker's.
 * Promise:  what pool_take() gives was quiet as of the last poll, or, if it
 *           had been idle for longer than POOL_TRUSTED, as of now.  If it
 *           was busy at that poll, as of its last read.
 * Limits:   a group keeps `max` idle connections, the pool POOL_GROUPS
 *           destinations.
 */
#ifndef PENSTOCK_UPSTREAM_POOL_H
#define PENSTOCK_UPSTREAM_POOL_H

#include "base/addr.h"
#include "base/list.h"
#include "base/map.h"
#include "base/stats.h"
#include "net/loop.h"

struct conn;
struct pool;
struct stream;

enum { POOL_GROUPS = 4096 };

#define POOL_TRUSTED	(500 * NSEC_PER_MSEC)

/* So long is a server thought to speak HTTP/1.0 since it last did. */
#define POOL_OLD	(60 * NSEC_PER_SEC)

/* Connections to one place. */
struct pool_group {
	struct list		 idle;		/* newest first */
	unsigned		 idle_count;
	unsigned		 busy_count;
	unsigned		 max;		/* idle ones kept */
	nsec_t			 keep;		/* how long */
	struct upstream_stats	*stats;		/* or NULL */
	bool			 is_destination; /* made by the pool */
	nsec_t			 old_until;	/* spoke HTTP/1.0 last */
};

/*
 * A pool of at most `max` connections, counting into *stats, both the
 * caller's.
 */
struct pool *pool_new(struct loop *loop, size_t max,
    struct worker_stats *stats);

/* Most bytes that it takes for so many connections. */
uint64_t pool_memory(uint64_t max);

/* Close what is idle; nothing may be busy. */
void pool_free(struct pool **p);

void pool_group_init(struct pool_group *g, unsigned max, nsec_t keep,
    struct upstream_stats *stats);

/* Other numbers from now on; idle connections beyond `max` are closed. */
void pool_group_set(struct pool_group *g, unsigned max, nsec_t keep);

/* It has no connection, idle or busy. */
bool pool_group_is_empty(const struct pool_group *g);

/*
 * The group of a forward destination, named by its host:port; made if need
 * be.  It lives while it has connections, or until pool_group_done().  NULL
 * when there are too many: then the connection is not kept.
 */
struct pool_group *pool_destination(struct pool *p, struct str name,
    unsigned max, nsec_t keep);

/* The caller of pool_destination() no longer needs it. */
void pool_group_done(struct pool *p, struct pool_group **g);

/* An idle connection of that group, busy from now on; or NULL. */
struct conn *pool_take(struct pool *p, struct pool_group *g) MUST_USE;

/*
 * Does its server speak HTTP/1.0, as far as is known?  What it spoke last is
 * told by pool_group_spoke(), as the minor version.
 */
bool pool_group_is_old(const struct pool_group *g, nsec_t now);
void pool_group_spoke(struct pool_group *g, unsigned minor, nsec_t now);

/* The oldest idle connection of all is closed; false if there is none. */
bool pool_evict(struct pool *p);

/* Close every idle connection. */
void pool_clear(struct pool *p);

/*
 * A new, busy connection over s to that address; NULL at the bound: then s
 * stays the caller's.
 */
struct conn *conn_new(struct pool *p, struct pool_group *g, struct stream *s,
    const struct addr *to) MUST_USE;

struct stream *conn_stream(const struct conn *c);

/* The address it leads to. */
const struct addr *conn_addr(const struct conn *c);

/*
 * Done with it, and it may be used again: its stream must be without reader,
 * writer and bytes.  `keep` bounds how long it is kept, if it is shorter than
 * the group's.  Clears *c.
 */
void conn_give(struct conn **c, nsec_t keep);

/* Done with it: close.  Clears *c; NULL in it is fine. */
void conn_close(struct conn **c);

/*
 * Its stream is somebody else's from now on (a tunnel); it still counts as
 * busy until conn_close().
 */
struct stream *conn_detach(struct conn *c);

#endif
