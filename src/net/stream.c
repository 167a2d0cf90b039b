/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.c - one end of a connection; see stream.h.
 *
 * One watch serves both directions.  Reading is wanted from the first resume
 * until the end or until something arrives while the stream is paused: a
 * reader that pauses and resumes at once costs no system call.  Writing is
 * wanted while there is a queue.
 */
#include "net/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "net/pipe.h"
#include "net/sock.h"
#include "net/stream_own.h"
#include "net/throttle.h"

/* Pieces in one write of the queue. */
enum { FLUSH_PIECES = 16 };

static watch_fn	on_ready;
static void	write_failed(struct stream *s, int err);
static bool	enqueue(struct stream *s, const struct iovec *iov, int n,
		    size_t given, enum block_use use);
static throttle_fn	on_allowed;

/* --- life -------------------------------------------------------------- */

struct stream_pool *
stream_pool_new(struct loop *loop, size_t max, struct stream_totals *totals)
{
	struct stream_pool *p = xcalloc(1, sizeof *p);

	p->kind = WATCH_KIND(loop, on_ready);
	p->totals = totals;
	SLAB_INIT(&p->slab, struct stream, max);
	SLAB_INIT(&p->queues, struct queue, max);
	return p;
}

uint64_t
stream_pool_memory(uint64_t max)
{
	return sizeof(struct stream_pool) +
	    slab_memory(sizeof(struct stream), max) +
	    slab_memory(sizeof(struct queue), max);
}

void
stream_pool_free(struct stream_pool **p)
{
	if (*p == NULL)
		return;
	slab_fini(&(*p)->queues);
	slab_fini(&(*p)->slab);
	free(*p);
	*p = NULL;
}

void
stream_pool_set_pipes(struct stream_pool *p, struct pipes *pipes)
{
	p->pipes = pipes;
}

void
stream_pool_set_hangups(struct stream_pool *p, struct hangups *hangups)
{
	p->hangups = hangups;
}

struct stream *
stream_new(struct stream_pool *p, int fd)
{
	struct stream *s = slab_take(&p->slab);

	if (s == NULL)
		return NULL;
	*s = (struct stream){ .paused = true };
	watch_init(&s->watch, &p->kind, fd);
	stat_increment(&p->totals->open);
	return s;
}

/* All but the descriptor, which is returned. */
static int
dissolve(struct stream **stream)
{
	struct stream *s = *stream;
	struct stream_pool *p = stream_pool_of(s);
	int fd = watch_fd(&s->watch);

	*stream = NULL;
	if (UNLIKELY(s->minded))
		stream_mind_no_more(s);
	watch_stop(&s->watch);
	stream_drop_queue(s);
	if (p->current == s)
		p->current = NULL;
	stat_decrement(&p->totals->open);
	slab_give(&p->slab, s);
	return fd;
}

HOT void
stream_close(struct stream **s)
{
	if (*s != NULL)
		close(dissolve(s));
}

void
stream_reset(struct stream **s)
{
	if (*s != NULL)
		sock_reset(dissolve(s));
}

/* --- readiness --------------------------------------------------------- */

static void
unwant(struct stream *s, unsigned events)
{
	watch_want(&s->watch, watch_wanted(&s->watch) & ~events);
}

static bool
may_read(const struct stream *s)
{
	if (s->paused || s->reader == NULL)
		return false;
	return LIKELY(s->throttle == NULL) || throttle_is_open(s->throttle);
}

static HOT void
on_readable(struct stream *s)
{
	if (!may_read(s))
		unwant(s, WATCH_READ);
	else
		s->reader(s->reader_arg);
}

static void
on_writable(struct stream *s)
{
	int err = (int)s->write_err;

	if (err == 0)
		err = stream_flush(s);
	if (s->writer != NULL && (err != 0 || stream_queued(s) <= s->low))
		s->writer->fn(s->writer, err);
}

/* Either function may close the stream: then `current` is no longer it. */
static HOT void
on_ready(struct watch *w, unsigned ready)
{
	struct stream *s = container_of(w, struct stream, watch);
	struct stream_pool *p = stream_pool_of(s);

	p->current = s;
	if (UNLIKELY(ready & WATCH_ERROR)) {
		s->read_err = EIO;
		write_failed(s, EIO);
	}
	if (ready & WATCH_WRITE)
		on_writable(s);
	if (ready & WATCH_READ && p->current == s)
		on_readable(s);
	p->current = NULL;
}

/* --- reading ----------------------------------------------------------- */

void
stream_set_reader(struct stream *s, stream_read_fn *fn, void *arg)
{
	s->reader = fn;
	s->reader_arg = arg;
	if (fn != NULL)
		stream_resume(s);
	else
		stream_pause(s);
}

void
stream_pause(struct stream *s)
{
	s->paused = true;
}

void
stream_resume(struct stream *s)
{
	s->paused = false;
	if (!s->eof && s->read_err == 0)
		stream_want(s, WATCH_READ);
}

bool
stream_is_paused(const struct stream *s)
{
	return s->paused;
}

ssize_t
stream_read_failed(struct stream *s, int err)
{
	s->read_err = (unsigned)err & ERR_MASK;
	unwant(s, WATCH_READ);
	return -err;
}

/* Nothing came: n is 0, or -errno. */
static ssize_t
came_to_nothing(struct stream *s, ssize_t n)
{
	if (n < 0)
		return n == -EAGAIN ? n : stream_read_failed(s, (int)-n);
	/* A reset that a write was told of looks like an end here. */
	if (s->write_err == ECONNRESET)
		return stream_read_failed(s, ECONNRESET);
	s->eof = true;
	unwant(s, WATCH_READ);
	return 0;
}

