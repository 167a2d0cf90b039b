/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * responding.c - the response's half of RELAY; see relaying.h.
 *
 * A response's head is read where it lies in scratch; only one that comes in
 * pieces is put together in a block.  Interim responses pass until the final
 * one, whose head is rebuilt and goes out with the first of the body.
 *
 * Trailers that go on are sent when all of them are known to be good: until
 * then, those that come in pieces are put together in the same block, behind
 * what the head's Connection names, since that takes trailers away too.
 */
#include <errno.h>

#include "http/chars.h"
#include "http/frame.h"
#include "http/parse.h"
#include "http/rewrite.h"
#include "http/trailers.h"
#include "net/stream.h"
#include "proxy/connecting.h"
#include "proxy/rate_fields.h"
#include "proxy/relaying.h"
#include "proxy/throttling.h"
#include "proxy/worker.h"
#include "upstream/pool.h"

/* A 101 changes to so many at most: one over another (RFC 9110, 7.8). */
enum { PROTOCOLS = 8 };

/* --- connections that end too early ------------------------------------ */

/*
 * A connection that had been used before may have been closed by the server
 * just as we sent the request.  If no byte of a response has come, and the
 * request may be repeated (RFC 9110 section 9.2.2), it begins again, once,
 * on a fresh one.  The permits stay.
 */
static bool
begin_again(struct exchange *x)
{
	struct worker *w = x->worker;
	bool whole = x->keeps || x->body.content == 0;

	if (!x->reused || x->times.responded != 0)
		return false;
	stat_increment(&w->stats.stale_used);
	if (!whole || !method_is_idempotent(x->request.method))
		return false;

	stat_increment(&w->stats.retried_stale);
	x->retries++;
	x->reused = x->was_reused = false;
	x->fresh_only = true;
	x->tried = 0;
	flow_stop(&x->up);
	flow_stop(&x->down);
	x->client->watch(x->session);
	throttling_ahead(x);
	conn_close(&x->conn);
	x->upstream = NULL;
	pool_group_done(w->pool, &x->group);
	connect_release_server(x);
	exchange_run(x, XS_RESOLVE);
	return true;
}

static enum flow_step
fail_gone(struct exchange *x, enum failure why)
{
	exchange_fail(x, why);
	return FLOW_GONE;
}

static enum flow_step
closed_early(struct exchange *x)
{
	return begin_again(x) ? FLOW_GONE :
	    fail_gone(x, FAIL_UPSTREAM_CLOSED);
}

/* --- the final head ---------------------------------------------------- */

/* How the body goes on: as it came, unless the client is too old for that. */
static struct framing
framing_for_client(const struct exchange *x)
{
	struct framing f = x->response_framing;

	if (f.kind == FRAMING_CHUNKED || f.kind == FRAMING_CLOSE)
		f.kind = x->request.minor >= 1 ? FRAMING_CHUNKED :
		    FRAMING_CLOSE;
	return f;
}

static bool
client_wants_close(const struct exchange *x)
{
	const struct head *h = &x->request;

	if (exchange_is_last(x))
		return true;
	/*
	 * RFC 9112 section 9.3: a proxy doesn't keep an HTTP/1.0 client's
	 * connection; a gateway may.
	 */
	return h->minor == 0 && (!h->keep_alive ||
	    x->service->conf->mode == MODE_FORWARD);
}

/*
 * A client that speaks another protocol before it was agreed on: what it has
 * sent is no request.
 */
static bool
speaks_early(const struct exchange *x)
{
	return x->upgrades && *x->client->input(x->session) != NULL;
}

/*
 * How long the server keeps the connection, if it says so (Keep-Alive:
 * timeout=N); a second less, since its time began before ours.
 */
