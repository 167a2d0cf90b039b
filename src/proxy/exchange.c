/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange.c - the state machine of an exchange; see exchange.h.
 *
 *	ROUTE --> ADMIT --> RESOLVE --> CONNECT --> RELAY --> OVER
 *	  |         |          ^ |          | |      | |        ^
 *	  |         |     dead | |          | +------|-+-> TUNNEL
 *	  |         |          +-|----------|--------+        |
 *	  +---------+------------+----------+----> REPLY -----+
 *
 * Entering a state starts what it waits for, and returns where to go next:
 * the same state, to wait, or another, to go straight on.  An event picks
 * the next state and calls exchange_run().  So `state` changes in one place,
 * no step calls the next one, and the stack stays flat.
 *
 * There is one release for each half: exchange_release_upstream() for the
 * upstream's, and OVER for the client's.
 */
#include "proxy/exchange.h"

#include "http/reply.h"
#include "net/dial.h"
#include "net/stream.h"
#include "proxy/access_log.h"
#include "proxy/admit.h"
#include "proxy/connecting.h"
#include "proxy/leaving.h"
#include "proxy/rate_fields.h"
#include "proxy/relaying.h"
#include "proxy/routing.h"
#include "proxy/throttling.h"
#include "proxy/tunnelling.h"
#include "proxy/worker.h"
#include "upstream/pool.h"

/* An unread body of at most this is dropped, and the connection kept. */
enum { DROP_BODY = 64 * 1024 };

/* Of content: so much goes out at once on a new connection, with its head. */
enum { AT_ONCE = 8 * 1024 };

#define TO(NAME)	BIT(XS_##NAME)

typedef enum exchange_state enter_fn(struct exchange *x);

static enter_fn		enter_reply, enter_over;

#define enter_route	routing_enter
#define enter_admit	admit_enter
#define enter_resolve	connect_enter_resolve
#define enter_connect	connect_enter
#define enter_relay	relay_enter
#define enter_tunnel	tunnelling_enter

