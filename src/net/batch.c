/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batch.c - the reads and writes of one turn; see batch.h.
 *
 * A stream has a place for what is read of it from when it is gathered until
 * that has been taken, and one for what it sends until its writer was told.
 * It knows them by number, they know it by pointer; a stream that is closed
 * leaves both.
 *
 * Whoever sends once more in the same turn has what it sent before written at
 * once, by itself: operations that run side by side have no order.
 */
#include "net/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/ring.h"
#include "net/sock.h"
#include "net/spent.h"
#include "net/stream_own.h"

enum { OUT_SIZE = BATCH_MOST * BATCH_PIECE };

/* Where what is read lies. */
struct batch_in {
	struct stream	*stream;	/* NULL: left; or free */
	struct ring_op	 op;
	size_t		 taken;		/* of op.n */
	bool		 read;		/* it lies here */
};

/* Where what is sent lies. */
struct batch_out {
	struct stream	*stream;	/* NULL: closed */
	struct ring_op	 op;		/* size: 0 once it was written */
	enum block_use	 use;
	int		 err;
};

struct batch {
	struct loop		*loop;
	struct ring		*ring;
	struct loop_turn	 turn;
	struct mail		 again;
	struct batch_in		 ins[BATCH_MOST];
	struct batch_out	 outs[BATCH_MOST];
	uint8_t			 free[BATCH_MOST];	/* of ins */
	uint8_t			 due[BATCH_MOST];	/* ins to be read */
	unsigned		 free_count;
	unsigned		 due_count;
	unsigned		 out_count;
	size_t			 out_used;	/* bytes */
	bool			 gathers;	/* what is sent, too */
	struct batch_stats	 stats;
	uint8_t			*in_bytes;
	uint8_t			*out_bytes;
};

static void	on_ready(struct loop_turn *t);
static void	on_over(struct loop_turn *t);
static mail_fn	on_again;
static void	send_gathered(struct batch *b);

/* --- life -------------------------------------------------------------- */

struct batch *
batch_new(struct loop *loop, int *err)
{
	struct ring *ring = ring_new(BATCH_MOST, err);

	if (ring == NULL)
		return NULL;

	struct batch *b = xcalloc(1, sizeof *b);

	b->loop = loop;
	b->ring = ring;
	b->turn = (struct loop_turn){ on_ready, on_over };
	b->in_bytes = xcalloc(2, OUT_SIZE);
	b->out_bytes = b->in_bytes + OUT_SIZE;
	mail_init(&b->again, on_again);
	for (unsigned i = 0; i < BATCH_MOST; i++) {
		b->ins[i].op.at = b->in_bytes + (size_t)i * BATCH_PIECE;
		b->ins[i].op.size = BATCH_PIECE;
		b->free[b->free_count++] = (uint8_t)i;
	}
	stat_set(&b->stats.works, 1);
	loop_set_turn(loop, &b->turn);
	return b;
}

uint64_t
batch_memory(void)
{
	return sizeof(struct batch) + 2 * OUT_SIZE;
}

void
batch_free(struct batch **batch)
{
	struct batch *b = *batch;

	if (b == NULL)
		return;
	*batch = NULL;
	loop_set_turn(b->loop, NULL);
	loop_later_cancel(b->loop, &b->again);
	ring_free(&b->ring);
	free(b->in_bytes);
	free(b);
}

const struct batch_stats *
batch_stats(const struct batch *b)
{
	return &b->stats;
}

static void
count(struct batch *b, unsigned n)
{
	stat_increment(&b->stats.calls);
	stat_add(&b->stats.done, n);
	if (UNLIKELY(!ring_works(b->ring)))
		stat_set(&b->stats.works, 0);
}

/* --- reads ------------------------------------------------------------- */

static struct batch_in *
in_of(struct batch *b, const struct stream *s)
{
	return &b->ins[s->in - 1];
}

