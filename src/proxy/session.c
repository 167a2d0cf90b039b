/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.c - a client connection; see session.h.
 */
#include "proxy/session.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/block.h"
#include "http/parse.h"
#include "net/stream.h"
#include "proxy/exchange.h"
#include "proxy/worker.h"

/* What a client may send ahead of its turn; the rest stays in the kernel. */
enum { READ_AHEAD = 4096 };

/* What is read and dropped after an answer that closes the connection. */
enum { LINGER_BYTES = 1024 * 1024 };

/* A draining worker closes clients that were idle for this long. */
#define DRAIN_IDLE	NSEC_PER_SEC

static stream_read_fn	on_readable;
static stream_write_fn	on_flushed;
static wheel_fn		on_late;
static const struct client_ops ops;

/* --- small things ------------------------------------------------------ */

static const struct timeouts *
timeouts(const struct session *s)
{
	return &s->door->service->route.timeouts;
}

static struct listener_stats *
stats(const struct session *s)
{
	return &s->door->service->state->stats[s->door->worker->id];
}

static void
arm(struct session *s, nsec_t after)
{
	loop_arm(s->door->worker->loop, &s->timer, after);
}

/* --- the end ----------------------------------------------------------- */

static void
leave_session_limits(struct session *s)
{
	if (s->passes == NULL)
		return;
	for (unsigned i = 0; i < s->door->service->session_limit_count; i++)
		limit_session_end(&s->passes[i]);
	free(s->passes);
}

static void
close_session(struct session *s)
{
	struct worker *w = s->door->worker;

	ASSERT(s->state != SS_EXCHANGE);
	leave_session_limits(s);
	loop_cancel(w->loop, &s->timer);
	stream_close(&s->stream);
	block_give(&w->blocks, &s->in);
	list_remove(&s->link);
	atomic_fetch_sub(&s->door->service->state->sessions, 1);
	stat_decrement(&stats(s)->sessions);
	slab_give(&w->sessions, s);
	worker_session_over(w);
}

/*
 * Close so that the client can read what it was sent: data that arrives after
 * close(2) would make the kernel reset the connection (RFC 9112 section 9.6).
 */
static void
enter_linger(struct session *s)
{
	s->state = SS_LINGER;
	s->lingered = 0;
	block_give(&s->door->worker->blocks, &s->in);
	stream_end(s->stream);
	if (s->ended && stream_has_ended(s->stream)) {
		close_session(s);
		return;
	}
	s->flushed.fn = on_flushed;
	stream_set_writer(s->stream, &s->flushed, 0);
	if (!s->ended)
		stream_set_reader(s->stream, on_readable, s);
	arm(s, timeouts(s)->linger);
}

static void
on_flushed(struct stream_writer *w, int err)
{
	struct session *s = container_of(w, struct session, flushed);

	if (err != 0 || (s->ended && stream_has_ended(s->stream)))
		close_session(s);
}

static void
linger(struct session *s)
{
	ssize_t n = stream_recv(s->stream, loop_scratch(s->door->worker->loop),
	    LOOP_SCRATCH);

	if (n == -EAGAIN)
		return;
	if (n > 0)
		s->lingered += (uint64_t)n;
	if (n < 0 || s->lingered > LINGER_BYTES) {
		close_session(s);
	} else if (n == 0) {
		s->ended = true;
		stream_pause(s->stream);
		if (stream_has_ended(s->stream))
			close_session(s);
	}
}

/* --- heads ------------------------------------------------------------- */

/* A request begins now. */
static void
begin_head(struct session *s)
{
	s->state = SS_HEAD;
	s->began = worker_now(s->door->worker);
	scan_init(&s->scan, SCAN_REQUEST);
}

