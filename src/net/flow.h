/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flow.h - bytes one way, from a source to a sink, no faster than it drains.
 *
 * A flow reads its source, has the bytes sent to the sink, and waits for one
 * of the two, never both:
 *
 *	    read            queued in the sink >= high
 *	source -----> sink  ------------------------->  source is paused
 *	      <----- <= low ----------------------------
 *
 * After some large reads it is bulk: more is read at once, four times `high`
 * while nothing is queued; and where the bytes go on as they are, and `splice`
 * allows it, they go through a pipe (pipe.h) and nobody sees them.  Then the
 * source is paused until the pipe is empty, whatever the marks are.  When
 * little comes, it is as before; and while the loop is busy, no more is moved
 * at once than one read would get.  A flow from a source that was spliced from
 * before begins with a small read, and is bulk if much is known to follow.
 *
 * What is done with the bytes is the `bytes` function's: it sends what it
 * makes of them to the sink.  Without one they go as they are.
 *
 * Each wait has its time: for the source `source_timeout`, which does not run
 * while its throttle holds it up, for the sink `sink_timeout`, counted from the
 * last progress; 0 is without.  Progress of a
 * sink is that the kernel took a byte.
 *
 * The source isn't read while the blocks are short for `use`, which is looked
 * at every 50 ms; when that lasts longer than `sink_timeout`, the flow ends as
 * FLOW_SINK_FAILED with ENOMEM.  What has been read may use the last reserve.
 *
 * Owner:    the caller, who embeds the struct; flow_stop() before source or
 *           sink is closed.
 * Threads:  the loop's.
 * Promise:  `source_done` and `ended` are each called at most once, `ended`
 *           last; neither from flow_start(), flow_push() or flow_stop(), and
 *           not after flow_stop().  `ended` may free the flow; `source_done`
 *           must leave it as it is, but may send, unless the end was carried.
 */
#ifndef PENSTOCK_NET_FLOW_H
#define PENSTOCK_NET_FLOW_H

#include <sys/uio.h>

#include "net/stream.h"

struct flow;

/* What the `bytes` function says of the bytes it was given. */
enum flow_step {
	FLOW_MORE,		/* goes on */
	FLOW_LAST,		/* the message ended here: stop reading */
	FLOW_GONE,		/* the flow was stopped or freed: hands off */
};

/* How a flow ended. */
enum flow_end {
	FLOW_DRAINED,		/* all is with the kernel */
	FLOW_SOURCE_FAILED,	/* reset or other error; `err` says */
	FLOW_SINK_FAILED,	/* `err` says; ENOMEM: no block for it */
	FLOW_SOURCE_LATE,	/* source_timeout */
	FLOW_SINK_LATE,		/* sink_timeout */
};

/*
 * n bytes from the source, in the loop's scratch (and the callee's to change),
 * or n == 0: the source's FIN.  Sends to flow_sink(f) with flow_send().
 */
typedef enum flow_step flow_bytes_fn(struct flow *f, uint8_t *bytes,
    size_t n);

/*
 * How many of the next bytes from the source would go to the sink as they are,
 * no others before, between or instead of them; 0: they must be seen.
 */
typedef uint64_t flow_opaque_fn(struct flow *f);

/* n of them have gone, or are in the pipe; instead of the `bytes` function. */
typedef enum flow_step flow_passed_fn(struct flow *f, size_t n);

/*
 * The source has said its last byte; the sink may still be behind.  The flow
 * has let go of the source: somebody else may read it.
 */
typedef void flow_source_done_fn(struct flow *f);

typedef void flow_ended_fn(struct flow *f, enum flow_end how, int err);

/* Whose bytes they are: what is called for them. */
struct flow_ops {
	flow_bytes_fn		*bytes;		/* or NULL */
	flow_opaque_fn		*opaque;	/* or NULL: none */
	flow_passed_fn		*passed;	/* with it */
	flow_source_done_fn	*source_done;	/* or NULL */
	flow_ended_fn		*ended;
	bool			 any_size;	/* `bytes` takes LOOP_BULK */
};

struct flow_opts {
	const struct flow_ops	*ops;
	struct stream		*source;
	struct stream		*sink;
	struct throttle		*throttle;	/* of the source; or NULL */
	size_t			 high;		/* bytes */
	size_t			 low;
	nsec_t			 source_timeout;
	nsec_t			 sink_timeout;
	enum block_use		 use;
	bool			 carry_end;	/* FIN goes on to sink */
	bool			 splice;	/* if it pays */
};

enum flow_waits {
	FLOW_IDLE,
	FLOW_WAITS_SOURCE,
	FLOW_WAITS_SINK,
	FLOW_WAITS_MEMORY,
};

struct flow {
	struct flow_opts	 opts;
	struct stream_writer	 writer;	/* of the sink */
	struct wheel_timer	 timer;
	struct mail		 later;		/* ends that were found early */
	enum flow_waits		 waits;
	bool			 source_over;
	bool			 fin;		/* it ended with FIN */
	bool			 told;		/* source_done was called */
	bool			 paused;	/* counted as such */
	bool			 taking;	/* in `bytes` or `passed` */
	bool			 drains;	/* read when all has gone */
	uint8_t			 large;		/* more such reads than not */
	int			 err;		/* of the sink */
	nsec_t			 short_since;	/* of memory; 0: it isn't */
	uint64_t		 bytes;		/* read from the source */
	nsec_t			 sink_since;	/* it is waited for; or 0 */
	nsec_t			 sink_time;	/* that it was, before that */
};

/* Not running. */
void flow_init(struct flow *f);

/* Begin to read; *opts is copied, opts->ops not.  0 < high, low <= high. */
void flow_start(struct flow *f, const struct flow_opts *opts);

/*
 * Bytes that were read before the flow began: handled as if they had just
 * come from the source.  As the `bytes` function, says what became of them;
 * FLOW_GONE if a function stopped the flow meanwhile.
 */
enum flow_step flow_push(struct flow *f, uint8_t *bytes, size_t n);

/*
 * The same for a FIN that the source had sent before the flow began.
 */
enum flow_step flow_push_end(struct flow *f);

/*
 * Send to the sink what the bytes have become.  False: the flow is failing,
 * and will say so in `ended`.
 */
bool flow_send(struct flow *f, const struct iovec *iov, int n);

/* Nothing more will come from the source: as if FLOW_LAST had been said. */
void flow_source_end(struct flow *f);

/* Change a wait's time; counts from now. */
void flow_set_source_timeout(struct flow *f, nsec_t timeout);

/* Let go of both streams; harmless if it doesn't run. */
void flow_stop(struct flow *f);

bool flow_is_running(const struct flow *f);

/*
 * How long it waited for its sink, all together, since flow_start(); 0 if it
 * has never been started.
 */
nsec_t flow_sink_time(const struct flow *f);

static inline struct stream *
flow_sink(const struct flow *f)
{
	return f->opts.sink;
}

#endif
