/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.h - one end of a connection: bytes in, bytes out, never blocking.
 *
 * The only file that reads from and writes to sockets.  Whoever owns a stream
 * sees no descriptor; TLS would be another set of the operations here.
 *
 * Reading is pulled: when bytes may be there the reader's function is called,
 * and calls stream_recv() once.  What remains in the kernel is reported in
 * the next turn, so one busy stream can't starve the others.  A reader that
 * wants nothing now calls stream_pause(); it is lazy, and costs nothing if
 * nothing arrives.
 *
 * Writing is tried at once.  What the kernel doesn't take is queued in
 * blocks and written when it will; the writer's function is told when the
 * queue has fallen to `low` (and when writing failed).  Who writes looks at
 * stream_queued() and stops at its high watermark.
 *
 * Bytes that nobody looks at can go from one stream to another inside the
 * kernel: stream_splice().  What the other doesn't take at once is queued too,
 * but in a pipe.
 *
 * A stream with a throttle (throttle.h) is read no faster than that lets it:
 * while nothing may be read, the reader isn't called.
 *
 * Reader and writer are set apart since in a tunnel they are two flows.
 *
 * Owner:    stream_new() gives a handle to the caller, who ends it with
 *           stream_close().
 * Threads:  the loop's.
 * Promise:  neither function runs inside stream_send(), stream_recv() or
 *           stream_close(), nor after the latter.
 * Errors:   as negative errno.  After one of reading only stream_close() makes
 *           sense.  After one of writing what has arrived can still be
 *           received: a server may answer and close without having read all.
 */
#ifndef PENSTOCK_NET_STREAM_H
#define PENSTOCK_NET_STREAM_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/block.h"
#include "base/buf.h"
#include "base/stats.h"
#include "net/loop.h"

struct batch;
struct hangup;
struct hangups;
struct pipes;
struct stream;
struct stream_writer;
struct throttle;

/* Bytes, an end or an error are there to be received. */
typedef void stream_read_fn(void *arg);

/*
 * Bytes left the queue and it is at `low` or below (err 0), so more than once
 * on its way to empty; or writing failed (err is a positive errno).
 */
typedef void stream_write_fn(struct stream_writer *w, int err);

/* Embedded in who writes; stays where it is as long as it is set. */
struct stream_writer {
	stream_write_fn	*fn;		/* the owner's to set */
	nsec_t		 sent_at;	/* when the kernel last took a byte,
					   by the loop's time; 0: not yet */
};

/* What all streams of a worker share. */
struct stream_totals {
	counter_t	received;	/* bytes */
	counter_t	sent;
	counter_t	open;
	counter_t	awaited;	/* see stream_set_awaited() */
	counter_t	throttled;	/* that wait for their throttle */
};

struct stream_pool;

/*
 * Where a loop's streams come from: at most `max` of them.  `totals` is
 * counted into; the caller's.
 */
struct stream_pool *stream_pool_new(struct loop *loop, size_t max,
    struct stream_totals *totals);
/* Most bytes that it takes for so many streams, but for what is queued. */
uint64_t stream_pool_memory(uint64_t max);
void stream_pool_free(struct stream_pool **p);

/* What stream_splice() to its streams uses; the caller's.  Without: nothing. */
void stream_pool_set_pipes(struct stream_pool *p, struct pipes *pipes);

/* What stream_mind() of its streams uses; the caller's.  Without: nothing. */
void stream_pool_set_hangups(struct stream_pool *p, struct hangups *hangups);

/* Their small reads and writes go by it; the caller's.  Without: one by one. */
void stream_pool_set_batch(struct stream_pool *p, struct batch *batch);

/*
 * A stream over a connected, non-blocking socket, which it owns from now on.
 * NULL when there is no memory; then the socket stays the caller's.  It
 * starts paused, without reader and writer.
 */
struct stream *stream_new(struct stream_pool *p, int fd) MUST_USE;

/* Close at once; what is queued is lost.  Clears *s; NULL in it is fine. */
void stream_close(struct stream **s);

/*
 * As above, but the other end sees a reset: never a clean end.  Unix sockets
 * have no reset; there it is the same.
 */
void stream_reset(struct stream **s);

/* Who reads from now on (and wants to), or NULL. */
void stream_set_reader(struct stream *s, stream_read_fn *fn, void *arg);

