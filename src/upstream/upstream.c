/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * upstream.c - a named set of servers; see upstream.h, balance.c.
 */
#include "upstream/upstream.h"

#include <stdlib.h>
#include <string.h>

#include "upstream/balance.h"

/* What all upstreams of one name, one after another, have in common. */
struct upstream_counts {
	char			*name;
	struct upstream_stats	*stats;		/* one for each worker */
	unsigned		 refs;		/* main's */
};

/* --- servers ----------------------------------------------------------- */

static struct server *
server_new(const struct upstream *u, const struct conf_server *conf)
{
	struct server *s = xcalloc(1, sizeof *s);

	s->upstream = u->name;
	s->text = xstrdup(conf->text);
	s->host = conf->host != NULL ? xstrdup(conf->host) : NULL;
	s->port = conf->port;
	pthread_mutex_init(&s->lock, NULL);
	s->local = xcalloc(u->workers, sizeof *s->local);
	for (unsigned i = 0; i < u->workers; i++)
		pool_group_init(&s->local[i].pool, u->pool_max, u->pool_idle,
		    &u->stats[i]);
	if (conf->host == NULL) {
		struct addr_set set = { .count = 1, .addrs = { conf->addr } };

		/* The path of a unix address is the configuration's. */
		if (conf->addr.family == ADDR_UNIX)
			set.addrs[0].path = xstrdup(conf->addr.path);
		server_set_addrs(s, &set);
	}
	return s;
}

static void
server_unref(struct server *s, unsigned workers)
{
	if (--s->refs > 0)
		return;
	for (unsigned i = 0; i < workers; i++)
		ASSERT(pool_group_is_empty(&s->local[i].pool));
	if (s->host == NULL && s->addrs.addrs[0].family == ADDR_UNIX)
		free((char *)s->addrs.addrs[0].path);
	free((char *)s->text);
	free((char *)s->host);
	free(s->local);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static bool
has_server(const struct upstream *u, unsigned count, const struct server *s)
{
	for (unsigned i = 0; i < count; i++)
		if (u->servers[i].server == s)
			return true;
	return false;
}

/* The text says all: the same one leads to the same place. */
static struct server *
find_server(const struct upstream *u, const struct upstream *before,
    unsigned at, const struct conf_server *conf)
{
	unsigned count = before != NULL ? before->count : 0;

	/* Most stay where they are. */
	for (unsigned i = 0; i < count; i++) {
		struct server *s = before->servers[(at + i) % count].server;

		if (strcmp(s->text, conf->text) == 0 &&
		    !has_server(u, at, s))
			return s;
	}
	return NULL;
}

/* --- upstreams --------------------------------------------------------- */

static void
set_counts(struct upstream *u, const char *name, const struct upstream *before)
{
	struct upstream_counts *c = before != NULL ? before->counts : NULL;

	if (c == NULL) {
		c = xcalloc(1, sizeof *c);
		c->name = xstrdup(name);
		c->stats = xcalloc(u->workers, sizeof *c->stats);
	}
	c->refs++;
	u->counts = c;
	u->name = c->name;
	u->stats = c->stats;
}

static void
counts_unref(struct upstream_counts *c)
{
	if (--c->refs > 0)
		return;
	free(c->stats);
	free(c->name);
	free(c);
}

struct upstream *
upstream_new(const struct conf_upstream *conf, unsigned workers,
    const struct upstream *before)
{
	struct upstream *u = xcalloc(1, sizeof *u);

	u->balance = conf->balance;
	u->workers = workers;
	u->pool_max = (unsigned)((conf->pool_max + workers - 1) / workers);
	u->pool_idle = conf->pool_idle;
	u->retry_body = conf->retry_body;
	set_counts(u, conf->name_, before);
	u->count = (unsigned)conf->server.count;
	u->servers = xcalloc(u->count, sizeof *u->servers);
	for (unsigned i = 0; i < u->count; i++) {
		const struct conf_server *c = &conf->server.at[i];
		struct server *s = find_server(u, before, i, c);

		if (s == NULL)
			s = server_new(u, c);
		s->refs++;
		u->servers[i] = (struct upstream_server){
			.server = s, .weight = c->weight, .backup = c->backup,
		};
	}
	balance_init(u);
	return u;
}

void
upstream_free(struct upstream **upstream)
{
	struct upstream *u = *upstream;

	if (u == NULL)
		return;
	*upstream = NULL;
	for (unsigned i = 0; i < u->count; i++)
		server_unref(u->servers[i].server, u->workers);
	counts_unref(u->counts);
	free(u->servers);
	free(u->wheel);
	free(u);
}

void
upstream_use(struct upstream *u, unsigned worker, uint64_t round)
{
	for (unsigned i = 0; i < u->count; i++) {
		struct server_local *l = &u->servers[i].server->local[worker];

		l->round = round;
		pool_group_set(&l->pool, u->pool_max, u->pool_idle);
	}
}

void
upstream_disuse(struct upstream *u, unsigned worker, uint64_t round)
{
	for (unsigned i = 0; i < u->count; i++) {
		struct server_local *l = &u->servers[i].server->local[worker];

		if (l->round != round)
			pool_group_set(&l->pool, 0, u->pool_idle);
	}
}

/* --- addresses --------------------------------------------------------- */

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
