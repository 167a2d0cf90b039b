/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * router.h - which route takes a request: by host, then by path.
 *
 * The best matching host decides first: the name itself, then the longest
 * *.suffix, then any.  Among the routes for that host the longest path that
 * the request's begins with wins; if none does, the next best host is asked.
 * Hosts are compared without regard to case, port and a final dot.
 *
 * Finding costs a look-up for each label of the host, and a search among the
 * paths of one host: hardly more with 10,000 routes than with ten.
 *
 * Owner:    router_new() gives a handle; routes and their texts outlive it.
 * Threads:  any, once built.
 */
#ifndef PENSTOCK_PROXY_ROUTER_H
#define PENSTOCK_PROXY_ROUTER_H

#include "base/str.h"

struct conf_route;
struct route;
struct router;

struct router *router_new(void);
void router_free(struct router **r);

/* Have `route` take what conf says; before router_build(). */
void router_add(struct router *r, const struct conf_route *conf,
    const struct route *route);

/* Everything is added: put it in order. */
void router_build(struct router *r);

/* The route, or NULL.  `host` may be empty: only "any" takes it. */
const struct route *router_find(const struct router *r, struct str host,
    struct str path);

#endif