static nsec_t
server_keeps_for(const struct head *h)
{
	const struct field *f = head_first(h, FIELD_KEEP_ALIVE);
	struct str rest, element;
	uint64_t seconds;

	if (f == NULL)
		return NSEC_NEVER;
	rest = field_value(h, f);
	while (list_next(&rest, &element))
		if (str_starts_nocase(element, STR("timeout=")) &&
		    str_number(str_skip(element, 8), &seconds) &&
		    seconds <= 86400)
			return seconds > 1 ? (seconds - 1) * NSEC_PER_SEC : 0;
	return NSEC_NEVER;
}

/*
 * Could a server that doesn't know what we know send more than this head says?
 * A 204 that says how long it is may mean it, and send that later; a 205 that
 * doesn't may send something.
 */
static bool
is_doubtful(const struct head *h)
{
	bool framed = head_first(h, FIELD_CONTENT_LENGTH) != NULL ||
	    head_first(h, FIELD_TRANSFER_ENCODING) != NULL;

	return (h->status == 204 && framed) || (h->status == 205 && !framed);
}

/* May the upstream's connection be used again, and for how long? */
static void
judge_upstream(struct exchange *x, const struct head *h)
{
	x->upstream_keep = !x->upgrades && x->request_done &&
	    x->response_framing.kind != FRAMING_CLOSE && !h->close &&
	    (h->minor >= 1 || h->keep_alive) && !is_doubtful(h) &&
	    !head_binds_connection(&x->request) && !head_binds_connection(h);
	if (x->group != NULL)
		pool_group_spoke(x->group, h->minor, worker_now(x->worker));
	x->upstream_keep_for = server_keeps_for(h);
}

/* An answer to half a request that was held up isn't that late by itself. */
static void
count_response(struct exchange *x)
{
	nsec_t asked = x->times.requested != 0 ? x->times.requested :
	    x->times.connected;

	if (x->times.requested == 0 && throttling_held(x))
		return;
	if (x->route->upstream != NULL && x->times.responded >= asked)
		hist_add(&x->route->upstream->stats[x->worker->id].response,
		    x->times.responded - asked);
}

/* Whoever asks for trailers speaks HTTP/1.1, so chunks go on as chunks. */
static bool
forwards_trailers(const struct exchange *x)
{
	return x->response_framing.kind == FRAMING_CHUNKED &&
	    trailers_wanted(&x->request);
}

/*
 * Note what the head's Connection names, for later; false without memory.  Not
 * what names nothing: each trailer is looked for in all that is noted.  Quotes
 * mean nothing there, as for parse.c.
 */
static bool
keep_named(struct exchange *x, const struct head *h)
{
	struct blocks *blocks = &x->worker->blocks;
	const struct field *f = head_first(h, FIELD_CONNECTION);

	for (; f != NULL; f = head_next(h, f)) {
		struct str rest = field_value(h, f), option;
		while (str_split(&rest, ',', &option)) {
			option = str_trim(option);
			if (!chars_are(option, CHAR_TOKEN))
				continue;
			if (!block_keep(blocks, &x->in, option.at, option.len,
			    BLOCK_PERMIT) ||
			    !block_keep(blocks, &x->in, ",", 1, BLOCK_PERMIT))
				return false;
			x->named = x->in->end - x->in->start;
		}
	}
	return true;
}

/* Decide everything that follows from the head, and build ours. */
static void
on_final(struct exchange *x, const struct head *h, struct out *o)
{
	struct response_rewrite r = {
		.via = x->worker->shared->via,
		.date = worker_date(x->worker),
	};

	x->has_response = true;
	x->response_status = h->status;
	count_response(x);
	judge_upstream(x, h);
	relay_stop_request(x);
	x->keeps = false;
	buf_clear(&x->kept);
	x->sent_framing = framing_for_client(x);
	x->trailers = forwards_trailers(x);
	x->close = x->close || client_wants_close(x) || speaks_early(x) ||
	    x->sent_framing.kind == FRAMING_CLOSE;
	body_init(&x->response_body, &x->response_framing);
	flow_set_source_timeout(&x->down, relay_time(x, FW_RESPONSE_SOURCE));

	r.framing = x->sent_framing;
	r.trailers = x->trailers;
	r.close = x->close;
	r.keep_alive = !x->close && x->request.minor == 0;
	rewrite_response(o, h, &r);
	if (UNLIKELY(x->route->rate_headers == RATE_HEADERS_ALWAYS))
		rate_fields_add(o, x);
}