static void
start_exchange(struct session *s, const struct head *head, enum failure why)
{
	struct exchange *x = exchange_new(&(struct exchange_opts){
		.worker = s->door->worker,
		.session = s,
		.client = &ops,
		.service = s->door->service,
		.from = &s->client,
		.began = s->began,
		.to_head = head == NULL && s->to_head,
	});

	if (x == NULL) {
		/* There may be one for each session: the memory is gone. */
		close_session(s);
		return;
	}
	s->state = SS_EXCHANGE;
	s->exchange = x;
	x->half_closed = s->ended;
	exchange_start(x, head, why);
}

/* A head lies complete at `at`; what follows it is kept already. */
static void
take_head(struct session *s, const char *at, size_t n)
{
	struct head head;
	enum failure why = parse_request(s->door->worker->parser, at, n, &head);

	s->to_head = why != FAIL_NONE && parse_is_to_head(at, n);
	start_exchange(s, why == FAIL_NONE ? &head : NULL, why);
}

static void
wait_for_head(struct session *s)
{
	if (s->ended) {
		enter_linger(s);	/* the rest will never come */
		return;
	}
	/* However often it comes in pieces. */
	loop_arm_at(s->door->worker->loop, &s->timer,
	    s->began + timeouts(s)->request_head);
}

/* A complete head is in front of what is kept. */
static void
take_kept_head(struct session *s)
{
	uint32_t start = s->scan.start, end = s->scan.at;
	struct block *b = s->in;
	const char *at = (const char *)b->data + b->start;

	b->start += end;
	ASSERT(b->start <= b->end);
	/* Not given back before the head has been copied. */
	bool empty = b->start == b->end;
	struct blocks *blocks = &s->door->worker->blocks;
	if (empty)
		s->in = NULL;
	take_head(s, at + start, end - start);
	if (empty)
		block_give(blocks, &b);
}

/* Look for a head in what is kept. */
static void
read_kept(struct session *s)
{
	const struct block *b = s->in;
	const char *at = (const char *)b->data + b->start;
	size_t n = b->end - b->start;
	enum failure why;
	enum scan_result r = scan_run(&s->scan, at, n,
	    &s->door->service->heads, &why);

	s->to_head = parse_is_to_head(at + s->scan.start, n - s->scan.start);
	switch (r) {
	case SCAN_MORE:
		wait_for_head(s);
		break;
	case SCAN_BAD:
		start_exchange(s, NULL, why);
		break;
	case SCAN_DONE:
		take_kept_head(s);
		break;
	}
}

/* Look for a head in bytes that lie in scratch, while nothing is kept. */
static void
read_fresh(struct session *s, const uint8_t *bytes, size_t n)
{
	enum failure why;
	enum scan_result r = scan_run(&s->scan, (const char *)bytes, n,
	    &s->door->service->heads, &why);

	s->to_head = parse_is_to_head((const char *)bytes + s->scan.start,
	    n - s->scan.start);
	if (r == SCAN_BAD) {
		start_exchange(s, NULL, why);
		return;
	}

	uint32_t start = s->scan.start, end = s->scan.at;
	size_t from = r == SCAN_DONE ? end : 0;
	if (n > from && !ops.keep(s, bytes + from, n - from))
		start_exchange(s, NULL, FAIL_MEMORY);
	else if (r == SCAN_DONE)
		take_head(s, (const char *)bytes + start, end - start);
	else
		wait_for_head(s);
}

/* --- reading ----------------------------------------------------------- */

/* Drop what is left of a body that nobody wanted: so many of n bytes. */
static size_t
skip(struct session *s, size_t n)
{
	size_t drop = MIN(s->skip, n);

	s->skip -= drop;
	return drop;
}

/* For the next one, or the rest of a body that is dropped. */
static void
wait_for_request(struct session *s)
{
	nsec_t time = s->skip > 0 ? timeouts(s)->request_body :
	    timeouts(s)->keepalive;

	arm(s, s->door->worker->draining ? MIN(time, DRAIN_IDLE) : time);
}

static void
on_bytes(struct session *s, const uint8_t *bytes, size_t n)
{
	if (s->state == SS_IDLE) {
		size_t drop = skip(s, n);

		bytes += drop;
		n -= drop;
		if (n == 0) {
			wait_for_request(s);
			return;
		}
		begin_head(s);
	}
	if (s->in == NULL)
		read_fresh(s, bytes, n);
	else if (!ops.keep(s, bytes, n))
		start_exchange(s, NULL, FAIL_MEMORY);
	else
		read_kept(s);
}

