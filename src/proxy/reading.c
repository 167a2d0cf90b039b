/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reading.c - the next request, out of what a client sends; see reading.h.
 */
#include "proxy/reading.h"

#include <errno.h>

#include "base/block.h"
#include "http/parse.h"
#include "proxy/exchange.h"
#include "proxy/leaving.h"
#include "proxy/session.h"
#include "proxy/worker.h"

/* What a client may send ahead of its turn; the rest stays in the kernel. */
enum { READ_AHEAD = 4096 };

/* --- heads ------------------------------------------------------------- */

void
reading_begin(struct session *s)
{
	session_follow(s);
	s->state = SS_HEAD;
	s->began = worker_now(s->door->worker);
	scan_init(&s->scan, SCAN_REQUEST);
}

bool
reading_keep(struct session *s, const uint8_t *bytes, size_t n)
{
	return block_keep(&s->door->worker->blocks, &s->in, bytes, n,
	    BLOCK_HEAD);
}

/* A head lies complete at `at`; what follows it is kept already. */
static void
take_head(struct session *s, const char *at, size_t n)
{
	struct head head;
	enum failure why = parse_request(s->door->worker->parser,
	    str_make(at, n), s->scan.fields, &head);

	s->to_head = why != FAIL_NONE && parse_is_to_head(at, n);
	session_exchange(s, why == FAIL_NONE ? &head : NULL, why);
}

static void
wait_for_head(struct session *s)
{
	if (s->ended) {
		session_linger(s, false);	/* the rest will never come */
		return;
	}
	/* However often it comes in pieces. */
	loop_arm_at(s->door->worker->loop, &s->timer,
	    s->began + session_timeouts(s)->request_head);
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
		session_exchange(s, NULL, why);
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

	uint32_t start = s->scan.start, end = s->scan.at;

	if (r == SCAN_DONE &&
	    (n == end || reading_keep(s, bytes + end, n - end))) {
		take_head(s, (const char *)bytes + start, end - start);
		return;
	}
	s->to_head = parse_is_to_head((const char *)bytes + start, n - start);
	if (r == SCAN_BAD)
		session_exchange(s, NULL, why);
	else if (r == SCAN_DONE || !reading_keep(s, bytes, n))
		session_exchange(s, NULL, FAIL_MEMORY);
	else
		wait_for_head(s);
}

/* --- bytes ------------------------------------------------------------- */

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
	nsec_t time = s->skip > 0 ? session_timeouts(s)->request_body :
	    session_timeouts(s)->keepalive;

	session_wait(s, time);
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
		reading_begin(s);
	}
	if (s->in == NULL)
		read_fresh(s, bytes, n);
	else if (!reading_keep(s, bytes, n))
		session_exchange(s, NULL, FAIL_MEMORY);
	else
		read_kept(s);
}

void
reading_receive(struct session *s)
{
	uint8_t *scratch = loop_scratch(s->door->worker->loop);
	ssize_t n = stream_recv(s->stream, scratch, LOOP_SCRATCH);

	if (n > 0)
		on_bytes(s, scratch, (size_t)n);
	else if (n != -EAGAIN)
		session_close(s);	/* nobody is there to be answered */
}

void
reading_ahead(struct session *s)
{
	uint8_t *scratch = loop_scratch(s->door->worker->loop);
	struct exchange *x = s->exchange;
	ssize_t n;

	if ((s->in != NULL && s->in->end - s->in->start >= READ_AHEAD) ||
	    blocks_are_short(&s->door->worker->blocks, BLOCK_HEAD)) {
		stream_pause(s->stream);
		leaving_mind(x, s->stream);
		return;
	}
	n = stream_recv(s->stream, scratch, READ_AHEAD);
	if (n == -EAGAIN)
		return;
	if (n == 0) {
		s->ended = true;
		stream_pause(s->stream);
		leaving_on_end(x);
	} else if (n < 0) {
		stream_pause(s->stream);
		exchange_on_client_lost(x);
	} else if (!reading_keep(s, scratch, (size_t)n)) {
		stream_pause(s->stream);
		exchange_on_input_dropped(x);
	}
}

/* --- one request after another ----------------------------------------- */

void
reading_next(struct session *s)
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
	session_watch(s);
	if (s->ended)
		session_linger(s, false);
	else
		wait_for_request(s);
}

void
reading_go_on(struct session *s)
{
	reading_begin(s);
	session_watch(s);
	read_kept(s);
}
