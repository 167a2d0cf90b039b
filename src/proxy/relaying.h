/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relaying.h - the two halves of an exchange: the request up, the response
 * down, each a flow, neither ever held whole.
 *
 *	client --> up:   decode body, frame anew --> upstream
 *	client <-- down: head, then body         <-- upstream
 *
 * The head of the request goes out with the first of its body; that of the
 * response likewise.  What the flows wait for is in flow_waits.def.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_RELAYING_H
#define PENSTOCK_PROXY_RELAYING_H

#include "proxy/exchange.h"

/* Interim responses (1xx) that one exchange may have. */
enum { RELAY_INTERIMS = 32 };

enum flow_wait {
#define FLOW_WAIT(NAME, ...)	FW_##NAME,
#include "proxy/flow_waits.def"
	FW_COUNT
};

/* How long that wait may be, and what it ends with. */
nsec_t relay_time(const struct exchange *x, enum flow_wait w);
enum failure relay_late(enum flow_wait w);

/*
 * Bytes that came behind the head, and are of the body, or the tunnel.  Of what
 * is chunked and not throttled: all, though some may be of the next request.
 * Writes to loop_scratch_out().
 */
size_t relay_early(struct exchange *x);

/* The state RELAY. */
enum exchange_state relay_enter(struct exchange *x);

/* The response has come before the request's end: send no more of it. */
void relay_stop_request(struct exchange *x);

/* The client was told to go on (100), or does: its body is due. */
void relay_expect_body(struct exchange *x);

/* --- responding.c --- */

/* Bytes of the response have come (or its end, n == 0). */
flow_bytes_fn		respond_on_bytes;

/* Of its body, what may go on unseen; and that some has. */
flow_opaque_fn		respond_opaque;
flow_passed_fn		respond_on_passed;

/* The upstream's half has ended: everything there is given back. */
flow_source_done_fn	respond_on_source_done;
flow_ended_fn		respond_on_ended;

#endif