static const struct {
	enter_fn	*enter;
	unsigned	 next;		/* set of states */
	enum failure	 late;		/* waits: what to fail with */
} rows[XS_COUNT] = {
#define WAITS(NAME, name, keyword, late, next) \
	[XS_##NAME] = { enter_##name, next, FAIL_##late },
#define FLOWS(NAME, name, next) \
	[XS_##NAME] = { enter_##name, next, FAIL_NONE },
#define PASSES	FLOWS
#include "proxy/exchange_states.def"
};

static mail_fn		on_over;
static stream_write_fn	on_reply_sent;

/* --- beginning --------------------------------------------------------- */

struct exchange *
exchange_new(const struct exchange_opts *opts)
{
	struct worker *w = opts->worker;
	struct exchange *x = slab_take_zeroed(&w->exchanges);

	if (x == NULL)
		return NULL;
	x->state = XS_ROUTE;
	x->worker = w;
	x->session = opts->session;
	x->client = opts->client;
	x->service = opts->service;
	x->route = &opts->service->route;
	x->from = opts->from;
	x->from_text = opts->from_text;
	x->refused_by = opts->refused_by;
	x->times.began = opts->began;
	x->request.method = opts->to_head ? METHOD_HEAD : METHOD_NONE;
	x->total_due = NSEC_NEVER;
	x->id = (w->next_id++ ^ w->id_mix) * UINT64_C(0x9e3779b97f4a7c15);
	mail_init(&x->over, on_over);
	flow_init(&x->up);
	flow_init(&x->down);
	buf_init(&x->kept, &w->blocks);
	x->stats = &opts->service->state->stats[w->id];
	stat_increment(&x->stats->exchanges);
	return x;
}

/*
 * The arena holds the head, so that the session's buffer is free again, and a
 * pass for each limit there could be, with the throttles.
 */
static bool
take_arena(struct exchange *x, const struct head *head)
{
	size_t passes = x->service->pass_bytes;
	size_t bytes = head != NULL ? head_copy_size(head) : 0;

	if (passes + bytes == 0)
		return true;
	/* For an answer without memory: that to HEAD has no content. */
	if (head != NULL)
		x->request.method = head->method;
	x->arena = block_take(&x->worker->blocks, passes + bytes, BLOCK_HEAD);
	if (x->arena == NULL || x->arena->size < passes + bytes)
		return false;
	x->passes = (struct limit_pass *)(void *)x->arena->data;
	if (head != NULL) {
		x->request = *head;
		head_copy(&x->request, x->arena->data + passes);
		x->has_head = true;
	}
	return true;
}

void
exchange_start(struct exchange *x, const struct head *head, enum failure why)
{
	x->times.asked = worker_now(x->worker);
	if (why == FAIL_NONE && !take_arena(x, head))
		why = FAIL_MEMORY;
	exchange_run(x, why == FAIL_NONE ? enter_route(x) :
	    exchange_failed(x, why));
}

/* --- moving ------------------------------------------------------------ */

void
exchange_run(struct exchange *x, enum exchange_state next)
{
	while (next != x->state) {
		ASSERT(rows[x->state].next & BIT(next));
		x->state = next;
		exchange_arm(x, NSEC_NEVER);
		next = rows[next].enter(x);
	}
}

void
exchange_arm(struct exchange *x, nsec_t due)
{
	nsec_t next = MIN(due, x->total_due);

	x->due = due;
	if (next == x->armed)
		return;
	x->armed = next;
	x->client->arm(x->session, next);
}

/* Failures to connect are counted where the next server is tried. */
static bool
is_of_server(enum failure why)
{
	return why == FAIL_UPSTREAM_CLOSED || why == FAIL_UPSTREAM_STALLED ||
	    why == FAIL_UPSTREAM_BLOCKED ||
	    why == FAIL_RESPONSE_TIMEOUT || why == FAIL_RESPONSE_INVALID ||
	    why == FAIL_RESPONSE_TOO_LARGE || why == FAIL_UPGRADE_FAILED;
}

static void
note(struct exchange *x, enum failure why)
{
	if (x->why != FAIL_NONE)
		return;			/* the first cause is kept */
	x->why = why;
	if (x->server != NULL && is_of_server(why))
		stat_increment(&server_local(x->server,
		    x->worker->id)->stats.failures);
}

enum exchange_state
exchange_failed(struct exchange *x, enum failure why)
{
	note(x, why);
	if (!x->begun && failure_row(x->why)->status != 0 &&
	    x->service->conf->mode != MODE_TCP)
		return XS_REPLY;
	x->cut = true;
	x->lingers = is_of_server(x->why) &&
	    x->sent_framing.kind != FRAMING_CLOSE;
	return XS_OVER;
}

void
exchange_fail(struct exchange *x, enum failure why)
{
	if (x->state != XS_OVER && x->state != XS_REPLY)
		exchange_run(x, exchange_failed(x, why));
}

/* --- events ------------------------------------------------------------ */

void
exchange_on_late(struct exchange *x)
{
	nsec_t now = worker_now(x->worker);

	x->armed = 0;
	if (x->state == XS_OVER)
		return;
	if (x->state == XS_REPLY) {
		x->cut = true;
		exchange_run(x, XS_OVER);
	} else if (now < x->due) {
		exchange_fail(x, FAIL_TOTAL_TIMEOUT);
	} else if (x->state == XS_ADMIT) {
		exchange_run(x, admit_on_late(x));
	} else if (x->state == XS_RELAY) {
		exchange_fail(x, relay_late(FW_REQUEST_SINK));
	} else {
		exchange_fail(x, rows[x->state].late);
	}
}

void
exchange_on_client_lost(struct exchange *x)
{
	if (x->state == XS_OVER)
		return;
	x->cut = true;
	if (x->state == XS_REPLY)
		exchange_run(x, XS_OVER);
	else
		exchange_fail(x, FAIL_CLIENT_CLOSED);
}

void
exchange_on_input_dropped(struct exchange *x)
{
	x->close = true;
	exchange_fail(x, FAIL_MEMORY);
}

void
exchange_stop(struct exchange *x, enum failure why)
{
	if (x->state == XS_OVER)
		return;
	if (x->why == FAIL_NONE)
		x->why = why;
	x->cut = true;
	exchange_run(x, XS_OVER);
}

/* --- releasing --------------------------------------------------------- */

HOT void
exchange_release_upstream(struct exchange *x)
{
	if (!x->engaged)
		return;
	x->engaged = false;
	resolve_cancel(&x->resolve);
	dial_cancel(&x->dial);
	if (x->conn != NULL) {
		conn_close(&x->conn);
		x->upstream = NULL;
	}
	stream_close(&x->upstream);
	pool_group_done(x->worker->pool, &x->group);
	connect_release_server(x);
	block_give(&x->worker->blocks, &x->in);
	buf_clear(&x->kept);
	admit_leave_upstream(x);
}

/* The client has sent more than this request: so far, as the kernel knows. */
static bool
has_sent_more(const struct exchange *x)
{
	const struct stream *client = x->client->stream(x->session);
	size_t n;

	return *x->client->input(x->session) != NULL ||
	    (client != NULL && stream_unread(client, &n) && n > 0);
}

/* What it has asked already is answered before a drain, too, ends it. */
static APART bool
has_asked_all(const struct exchange *x, bool drains)
{
	if (x->half_closed && *x->client->input(x->session) == NULL)
		return true;
	return drains && !has_sent_more(x);
}

HOT bool
exchange_is_last(const struct exchange *x)
{
	bool drains = x->worker->draining || atomic_load_explicit(
	    &x->service->state->gone, memory_order_relaxed);

	if (x->request.close || x->service->route.timeouts.keepalive == 0)
		return true;
	return UNLIKELY(x->half_closed | drains) && has_asked_all(x, drains);
}

void
exchange_begin_response(struct exchange *x, int status)
{
	x->begun = true;
	x->status = status;
	stat_code(x->stats, (unsigned)status);
}

/* --- an answer of our own ---------------------------------------------- */

/* What can't be read, or doesn't come, has no next request behind it. */
static bool
is_hopeless(enum failure why)
{
	return why == FAIL_BAD_REQUEST || why == FAIL_REQUEST_TIMEOUT;
}

/*
 * May the connection go on after a refusal?  Only where the next request is
 * sure to begin: a body that was not read must be dropped, and a small one of
 * known length can be.
 */
static bool
may_go_on(struct exchange *x)
{
	if (!x->has_head || x->expects || x->close || x->framing_bad ||
	    is_hopeless(x->why) || exchange_is_last(x) ||
	    x->request.minor == 0 || x->request.method == METHOD_CONNECT)
		return false;
	if (x->framing.kind == FRAMING_CHUNKED)
		return body_is_done(&x->body);
	return x->framing.kind == FRAMING_NONE || x->body.left <= DROP_BODY;
}

/* Limits know when to come again; for other want of room, soon is right. */
static uint64_t
retry_after(const struct exchange *x)
{
	int status = failure_row(x->why)->status;

	if (x->retry_after != 0)
		return x->retry_after;
	return status == 503 || status == 429 ? 1 : 0;
}

/* Fields of limits; only limits have set x->retry_after. */
static struct str
fields_of_limits(const struct exchange *x, struct out *o, uint64_t *retry)
{
	enum rate_headers least = x->retry_after != 0 ?
	    RATE_HEADERS_REFUSED : RATE_HEADERS_ALWAYS;

	if (x->route->rate_headers < least)
		return STR("");
	rate_fields_put(o, x, least, retry);
	return out_text(o);
}

static void
build_reply(struct exchange *x, struct out *o)
{
	char text[RATE_FIELDS_MAX];
	struct out fields;
	struct reply reply = {
		.why = x->why,
		.via = x->worker->shared->name.at,
		.date = worker_date(x->worker),
		.retry_after = retry_after(x),
		.allow = x->allow,
		.close = x->close,
		.head = x->request.method == METHOD_HEAD,
	};

	out_init(&fields, text, sizeof text);
	reply.fields = fields_of_limits(x, &fields, &reply.retry_after);
	if (x->why == FAIL_NONE)
		reply_options(o, &reply);
	else
		x->bytes_out += reply_failure(o, &reply);
}

/* Everything upstream goes back before a word to the client. */
static enum exchange_state
enter_reply(struct exchange *x)
{
	struct loop *loop = x->worker->loop;
	struct stream *client = x->client->stream(x->session);
	struct out o;

	flow_stop(&x->up);
	flow_stop(&x->down);
	throttling_stop(x);
	exchange_release_upstream(x);
	admit_leave(x);

	x->total_due = NSEC_NEVER;	/* there is this left to be said */
	x->close = !may_go_on(x);
	if (!x->close && x->framing.kind == FRAMING_LENGTH)
		x->skip = x->body.left;
	out_init(&o, loop_scratch_out(loop), LOOP_SCRATCH);
	build_reply(x, &o);
	struct iovec iov = { o.mem, out_len(&o) };
	if (!x->client->send(x->session, &iov, 1)) {
		x->cut = true;
		return XS_OVER;
	}
	if (failure_row(x->why)->status >= 500)
		stat_increment(&x->stats->own_5xx);
	exchange_begin_response(x, x->why == FAIL_NONE ? 200 :
	    failure_row(x->why)->status);
	if (stream_queued(client) == 0)
		return XS_OVER;
	x->client->watch(x->session);
	x->reply.fn = on_reply_sent;
	stream_set_writer(client, &x->reply, 0);
	exchange_arm(x, worker_now(x->worker) + x->route->timeouts.send);
	return XS_REPLY;
}

static void
on_reply_sent(struct stream_writer *w, int err)
{
	struct exchange *x = container_of(w, struct exchange, reply);

	if (err != 0)
		x->cut = true;
	exchange_run(x, XS_OVER);
}

/* --- the end ----------------------------------------------------------- */

/*
 * The request is a head alone, the client has said that it is the last, and
 * nothing has come since.  What asks for more than HTTP may have more behind
 * it all the same, and behind a body old clients send a CRLF (RFC 9112 section
 * 2.2).  So may who breaks its word: a reset takes away what is still on its
 * way to it, and so an answer of more than is on its way at once is waited for.
 */
static bool
is_last_word(const struct exchange *x)
{
	const struct head *h = &x->request;
	const struct stream *client = x->client->stream(x->session);

	if (!x->has_head || x->framing_bad || x->upgrades || client == NULL ||
	    h->method == METHOD_CONNECT || x->bytes_out > AT_ONCE)
		return false;
	if (!h->close && (h->minor > 0 || h->keep_alive))
		return false;
	return x->framing.kind == FRAMING_NONE &&
	    *x->client->input(x->session) == NULL &&
	    !stream_is_paused(client) && stream_took_all(client) &&
	    stream_seems_quiet(client);
}

/*
 * Gives everything back but what the log line needs.  The session is told
 * later: whoever called exchange_run() still looks at x.
 */
static HOT enum exchange_state
enter_over(struct exchange *x)
{
	struct stream *client = x->client->stream(x->session);

	tunnelling_stop(x);
	flow_stop(&x->up);
	flow_stop(&x->down);
	throttling_stop(x);
	if (UNLIKELY(x->minds))
		leaving_stop(x);
	exchange_release_upstream(x);
	admit_leave(x);
	if (client != NULL)
		stream_set_writer(client, NULL, 0);
	loop_later(x->worker->loop, &x->over);
	return XS_OVER;
}

static APART void
note_exemplar(const struct exchange *x, nsec_t took)
{
	struct timespec wall = loop_wall(x->worker->loop);

	exemplar_note(x->stats->slow, &(struct exemplar_copy){
		.id = x->id,
		.value = took,
		.at = (nsec_t)wall.tv_sec * NSEC_PER_SEC +
		    (nsec_t)wall.tv_nsec,
	});
}

static void
count(struct exchange *x, nsec_t now)
{
	nsec_t took = now - x->times.began;

	stat_decrement(&x->stats->exchanges);
	stat_failure(x->stats, x->why);
	hist_add(&x->stats->duration, took);
	if (exemplar_is_due(x->id, took))
		note_exemplar(x, took);
}

static HOT void
on_over(struct mail *m)
{
	struct exchange *x = container_of(m, struct exchange, over);
	struct worker *w = x->worker;
	bool keep = !x->close && !x->cut;
	struct client_end end = {
		.keep = keep,
		/* Earlier responses may still be on their way. */
		.cut = x->cut && !x->lingers,
		/* A clean end would look like the end of the body. */
		.reset = x->cut && x->sent_framing.kind == FRAMING_CLOSE,
		.last = !keep && is_last_word(x),
		.skip = x->skip,
	};
	const struct client_ops *client = x->client;
	struct session *session = x->session;

	count(x, worker_now(w));
	access_log(x);
	block_give(&w->blocks, &x->arena);
	slab_give(&w->exchanges, x);
	client->end(session, &end);
}
