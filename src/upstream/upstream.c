/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * upstream.c - a named set of servers; see upstream.h, balance.c.
 */
#include "upstream/upstream.h"

#include <stdlib.h>

#include "upstream/balance.h"

static void
server_init(struct server *s, struct upstream *u,
    const struct conf_server *conf)
{
	*s = (struct server){
		.upstream = u,
		.text = xstrdup(conf->text),
		.host = conf->host != NULL ? xstrdup(conf->host) : NULL,
		.port = conf->port,
		.weight = conf->weight,
		.backup = conf->backup,
	};
	pthread_mutex_init(&s->lock, NULL);
	s->local = xcalloc(u->workers, sizeof *s->local);
	if (conf->host == NULL) {
		struct addr_set set = { .count = 1, .addrs = { conf->addr } };

		/* The path of a unix address is the configuration's. */
		if (conf->addr.family == ADDR_UNIX)
			set.addrs[0].path = xstrdup(conf->addr.path);
		server_set_addrs(s, &set);
	}
}

static void
server_fini(struct server *s)
{
	if (s->host == NULL && s->addrs.addrs[0].family == ADDR_UNIX)
		free((char *)s->addrs.addrs[0].path);
	free((char *)s->text);
	free((char *)s->host);
	free(s->local);
	pthread_mutex_destroy(&s->lock);
}

struct upstream *
upstream_new(const struct conf_upstream *conf, unsigned workers)
{
	struct upstream *u = xcalloc(1, sizeof *u);

	u->name = xstrdup(conf->name_);
	u->balance = conf->balance;
	u->workers = workers;
	u->pool_max = (unsigned)((conf->pool_max + workers - 1) / workers);
	u->pool_idle = conf->pool_idle;
	u->retry_body = conf->retry_body;
	u->count = (unsigned)conf->server.count;
	u->servers = xcalloc(u->count, sizeof *u->servers);
	u->stats = xcalloc(workers, sizeof *u->stats);
	for (unsigned i = 0; i < u->count; i++)
		server_init(&u->servers[i], u, &conf->server.at[i]);
	balance_init(u);
	atomic_init(&u->refs, 1);
	return u;
}

void
upstream_ref(struct upstream *u)
{
	atomic_fetch_add(&u->refs, 1);
}

void
upstream_unref(struct upstream **upstream)
{
	struct upstream *u = *upstream;

	if (u == NULL)
		return;
	*upstream = NULL;
	if (atomic_fetch_sub(&u->refs, 1) > 1)
		return;
	for (unsigned i = 0; i < u->count; i++)
		server_fini(&u->servers[i]);
	free(u->servers);
	free(u->stats);
	free(u->wheel);
	free(u->name);
	free(u);
}

struct server_local *
server_local(struct server *s, unsigned worker)
{
	struct upstream *u = s->upstream;
	struct server_local *l = &s->local[worker];

	if (!l->ready) {
		pool_group_init(&l->pool, u->pool_max, u->pool_idle,
		    &u->stats[worker]);
		l->ready = true;
	}
	return l;
}

void
server_set_addrs(struct server *s, const struct addr_set *set)
{
	pthread_mutex_lock(&s->lock);
	s->addrs = *set;
	pthread_mutex_unlock(&s->lock);
	atomic_store(&s->addr_count, set->count);
}

void
server_get_addrs(struct server *s, struct addr_set *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->addrs;
	pthread_mutex_unlock(&s->lock);
}
