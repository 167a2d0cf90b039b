/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_own.h - what a stream consists of; for stream.c and stream_*.c alone.
 *
 * Threads:  the loop's.
 */
#ifndef PENSTOCK_NET_STREAM_OWN_H
#define PENSTOCK_NET_STREAM_OWN_H

#include <assert.h>

#include "base/slab.h"
#include "net/batch.h"
#include "net/stream.h"
#include "net/throttle.h"

/* No errno is larger: see MAX_ERRNO in the kernel. */
enum { ERR_MASK = 4095 };

/* What waits: first that in the pipe, if there is one, then the blocks. */
struct queue {
	struct buf		 buf;
	struct pipe		*pipe;
};

struct stream {
	struct watch		 watch;
	stream_read_fn		*reader;
	void			*reader_arg;
	struct stream_writer	*writer;
	struct queue		*queue;		/* NULL: empty */
	struct throttle		*throttle;	/* or NULL */
	uint32_t		 low;
	bool			 filled;	/* by the last read: there may
						   be more */
	bool			 large;		/* much came last */
	uint8_t			 in;		/* its places in the batch, */
	uint8_t			 out;		/* from 1; 0: none */
	unsigned		 read_err : 12;	/* positive errno */
	unsigned		 write_err : 12;
	bool			 paused : 1;
	bool			 eof : 1;	/* their FIN was received */
	bool			 unspliced : 1;	/* it can't be */
	bool			 spliced : 1;	/* since somebody asked */
	bool			 ending : 1;	/* our FIN is wanted */
	bool			 ended : 1;	/* and sent */
	bool			 minded : 1;	/* told of by hangups */
};

/* There may be a hundred thousand of them, most idle. */
static_assert(sizeof(struct stream) <= 104, "struct stream has grown");

struct stream_pool {
	struct watch_kind	 kind;		/* of its streams' watches */
	struct stream_totals	*totals;
	struct stream		*current;	/* being called, if alive */
	struct slab		 slab;
	struct slab		 queues;	/* of streams that have one */
	struct pipes		*pipes;		/* or NULL */
	struct hangups		*hangups;	/* or NULL */
	struct batch		*batch;		/* or NULL */
};

static inline struct stream_pool *
stream_pool_of(const struct stream *s)
{
	return container_of(watch_kind(&s->watch), struct stream_pool, kind);
}

static inline void
stream_want(struct stream *s, unsigned events)
{
	unsigned wanted = watch_wanted(&s->watch);

	if ((wanted & events) != events)
		watch_want(&s->watch, wanted | events);
}

/* The kernel took that much. */
static inline void
stream_count_given(struct stream *s, size_t given)
{
	struct stream_pool *p = stream_pool_of(s);

	if (s->writer != NULL)
		s->writer->sent_at = loop_now(p->kind.loop);
	stat_add(&p->totals->sent, given);
}

/* Reading is over: keeps the positive errno, and returns it negative. */
ssize_t stream_read_failed(struct stream *s, int err);

/* An empty queue, if there is none; false without memory. */
bool stream_make_queue(struct stream *s);
void stream_drop_queue(struct stream *s);

/* Write what is queued; 0 or a positive errno, which is kept. */
int stream_flush(struct stream *s);

/* Write from the pipe, which there is; 0 or a negative errno. */
int stream_flush_pipe(struct stream *s);

static inline bool
stream_may_read(const struct stream *s)
{
	if (s->paused || s->reader == NULL)
		return false;
	return LIKELY(s->throttle == NULL) || throttle_is_open(s->throttle);
}

static inline void
stream_unwant(struct stream *s, unsigned events)
{
	watch_want(&s->watch, watch_wanted(&s->watch) & ~events);
}

/*
 * Of what was gathered to be sent, the kernel took `given` bytes, or that is
 * -errno: 0, or a positive errno, which is kept.  And: the writer is told.
 */
int stream_sent_batched(struct stream *s, const struct iovec *iov,
    ssize_t given, enum block_use use);
void stream_tell_writer(struct stream *s, int err);

/* Keeps the positive errno; what was queued is lost. */
void stream_write_failed(struct stream *s, int err);

#endif
