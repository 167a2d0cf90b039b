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

static watch_fn	on_ready;
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

void
stream_pool_set_batch(struct stream_pool *p, struct batch *batch)
{
	p->batch = batch;
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
dissolve(struct stream **stream, bool sends)
{
	struct stream *s = *stream;
	struct stream_pool *p = stream_pool_of(s);
	int fd = watch_fd(&s->watch);

	*stream = NULL;
	if (UNLIKELY(s->minded))
		stream_mind_no_more(s);
	if ((s->in | s->out) != 0)
		batch_forget(p->batch, s, sends);
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
		close(dissolve(s, true));
}

void
stream_reset(struct stream **s)
{
	if (*s != NULL)
		sock_reset(dissolve(s, false));
}

/* --- readiness --------------------------------------------------------- */

static HOT void
on_readable(struct stream *s)
{
	struct batch *b = stream_pool_of(s)->batch;

	if (!stream_may_read(s))
		stream_unwant(s, WATCH_READ);
	else if (b == NULL || s->large || s->throttle != NULL ||
	    !batch_gather(b, s))
		s->reader(s->reader_arg);
}

static void
on_writable(struct stream *s)
{
	int err = (int)s->write_err;

	if (err == 0)
		err = stream_flush(s);
	stream_tell_writer(s, err);
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
		stream_write_failed(s, EIO);
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
	if (UNLIKELY(s->in != 0) && batch_has_read(stream_pool_of(s)->batch, s))
		batch_read_again(stream_pool_of(s)->batch);
	/* It isn't wanted any more after an end. */
	if ((watch_wanted(&s->watch) & WATCH_READ) == 0 && !s->eof &&
	    s->read_err == 0)
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
	stream_unwant(s, WATCH_READ);
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
	stream_unwant(s, WATCH_READ);
	return 0;
}

/* From the batch, if it has read some; from the kernel otherwise. */
static inline ssize_t
receive_some(struct stream *s, void *to, size_t size)
{
	struct batch *b = stream_pool_of(s)->batch;
	ssize_t n;

	if (UNLIKELY(s->in != 0) && batch_has_read(b, s))
		return batch_take(b, s, to, size);
	n = sock_recv(watch_fd(&s->watch), to, size);
	s->filled = n == (ssize_t)size;
	s->large = n >= BATCH_PIECE;
	return n;
}

static inline ssize_t
receive(struct stream *s, void *to, size_t size)
{
	ssize_t n = receive_some(s, to, size);

	if (UNLIKELY(n <= 0))
		return came_to_nothing(s, n);
	stat_add(&stream_pool_of(s)->totals->received, (uint64_t)n);
	return n;
}

static ssize_t
peek(struct stream *s, void *to, size_t size)
{
	struct batch *b = stream_pool_of(s)->batch;
	ssize_t n = s->in != 0 && batch_has_read(b, s) ?
	    batch_show(b, s, to, size) :
	    sock_peek(watch_fd(&s->watch), to, size);

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
		stream_unwant(s, WATCH_READ);
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
	    s->in == 0 && !watch_is_due(&s->watch);
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
