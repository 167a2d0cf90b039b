/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * setup.h - a configuration ready for use: names turned into pointers.
 *
 * Made by main from a checked configuration, then published to the workers
 * and never changed.  What outlives a configuration (limits, servers, the
 * counts of a listener) is shared with the setups before and after it.
 *
 *	setup -> service  one for each [listener]
 *	           -> route    where exchanges go, and what they pass
 *	           -> router   gateway: which route
 *	           -> access   forward: who may go where
 *	           -> state    what the listener of that name counts
 *	      -> upstream -> server    as it was, if it was there
 *	      -> limit                 as it was, with other numbers
 *
 * A reload makes the next setup beside the one in use.  Each worker has a
 * struct doors for each setup that it goes by or has work left under
 * (doors.h); with its last doors a setup is freed.  When tunnels alone are left
 * it is eased: they need neither the configuration nor what finds a route.
 *
 * Owner:    setup_new() gives main a hold on it; setup_release() ends one.
 * Threads:  made, held and freed by main; read by any.
 */
#ifndef PENSTOCK_PROXY_SETUP_H
#define PENSTOCK_PROXY_SETUP_H

#include "base/addr.h"
#include "base/limit.h"
#include "base/list.h"
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
	const char		*name;		/* the setup's; or "" */
};

/*
 * What a listener counts; lives as long as a setup has it.  Setups that follow
 * one another share it for the listener of that name.
 */
struct listener_state {
	char			*name;
	_Atomic uint64_t	 sessions;	/* open now, all workers */
	struct listener_stats	*stats;		/* one for each worker */
	_Atomic unsigned	 index;		/* of its service, mostly */
	atomic_bool		 gone;		/* in no setup any more */
	unsigned		 refs;		/* setups; main's */
};

/* A listener at work. */
struct service {
	const struct setup	*setup;
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

/* The addresses we listen on, and those of this machine: see access.h. */
struct own_addrs {
	struct addr		*own;
	unsigned		 own_count;
	struct addr		*local;
	unsigned		 local_count;
};

struct setup {
	struct config		*config;	/* NULL: eased */
	struct shared		*shared;
	struct own_addrs	 addrs;
	uint64_t		 round;		/* higher for each */
	struct service		*services;	/* by index of the listener */
	unsigned		 service_count;
	struct route		*routes;	/* of all services */
	size_t			 route_count;
	struct upstream		**upstreams;	/* by index of the upstream */
	size_t			 upstream_count;
	struct limit		**limits;	/* by index of the limit */
	size_t			 limit_count;
	struct limits		*registry;
	struct list		 link;		/* main's, from here on: */
	struct list		 doors;		/* those that hold it */
	unsigned		 holds;		/* theirs, and main's own */
	unsigned		 holds_whole;	/* of them, not for tunnels */
};

/* What the limits are asked for by a [limit] section. */
struct limit_spec setup_limit_spec(const struct conf_limit *l);

/*
 * Put `config` to use, and take it over; after *before, or NULL.  Limits have
 * its numbers from now on, whatever setup a worker goes by.  Main holds it, and
 * it is on the list `all`.
 */
struct setup *setup_new(struct config *config, struct shared *shared,
    struct setup *before, struct list *all, nsec_t now);

/* What is listened on by it, before anybody sees it; copied. */
void setup_set_addrs(struct setup *s, const struct own_addrs *addrs);

/* The listeners of `before` that aren't in s any more are gone. */
void setup_replace(const struct setup *s, const struct setup *before);

/*
 * Each hold is eased, and then released: with the last of either, what only
 * others than tunnels need is freed, and the setup with all that no other has.
 */
void setup_hold(struct setup *s);
void setup_ease(struct setup *s);
void setup_release(struct setup *s);

/* Free all on the list, and their doors, however many holds there are. */
void setups_free(struct list *all);

/* The service of that listener, or NULL. */
struct service *setup_find(const struct setup *s,
    const struct listener_state *state);

#endif
