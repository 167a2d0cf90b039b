/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_splice.c - bytes from one stream to another inside the kernel; see
 * stream.h.
 */
#include <errno.h>

#include "net/pipe.h"
#include "net/stream_own.h"
#include "net/throttle.h"

bool
stream_can_splice(const struct stream *from, const struct stream *to)
{
	const struct pipes *pipes = stream_pool_of(to)->pipes;
	bool has = to->queue != NULL && to->queue->pipe != NULL;

	return pipes != NULL && (has || pipes_are_left(pipes)) &&
	    !from->unspliced && from->in == 0 && !to->unspliced &&
	    to->write_err == 0;
}

int
stream_flush_pipe(struct stream *s)
{
	struct stream_pool *p = stream_pool_of(s);
	struct queue *q = s->queue;
	ssize_t given = pipes_drain(p->pipes, &q->pipe, watch_fd(&s->watch));

	if (given > 0)
		stream_count_given(s, (size_t)given);
	if (given != -EINVAL && given != -ENOSYS)
		return given < 0 ? (int)given : 0;
	s->unspliced = true;
	return pipes_unload(p->pipes, &q->pipe, &q->buf,
	    loop_scratch(p->kind.loop), LOOP_SCRATCH);
}

/* Fill a pipe from the one, as the queue of the other; the bytes, or -errno. */
static ssize_t
fill_pipe(struct stream *from, struct stream *to, size_t size)
{
	ssize_t n = pipes_fill(stream_pool_of(to)->pipes, &to->queue->pipe,
	    watch_fd(&from->watch), size);

	if (n > 0) {
		/* Less than asked for may be all that the pipe had room for. */
		from->filled = from->large = true;
		from->spliced = true;
		stat_add(&stream_pool_of(from)->totals->received, (uint64_t)n);
		return n;
	}
	stream_drop_queue(to);
	if (n != -EINVAL && n != -ENOSYS)
		return n < 0 ? stream_read_failed(from, (int)-n) : 0;
	from->unspliced = true;
	return 0;
}

ssize_t
stream_splice(struct stream *from, struct stream *to, size_t size)
{
	struct throttle *t = from->throttle;
	ssize_t n;

	ASSERT(to->queue == NULL && to->write_err == 0 && !to->ending);
	if (from->read_err != 0)
		return -(ssize_t)from->read_err;
	if (t != NULL)
		size = throttle_take(t, size);
	if (size == 0)
		return 0;
	n = stream_make_queue(to) ? fill_pipe(from, to, size) : 0;
	if (t != NULL)
		throttle_came(t, size, n);
	if (n > 0 && stream_flush(to) == 0 && to->queue != NULL)
		stream_want(to, WATCH_WRITE);
	return n;
}
