/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * routing.h - the state ROUTE: is the request in order, and where does it go?
 *
 * Everything that can be said without waiting for anybody is said here:
 * framing, target, Host, loops, methods, access, the route.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_ROUTING_H
#define PENSTOCK_PROXY_ROUTING_H

#include "proxy/exchange.h"

enum exchange_state routing_enter(struct exchange *x);

/* Are this client's X-Forwarded fields believed? */
bool routing_is_trusted(const struct exchange *x);

#endif