static void
leave_in(struct batch *b, struct batch_in *in)
{
	in->stream->in = 0;
	in->stream = NULL;
	/* One that is due is still on the list of those. */
	if (in->read)
		b->free[b->free_count++] = (uint8_t)(in - b->ins);
}

/* Who is paused finds it here later; who didn't take all, in the next turn. */
static HOT void
call_reader(struct batch *b, struct batch_in *in)
{
	struct stream *s = in->stream;

	if (!stream_may_read(s)) {
		stream_unwant(s, WATCH_READ);
		return;
	}
	spent_mark(loop_spent(b->loop), CALLBACK_NAME(call_reader));
	s->reader(s->reader_arg);
	if (in->stream == s && in->read && stream_may_read(s))
		batch_read_again(b);
}

static HOT void
read_due(struct batch *b)
{
	struct batch_in *ins[BATCH_MOST];
	struct ring_op *ops[BATCH_MOST];
	unsigned n = 0;

	if (b->out_count > 0)
		send_gathered(b);
	for (unsigned i = 0; i < b->due_count; i++) {
		struct batch_in *in = &b->ins[b->due[i]];

		in->read = true;
		if (in->stream == NULL) {
			b->free[b->free_count++] = b->due[i];
		} else if (!stream_may_read(in->stream)) {
			stream_unwant(in->stream, WATCH_READ);
			leave_in(b, in);
		} else {
			in->op.fd = watch_fd(&in->stream->watch);
			in->taken = 0;
			ops[n] = &in->op;
			ins[n++] = in;
		}
	}
	b->due_count = 0;
	if (n == 1) {
		struct stream *s = ins[0]->stream;

		leave_in(b, ins[0]);
		s->reader(s->reader_arg);
		return;
	}
	if (n == 0)
		return;
	b->gathers = true;
	spent_mark(loop_spent(b->loop), CALLBACK_NAME(ring_recv));
	ring_recv(b->ring, ops, n);
	count(b, n);
	for (unsigned i = 0; i < n; i++)
		if (ins[i]->stream != NULL)
			call_reader(b, ins[i]);
}

HOT bool
batch_gather(struct batch *b, struct stream *s)
{
	if (s->in != 0)
		return true;
	if (b->free_count == 0)
		return false;

	unsigned i = b->free[--b->free_count];

	b->ins[i].stream = s;
	b->ins[i].read = false;
	b->due[b->due_count++] = (uint8_t)i;
	s->in = (uint8_t)(i + 1);
	if (b->due_count == BATCH_MOST)
		read_due(b);
	return true;
}

bool
batch_has_read(const struct batch *b, const struct stream *s)
{
	return b->ins[s->in - 1].read;
}

size_t
batch_left(const struct batch *b, const struct stream *s)
{
	const struct batch_in *in = &b->ins[s->in - 1];

	return in->read && in->op.n > 0 ? (size_t)in->op.n - in->taken : 0;
}

int
batch_error(const struct batch *b, const struct stream *s)
{
	const struct batch_in *in = &b->ins[s->in - 1];

	return in->read && in->op.n < 0 && in->op.n != -EAGAIN ?
	    (int)-in->op.n : 0;
}

ssize_t
batch_show(const struct batch *b, const struct stream *s, void *to,
    size_t size)
{
	const struct batch_in *in = &b->ins[s->in - 1];

	if (in->op.n <= 0)
		return in->op.n;

	size_t n = MIN((size_t)in->op.n - in->taken, size);

	memcpy(to, in->op.at + in->taken, n);
	return (ssize_t)n;
}

HOT ssize_t
batch_take(struct batch *b, struct stream *s, void *to, size_t size)
{
	struct batch_in *in = in_of(b, s);
	ssize_t n = batch_show(b, s, to, size);

	if (n > 0)
		in->taken += (size_t)n;
	s->filled = s->large = in->op.n == BATCH_PIECE;
	if (n > 0 && in->taken < (size_t)in->op.n)
		s->filled = true;
	else
		leave_in(b, in);
	return n;
}

void
batch_read_again(struct batch *b)
{
	loop_later(b->loop, &b->again);
}

