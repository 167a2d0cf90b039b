/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relaying.h - the two halves of an exchange: the request up, the response
 * down, each a flow, neither ever held whole.
 *
 *	client --> up:   decode body, frame anew --> upstream
 *	client <-- down: head, then body         <-- upstream
 *
 * The head of the request goes out with the first of its body; that of the
 * response likewise.  What the flows wait for, and for how long:
 *
 *	flow     waits for                 keyword       then
 *	up       bytes from the client     request_body  request_timeout
 *	up       the upstream to take some send          upstream_stalled
 *	down     first byte                response      response_timeout
 *	down     bytes from the upstream   idle          upstream_stalled
 *	down     the client to take some   send          client_timeout
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_RELAYING_H
#define PENSTOCK_PROXY_RELAYING_H

#include "proxy/exchange.h"

/* Interim responses (1xx) that one exchange may have. */
enum { RELAY_INTERIMS = 32 };

/* The state RELAY. */
enum exchange_state relay_enter(struct exchange *x);

/* The response has come before the request's end: send no more of it. */
void relay_stop_request(struct exchange *x);

/* The client was told to go on (100), or does: its body is due. */
void relay_expect_body(struct exchange *x);

/* --- responding.c --- */

/* Bytes of the response have come (or its end, n == 0). */
flow_bytes_fn		respond_on_bytes;

/* The upstream's half has ended: everything there is given back. */
flow_source_done_fn	respond_on_source_done;
flow_ended_fn		respond_on_ended;

#endif
