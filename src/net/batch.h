/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batch.h - the reads of one turn of the loop in one system call, and the
 * writes in another.
 *
 *	poll -> streams that are ready are gathered -> ring_recv
 *	     -> their readers are called, and what they send is gathered
 *	     -> timers, mail -> ring_send -> writers are told -> poll
 *
 * So it is for streams of which little is read, when two or more are ready.
 * One that is alone in its turn, or of which much came last, reads and sends
 * by itself, at once.  Nobody above notices: a reader calls stream_recv() as
 * always, and what was sent counts as queued until the end of the turn.
 *
 * What was read of a stream that is paused before its turn comes waits in its
 * place here until it is resumed; of such places there are BATCH_MOST.
 *
 * Owner:    batch_new() gives a handle to the caller, who frees it after all
 *           streams of the pools that it was given to.
 * Threads:  the loop's; the figures may be read by any.
 */
#ifndef PENSTOCK_NET_BATCH_H
#define PENSTOCK_NET_BATCH_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/block.h"
#include "base/stats.h"
#include "net/loop.h"

struct batch;
struct stream;

/* More at once saves no more. */
enum { BATCH_MOST = 32 };

struct batch_stats {
	counter_t	calls;		/* of the kernel, for many each */
	counter_t	done;		/* reads and writes by those */
	counter_t	works;		/* a gauge: 0 or 1 */
};

/* NULL if there is no ring for it: *err is the positive errno. */
struct batch *batch_new(struct loop *loop, int *err) MUST_USE;
/* Most bytes that one takes. */
uint64_t batch_memory(void);
void batch_free(struct batch **b);

const struct batch_stats *batch_stats(const struct batch *b);

/* --- for streams --- */

/* So much is read of a stream at once; and gathered of what one sends. */
enum { BATCH_PIECE = 4096, BATCH_SEND = 8192 };

/*
 * Its reader is called later in this turn, with what will have been read then.
 * False: there is no place for that.
 */
bool batch_gather(struct batch *b, struct stream *s);

/* Has that been read, s->in being set?  And how much of it is left. */
bool batch_has_read(const struct batch *b, const struct stream *s);
size_t batch_left(const struct batch *b, const struct stream *s);

/* If reading failed instead, the positive errno: the kernel says it once. */
int batch_error(const struct batch *b, const struct stream *s);

/* As sock_recv() and sock_peek(), from what has been read. */
ssize_t batch_take(struct batch *b, struct stream *s, void *to, size_t size);
ssize_t batch_show(const struct batch *b, const struct stream *s, void *to,
    size_t size);

/* Call the readers of those again that may read what was read. */
void batch_read_again(struct batch *b);

/* Send it at the end of the turn.  False: it must be sent at once. */
bool batch_send(struct stream *s, const struct iovec *iov, int n,
    size_t length, enum block_use use);

/* Bytes of that, s->out being set.  And: send them now; or never. */
size_t batch_unsent(const struct batch *b, const struct stream *s);
void batch_send_now(struct batch *b, struct stream *s);
void batch_drop_out(struct batch *b, struct stream *s);

/* The stream closes; what it was to send is tried first, or is lost. */
void batch_forget(struct batch *b, struct stream *s, bool sends);

#endif
