/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.c - a client connection; see session.h.
 */
#include "proxy/session.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/block.h"
#include "net/stream.h"
#include "proxy/exchange.h"
#include "proxy/reading.h"
#include "proxy/session_limits.h"
#include "proxy/worker.h"

/* What is read and dropped after an answer that closes the connection. */
enum { LINGER_BYTES = 1024 * 1024 };

/* A draining worker closes clients that were idle for this long. */
#define DRAIN_IDLE	NSEC_PER_SEC

static stream_read_fn	on_readable;
static stream_write_fn	on_flushed;
static wheel_fn		on_late;
static const struct client_ops ops;

/* --- small things ------------------------------------------------------ */

const struct timeouts *
session_timeouts(const struct session *s)
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

/* It takes no more requests but one that is on its way already. */
static bool
is_at_its_end(const struct session *s)
{
	return s->door->worker->draining || atomic_load_explicit(
	    &s->door->service->state->gone, memory_order_relaxed);
}

void
session_wait(struct session *s, nsec_t time)
{
	arm(s, is_at_its_end(s) ? MIN(time, DRAIN_IDLE) : time);
}

APART void
session_change_door(struct session *s)
{
	struct door *from = s->door, *to = doors_follow(from);

	if (to == NULL || !session_limits_move(s, to->service))
		return;
	door_enter(to);
	s->door = to;
	door_leave(from);
}

/* --- the end ----------------------------------------------------------- */

void
session_close(struct session *s)
{
	struct door *door = s->door;
	struct worker *w = door->worker;

	ASSERT(s->state != SS_EXCHANGE);
	session_limits_leave(s);
	loop_cancel(w->loop, &s->timer);
	stream_close(&s->stream);
	block_give(&w->blocks, &s->in);
	list_remove(&s->link);
	atomic_fetch_sub(&s->door->service->state->sessions, 1);
	stat_decrement(&stats(s)->sessions);
	bool tunnels = s->tunnels;
	slab_give(&w->sessions, s);
	if (tunnels)
		door_tunnel_leaves(door);
	else
		door_leave(door);
	worker_session_over(w);
}

/*
 * Close so that the client can read what it was sent: data that arrives after
 * close(2) would make the kernel reset the connection (RFC 9112 section 9.6).
 * None does from who has sent FIN, or said that nothing follows and kept to it.
 */
void
session_linger(struct session *s, bool last)
{
	s->state = SS_LINGER;
	s->lingered = 0;
	block_give(&s->door->worker->blocks, &s->in);
	if ((s->ended || last) && stream_queued(s->stream) == 0) {
		session_close(s);
		return;
	}
	stream_end(s->stream);
	s->flushed.fn = on_flushed;
	stream_set_writer(s->stream, &s->flushed, 0);
	if (!s->ended)
		stream_set_reader(s->stream, on_readable, s);
	arm(s, session_timeouts(s)->linger);
}

static void
on_flushed(struct stream_writer *w, int err)
{
	struct session *s = container_of(w, struct session, flushed);

	if (err != 0 || (s->ended && stream_has_ended(s->stream)))
		session_close(s);
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
		session_close(s);
	} else if (n == 0) {
		s->ended = true;
		stream_pause(s->stream);
		if (stream_has_ended(s->stream))
			session_close(s);
	}
}

/* --- at work ----------------------------------------------------------- */

/* As session_exchange(); `by` is the limit that refuses it, if one does. */
static HOT void
begin_exchange(struct session *s, const struct head *head, enum failure why,
    const struct limit *by)
{
	struct exchange *x = exchange_new(&(struct exchange_opts){
		.worker = s->door->worker,
		.session = s,
		.client = &ops,
		.service = s->door->service,
		.from = &s->client,
		.from_text = str_make(s->client_text, s->client_text_length),
		.refused_by = by,
		.began = s->began,
		.to_head = head == NULL && s->to_head,
	});

	if (x == NULL) {
		/* There may be one for each session: the memory is gone. */
		session_close(s);
		return;
	}
	s->state = SS_EXCHANGE;
	s->exchange = x;
	x->half_closed = s->ended;
	exchange_start(x, head, why);
}

