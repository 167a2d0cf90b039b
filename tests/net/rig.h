/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rig.h - a loop with all that streams need, run until something is so.
 *
 * A test looks at its condition once a turn, without blocking in poll; a
 * guard ends the test when the condition does not come.
 */
#ifndef PENSTOCK_TESTS_NET_RIG_H
#define PENSTOCK_TESTS_NET_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

#include "base/block.h"
#include "net/loop.h"
#include "net/pipe.h"
#include "net/stream.h"

enum { RIG_STREAMS = 64 };

#define RIG_GUARD	(20 * NSEC_PER_SEC)

typedef bool rig_fn(void *arg);

struct rig {
	struct loop		*loop;
	struct block_budget	 budget;
	struct blocks		 blocks;
	struct stream_totals	 totals;
	struct stream_pool	*streams;
	struct pipes		 pipes;	/* for rig_give_pipes() */
	struct wheel_timer	 guard;
	struct loop_again	 again;
	rig_fn			*until;
	void			*arg;
	unsigned		 turns;
};

static inline void
rig_on_guard(struct wheel_timer *t)
{
	(void)t;
	ck_abort_msg("what was waited for did not come");
}

static inline void
rig_on_turn(struct loop_again *a)
{
	struct rig *r = container_of(a, struct rig, again);

	if (r->until != NULL ? !r->until(r->arg) : r->turns-- > 0)
		return;
	list_remove(&a->link);
	loop_stop(r->loop);
}

static inline void
rig_open(struct rig *r, uint64_t budget)
{
	*r = (struct rig){ .until = NULL };
	r->loop = loop_new();
	ck_assert_ptr_nonnull(r->loop);
	block_budget_init(&r->budget, budget);
	blocks_init(&r->blocks, &r->budget);
	loop_set_blocks(r->loop, &r->blocks);
	r->streams = stream_pool_new(r->loop, RIG_STREAMS, &r->totals);
	pipes_init(&r->pipes, 0);
	wheel_timer_init(&r->guard, rig_on_guard);
	list_init(&r->again.link);
	r->again.fn = rig_on_turn;
}

/* Without, nothing is spliced. */
static inline void
rig_give_pipes(struct rig *r, unsigned max)
{
	pipes_init(&r->pipes, max);
	stream_pool_set_pipes(r->streams, &r->pipes);
}

static inline void
rig_run(struct rig *r)
{
	loop_now_update(r->loop);
	loop_arm(r->loop, &r->guard, RIG_GUARD);
	loop_run(r->loop);
	loop_cancel(r->loop, &r->guard);
}

static inline void
rig_until(struct rig *r, rig_fn *until, void *arg)
{
	r->until = until;
	r->arg = arg;
	loop_again(r->loop, &r->again);
	rig_run(r);
}

static inline bool
rig_is_true(void *arg)
{
	return *(bool *)arg;
}

static inline void
rig_until_true(struct rig *r, bool *flag)
{
	rig_until(r, rig_is_true, flag);
}

/* So many turns, to see that something does not happen. */
static inline void
rig_turns(struct rig *r, unsigned turns)
{
	r->until = NULL;
	r->turns = turns;
	loop_again(r->loop, &r->again);
	rig_run(r);
}

static inline uint64_t
rig_ready(const struct rig *r)
{
	return atomic_load(&loop_stats(r->loop)->ready);
}

/* Every byte and block must have come back. */
static inline void
rig_close(struct rig *r)
{
	ck_assert_uint_eq(atomic_load(&r->budget.used), 0);
	ck_assert_uint_eq(atomic_load(&r->totals.open), 0);
	ck_assert_uint_eq(atomic_load(&r->pipes.taken), 0);
	stream_pool_free(&r->streams);
	pipes_fini(&r->pipes);
	blocks_fini(&r->blocks);
	loop_free(&r->loop);
}

/* --- sockets --- */

static inline int
rig_listen(struct sockaddr_in *at)
{
	socklen_t len = sizeof *at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	ck_assert_int_eq(bind(fd, (struct sockaddr *)at, sizeof *at), 0);
	ck_assert_int_eq(listen(fd, 64), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)at, &len), 0);
	return fd;
}

static inline void
rig_unblock(int fd)
{
	ck_assert_int_eq(fcntl(fd, F_SETFL,
	    fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

/* Two ends of a TCP connection, non-blocking. */
static inline void
rig_pair(int fds[2])
{
	struct sockaddr_in at;
	int l = rig_listen(&at);

	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fds[0], (struct sockaddr *)&at, sizeof at),
	    0);
	fds[1] = accept(l, NULL, NULL);
	ck_assert_int_ge(fds[1], 0);
	close(l);
	rig_unblock(fds[0]);
	rig_unblock(fds[1]);
}

static inline void
rig_small_buffers(int fd)
{
	int size = 16384;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size,
	    sizeof size), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size,
	    sizeof size), 0);
}

static inline void
rig_reset(int fd)
{
	struct linger now = { 1, 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
}

static inline void
rig_write(int fd, const char *text)
{
	ck_assert_int_eq(write(fd, text, strlen(text)),
	    (ssize_t)strlen(text));
}

/* A stream over one end of a new pair; the other end is returned. */
static inline struct stream *
rig_stream(struct rig *r, int *peer)
{
	int fds[2];

	rig_pair(fds);
	*peer = fds[1];

	struct stream *s = stream_new(r->streams, fds[0]);

	ck_assert_ptr_nonnull(s);
	return s;
}

/* Two streams, and the bare sockets at their far ends. */
struct rig_way {
	struct stream	*source;
	struct stream	*sink;
	int		 source_fd;	/* the stream's own */
	int		 sink_fd;
	int		 in;		/* what the source hears; -1: closed */
	int		 out;		/* what the sink said */
};

static inline void
rig_way_open(struct rig *r, struct rig_way *w)
{
	int in[2], out[2];

	rig_pair(in);
	rig_pair(out);
	*w = (struct rig_way){
		.source = stream_new(r->streams, in[0]),
		.sink = stream_new(r->streams, out[0]),
		.source_fd = in[0],
		.sink_fd = out[0],
		.in = in[1],
		.out = out[1],
	};
	ck_assert_ptr_nonnull(w->source);
	ck_assert_ptr_nonnull(w->sink);
}

static inline void
rig_way_close(struct rig_way *w)
{
	stream_close(&w->source);
	stream_close(&w->sink);
	if (w->in != -1)
		close(w->in);
	if (w->out != -1)
		close(w->out);
}

/* --- a peer that reads what it expects --- */

/* The bytes of a long transfer: position i has this one. */
static inline uint8_t
rig_byte(size_t i)
{
	return (uint8_t)(i * 31 + i / 251);
}

struct rig_sink {
	int	 fd;
	size_t	 got;
	bool	 ended;		/* FIN */
	int	 err;		/* or this */
};

/* Read once, and compare; true at the end. */
static inline bool
rig_sink_read(void *arg)
{
	struct rig_sink *k = arg;
	uint8_t buf[3001];
	ssize_t n = read(k->fd, buf, sizeof buf);

	for (ssize_t i = 0; i < n; i++)
		if (buf[i] != rig_byte(k->got + (size_t)i))
			ck_abort_msg("byte %zu is wrong", k->got + (size_t)i);
	if (n > 0)
		k->got += (size_t)n;
	else if (n == 0)
		k->ended = true;
	else if (errno != EAGAIN)
		k->err = errno;
	return k->ended || k->err != 0;
}

#endif
