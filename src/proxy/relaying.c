/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relaying.c - the request's half; see relaying.h.  The response's half is
 * responding.c.
 */
#include "proxy/relaying.h"

#include <errno.h>

#include "http/frame.h"
#include "http/rewrite.h"
#include "net/stream.h"
#include "proxy/routing.h"
#include "proxy/throttling.h"
#include "proxy/worker.h"
#include "upstream/pool.h"

/*
 * More than all fields of ours together, since no word of the configuration is
 * longer than a line of it: see head_fits().
 */
enum { GROWTH = 2048 };

static stream_write_fn		on_start_sent;
static flow_bytes_fn		on_request_bytes;
static flow_opaque_fn		request_opaque;
static flow_passed_fn		on_request_passed;
static flow_source_done_fn	on_request_read;
static flow_ended_fn		on_request_ended;

static const struct {
	size_t		time;		/* in struct timeouts */
	enum failure	late;
} waits[FW_COUNT] = {
#define FLOW_WAIT(NAME, keyword, late) \
	[FW_##NAME] = { offsetof(struct timeouts, keyword), FAIL_##late },
#include "proxy/flow_waits.def"
};

nsec_t
relay_time(const struct exchange *x, enum flow_wait w)
{
	const char *timeouts = (const char *)&x->route->timeouts;

	return *(const nsec_t *)(const void *)(timeouts + waits[w].time);
}

enum failure
relay_late(enum flow_wait w)
{
	return waits[w].late;
}

/* --- the request's head ------------------------------------------------ */

static struct forwarded
forwarded_of(struct exchange *x, char *text, size_t size)
{
	struct forwarded f = { .proto = "http" };
	struct out o;

	if (x->service->conf->mode != MODE_GATEWAY)
		return f;
	f.client = x->from_text;
	if (UNLIKELY(f.client.len == 0)) {
		/* The path of a unix socket is no address to anybody. */
		out_init(&o, text, size);
		if (x->from->family == ADDR_UNIX)
			out_put(&o, "unknown");
		else
			addr_put_ip(&o, x->from);
		f.client = out_text(&o);
	}
	f.host = x->host.text;
	f.trusted = routing_is_trusted(x);
	return f;
}

/* An HTTP/1.0 client may name no host; the server must be told one. */
static struct str
host_of(const struct exchange *x)
{
	if (x->route->host_header != NULL)
		return str_of(x->route->host_header);
	if (str_is_empty(x->host.text) && x->server != NULL)
		return str_of(x->server->text);
	return x->host.text;
}

/* A server that knows needn't keep it either: RFC 9112 section 9.6. */
static bool
is_never_reused(const struct exchange *x)
{
	return !x->upgrades && (x->group == NULL || x->group->max == 0);
}

static HOT void
build_request(struct exchange *x, struct out *o)
{
	char text[ADDR_TEXT];
	struct request_rewrite r = {
		.target = &x->target,
		.host = host_of(x),
		.via = x->worker->shared->via,
		.framing = x->framing,
		.forwarded = forwarded_of(x, text, sizeof text),
		.upgrade = x->upgrades,
		.close = is_never_reused(x),
	};

	rewrite_request(o, &x->request, &r);
}

/*
 * Does the head fit into scratch as it goes on?  It grows by our fields, by a
 * blank after colons, and by one after each comma of Upgrade: to less than
 * twice its size, and GROWTH.  Most heads are too small to be tried.
 */
static bool
head_fits(struct exchange *x)
{
	struct out o;

	if (2 * (size_t)x->request.length + GROWTH <= LOOP_SCRATCH)
		return true;
	out_init(&o, loop_scratch_out(x->worker->loop), LOOP_SCRATCH);
	build_request(x, &o);
	return !out_is_full(&o);
}

static HOT void
add_head(struct exchange *x, struct frame *f)
{
	struct out o;

	if (x->head_sent)
		return;
	x->head_sent = true;
	out_init(&o, loop_scratch_out(x->worker->loop), LOOP_SCRATCH);
	build_request(x, &o);
	ASSERT(!out_is_full(&o));	/* half a head would end in the body */
	frame_head(f, out_text(&o));
}

/* --- its body ---------------------------------------------------------- */

static bool
has_body(const struct exchange *x)
{
	return x->framing.kind == FRAMING_CHUNKED ||
	    (x->framing.kind == FRAMING_LENGTH && x->framing.length > 0);
}

/*
 * Keep content that may have to be sent again, as long as it is little: see
 * keyword retry_body.
 */
static void
keep_content(struct exchange *x, const struct iovec *iov, int n)
{
	if (!x->keeps)
		return;
	if (x->kept.length + frame_bytes(iov, n) <= x->keep_most &&
	    buf_append(&x->kept, iov, n, 0, BLOCK_BODY))
		return;
	x->keeps = false;
	buf_clear(&x->kept);
}

/* Content from the client goes on; false when the flow is failing. */
static bool
send_content(struct exchange *x, const struct iovec *iov, int n, bool last)
{
	struct frame f;

	x->bytes_in += frame_bytes(iov, n);
	keep_content(x, iov, n);
	frame_init(&f);
	add_head(x, &f);
	frame_content(&f, x->framing.kind, iov, n, last);
	return f.count == 0 || flow_send(&x->up, f.iov, f.count);
}

static bool
is_too_large(const struct exchange *x)
{
	uint64_t most = x->service->conf->body_size;

	return most != 0 && x->body.content > most;
}

/* All of the request is with the kernel: the upstream's turn. */
static void
request_is_out(struct exchange *x)
{
	x->request_done = true;
	x->times.requested = worker_now(x->worker);
	if (!x->has_response)
		flow_set_source_timeout(&x->down,
		    relay_time(x, FW_RESPONSE_FIRST));
}

/* --- the flow ---------------------------------------------------------- */

static enum flow_step
fail_gone(struct exchange *x, enum failure why)
{
	exchange_fail(x, why);
	return FLOW_GONE;
}

static enum flow_step
on_request_bytes(struct flow *f, uint8_t *bytes, size_t n)
{
	struct exchange *x = container_of(f, struct exchange, up);
	struct body_content c;
	enum body_result r;

	if (n == 0)
		return fail_gone(x, FAIL_CLIENT_CLOSED);
	relay_expect_body(x);
	do {
		r = body_decode(&x->body, bytes, n, &c);
		if (r == BODY_BAD) {
			x->framing_bad = true;
			return fail_gone(x, FAIL_BAD_REQUEST);
		}
		if (is_too_large(x)) {
			x->close = true;	/* what follows is dropped */
			return fail_gone(x, FAIL_BODY_TOO_LARGE);
		}
		if (!send_content(x, c.iov, c.count, r == BODY_DONE)) {
			/*
			 * What follows is dropped; on_request_ended comes.
			 */
			x->close = true;
			x->keeps = x->keeps && r != BODY_SPANS_FULL;
			return FLOW_MORE;
		}
		bytes += c.used;
		n -= c.used;
	} while (r == BODY_SPANS_FULL);

	if (r == BODY_MORE)
		return FLOW_MORE;
	if (n > 0) {
		throttling_not_its_own(x, n);
		if (!x->client->keep(x->session, bytes, n))
			x->close = true;
	}
	return FLOW_LAST;
}

/* What may have to be sent again is kept, and so must be seen. */
static uint64_t
request_opaque(struct flow *f)
{
	struct exchange *x = container_of(f, struct exchange, up);

	return x->head_sent && !x->expects && !x->keeps ?
	    body_plain(&x->body) : 0;
}

static enum flow_step
on_request_passed(struct flow *f, size_t n)
{
	struct exchange *x = container_of(f, struct exchange, up);

	x->bytes_in += n;
	body_pass(&x->body, n);
	return body_is_done(&x->body) ? FLOW_LAST : FLOW_MORE;
}

static void
on_request_read(struct flow *f)
{
	struct exchange *x = container_of(f, struct exchange, up);

	x->client->watch(x->session);
}

/*
 * The upstream takes no more.  It may have answered before it closed: the
 * response's half finds out.
 */
static void
upstream_takes_no_more(struct exchange *x)
{
	x->close = true;
	x->client->watch(x->session);
	if (!x->has_response)
		flow_set_source_timeout(&x->down,
		    relay_time(x, FW_RESPONSE_FIRST));
}

static void
on_request_ended(struct flow *f, enum flow_end how, int err)
{
	struct exchange *x = container_of(f, struct exchange, up);

	switch (how) {
	case FLOW_DRAINED:
		request_is_out(x);
		break;
	case FLOW_SOURCE_FAILED:
		exchange_fail(x, FAIL_CLIENT_CLOSED);
		break;
	case FLOW_SOURCE_LATE:
		exchange_fail(x, relay_late(FW_REQUEST_SOURCE));
		break;
	case FLOW_SINK_LATE:
		exchange_fail(x, relay_late(FW_REQUEST_SINK));
		break;
	case FLOW_SINK_FAILED:
		if (err == ENOMEM)
			exchange_fail(x, FAIL_MEMORY);
		else
			upstream_takes_no_more(x);
		break;
	}
}

/* --- beginning --------------------------------------------------------- */

static const struct flow_ops up_ops = {
	.bytes = on_request_bytes,
	.opaque = request_opaque,
	.passed = on_request_passed,
	.source_done = on_request_read,
	.ended = on_request_ended,
};

static const struct flow_ops down_ops = {
	.bytes = respond_on_bytes,
	.opaque = respond_opaque,
	.passed = respond_on_passed,
	.source_done = respond_on_source_done,
	.ended = respond_on_ended,
	.any_size = true,
};

static struct flow_opts
flow_opts(const struct exchange *x, const struct flow_ops *ops)
{
	return (struct flow_opts){
		.ops = ops,
		.high = x->service->conf->high_watermark,
		.low = x->service->conf->low_watermark,
		.use = x->pass_count > 0 ? BLOCK_PERMIT : BLOCK_BODY,
		.splice = x->service->conf->splice == IF_IT_PAYS_AUTO,
	};
}

static void
start_down(struct exchange *x)
{
	struct flow_opts opts = flow_opts(x, &down_ops);

	opts.source = x->upstream;
	opts.throttle = throttling_of_response(x);
	opts.sink = x->client->stream(x->session);
	/* With a body before it, its time begins when that is sent. */
	opts.source_timeout = x->expects || !has_body(x) ?
	    relay_time(x, FW_RESPONSE_FIRST) : 0;
	opts.sink_timeout = relay_time(x, FW_RESPONSE_SINK);
	flow_start(&x->down, &opts);
}

static void
start_up(struct exchange *x)
{
	struct flow_opts opts = flow_opts(x, &up_ops);

	opts.source = x->client->stream(x->session);
	opts.throttle = throttling_of(x, LIMIT_IN);
	opts.sink = x->upstream;
	opts.source_timeout = x->expects ? 0 :
	    relay_time(x, FW_REQUEST_SOURCE);
	opts.sink_timeout = relay_time(x, FW_REQUEST_SINK);
	flow_start(&x->up, &opts);
}

/*
 * The head, and what a connection that died had been sent of the body.  Only
 * a lack of memory is a failure here: a connection that is broken already
 * shows that to the response's half too, which knows what to do.
 */
static HOT int
send_start(struct exchange *x, bool last)
{
	struct iovec iov[BODY_SPANS];
	struct frame f;
	int err;

	frame_init(&f);
	add_head(x, &f);
	do {
		int n = buf_peek(&x->kept, iov, BODY_SPANS);
		size_t bytes = frame_bytes(iov, n);

		frame_content(&f, x->framing.kind, iov, n,
		    last && bytes == x->kept.length);
		err = stream_send(x->upstream, f.iov, f.count, BLOCK_BODY);
		buf_consume(&x->kept, bytes);
		frame_init(&f);
	} while (x->kept.length > 0 && err == 0);
	return err == -ENOMEM ? err : 0;
}

/*
 * Of n bytes; all, if they are none of a body.  Decoding moves them, so it is a
 * copy that is looked at.
 */
static APART size_t
chunked_part(struct exchange *x, const uint8_t *from, size_t n)
{
	uint8_t *bytes = loop_scratch_out(x->worker->loop);
	struct body body = x->body;
	struct body_content c;
	enum body_result r;
	size_t part = 0;

	if (n > LOOP_SCRATCH)
		return n;
	memcpy(bytes, from, n);
	do {
		r = body_decode(&body, bytes + part, n - part, &c);
		part += c.used;
	} while (r == BODY_SPANS_FULL);
	return r == BODY_BAD ? n : part;
}

size_t
relay_early(struct exchange *x)
{
	const struct block *b = *x->client->input(x->session);
	size_t n = b != NULL ? b->end - b->start : 0;

	/* Some of it may have gone on a connection that was found dead. */
	if (x->framing.kind == FRAMING_LENGTH)
		return MIN(n, x->body.left);
	/* Else what is left over comes back by keep(). */
	if (x->throttles != NULL && x->framing.kind == FRAMING_CHUNKED && n > 0)
		return chunked_part(x, b->data + b->start, n);
	return n;
}

/*
 * Body bytes that came with the head, or while the exchange waited.  False
 * when that ended the flow, and another state was entered already.
 */
static bool
push_input(struct exchange *x)
{
	struct block **input = x->client->input(x->session);
	struct blocks *blocks = &x->worker->blocks;
	struct block *b = *input;

	if (b == NULL)
		return true;
	size_t n = relay_early(x);
	*input = NULL;		/* what isn't of a body comes back by keep() */

	enum flow_step step = flow_push(&x->up, b->data + b->start, n);
	b->start += (uint32_t)n;
	if (b->start < b->end && step != FLOW_GONE) {
		ASSERT(*input == NULL);
		*input = b;
	} else {
		block_give(blocks, &b);
	}
	return step != FLOW_GONE;
}

/* The last of a request that was sent in one go has left our queue. */
static void
on_start_sent(struct stream_writer *w, int err)
{
	struct exchange *x = container_of(w, struct exchange, start);

	exchange_arm(x, NSEC_NEVER);
	stream_set_writer(x->upstream, NULL, 0);
	if (err == 0)
		request_is_out(x);
	else
		upstream_takes_no_more(x);
}

/* The request's body follows; the head goes with it, if some is here. */
static enum exchange_state
start_body(struct exchange *x)
{
	bool head_first = x->expects || x->kept.length > 0 ||
	    *x->client->input(x->session) == NULL;

	if (head_first && send_start(x, false) != 0)
		return exchange_failed(x, FAIL_MEMORY);
	start_up(x);
	throttling_early_passes(x);
	if (!push_input(x))
		return x->state;
	/* The rest of the body will never come. */
	if (x->half_closed && !body_is_done(&x->body))
		return exchange_failed(x, FAIL_CLIENT_CLOSED);
	return XS_RELAY;
}

HOT enum exchange_state
relay_enter(struct exchange *x)
{
	if (!head_fits(x))
		return exchange_failed(x, FAIL_HEAD_TOO_LARGE);
	x->head_sent = false;
	x->request_done = false;
	/* Only a connection that was used before can be found dead. */
	x->keeps = x->keeps && x->reused;
	start_down(x);
	if (has_body(x) && !body_is_done(&x->body))
		return start_body(x);
	if (send_start(x, true) != 0)
		return exchange_failed(x, FAIL_MEMORY);
	if (stream_queued(x->upstream) == 0) {
		request_is_out(x);
		return XS_RELAY;
	}
	x->start.fn = on_start_sent;
	stream_set_writer(x->upstream, &x->start, 0);
	exchange_arm(x, worker_now(x->worker) +
	    relay_time(x, FW_REQUEST_SINK));
	return XS_RELAY;
}

void
relay_expect_body(struct exchange *x)
{
	if (!x->expects)
		return;
	x->expects = false;
	if (!flow_is_running(&x->up))
		return;
	/* From here on as without: the response's time comes after. */
	flow_set_source_timeout(&x->up, relay_time(x, FW_REQUEST_SOURCE));
	flow_set_source_timeout(&x->down, 0);
}

void
relay_stop_request(struct exchange *x)
{
	if (x->request_done)
		return;
	flow_stop(&x->up);
	stream_set_writer(x->upstream, NULL, 0);
	exchange_arm(x, NSEC_NEVER);
	x->client->watch(x->session);
	x->close = true;
}