/* Who writes from now on, or NULL; `low` is in bytes.  w->sent_at is 0 then. */
void stream_set_writer(struct stream *s, struct stream_writer *w, size_t low);

/*
 * Up to `size` bytes; 0 for the other end's FIN; -EAGAIN for nothing after
 * all, or nothing that a throttle allows; or another negative errno.  Never
 * called twice for one readiness.
 */
ssize_t stream_recv(struct stream *s, void *to, size_t size) MUST_USE;

/*
 * Read no more than t allows from now on, or NULL: whatever comes.  Before t or
 * the stream ends it must be taken away again.
 */
void stream_set_throttle(struct stream *s, struct throttle *t);

/*
 * Its throttle peeks, so that what was read is still there: take it, but for
 * the last `rest` bytes.  Writes to loop_scratch_out().
 */
void stream_take_shown(struct stream *s, size_t rest);

/* When reading was last held up by its throttle: now, if it is; 0: never. */
nsec_t stream_held(const struct stream *s);

/* Call the reader no more, or again; harmless twice. */
void stream_pause(struct stream *s);
void stream_resume(struct stream *s);
bool stream_is_paused(const struct stream *s);

/*
 * Send n pieces, in order, after what is queued.  What isn't taken is copied
 * and queued for `use`.  0; -ENOMEM when it couldn't be queued (the stream is
 * then broken: bytes are missing); -EPIPE, -ECONNRESET...
 */
int stream_send(struct stream *s, const struct iovec *iov, int n,
    enum block_use use) MUST_USE;

/*
 * Could stream_splice() move something, once nothing is queued in `to`?  Not
 * if one of the two has been found unable, nor when no pipe is left.
 */
bool stream_can_splice(const struct stream *from, const struct stream *to);

/*
 * Instead of stream_recv() and stream_send(), while that is so and nothing is
 * queued: move up to `size` bytes; how many is returned.  0: none, for whatever
 * reason, and stream_recv() will tell.  Or the negative errno of reading;
 * stream_write_error(to) has that of writing.
 */
ssize_t stream_splice(struct stream *from, struct stream *to, size_t size)
    MUST_USE;

/*
 * Count that a source isn't read because this stream is slow to take bytes;
 * or no more.  Who says the one says the other before the stream closes.
 */
void stream_set_awaited(struct stream *s, bool awaited);

/* Bytes queued in it, in blocks or in a pipe. */
size_t stream_queued(const struct stream *s);

/* Send FIN once the queue is empty; nothing may be sent after. */
void stream_end(struct stream *s);

/* FIN was asked for, and has been given to the kernel. */
bool stream_has_ended(const struct stream *s);

/*
 * Idle for long: may it be used again?  False when the other end closed it,
 * or bytes lie in it that nobody asked for.  One system call.
 */
bool stream_is_quiet(const struct stream *s);

/*
 * The same without a system call: false if the kernel had said in this turn
 * already that it isn't quiet, and the reader was not called yet.
 */
bool stream_seems_quiet(const struct stream *s);

/*
 * Did the last read take all that was there?  It did if it got less than it
 * asked for, and then nothing has come since but what a poll will tell.  Of a
 * splice that isn't known: false.
 */
bool stream_took_all(const struct stream *s);

/* Has anything from it been spliced since this was asked last? */
bool stream_was_spliced(struct stream *s);

/*
 * Tell h of the other end's FIN, and when the connection breaks, whether it is
 * read or not: see hangup.h.  Until the stream closes; or no more, which is
 * harmless if it wasn't.
 */
void stream_mind(struct stream *s, struct hangup *h);
void stream_mind_no_more(struct stream *s);

/* Is it?  Asks the kernel; and if so, reading and writing are over. */
bool stream_is_broken(struct stream *s);

/*
 * The bytes that came and were not read: behind a FIN all there will be.  False
 * if the kernel can't tell.  And how long ago the last came, if it can; or
 * NSEC_NEVER.
 */
bool stream_unread(const struct stream *s, size_t *n) MUST_USE;
nsec_t stream_silence(const struct stream *s);

/* 0, or why writing failed, as a negative errno; kept. */
int stream_write_error(const struct stream *s);

struct loop *stream_loop(const struct stream *s);

struct addr;
/* The address at the other end; of a unix one without its path. */
void stream_peer(const struct stream *s, struct addr *out);

#endif
