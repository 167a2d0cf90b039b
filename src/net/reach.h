/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reach.h - in which order to try the addresses of a name.
 *
 * First those the kernel has a route to, then the others; in each part IPv6
 * and IPv4 take turns, IPv6 first (RFC 8305 section 4), and within a family
 * the server's order stays, which is how it spreads load.
 *
 * Threads:  any; nothing is shared.
 */
#ifndef PENSTOCK_NET_REACH_H
#define PENSTOCK_NET_REACH_H

#include "net/resolver.h"

/* Is there a route?  Sends nothing. */
typedef bool reach_fn(const struct addr *a);

bool reach_has_route(const struct addr *a);

/* The best RESOLVER_ADDRS of both families, in order. */
void reach_order(struct addr_set *out, const struct addr_set *ip6,
    const struct addr_set *ip4, reach_fn *has_route);

#endif
