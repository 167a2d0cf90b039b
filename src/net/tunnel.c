/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tunnel.c - two flows between two streams; see tunnel.h.
 *
 * The flows time their sinks only.  The tunnel has one timer, which each byte
 * that is read moves on; bytes that only left a queue are found when it fires.
 */
#include "net/tunnel.h"

#include <errno.h>

#include "net/stream.h"

static flow_bytes_fn		on_bytes_up;
static flow_bytes_fn		on_bytes_down;
static flow_opaque_fn		all_is_opaque;
static flow_passed_fn		on_passed_up;
static flow_passed_fn		on_passed_down;
static flow_source_done_fn	on_half_up;
static flow_source_done_fn	on_half_down;
static flow_ended_fn		on_up_ended;
static flow_ended_fn		on_down_ended;
static wheel_fn			on_late;
static void	end(struct tunnel *t, enum failure why, bool carried);

static const struct flow_ops up_ops = {
	.bytes = on_bytes_up,
	.opaque = all_is_opaque,
	.passed = on_passed_up,
	.source_done = on_half_up,
	.ended = on_up_ended,
	.any_size = true,
};

static const struct flow_ops down_ops = {
	.bytes = on_bytes_down,
	.opaque = all_is_opaque,
	.passed = on_passed_down,
	.source_done = on_half_down,
	.ended = on_down_ended,
	.any_size = true,
};

void
tunnel_start(struct tunnel *t, const struct tunnel_opts *opts)
{
	struct flow_opts flow = {
		.ops = &up_ops,
		.source = opts->client,
		.sink = opts->upstream,
		.throttle = opts->throttle_up,
		.high = opts->high,
		.low = opts->low,
		.sink_timeout = opts->send,
		.use = BLOCK_BODY,
		.carry_end = true,
		.splice = opts->splice,
	};

	*t = (struct tunnel){
		.client = opts->client,
		.upstream = opts->upstream,
		.idle = opts->idle,
		.half_closed = opts->half_closed,
		.ended = opts->ended,
		.why = FAIL_NONE,
	};
	flow_init(&t->up);
	flow_init(&t->down);
	wheel_timer_init(&t->timer, on_late);
	loop_arm(stream_loop(t->client), &t->timer, t->idle);
	flow_start(&t->up, &flow);

	flow.ops = &down_ops;
	flow.source = opts->upstream;
	flow.sink = opts->client;
	flow.throttle = opts->throttle_down;
	flow_start(&t->down, &flow);
}

void
tunnel_push_up(struct tunnel *t, uint8_t *bytes, size_t n)
{
	(void)flow_push(&t->up, bytes, n);
}

void
tunnel_push_down(struct tunnel *t, uint8_t *bytes, size_t n)
{
	(void)flow_push(&t->down, bytes, n);
}

void
tunnel_push_end(struct tunnel *t)
{
	(void)flow_push_end(&t->up);
}

static void
let_go(struct tunnel *t)
{
	loop_cancel(stream_loop(t->client), &t->timer);
	flow_stop(&t->up);
	flow_stop(&t->down);
}

void
tunnel_stop(struct tunnel *t)
{
	let_go(t);
	stream_reset(&t->client);
	stream_reset(&t->upstream);
}

/* --- bytes ------------------------------------------------------------- */

static nsec_t
limit_of(const struct tunnel *t)
{
	return t->half ? t->half_closed : t->idle;
}

static enum flow_step
pass(struct tunnel *t, struct flow *f, uint8_t *bytes, size_t n)
{
	loop_arm(stream_loop(t->client), &t->timer, limit_of(t));
	if (n > 0)
		(void)flow_send(f, &(struct iovec){ bytes, n }, 1);
	return FLOW_MORE;
}

static enum flow_step
on_bytes_up(struct flow *f, uint8_t *bytes, size_t n)
{
	return pass(container_of(f, struct tunnel, up), f, bytes, n);
}

