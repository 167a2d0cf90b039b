/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * upstream.h - a named set of servers, and which of them is next.
 *
 * An upstream never changes: a configuration has one of its own.  What outlives
 * a configuration are its servers, shared with the upstream of the same name
 * in the one before, and what it counts.  So connections, addresses and
 * whatever else is known of a server are kept as long as it is configured.
 *
 *	setup 1: upstream api ----> server a  <---- upstream api :setup 2
 *	                     `----> server b
 *	                            server c  <----'
 *
 * What a worker has of its own with a server (idle connections, counters) is
 * in the server's `local` of that worker.  Servers given by name get their
 * addresses from main, which resolves them and publishes with
 * server_set_addrs(); until then they have none and are passed over.
 *
 * Owner:    upstream_new() gives a handle.
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
	uint64_t		round;		/* of upstream_use(), last */
};

struct server {
	const char		*upstream;	/* its name */
	const char		*text;		/* as configured; its label */
	const char		*host;		/* a name, or NULL */
	uint16_t		 port;
	pthread_mutex_t		 lock;		/* of addrs; held for a copy */
	struct addr_set		 addrs;
	_Atomic unsigned	 addr_count;	/* 0: passed over */
	struct server_local	*local;		/* one for each worker */
	unsigned		 refs;		/* upstreams; main's */
};

/* A server in one upstream. */
struct upstream_server {
	struct server		*server;
	unsigned		 weight;
	bool			 backup;
};

struct upstream_counts;

struct upstream {
	const char		*name;
	enum balance		 balance;
	unsigned		 workers;
	unsigned		 pool_max;	/* a worker's share */
	nsec_t			 pool_idle;
	uint64_t		 retry_body;
	struct upstream_server	*servers;
	unsigned		 count;
	_Atomic uint64_t	 turn;		/* of the round robin */
	unsigned		*wheel;		/* servers by weight, spread */
	unsigned		 wheel_size;
	struct upstream_stats	*stats;		/* one for each worker */
	struct upstream_counts	*counts;	/* has the name and these */
};

/*
 * `before`: the upstream of that name in the configuration before, whose
 * servers and counts it goes on with; or NULL.
 */
struct upstream *upstream_new(const struct conf_upstream *conf,
    unsigned workers, const struct upstream *before);

/*
 * With its servers, if no other upstream has them: then all workers' pools of
 * those must be empty.
 */
void upstream_free(struct upstream **u);

/*
 * This worker goes by u from now on, and so by its numbers for pools; in a
 * `round` that is a number higher each time.  When it has begun to use all
 * upstreams of a round, those before are told: idle connections to servers that
 * are in none of them are closed, and none is kept any more.
 */
void upstream_use(struct upstream *u, unsigned worker, uint64_t round);
void upstream_disuse(struct upstream *u, unsigned worker, uint64_t round);

/* What this worker has with that server. */
static inline struct server_local *
server_local(struct server *s, unsigned worker)
{
	return &s->local[worker];
}

/* New addresses; none leaves it passed over. */
void server_set_addrs(struct server *s, const struct addr_set *set);
void server_get_addrs(struct server *s, struct addr_set *out);

/*
 * The server to try next, none of the set *tried (bits by index, the first 64
 * only), to which it is added; a backup only if no other has an address.  NULL
 * if there is none.
 */
struct server *upstream_choose(struct upstream *u, uint64_t *tried);

#endif
