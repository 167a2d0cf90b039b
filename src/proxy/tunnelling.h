/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tunnelling.h - the state TUNNEL: from here on, bytes as they are.
 *
 * A tunnel begins when a CONNECT's destination, or a tcp listener's server,
 * is connected, or when an upstream has switched protocols.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_TUNNELLING_H
#define PENSTOCK_PROXY_TUNNELLING_H

#include "proxy/exchange.h"

enum exchange_state tunnelling_enter(struct exchange *x);

/* End the tunnel, if there is one: both sides are reset. */
void tunnelling_stop(struct exchange *x);

#endif
