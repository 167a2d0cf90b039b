/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flow.c - bytes one way; see flow.h.
 *
 * What is found in a callback of the loop is acted on there; what is found
 * inside flow_push(), flow_source_end() or by a `bytes` function is left to
 * the loop's `later` list.  Whichever way, `ended` comes last, since it may
 * free the flow.
 *
 * on_readable() is the one place that decides how bytes are moved.
 */
#include "net/flow.h"

#include <assert.h>
#include <errno.h>

#include "net/pipe.h"
#include "net/stream.h"

#define SHORT_RETRY	(50 * NSEC_PER_MSEC)

/* Less is not asked of the kernel, however full the sink's queue is. */
enum { READ_MIN = 4096 };

/*
 * A flow is bulk when so many reads more have got much than have got little,
 * of the last ones; or one has, and BULK_SURE is known to follow.  A splice of
 * little costs more than a copy.
 */
enum { BULK_AFTER = 4, BULK_MOST = 8, BULK_LARGE = 32768, BULK_LITTLE = 16384 };
enum { BULK_SURE = 262144 };

/*
 * A source whose last message was spliced may send another as large: so much is
 * copied with its head, and the rest is spliced.
 */
enum { BULK_FIRST = 16384 };
static_assert((int)BULK_FIRST >= (int)BULK_LITTLE, "a full one counts");

/* While nothing is queued, bulk may read `high` so many times. */
enum { BULK_HIGH = 4 };

/* So much is spliced in a turn in which hardly anybody else waits. */
enum { BULK_CALM = 4 * PIPE_BYTES };

static stream_read_fn	on_readable;
static stream_write_fn	on_writable;
static wheel_fn		on_late;
static mail_fn		on_later;
static enum flow_step	take(struct flow *f, uint8_t *bytes, size_t n);
static bool		splice_some(struct flow *f);
static enum flow_step	pass(struct flow *f, size_t n);
static bool		can_splice(struct flow *f);
static void		settle(struct flow *f);
static void		count_pause(struct flow *f);
static void		wait_for_memory(struct flow *f);
static void		wait_for_sink(struct flow *f);
static void		wait_for_source(struct flow *f);
static void		wait_for_one(struct flow *f);
static void		let_source_go(struct flow *f);
static void		finish(struct flow *f, enum flow_end how, int err);

void
flow_init(struct flow *f)
{
	/* The rest has no meaning before flow_start(). */
	f->waits = FLOW_IDLE;
	f->bytes = 0;
	f->sink_since = f->sink_time = 0;
	f->writer.fn = on_writable;
	wheel_timer_init(&f->timer, on_late);
	mail_init(&f->later, on_later);
}

HOT void
flow_start(struct flow *f, const struct flow_opts *opts)
{
	ASSERT(f->waits == FLOW_IDLE);
	ASSERT(opts->high > 0 && opts->low <= opts->high);

	f->opts = *opts;
	f->source_over = f->fin = f->told = f->paused = f->taking = false;
	f->drains = false;
	f->large = 0;
	f->err = 0;
	f->short_since = 0;
	f->bytes = 0;
	f->sink_since = f->sink_time = 0;
	stream_set_writer(opts->sink, &f->writer, opts->low);
	stream_set_reader(opts->source, on_readable, f);
	if (UNLIKELY(opts->throttle != NULL))
		stream_set_throttle(opts->source, opts->throttle);
	wait_for_one(f);
}

enum flow_step
flow_push(struct flow *f, uint8_t *bytes, size_t n)
{
	ASSERT(f->waits != FLOW_IDLE && !f->source_over);
	if (n == 0)
		return FLOW_MORE;

	enum flow_step step = take(f, bytes, n);

	if (step == FLOW_GONE)
		return step;
	if (f->err != 0 || f->source_over)
		loop_later(stream_loop(f->opts.sink), &f->later);
	else
		wait_for_one(f);
	return step;
}

enum flow_step
flow_push_end(struct flow *f)
{
	uint8_t none;

	ASSERT(f->waits != FLOW_IDLE && !f->source_over);
	f->fin = true;

	enum flow_step step = take(f, &none, 0);

	if (step != FLOW_GONE)
		loop_later(stream_loop(f->opts.sink), &f->later);
	return step;
}

bool
flow_send(struct flow *f, const struct iovec *iov, int n)
{
	if (f->err != 0)
		return false;

	/* What has been read must be kept, whatever the shortage. */
	int err = stream_send(f->opts.sink, iov, n, BLOCK_PERMIT);

	if (err == 0)
		return true;
	f->err = -err;
	loop_later(stream_loop(f->opts.sink), &f->later);
	return false;
}