/* --- other heads ------------------------------------------------------- */

/* With n bytes behind it. */
static enum flow_step
on_interim(struct exchange *x, const struct head *h, size_t n)
{
	struct response_rewrite r = { .via = x->worker->shared->via };
	struct out o;

	if (++x->interims > RELAY_INTERIMS)
		return fail_gone(x, FAIL_RESPONSE_INVALID);
	if (n == 0)
		throttling_all_heads(x);
	if (h->status == 100)
		relay_expect_body(x);
	if (x->request.minor == 0)
		return FLOW_MORE;	/* knows no such thing */
	out_init(&o, loop_scratch_out(x->worker->loop), LOOP_SCRATCH);
	rewrite_response(&o, h, &r);
	if (out_is_full(&o))
		return fail_gone(x, FAIL_RESPONSE_TOO_LARGE);
	struct iovec iov = { o.mem, out_len(&o) };
	return flow_send(&x->down, &iov, 1) ? FLOW_MORE :
	    fail_gone(x, FAIL_CLIENT_CLOSED);
}

static bool
asks_for(const struct head *request, struct str protocol)
{
	struct str rest, element;

	for (const struct field *f = head_first(request, FIELD_UPGRADE);
	    f != NULL; f = head_next(request, f)) {
		rest = field_value(request, f);
		while (upgrade_next(&rest, &element))
			if (str_equal_nocase(element, protocol))
				return true;
	}
	return false;
}

/*
 * Did the client ask for all that the upstream changes to?  Each is looked for
 * among all that was asked for, so a long list would hold up the loop.
 */
static bool
is_asked_for(const struct exchange *x, const struct head *h)
{
	struct str rest, element;
	unsigned any = 0;

	for (const struct field *f = head_first(h, FIELD_UPGRADE);
	    f != NULL && x->upgrades; f = head_next(h, f)) {
		rest = field_value(h, f);
		while (list_next(&rest, &element)) {
			if (++any > PROTOCOLS ||
			    !asks_for(&x->request, element))
				return false;
		}
	}
	return any > 0;
}

/* 101: what follows, both ways, is not HTTP. */
static enum flow_step
on_switch(struct exchange *x, const struct head *h, uint8_t *rest, size_t n)
{
	struct response_rewrite r = {
		.via = x->worker->shared->via,
		.upgrade = true,
		.date = worker_date(x->worker),
	};
	struct out o;

	if (!is_asked_for(x, h) || !x->request_done)
		return fail_gone(x, FAIL_UPGRADE_FAILED);
	out_init(&o, loop_scratch_out(x->worker->loop), LOOP_SCRATCH);
	rewrite_response(&o, h, &r);
	if (x->route->rate_headers == RATE_HEADERS_ALWAYS)
		rate_fields_add(&o, x);
	if (out_is_full(&o))
		return fail_gone(x, FAIL_RESPONSE_TOO_LARGE);
	struct iovec iov = { o.mem, out_len(&o) };
	if (!flow_send(&x->down, &iov, 1))
		return fail_gone(x, FAIL_CLIENT_CLOSED);
	exchange_begin_response(x, 101);
	x->early = rest;
	x->early_length = n;
	exchange_run(x, XS_TUNNEL);
	return FLOW_GONE;
}

/* --- the body ---------------------------------------------------------- */

/*
 * More of the trailers that go on, which are sent if these are the last.  False
 * without memory.
 */