static inline ssize_t
receive(struct stream *s, void *to, size_t size)
{
	ssize_t n = sock_recv(watch_fd(&s->watch), to, size);

	if (UNLIKELY(n <= 0))
		return came_to_nothing(s, n);
	s->filled = (size_t)n == size;
	stat_add(&stream_pool_of(s)->totals->received, (uint64_t)n);
	return n;
}

static ssize_t
peek(struct stream *s, void *to, size_t size)
{
	ssize_t n = sock_peek(watch_fd(&s->watch), to, size);

	s->throttle->shown = n > 0 ? (size_t)n : 0;
	return n > 0 ? n : came_to_nothing(s, n);
}

/* As much as the throttle lets it. */
static APART ssize_t
receive_slowly(struct stream *s, void *to, size_t size)
{
	size_t most;
	ssize_t n;

	if (s->throttle->peeks)
		return peek(s, to, size);
	most = throttle_take(s->throttle, size);
	if (most == 0) {
		unwant(s, WATCH_READ);
		return -EAGAIN;
	}
	n = receive(s, to, most);
	throttle_came(s->throttle, most, n);
	return n;
}

HOT ssize_t
stream_recv(struct stream *s, void *to, size_t size)
{
	ASSERT(size > 0);
	if (s->read_err != 0)
		return -(ssize_t)s->read_err;
	return LIKELY(s->throttle == NULL) ? receive(s, to, size) :
	    receive_slowly(s, to, size);
}

/* They are there; if not, the next read tells why. */
void
stream_take_shown(struct stream *s, size_t rest)
{
	struct throttle *t = s->throttle;
	ssize_t n = 1;

	ASSERT(t != NULL && rest <= t->shown);
	for (; t->shown > rest && n > 0; t->shown -= (size_t)MAX(n, 0))
		n = receive(s, loop_scratch_out(stream_loop(s)),
		    MIN(t->shown - rest, (size_t)LOOP_SCRATCH));
	t->shown = 0;
}

bool
stream_seems_quiet(const struct stream *s)
{
	return !s->eof && s->read_err == 0 && s->write_err == 0 &&
	    !watch_is_due(&s->watch);
}

bool
stream_took_all(const struct stream *s)
{
	return !s->filled;
}

bool
stream_was_spliced(struct stream *s)
{
	if (LIKELY(!s->spliced))
		return false;
	s->spliced = false;
	return true;
}

APART bool
stream_is_quiet(const struct stream *s)
{
	uint8_t byte;

	if (!stream_seems_quiet(s))
		return false;
	return recv(watch_fd(&s->watch), &byte, 1, MSG_PEEK | MSG_DONTWAIT) ==
	    -1 && errno == EAGAIN;
}

/* --- throttling --------------------------------------------------------- */

APART void
stream_set_throttle(struct stream *s, struct throttle *t)
{
	if (s->throttle == t)
		return;
	if (s->throttle != NULL) {
		throttle_end(s->throttle);
		s->throttle = NULL;
		if (!s->paused)
			stream_resume(s);
	}
	if (t == NULL)
		return;
	ASSERT(t->stream == NULL);
	t->stream = s;
	t->due = on_allowed;
	t->waiting = &stream_pool_of(s)->totals->throttled;
	throttle_begin(t, stream_loop(s));
	s->throttle = t;
}

static void
on_allowed(struct throttle *t)
{
	struct stream *s = t->stream;

	if (throttle_is_open(t) && !s->paused)
		stream_resume(s);
}

nsec_t
stream_held(const struct stream *s)
{
	return s->throttle == NULL ? 0 : throttle_held(s->throttle);
}

/* --- writing ----------------------------------------------------------- */

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
	if (s->queue == NULL) {
		given = give(s, iov, n);
		if (given < 0) {
			write_failed(s, (int)-given);
			return (int)given;
		}
	}
	if ((size_t)given == length)
		return 0;
	if (!enqueue(s, iov, n, (size_t)given, use)) {
		write_failed(s, ENOMEM);
		return -ENOMEM;
	}
	stream_want(s, WATCH_WRITE);
	return 0;
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

/* An empty queue, after a failure, is dropped by write_failed(). */
static bool
enqueue(struct stream *s, const struct iovec *iov, int n, size_t given,
    enum block_use use)
{
	return stream_make_queue(s) &&
	    buf_append(&s->queue->buf, iov, n, given, use);
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
		write_failed(s, -err);
		return -err;
	}
	if (stream_queued(s) > 0)
		return 0;
	stream_drop_queue(s);
	unwant(s, WATCH_WRITE);
	if (s->ending)
		stream_end(s);
	return 0;
}

static void
write_failed(struct stream *s, int err)
{
	if (s->write_err == 0)
		s->write_err = (unsigned)err & ERR_MASK;
	stream_drop_queue(s);
	unwant(s, WATCH_WRITE);
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

	return q == NULL ? 0 :
	    q->buf.length + (q->pipe != NULL ? q->pipe->held : 0);
}

void
stream_end(struct stream *s)
{
	s->ending = true;
	if (s->queue != NULL || s->write_err != 0 || s->ended)
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

/* --- facts ------------------------------------------------------------- */

struct loop *
stream_loop(const struct stream *s)
{
	return stream_pool_of(s)->kind.loop;
}

void
stream_peer(const struct stream *s, struct addr *out)
{
	sock_peer(watch_fd(&s->watch), out);
}