void
flow_source_end(struct flow *f)
{
	if (f->waits == FLOW_IDLE || f->source_over)
		return;
	let_source_go(f);
	loop_later(stream_loop(f->opts.sink), &f->later);
}

void
flow_set_source_timeout(struct flow *f, nsec_t timeout)
{
	struct loop *loop = stream_loop(f->opts.sink);

	/* Most set again in the same turn what is waited for already. */
	if (f->opts.source_timeout == timeout && timeout > 0 &&
	    f->timer.due == loop_now(loop) + timeout)
		return;
	f->opts.source_timeout = timeout;
	/* Whatever comes after `bytes` begins its wait anew. */
	if (f->waits == FLOW_WAITS_SOURCE && !f->taking)
		wait_for_source(f);
}

HOT void
flow_stop(struct flow *f)
{
	if (f->waits == FLOW_IDLE)
		return;

	struct loop *loop = stream_loop(f->opts.sink);

	f->waits = FLOW_IDLE;
	loop_cancel(loop, &f->timer);
	loop_later_cancel(loop, &f->later);
	let_source_go(f);
	count_pause(f);
	stream_set_writer(f->opts.sink, NULL, 0);
}

bool
flow_is_running(const struct flow *f)
{
	return f->waits != FLOW_IDLE;
}

nsec_t
flow_sink_time(const struct flow *f)
{
	return f->sink_time + (f->sink_since == 0 ? 0 :
	    loop_now(stream_loop(f->opts.sink)) - f->sink_since);
}

/* --- events ------------------------------------------------------------ */

static bool
is_bulk(const struct flow *f)
{
	return f->large >= BULK_AFTER;
}

static uint64_t
opaque_bytes(struct flow *f)
{
	if (f->opts.ops->bytes == NULL)
		return UINT64_MAX;
	return f->opts.ops->opaque != NULL ? f->opts.ops->opaque(f) : 0;
}

/* Much is known to follow, not only possible. */
static APART bool
is_long(struct flow *f)
{
	uint64_t left = opaque_bytes(f);

	return left >= BULK_SURE && left < UINT64_MAX;
}

/* That much came at once; `full`: as much as it was read for. */
static void
note_size(struct flow *f, size_t n, bool full)
{
	if (n < BULK_LITTLE)
		f->large -= f->large > 0;
	else if ((n >= BULK_LARGE || (full && is_long(f))) &&
	    f->large < BULK_MOST)
		f->large = is_long(f) ? BULK_MOST : f->large + 1;
}

/* If it is bulk. */
static APART bool
reads_bulk(struct flow *f)
{
	return stream_queued(f->opts.sink) == 0 &&
	    !loop_is_busy(stream_loop(f->opts.sink)) &&
	    (f->opts.ops->any_size || opaque_bytes(f) >= LOOP_BULK) &&
	    !blocks_are_short(loop_blocks(stream_loop(f->opts.sink)),
	    BLOCK_HEAD);
}

/* No more than what is free below `high`, except for a crumb, and in bulk. */
static size_t
read_size(struct flow *f)
{
	size_t queued = stream_queued(f->opts.sink);
	size_t room = queued < f->opts.high ? f->opts.high - queued : 0;

	if (f->bytes == 0 && UNLIKELY(stream_was_spliced(f->opts.source)))
		room = MIN(room, (size_t)BULK_FIRST);
	else if (is_bulk(f) && reads_bulk(f))
		return MIN(MAX(room, (size_t)READ_MIN) * BULK_HIGH,
		    (size_t)LOOP_BULK);
	return MIN(MAX(room, (size_t)READ_MIN), (size_t)LOOP_SCRATCH);
}

static HOT void
on_readable(void *arg)
{
	struct flow *f = arg;
	struct loop *loop = stream_loop(f->opts.sink);
	uint8_t *bytes = loop_scratch(loop);

	if (blocks_are_short(loop_blocks(loop), f->opts.use)) {
		wait_for_memory(f);
		return;
	}
	f->short_since = 0;
	if (is_bulk(f) && splice_some(f))
		return;

	size_t size = read_size(f);
	ssize_t n = stream_recv(f->opts.source, bytes, size);

	if (n == -EAGAIN)
		return;
	if (n < 0) {
		finish(f, FLOW_SOURCE_FAILED, (int)-n);
		return;
	}
	f->fin = n == 0;
	if (take(f, bytes, (size_t)n) == FLOW_GONE)
		return;
	if (!f->source_over)
		note_size(f, (size_t)n, (size_t)n == size);
	settle(f);
}

