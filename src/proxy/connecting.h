/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connecting.h - from where an exchange goes to a connection that leads there.
 *
 * With an upstream: the next server that has an address, an idle connection to
 * it or a new one; a server that can't be connected to is followed by the
 * next, CONNECT_SERVERS in all.  Without (a forward proxy): an idle connection
 * to the same destination, or its name is resolved, each address checked, and
 * those that may be reached are dialled in turn.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_CONNECTING_H
#define PENSTOCK_PROXY_CONNECTING_H

#include "proxy/exchange.h"

enum { CONNECT_SERVERS = 3 };

/* The states RESOLVE and CONNECT. */
enum exchange_state connect_enter_resolve(struct exchange *x);
enum exchange_state connect_enter(struct exchange *x);

/* The exchange is no longer that server's; harmless if it is nobody's. */
void connect_release_server(struct exchange *x);

#endif
