/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * upstream.h - a named set of servers, and which of them is next.
 *
 * An upstream is shared by all workers.  What a worker has of its own with a
 * server (idle connections, counters) is in the server's `local` of that
 * worker.  Servers given by name get their addresses from main, which resolves
 * them and publishes with server_set_addrs(); until then they have none and
 * are passed over.
 *
 * Owner:    upstream_new() gives a reference; upstream_unref() ends it.
 * Threads:  made and freed by main; the rest any worker, with its own number,
 *           `local` only its own worker.
 */
#ifndef PENSTOCK_UPSTREAM_UPSTREAM_H
#define PENSTOCK_UPSTREAM_UPSTREAM_H

#include <pthread.h>

#include "config/config.h"
#include "net/resolver.h"
#include "upstream/pool.h"

/* What one worker has with one server. */
struct server_local {
	struct pool_group	pool;
	struct server_stats	stats;
	bool			ready;		/* pool is initialised */
};

struct server {
	struct upstream		*upstream;
	const char		*text;		/* as configured; its label */
	const char		*host;		/* a name, or NULL */
	uint16_t		 port;
	unsigned		 weight;
	bool			 backup;
	pthread_mutex_t		 lock;		/* of addrs; held for a copy */
	struct addr_set		 addrs;
	_Atomic unsigned	 addr_count;	/* 0: passed over */
	struct server_local	*local;		/* one for each worker */
};

struct upstream {
	char			*name;
	enum balance		 balance;
	unsigned		 workers;
	unsigned		 pool_max;	/* a worker's share */
	nsec_t			 pool_idle;
	uint64_t		 retry_body;
	struct server		*servers;
	unsigned		 count;
	_Atomic uint64_t	 turn;		/* of the round robin */
	unsigned		*wheel;		/* servers by weight, spread */
	unsigned		 wheel_size;
	struct upstream_stats	*stats;		/* one for each worker */
	_Atomic unsigned	 refs;
};

struct upstream *upstream_new(const struct conf_upstream *conf,
    unsigned workers);
void upstream_ref(struct upstream *u);

/* The last one frees: all workers' pools of it must be cleared already. */
void upstream_unref(struct upstream **u);

/* What this worker has with that server, ready for use. */
struct server_local *server_local(struct server *s, unsigned worker);

/* New addresses; none leaves it passed over. */
void server_set_addrs(struct server *s, const struct addr_set *set);
void server_get_addrs(struct server *s, struct addr_set *out);

/*
 * The server to try next, none of the set `tried` (bits by index, the first
 * 64 only); a backup only if no other has an address.  NULL if there is none.
 */
struct server *upstream_choose(struct upstream *u, uint64_t tried);

static inline unsigned
server_index(const struct server *s)
{
	return (unsigned)(s - s->upstream->servers);
}

#endif