static HOT enum flow_step
take(struct flow *f, uint8_t *bytes, size_t n)
{
	enum flow_step step = FLOW_MORE;

	f->bytes += n;
	f->taking = true;
	if (f->opts.ops->bytes != NULL)
		step = f->opts.ops->bytes(f, bytes, n);
	else
		(void)flow_send(f, &(struct iovec){ bytes, n }, 1);

	if (step == FLOW_GONE)
		return step;
	f->taking = false;
	if (step == FLOW_LAST || (step == FLOW_MORE && n == 0))
		let_source_go(f);
	return step;
}

/* If it can be, it waits until what is queued has gone. */
static bool
can_splice(struct flow *f)
{
	return f->opts.splice && is_bulk(f) &&
	    stream_can_splice(f->opts.source, f->opts.sink) &&
	    opaque_bytes(f) >= BULK_LARGE;
}

/* Where others wait for their turn, no more than one read would get. */
static size_t
turn_bytes(const struct loop *loop)
{
	if (loop_is_busy(loop))
		return LOOP_SCRATCH;
	return loop_is_calm(loop) ? BULK_CALM : PIPE_BYTES;
}

/*
 * Splice while all of it is taken at once, as much as a turn may have: the
 * kernel gives a part of what is there when its pieces are small.  False:
 * nothing was done, and the source must be read.
 */
static APART bool
splice_some(struct flow *f)
{
	struct stream *sink = f->opts.sink;
	size_t most = turn_bytes(stream_loop(sink));
	size_t room = most;
	ssize_t n = 0;

	while (room > 0 && can_splice(f) && stream_queued(sink) == 0) {
		n = stream_splice(f->opts.source, sink,
		    (size_t)MIN(opaque_bytes(f), (uint64_t)room));
		if (n <= 0)
			break;
		room -= (size_t)n;
		note_size(f, (size_t)n, false);
		if (pass(f, (size_t)n) == FLOW_GONE)
			return true;
		if (f->err != 0 || f->source_over)
			break;
	}
	if (n < 0) {
		finish(f, FLOW_SOURCE_FAILED, (int)-n);
		return true;
	}
	if (room == most) {
		f->large = 0;
		return false;
	}
	settle(f);
	return true;
}

/* The same as take(), of bytes that have passed already. */
static enum flow_step
pass(struct flow *f, size_t n)
{
	enum flow_step step = FLOW_MORE;

	f->bytes += n;
	f->taking = true;
	if (f->opts.ops->passed != NULL)
		step = f->opts.ops->passed(f, n);
	if (step == FLOW_GONE)
		return step;
	f->taking = false;
	f->err = -stream_write_error(f->opts.sink);
	if (step == FLOW_LAST)
		let_source_go(f);
	return step;
}

static bool
is_drained(const struct flow *f)
{
	const struct stream *sink = f->opts.sink;

	return stream_queued(sink) == 0 &&
	    (!f->fin || !f->opts.carry_end || stream_has_ended(sink));
}

/* What `source_done` sends is waited for, too. */
static void
source_finished(struct flow *f)
{
	struct stream *sink = f->opts.sink;

	f->told = true;
	f->waits = FLOW_WAITS_SINK;
	if (f->fin && f->opts.carry_end)
		stream_end(sink);
	if (f->opts.ops->source_done != NULL)
		f->opts.ops->source_done(f);
	ASSERT(f->waits == FLOW_WAITS_SINK);
	f->err = -stream_write_error(sink);
}

/* After something has come from the source: what now? */
static HOT void
settle(struct flow *f)
{
	if (f->err == 0 && f->source_over && !f->told)
		source_finished(f);

	if (f->err != 0)
		finish(f, FLOW_SINK_FAILED, f->err);
	else if (!f->source_over)
		wait_for_one(f);
	else if (is_drained(f))
		finish(f, FLOW_DRAINED, 0);
	else
		wait_for_sink(f);
}

static void
on_later(struct mail *m)
{
	settle(container_of(m, struct flow, later));
}

static void
on_writable(struct stream_writer *w, int err)
{
	struct flow *f = container_of(w, struct flow, writer);

	if (err != 0)
		finish(f, FLOW_SINK_FAILED, err);
	else if (f->told && is_drained(f))
		finish(f, FLOW_DRAINED, 0);
	else if (!f->source_over && f->waits == FLOW_WAITS_SINK &&
	    (!f->drains || stream_queued(f->opts.sink) == 0))
		wait_for_source(f);
}