void
session_exchange(struct session *s, const struct head *head, enum failure why)
{
	begin_exchange(s, head, why, NULL);
}

static HOT void
on_readable(void *arg)
{
	struct session *s = arg;

	switch ((enum session_state)s->state) {
	case SS_IDLE:
	case SS_HEAD:
		reading_receive(s);
		break;
	case SS_EXCHANGE:
		reading_ahead(s);
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
		session_exchange(s, NULL, FAIL_REQUEST_TIMEOUT);
		break;
	case SS_EXCHANGE:
		exchange_on_late(s->exchange);
		break;
	case SS_IDLE:		/* nobody waits for an answer */
	case SS_LINGER:
		session_close(s);
		break;
	}
}

/* --- what an exchange asks for ----------------------------------------- */

static bool
client_send(struct session *s, const struct iovec *iov, int n)
{
	return stream_send(s->stream, iov, n, BLOCK_PERMIT) == 0;
}

static HOT struct stream *
client_stream(struct session *s)
{
	return s->stream;
}

static struct block **
client_input(struct session *s)
{
	return &s->in;
}

void
session_watch(struct session *s)
{
	if (s->stream != NULL && !s->ended)
		stream_set_reader(s->stream, on_readable, s);
}

static HOT void
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
	s->tunnels = true;
	door_tunnel_begins(s->door);
	return stream;
}

static HOT void
client_end(struct session *s, const struct client_end *how)
{
	s->state = SS_IDLE;
	s->skip = how->skip;
	if (how->reset && s->stream != NULL)
		stream_reset(&s->stream);
	if (how->cut || s->stream == NULL || s->door->worker->stopping)
		session_close(s);
	else if (how->keep)
		reading_next(s);
	else
		session_linger(s, how->last);
}

static const struct client_ops ops = {
	.send = client_send,
	.stream = client_stream,
	.input = client_input,
	.keep = reading_keep,
	.watch = session_watch,
	.arm = client_arm,
	.detach = client_detach,
	.end = client_end,
};

/* --- the beginning ----------------------------------------------------- */

/* Why not?  With *refused_by = NULL: no named limit did it. */
static enum failure
may_enter(struct session *s, const struct limit **refused_by)
{
	uint64_t most = s->door->service->conf->max_connections;

	*refused_by = NULL;
	if (most != 0 && atomic_load(&s->door->service->state->sessions) > most)
		return FAIL_CONNECTION_LIMIT;
	return session_limits_enter(s, refused_by);
}

/* Each request tells it; an IPv6 one is rarer, and three times as long. */
static void
note_client(struct session *s)
{
	char text[ADDR_TEXT];
	struct out o;

	if (s->client.family != ADDR_IP4)
		return;
	out_init(&o, text, sizeof text);
	addr_put_ip(&o, &s->client);
	ASSERT(out_len(&o) <= sizeof s->client_text);
	s->client_text_length = (uint8_t)out_len(&o);
	memcpy(s->client_text, text, out_len(&o));
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
	note_client(s);
	s->stream = stream_new(w->streams, fd);
	if (s->stream == NULL) {
		slab_give(&w->sessions, s);
		return NULL;
	}
	door_enter(d);
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
	const struct limit *by;
	enum failure why;

	if (s == NULL) {
		close(fd);
		worker_session_over(w);
		return;
	}
	session_watch(s);
	why = may_enter(s, &by);
	if (why != FAIL_NONE) {
		stat_increment(&stats(s)->sessions_refused);
		reading_begin(s);
		begin_exchange(s, NULL, why, by);
	} else if (d->service->conf->mode == MODE_TCP) {
		reading_begin(s);
		session_exchange(s, NULL, FAIL_NONE);
	} else
		arm(s, is_at_its_end(s) ? DRAIN_IDLE :
		    session_timeouts(s)->request_head);
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
		session_close(s);
}