static bool
add_trailers(struct exchange *x, struct frame *f, struct iovec trailers,
    bool last)
{
	char *lines = trailers.iov_base;
	size_t n = trailers.iov_len;

	if (n < x->response_body.scan.at || !last) {
		if (!block_keep(&x->worker->blocks, &x->in, lines, n,
		    BLOCK_PERMIT))
			return false;
		lines = (char *)x->in->data + x->in->start + x->named;
		n = x->response_body.scan.at;
	}
	struct str named = x->named == 0 ? STR("") :
	    str_make(x->in->data + x->in->start, x->named);
	if (last)
		frame_trailers(f, str_make(lines,
		    trailers_filter(lines, n, named)));
	return true;
}

/* Content goes on, after the head if there is one to be sent. */
static HOT enum flow_step
relay_body(struct exchange *x, struct str head, uint8_t *bytes, size_t n)
{
	struct body_content c;
	enum body_result r;
	struct frame f;

	frame_init(&f);
	frame_head(&f, head);
	do {
		r = body_decode(&x->response_body, bytes, n, &c);
		if (r == BODY_BAD)
			return fail_gone(x, FAIL_RESPONSE_INVALID);
		frame_content(&f, x->sent_framing.kind, c.iov, c.count,
		    r == BODY_DONE && !x->trailers);
		struct iovec trailers = { bytes + c.used - c.trailers,
		    c.trailers };
		if (x->trailers && c.trailers > 0 &&
		    !add_trailers(x, &f, trailers, r == BODY_DONE))
			return fail_gone(x, FAIL_MEMORY);
		x->bytes_out += frame_bytes(c.iov, c.count);
		if (f.count > 0 && !flow_send(&x->down, f.iov, f.count))
			return FLOW_MORE;	/* respond_on_ended comes */
		if (!x->begun)
			exchange_begin_response(x, x->response_status);
		frame_init(&f);
		bytes += c.used;
		n -= c.used;
	} while (r == BODY_SPANS_FULL);

	if (r == BODY_MORE)
		return FLOW_MORE;
	if (n > 0)
		x->upstream_keep = false;	/* it says too much */
	return FLOW_LAST;
}

/* --- reading heads ----------------------------------------------------- */

/* A complete head of so many fields, and the n bytes after it. */
static enum flow_step
on_head(struct exchange *x, struct str bytes, unsigned fields, uint8_t *rest,
    size_t n)
{
	struct head h;
	struct out o;
	enum failure why = parse_response(x->worker->parser, bytes,
	    fields, &h);

	if (why == FAIL_NONE)
		why = framing_of_response(&h, x->request.method,
		    &x->response_framing);
	if (why != FAIL_NONE)
		return fail_gone(x, why);
	if (h.status < 200 && h.status != 101)
		return on_interim(x, &h, n);
	n = throttling_behind_head(x, n);
	if (h.status == 101)
		return on_switch(x, &h, rest, n);

	out_init(&o, loop_scratch_out(x->worker->loop), LOOP_SCRATCH);
	on_final(x, &h, &o);
	if (out_is_full(&o))
		return fail_gone(x, FAIL_RESPONSE_TOO_LARGE);
	if (x->trailers && !keep_named(x, &h))
		return fail_gone(x, FAIL_MEMORY);
	return relay_body(x, out_text(&o), rest, n);
}

/* Heads from `bytes` up to the final one, and what follows it. */
static HOT enum flow_step
read_heads(struct exchange *x, uint8_t *bytes, size_t n)
{
	struct blocks *blocks = &x->worker->blocks;
	enum flow_step step = FLOW_MORE;
	enum failure why;

	while (n > 0 && step == FLOW_MORE && !x->has_response) {
		struct scan *s = &x->scan;
		enum scan_result r = scan_run(s, (const char *)bytes, n,
		    &x->service->heads, &why);

		if (r == SCAN_BAD)
			return fail_gone(x, why);
		if (r == SCAN_MORE) {
			throttling_all_heads(x);
			return block_keep(blocks, &x->in, bytes, n,
			    BLOCK_PERMIT) ? FLOW_MORE :
			    fail_gone(x, FAIL_MEMORY);
		}

		struct str head = str_make(bytes + s->start,
		    s->at - s->start);
		unsigned fields = s->fields;
		bytes += s->at;
		n -= s->at;
		scan_init(s, SCAN_RESPONSE);
		step = on_head(x, head, fields, bytes, n);
	}
	return step;
}