/* Nor does its time run while nothing may be read. */
static void
source_is_late(struct flow *f)
{
	struct loop *loop = stream_loop(f->opts.sink);
	nsec_t due = stream_held(f->opts.source) + f->opts.source_timeout;

	if (due > loop_now(loop))
		loop_arm_at(loop, &f->timer, due);
	else
		finish(f, FLOW_SOURCE_LATE, ETIMEDOUT);
}

/* The queue moves without telling anybody: progress is looked up. */
static void
sink_is_late(struct flow *f)
{
	struct loop *loop = stream_loop(f->opts.sink);
	nsec_t due = f->writer.sent_at + f->opts.sink_timeout;

	if (due > loop_now(loop))
		loop_arm_at(loop, &f->timer, due);
	else
		finish(f, FLOW_SINK_LATE, ETIMEDOUT);
}

static void
memory_is_late(struct flow *f)
{
	struct loop *loop = stream_loop(f->opts.sink);
	nsec_t waited = loop_now(loop) - f->short_since;

	if (!blocks_are_short(loop_blocks(loop), f->opts.use))
		wait_for_source(f);
	else if (f->opts.sink_timeout > 0 && waited > f->opts.sink_timeout)
		finish(f, FLOW_SINK_FAILED, ENOMEM);
	else
		wait_for_memory(f);
}

static void
on_late(struct wheel_timer *t)
{
	struct flow *f = container_of(t, struct flow, timer);

	switch (f->waits) {
	case FLOW_WAITS_SOURCE:
		source_is_late(f);
		break;
	case FLOW_WAITS_SINK:
		sink_is_late(f);
		break;
	case FLOW_WAITS_MEMORY:
		memory_is_late(f);
		break;
	case FLOW_IDLE:
		break;
	}
}

/* --- waits ------------------------------------------------------------- */

/* A flow is paused while its source could be read, but for its sink. */
static void
count_pause(struct flow *f)
{
	bool waits = f->waits == FLOW_WAITS_SINK;
	bool paused = waits && !f->source_over;

	if (UNLIKELY(waits != (f->sink_since != 0))) {
		f->sink_time = flow_sink_time(f);
		f->sink_since = waits ? loop_now(stream_loop(f->opts.sink)) : 0;
	}
	if (f->paused != paused)
		stream_set_awaited(f->opts.sink, paused);
	f->paused = paused;
}

static void
arm(struct flow *f, nsec_t timeout)
{
	if (timeout > 0)
		loop_arm(stream_loop(f->opts.sink), &f->timer, timeout);
	else
		wheel_disarm(&f->timer);
}

static HOT void
wait_for_source(struct flow *f)
{
	f->waits = FLOW_WAITS_SOURCE;
	count_pause(f);
	stream_resume(f->opts.source);
	arm(f, f->opts.source_timeout);
}

static void
wait_for_sink(struct flow *f)
{
	f->waits = FLOW_WAITS_SINK;
	count_pause(f);
	if (!f->source_over)
		stream_pause(f->opts.source);
	arm(f, f->opts.sink_timeout);
}

static void
wait_for_memory(struct flow *f)
{
	f->waits = FLOW_WAITS_MEMORY;
	count_pause(f);
	if (f->short_since == 0)
		f->short_since = loop_now(stream_loop(f->opts.sink));
	stream_pause(f->opts.source);
	arm(f, SHORT_RETRY);
}

static HOT void
wait_for_one(struct flow *f)
{
	size_t queued = stream_queued(f->opts.sink);

	f->drains = queued > 0 && can_splice(f);
	if (f->drains || queued >= f->opts.high)
		wait_for_sink(f);
	else
		wait_for_source(f);
}

/* --- ends -------------------------------------------------------------- */

/* The source may be closed, or read by somebody else, from now on. */
static void
let_source_go(struct flow *f)
{
	if (f->source_over)
		return;
	f->source_over = true;
	count_pause(f);
	stream_set_reader(f->opts.source, NULL, NULL);
	if (UNLIKELY(f->opts.throttle != NULL))
		stream_set_throttle(f->opts.source, NULL);
	f->opts.source = NULL;
}

static HOT void
finish(struct flow *f, enum flow_end how, int err)
{
	flow_ended_fn *ended = f->opts.ops->ended;

	flow_stop(f);
	ended(f, how, err);
}
