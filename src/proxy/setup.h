/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * setup.h - a configuration ready for use: names turned into pointers.
 *
 * Made by main from a checked configuration, then published to the workers
 * and never changed.  What outlives a configuration (limits, upstreams, the
 * counts of a listener) is referred to, not owned.
 *
 *	setup -> service  one for each [listener]
 *	           -> route    where exchanges go, and what they pass
 *	           -> router   gateway: which route
 *	           -> access   forward: who may go where
 *
 * Owner:    setup_new() gives a handle; setup_free() when no worker holds it.
 * Threads:  made and freed by main; read by any.
 */
#ifndef PENSTOCK_PROXY_SETUP_H
#define PENSTOCK_PROXY_SETUP_H

#include "base/limit.h"
#include "base/stats.h"
#include "config/config.h"
#include "http/head.h"
#include "upstream/upstream.h"

struct access;
struct router;
struct shared;

enum { ROUTE_LIMITS = CONF_LIMITS_PASSED };

struct route_limit {
	struct limit	*limit;
	bool		 of_upstream;	/* given back with the upstream */
};

/* Where an exchange goes, and what it must pass on the way. */
struct route {
	struct upstream		*upstream;	/* or NULL */
	struct timeouts		 timeouts;
	struct route_limit	 limits[ROUTE_LIMITS];	/* by rank */
	unsigned		 limit_count;
	bool			 dry_run;	/* any of them */
	enum rate_headers	 rate_headers;	/* the most of those not */
	bool			 paced;		/* any has a bandwidth */
	enum gate_class		 class;		/* while it waits */
	const char		*host_header;	/* or NULL */
	const char		*name;		/* or "" */
};

/* What a listener counts; lives as long as its name is configured. */
struct listener_state {
	char			*name;
	_Atomic uint64_t	 sessions;	/* open now, all workers */
	struct listener_stats	*stats;		/* one for each worker */
};

/* A listener at work. */
struct service {
	const struct conf_listener *conf;
	struct listener_state	*state;
	struct head_limits	 heads;
	struct route		 route;		/* without a router's say */
	struct router		*router;	/* gateway, or NULL */
	struct access		*access;	/* forward */
	unsigned		 most_limits;	/* of any of its routes */
	bool			 paced;		/* any of them is */
	size_t			 pass_bytes;	/* for those of an exchange */
	unsigned		 pool_max;	/* forward: a worker's share */
	/* Limits with `connections` on it, passed by each session. */
	struct limit		*session_limits[ROUTE_LIMITS];
	unsigned		 session_limit_count;
};

struct setup {
	const struct config	*config;	/* not owned */
	struct shared		*shared;
	struct service		*services;	/* by index of the listener */
	unsigned		 service_count;
	struct route		*routes;	/* of all services */
	struct upstream		**upstreams;	/* by index of the upstream */
	struct limit		**limits;	/* by index of the limit */
	struct limits		*registry;
};

/* What the limits are asked for by a [limit] section. */
struct limit_spec setup_limit_spec(const struct conf_limit *l);

/*
 * Put `config` to use.  Listener states and upstreams are made anew here;
 * limits come from shared->limits.
 */
struct setup *setup_new(const struct config *config, struct shared *shared);
void setup_free(struct setup **s);

#endif