static void
read_request(struct session *s)
{
	uint8_t *scratch = loop_scratch(s->door->worker->loop);
	ssize_t n = stream_recv(s->stream, scratch, LOOP_SCRATCH);

	if (n > 0)
		on_bytes(s, scratch, (size_t)n);
	else if (n != -EAGAIN)
		close_session(s);	/* nobody is there to be answered */
}

/*
 * The client speaks, or leaves, while its exchange runs.  Once it has sent a
 * block ahead of its turn it isn't read, and so not found gone, until then.
 */
static void
read_ahead(struct session *s)
{
	uint8_t *scratch = loop_scratch(s->door->worker->loop);
	struct exchange *x = s->exchange;
	ssize_t n;

	if ((s->in != NULL && s->in->end - s->in->start >= READ_AHEAD) ||
	    blocks_are_short(&s->door->worker->blocks, BLOCK_HEAD)) {
		stream_pause(s->stream);
		return;
	}
	n = stream_recv(s->stream, scratch, READ_AHEAD);
	if (n == -EAGAIN)
		return;
	if (n == 0) {
		s->ended = true;
		stream_pause(s->stream);
		exchange_on_client_end(x);
	} else if (n < 0 || !ops.keep(s, scratch, (size_t)n)) {
		stream_pause(s->stream);
		exchange_on_client_lost(x);
	}
}

static void
on_readable(void *arg)
{
	struct session *s = arg;

	switch ((enum session_state)s->state) {
	case SS_IDLE:
	case SS_HEAD:
		read_request(s);
		break;
	case SS_EXCHANGE:
		read_ahead(s);
		break;
	case SS_LINGER:
		linger(s);
		break;
	}
}

static void
on_late(struct wheel_timer *t)
{
	struct session *s = container_of(t, struct session, timer);

	switch ((enum session_state)s->state) {
	case SS_HEAD:
		start_exchange(s, NULL, FAIL_REQUEST_TIMEOUT);
		break;
	case SS_EXCHANGE:
		exchange_on_late(s->exchange);
		break;
	case SS_IDLE:		/* nobody waits for an answer */
	case SS_LINGER:
		close_session(s);
		break;
	}
}

/* --- what an exchange asks for ----------------------------------------- */

static bool
client_send(struct session *s, const struct iovec *iov, int n)
{
	return stream_send(s->stream, iov, n, BLOCK_PERMIT) == 0;
}

static struct stream *
client_stream(struct session *s)
{
	return s->stream;
}

static struct block **
client_input(struct session *s)
{
	return &s->in;
}

static bool
client_keep(struct session *s, const uint8_t *bytes, size_t n)
{
	return block_keep(&s->door->worker->blocks, &s->in, bytes, n,
	    BLOCK_HEAD);
}

static void
client_watch(struct session *s)
{
	if (s->stream != NULL && !s->ended)
		stream_set_reader(s->stream, on_readable, s);
}

static void
client_arm(struct session *s, nsec_t due)
{
	if (due == NSEC_NEVER)
		wheel_disarm(&s->timer);
	else
		loop_arm_at(s->door->worker->loop, &s->timer, due);
}

static struct stream *
client_detach(struct session *s)
{
	struct stream *stream = s->stream;

	stream_set_reader(stream, NULL, NULL);
	s->stream = NULL;
	return stream;
}

/* Wait for the next request, or take it from what was read ahead. */
static void
next_request(struct session *s)
{
	struct worker *w = s->door->worker;

	if (s->in != NULL) {
		s->in->start += (uint32_t)skip(s, s->in->end - s->in->start);
		if (s->in->start == s->in->end)
			block_give(&w->blocks, &s->in);
	}
	if (s->in != NULL) {
		/* Its turn first: more would not fit into what is kept. */
		stream_pause(s->stream);
		worker_go_on_later(w, &s->link);
		return;
	}
	client_watch(s);
	if (s->ended)
		enter_linger(s);
	else
		wait_for_request(s);
}