static enum flow_step
on_bytes_down(struct flow *f, uint8_t *bytes, size_t n)
{
	return pass(container_of(f, struct tunnel, down), f, bytes, n);
}

static uint64_t
all_is_opaque(struct flow *f)
{
	(void)f;
	return UINT64_MAX;
}

static enum flow_step
passed(struct tunnel *t)
{
	loop_arm(stream_loop(t->client), &t->timer, limit_of(t));
	return FLOW_MORE;
}

static enum flow_step
on_passed_up(struct flow *f, size_t n)
{
	(void)n;
	return passed(container_of(f, struct tunnel, up));
}

static enum flow_step
on_passed_down(struct flow *f, size_t n)
{
	(void)n;
	return passed(container_of(f, struct tunnel, down));
}

/* --- ends -------------------------------------------------------------- */

static void
half(struct tunnel *t)
{
	t->half = true;
	loop_arm(stream_loop(t->client), &t->timer, t->half_closed);
}

static void
on_half_up(struct flow *f)
{
	half(container_of(f, struct tunnel, up));
}

static void
on_half_down(struct flow *f)
{
	half(container_of(f, struct tunnel, down));
}

/*
 * A side that can't be written to may have sent its last bytes before it
 * broke: those are brought to the other side first, which ends with its FIN,
 * its reset, or the time for a half-closed tunnel.
 */
static void
sink_failed(struct tunnel *t, const struct flow *other, enum failure why)
{
	if (why == FAIL_MEMORY || !flow_is_running(other)) {
		end(t, why, false);
		return;
	}
	t->why = why;
	half(t);
}

static void
drained(struct tunnel *t, const struct flow *other)
{
	if (!flow_is_running(other))
		end(t, t->why, true);
}

static void
on_up_ended(struct flow *f, enum flow_end how, int err)
{
	struct tunnel *t = container_of(f, struct tunnel, up);

	if (how == FLOW_DRAINED)
		drained(t, &t->down);
	else if (how == FLOW_SOURCE_FAILED)
		end(t, FAIL_CLIENT_CLOSED, false);
	else if (how == FLOW_SINK_LATE)
		end(t, FAIL_UPSTREAM_BLOCKED, false);
	else
		sink_failed(t, &t->down,
		    err == ENOMEM ? FAIL_MEMORY : FAIL_UPSTREAM_CLOSED);
}

static void
on_down_ended(struct flow *f, enum flow_end how, int err)
{
	struct tunnel *t = container_of(f, struct tunnel, down);

	if (how == FLOW_DRAINED)
		drained(t, &t->up);
	else if (how == FLOW_SOURCE_FAILED)
		end(t, FAIL_UPSTREAM_CLOSED, false);
	else if (how == FLOW_SINK_LATE)
		end(t, FAIL_CLIENT_TIMEOUT, false);
	else
		sink_failed(t, &t->up,
		    err == ENOMEM ? FAIL_MEMORY : FAIL_CLIENT_CLOSED);
}

static void
on_late(struct wheel_timer *timer)
{
	struct tunnel *t = container_of(timer, struct tunnel, timer);
	struct loop *loop = stream_loop(t->client);
	nsec_t sent = MAX(t->up.writer.sent_at, t->down.writer.sent_at);

	/* Who isn't read can't show that it has something to say. */
	nsec_t held = MAX(stream_held(t->client), stream_held(t->upstream));
	nsec_t due = MAX(sent, held) + limit_of(t);

	if (due > loop_now(loop))
		loop_arm_at(loop, timer, due);
	else
		end(t, t->half ? FAIL_HALF_CLOSED : FAIL_TUNNEL_IDLE, false);
}

/* `carried`: both sides have got all there was, and a FIN; else a reset. */
static void
end(struct tunnel *t, enum failure why, bool carried)
{
	tunnel_ended_fn *ended = t->ended;

	if (carried) {
		let_go(t);
		stream_close(&t->client);
		stream_close(&t->upstream);
	} else {
		tunnel_stop(t);
	}
	ended(t, why);
}