/* The same, after the part of a head that has come before. */
static APART enum flow_step
read_more_heads(struct exchange *x, const uint8_t *bytes, size_t n)
{
	struct blocks *blocks = &x->worker->blocks;
	struct block *b;

	if (!block_keep(blocks, &x->in, bytes, n, BLOCK_PERMIT))
		return fail_gone(x, FAIL_MEMORY);
	/* Out of x->in: what remains incomplete is kept anew. */
	b = x->in;
	x->in = NULL;

	enum flow_step step = read_heads(x, b->data + b->start,
	    b->end - b->start);
	block_give(blocks, &b);
	return step;
}

/* --- the flow ---------------------------------------------------------- */

static enum flow_step
on_end(struct exchange *x)
{
	struct frame f;

	if (!x->has_response || !body_ends_at_close(&x->response_body))
		return closed_early(x);
	x->upstream_keep = false;
	frame_init(&f);
	frame_content(&f, x->sent_framing.kind, NULL, 0, true);
	if (f.count > 0 && !flow_send(&x->down, f.iov, f.count))
		return FLOW_MORE;	/* respond_on_ended comes */
	return FLOW_LAST;
}

HOT enum flow_step
respond_on_bytes(struct flow *f, uint8_t *bytes, size_t n)
{
	struct exchange *x = container_of(f, struct exchange, down);

	if (n == 0)
		return on_end(x);
	if (x->times.responded == 0)
		x->times.responded = worker_now(x->worker);
	if (x->has_response)
		return relay_body(x, STR(""), bytes, n);
	return x->in != NULL ? read_more_heads(x, bytes, n) :
	    read_heads(x, bytes, n);
}

uint64_t
respond_opaque(struct flow *f)
{
	struct exchange *x = container_of(f, struct exchange, down);

	return x->begun && x->sent_framing.kind != FRAMING_CHUNKED ?
	    body_plain(&x->response_body) : 0;
}

enum flow_step
respond_on_passed(struct flow *f, size_t n)
{
	struct exchange *x = container_of(f, struct exchange, down);

	x->bytes_out += n;
	body_pass(&x->response_body, n);
	return body_is_done(&x->response_body) ? FLOW_LAST : FLOW_MORE;
}

/*
 * The client may be slow, but the server is free: its stream and permits go
 * back now.  This is the only place from where a connection is used again.
 */
HOT void
respond_on_source_done(struct flow *f)
{
	struct exchange *x = container_of(f, struct exchange, down);

	if (x->conn != NULL && x->upstream_keep) {
		conn_give(&x->conn, x->upstream_keep_for);
		x->upstream = NULL;
	}
	exchange_release_upstream(x);
}

HOT void
respond_on_ended(struct flow *f, enum flow_end how, int err)
{
	struct exchange *x = container_of(f, struct exchange, down);

	switch (how) {
	case FLOW_DRAINED:
		exchange_run(x, XS_OVER);
		break;
	case FLOW_SOURCE_FAILED:
		closed_early(x);
		break;
	case FLOW_SOURCE_LATE:
		exchange_fail(x, relay_late(x->has_response ?
		    FW_RESPONSE_SOURCE : FW_RESPONSE_FIRST));
		break;
	case FLOW_SINK_FAILED:
		exchange_fail(x, err == ENOMEM ? FAIL_MEMORY :
		    FAIL_CLIENT_CLOSED);
		break;
	case FLOW_SINK_LATE:
		exchange_fail(x, relay_late(FW_RESPONSE_SINK));
		break;
	}
}