static void
client_end(struct session *s, const struct client_end *how)
{
	s->state = SS_IDLE;
	s->skip = how->skip;
	if (how->reset && s->stream != NULL)
		stream_reset(&s->stream);
	if (how->cut || s->stream == NULL || s->door->worker->stopping)
		close_session(s);
	else if (how->keep)
		next_request(s);
	else
		enter_linger(s);
}

static const struct client_ops ops = {
	.send = client_send,
	.stream = client_stream,
	.input = client_input,
	.keep = client_keep,
	.watch = client_watch,
	.arm = client_arm,
	.detach = client_detach,
	.end = client_end,
};

/* --- the beginning ----------------------------------------------------- */

/* The limits with `connections`; for most listeners there are none. */
static bool
enter_session_limits(struct session *s)
{
	const struct service *service = s->door->service;
	const struct limits *registry = s->door->worker->shared->limits;
	unsigned n = service->session_limit_count, i;

	if (n == 0)
		return true;
	s->passes = calloc(n, sizeof *s->passes);
	if (s->passes == NULL)
		return false;
	for (i = 0; i < n; i++) {
		struct limit *l = service->session_limits[i];
		uint64_t key = limit_spec(l)->key == LIMIT_KEY_NONE ? 0 :
		    limit_key_of(registry, l, &s->client);

		limit_pass_init(&s->passes[i], l, key, NULL);
		if (!limit_session_begin(&s->passes[i]))
			break;
	}
	if (i == n)
		return true;
	while (i-- > 0)
		limit_session_end(&s->passes[i]);
	free(s->passes);
	s->passes = NULL;
	return false;
}

static bool
may_enter(struct session *s)
{
	uint64_t most = s->door->service->conf->max_connections;

	if (most != 0 && atomic_load(&s->door->service->state->sessions) > most)
		return false;
	return enter_session_limits(s);
}

static struct session *
new_session(struct door *d, int fd, const struct addr *from)
{
	struct worker *w = d->worker;
	struct session *s = slab_take(&w->sessions);

	if (s == NULL)
		return NULL;
	*s = (struct session){
		.door = d,
		.client = *from,
		.state = SS_IDLE,
	};
	s->stream = stream_new(w->streams, fd);
	if (s->stream == NULL) {
		slab_give(&w->sessions, s);
		return NULL;
	}
	list_init(&s->link);
	list_add_last(&w->open, &s->link);
	wheel_timer_init(&s->timer, on_late);
	atomic_fetch_add(&d->service->state->sessions, 1);
	stat_increment(&stats(s)->sessions);
	stat_increment(&stats(s)->sessions_total);
	return s;
}

void
session_start(struct door *d, int fd, const struct addr *from)
{
	struct worker *w = d->worker;
	struct session *s = new_session(d, fd, from);

	if (s == NULL) {
		close(fd);
		worker_session_over(w);
		return;
	}
	client_watch(s);
	if (!may_enter(s)) {
		stat_increment(&stats(s)->sessions_refused);
		begin_head(s);
		start_exchange(s, NULL, FAIL_CONNECTION_LIMIT);
	} else if (d->service->conf->mode == MODE_TCP) {
		begin_head(s);
		start_exchange(s, NULL, FAIL_NONE);
	} else
		arm(s, w->draining ? DRAIN_IDLE : timeouts(s)->request_head);
}

void
session_go_on(struct session *s)
{
	begin_head(s);
	client_watch(s);
	read_kept(s);
}

void
session_drain(struct session *s)
{
	if (s->state == SS_IDLE)
		arm(s, DRAIN_IDLE);
}

void
session_stop(struct session *s)
{
	if (s->state == SS_EXCHANGE)
		exchange_stop(s->exchange, FAIL_DRAINING);
	else
		close_session(s);
}