static void
on_again(struct mail *m)
{
	struct batch *b = container_of(m, struct batch, again);

	for (unsigned i = 0; i < BATCH_MOST; i++)
		if (b->ins[i].stream != NULL && b->ins[i].read)
			call_reader(b, &b->ins[i]);
}

/* --- writes ------------------------------------------------------------ */

static struct batch_out *
out_of(struct batch *b, const struct stream *s)
{
	return &b->outs[s->out - 1];
}

size_t
batch_unsent(const struct batch *b, const struct stream *s)
{
	return b->outs[s->out - 1].op.size;
}

HOT bool
batch_send(struct stream *s, const struct iovec *iov, int n, size_t length,
    enum block_use use)
{
	struct batch *b = stream_pool_of(s)->batch;

	if (length > BATCH_SEND || !b->gathers ||
	    b->out_count == BATCH_MOST || s->out != 0 ||
	    length > OUT_SIZE - b->out_used)
		return false;

	uint8_t *at = b->out_bytes + b->out_used;
	struct batch_out *out = &b->outs[b->out_count++];

	*out = (struct batch_out){
		.stream = s,
		.op = { watch_fd(&s->watch), (uint32_t)length, at, 0 },
		.use = use,
	};
	b->out_used += length;
	s->out = (uint8_t)b->out_count;
	for (int i = 0; i < n; i++) {
		memcpy(at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	return true;
}

static void
send_alone(struct ring_op *op)
{
	op->n = sock_send(op->fd, &(struct iovec){ op->at, op->size }, 1);
}

/* What the kernel didn't take is queued. */
static HOT void
settle(struct batch_out *out)
{
	struct iovec all = { out->op.at, out->op.size };

	out->op.size = 0;
	out->err = stream_sent_batched(out->stream, &all, out->op.n, out->use);
}

void
batch_send_now(struct batch *b, struct stream *s)
{
	struct batch_out *out = out_of(b, s);

	if (out->op.size == 0)
		return;
	send_alone(&out->op);
	settle(out);
}

/* More may be gathered from here on, for the next time. */
static HOT void
send_gathered(struct batch *b)
{
	struct ring_op *ops[BATCH_MOST];
	unsigned n = 0, count_out = b->out_count;

	spent_mark(loop_spent(b->loop), CALLBACK_NAME(send_gathered));
	for (unsigned i = 0; i < count_out; i++)
		if (b->outs[i].op.size > 0)
			ops[n++] = &b->outs[i].op;
	if (n == 1) {
		send_alone(ops[0]);
	} else if (n > 1) {
		ring_send(b->ring, ops, n);
		count(b, n);
	}
	for (unsigned i = 0; i < count_out; i++)
		if (b->outs[i].op.size > 0)
			settle(&b->outs[i]);
	for (unsigned i = 0; i < count_out; i++) {
		struct stream *s = b->outs[i].stream;

		if (s == NULL)
			continue;
		s->out = 0;
		stream_tell_writer(s, b->outs[i].err);
	}
	b->out_count = 0;
	b->out_used = 0;
}

void
batch_forget(struct batch *b, struct stream *s, bool sends)
{
	if (s->in != 0)
		leave_in(b, in_of(b, s));
	if (s->out == 0)
		return;

	struct batch_out *out = out_of(b, s);

	if (sends && out->op.size > 0)
		send_alone(&out->op);
	out->op.size = 0;
	out->stream = NULL;
	s->out = 0;
}

void
batch_drop_out(struct batch *b, struct stream *s)
{
	out_of(b, s)->op.size = 0;
}

/* --- a turn ------------------------------------------------------------ */

static HOT void
on_ready(struct loop_turn *t)
{
	struct batch *b = container_of(t, struct batch, turn);

	if (b->due_count > 0)
		read_due(b);
}

static HOT void
on_over(struct loop_turn *t)
{
	struct batch *b = container_of(t, struct batch, turn);

	b->gathers = false;
	if (b->out_count > 0)
		send_gathered(b);
}
