/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tunnelling.c - the state TUNNEL; see tunnelling.h.
 */
#include "proxy/tunnelling.h"

#include "http/reply.h"
#include "net/stream.h"
#include "proxy/rate_fields.h"
#include "proxy/throttling.h"
#include "proxy/worker.h"
#include "upstream/pool.h"

static tunnel_ended_fn	on_tunnel_ended;

/* The 200 that answers a CONNECT: RFC 9110 section 9.3.6. */
static bool
say_connected(struct exchange *x)
{
	struct out o;

	if (!x->has_head || x->request.method != METHOD_CONNECT)
		return true;
	out_init(&o, loop_scratch_out(x->worker->loop), LOOP_SCRATCH);
	reply_connected(&o, x->worker->shared->name.at,
	    worker_date(x->worker));
	if (x->route->rate_headers == RATE_HEADERS_ALWAYS)
		rate_fields_add(&o, x);
	struct iovec iov = { o.mem, out_len(&o) };
	if (!x->client->send(x->session, &iov, 1))
		return false;
	exchange_begin_response(x, 200);
	return true;
}

static void
start(struct exchange *x)
{
	const struct conf_listener *conf = x->service->conf;

	tunnel_start(&x->tunnel, &(struct tunnel_opts){
		.client = x->client->detach(x->session),
		.upstream = x->upstream,
		.throttle_up = throttling_of(x, LIMIT_IN),
		.throttle_down = throttling_of(x, LIMIT_OUT),
		.high = conf->high_watermark,
		.low = conf->low_watermark,
		.idle = x->route->timeouts.tunnel,
		.half_closed = x->route->timeouts.half_closed,
		.send = x->route->timeouts.send,
		.splice = conf->splice == IF_IT_PAYS_AUTO,
		.ended = on_tunnel_ended,
	});
	x->upstream = NULL;
	x->tunnelling = true;
	stat_increment(&x->stats->tunnels);
	stat_increment(&x->stats->tunnels_total);
}

/* What was read from either side before the tunnel began goes first. */
static void
push_early(struct exchange *x, const struct block *input)
{
	if (input != NULL)
		tunnel_push_up(&x->tunnel, (uint8_t *)input->data +
		    input->start, input->end - input->start);
	if (x->half_closed)
		tunnel_push_end(&x->tunnel);
	if (x->early_length > 0)
		tunnel_push_down(&x->tunnel, x->early, x->early_length);
}

enum exchange_state
tunnelling_enter(struct exchange *x)
{
	struct block **kept = x->client->input(x->session);
	struct block *input = *kept;

	flow_stop(&x->up);
	flow_stop(&x->down);
	if (!say_connected(x))
		return exchange_failed(x, FAIL_CLIENT_CLOSED);

	x->begun = true;
	x->total_due = NSEC_NEVER;	/* `tunnel` bounds it from here on */
	exchange_arm(x, NSEC_NEVER);
	*kept = NULL;
	if (x->conn != NULL)
		conn_detach(x->conn);
	start(x);
	throttling_early_passes(x);
	push_early(x, input);
	block_give(&x->worker->blocks, &input);
	return XS_TUNNEL;
}

static void
count_tunnel(struct exchange *x)
{
	x->tunnelling = false;
	x->bytes_in += x->tunnel.up.bytes;
	x->bytes_out += x->tunnel.down.bytes;
	stat_decrement(&x->stats->tunnels);
}

static void
on_tunnel_ended(struct tunnel *t, enum failure why)
{
	struct exchange *x = container_of(t, struct exchange, tunnel);

	count_tunnel(x);
	if (x->why == FAIL_NONE)
		x->why = why;
	exchange_run(x, XS_OVER);
}

void
tunnelling_stop(struct exchange *x)
{
	if (!x->tunnelling)
		return;
	count_tunnel(x);
	tunnel_stop(&x->tunnel);
}
