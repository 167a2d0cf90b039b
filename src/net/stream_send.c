/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_send.c - bytes out of a stream, and what must wait for that; see
 * stream.h.
 */
#include <errno.h>
#include <sys/socket.h>

#include "net/pipe.h"
#include "net/sock.h"
#include "net/stream_own.h"

/* Pieces in one write of the queue. */
enum { FLUSH_PIECES = 16 };

void
stream_set_writer(struct stream *s, struct stream_writer *w, size_t low)
{
	s->writer = w;
	if (w != NULL)
		w->sent_at = 0;
	s->low = (uint32_t)MIN(low, UINT32_MAX);
}

/* The bytes that the kernel took, which may be none; or -errno. */
static inline ssize_t
give(struct stream *s, const struct iovec *iov, int n)
{
	ssize_t given = sock_send(watch_fd(&s->watch), iov, n);

	if (given < 0)
		return given == -EAGAIN ? 0 : given;
	stream_count_given(s, (size_t)given);
	return given;
}

static size_t
length_of(const struct iovec *iov, int n)
{
	size_t length = 0;

	for (int i = 0; i < n; i++)
		length += iov[i].iov_len;
	return length;
}

bool
stream_make_queue(struct stream *s)
{
	struct stream_pool *p = stream_pool_of(s);

	if (s->queue != NULL)
		return true;
	s->queue = slab_take(&p->queues);
	if (s->queue == NULL)
		return false;
	buf_init(&s->queue->buf, loop_blocks(p->kind.loop));
	s->queue->pipe = NULL;
	return true;
}

/* An empty queue, after a failure, is dropped by stream_write_failed(). */
static bool
enqueue(struct stream *s, const struct iovec *iov, int n, size_t given,
    enum block_use use)
{
	return stream_make_queue(s) &&
	    buf_append(&s->queue->buf, iov, n, given, use);
}

/* The kernel took `given` bytes, or that is -errno: what of the rest? */
static APART int
keep_rest(struct stream *s, const struct iovec *iov, int n, ssize_t given,
    enum block_use use)
{
	if (given >= 0 && !enqueue(s, iov, n, (size_t)given, use))
		given = -ENOMEM;
	if (given < 0) {
		stream_write_failed(s, (int)-given);
		return (int)given;
	}
	stream_want(s, WATCH_WRITE);
	return 0;
}

HOT int
stream_send(struct stream *s, const struct iovec *iov, int n,
    enum block_use use)
{
	size_t length = length_of(iov, n);
	ssize_t given = 0;

	ASSERT(!s->ending);
	if (s->write_err != 0)
		return -(int)s->write_err;
	if (length == 0)
		return 0;
	if (s->out != 0)
		batch_send_now(stream_pool_of(s)->batch, s);
	if (LIKELY(s->queue == NULL)) {
		if (stream_pool_of(s)->batch != NULL &&
		    batch_send(s, iov, n, length, use))
			return 0;
		given = give(s, iov, n);
		if (LIKELY(given == (ssize_t)length))
			return 0;
	}
	return keep_rest(s, iov, n, given, use);
}

HOT int
stream_sent_batched(struct stream *s, const struct iovec *iov, ssize_t given,
    enum block_use use)
{
	if (given == -EAGAIN)
		given = 0;
	if (given > 0)
		stream_count_given(s, (size_t)given);
	if (UNLIKELY(given != (ssize_t)iov->iov_len))
		return -keep_rest(s, iov, 1, given, use);
	if (UNLIKELY(s->ending))
		stream_end(s);
	return 0;
}

void
stream_drop_queue(struct stream *s)
{
	struct stream_pool *p = stream_pool_of(s);

	if (s->queue == NULL)
		return;
	buf_clear(&s->queue->buf);
	pipes_give(p->pipes, &s->queue->pipe);
	slab_give(&p->queues, s->queue);
	s->queue = NULL;
}

/* Write from the blocks once; 0 or a negative errno. */
static int
flush_blocks(struct stream *s)
{
	struct iovec iov[FLUSH_PIECES];
	int n = buf_peek(&s->queue->buf, iov, FLUSH_PIECES);
	ssize_t given = n > 0 ? give(s, iov, n) : 0;

	if (given < 0)
		return (int)given;
	buf_consume(&s->queue->buf, (size_t)given);
	return 0;
}

int
stream_flush(struct stream *s)
{
	int err = 0;

	if (s->queue != NULL && s->queue->pipe != NULL)
		err = stream_flush_pipe(s);
	if (err == 0 && s->queue != NULL && s->queue->pipe == NULL)
		err = flush_blocks(s);
	if (err != 0) {
		stream_write_failed(s, -err);
		return -err;
	}
	if (stream_queued(s) > 0)
		return 0;
	stream_drop_queue(s);
	stream_unwant(s, WATCH_WRITE);
	if (s->ending)
		stream_end(s);
	return 0;
}

void
stream_write_failed(struct stream *s, int err)
{
	if (s->out != 0)
		batch_drop_out(stream_pool_of(s)->batch, s);
	if (s->write_err == 0)
		s->write_err = (unsigned)err & ERR_MASK;
	stream_drop_queue(s);
	stream_unwant(s, WATCH_WRITE);
}

void
stream_set_awaited(struct stream *s, bool awaited)
{
	stat_add(&stream_pool_of(s)->totals->awaited, awaited ? 1 : UINT64_MAX);
}

size_t
stream_queued(const struct stream *s)
{
	const struct queue *q = s->queue;

	if (LIKELY(q == NULL))
		return s->out == 0 ? 0 :
		    batch_unsent(stream_pool_of(s)->batch, s);
	return q->buf.length + (q->pipe != NULL ? q->pipe->held : 0);
}

void
stream_end(struct stream *s)
{
	s->ending = true;
	if (stream_queued(s) > 0 || s->write_err != 0 || s->ended)
		return;
	/* Fails only when there is no connection any more. */
	(void)shutdown(watch_fd(&s->watch), SHUT_WR);
	s->ended = true;
}

bool
stream_has_ended(const struct stream *s)
{
	return s->ended;
}

int
stream_write_error(const struct stream *s)
{
	return -(int)s->write_err;
}

HOT void
stream_tell_writer(struct stream *s, int err)
{
	if (s->writer != NULL && (err != 0 || stream_queued(s) <= s->low))
		s->writer->fn(s->writer, err);
}
