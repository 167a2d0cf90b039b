/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pipe.c - a bounded set of pipes; see pipe.h.
 *
 * A pipe is filled only when it is empty: the kernel's EAGAIN says that the
 * socket has nothing or that the pipe is full, and doesn't say which.
 *
 * Without SPLICE_F_MORE, which holds the last bytes back for 200 ms.
 */
#include "net/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* So many attempts to open one are left out at most, as a power of 2. */
enum { SKIP_BITS = 10 };

void
pipes_init(struct pipes *p, unsigned max)
{
	*p = (struct pipes){ .free = NULL };
	for (unsigned i = 0; i < MIN(max, (unsigned)PIPES); i++) {
		p->all[i] = (struct pipe){ -1, -1, 0, p->free };
		p->free = &p->all[i];
	}
}

static void
pipe_close(struct pipe *pipe)
{
	close(pipe->in);
	close(pipe->out);
	pipe->in = pipe->out = -1;
	pipe->held = 0;
}

void
pipes_fini(struct pipes *p)
{
	ASSERT(p->taken == 0);
	for (struct pipe *pipe = p->free; pipe != NULL; pipe = pipe->next)
		if (pipe->in != -1)
			pipe_close(pipe);
	p->free = NULL;
}

/* A small one, which is what a user with many pipes gets, doesn't pay. */
static bool
pipe_open(struct pipe *pipe)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == -1)
		return false;
	pipe->out = ends[0];
	pipe->in = ends[1];
	if (fcntl(pipe->in, F_SETPIPE_SZ, PIPE_BYTES) >= PIPE_BYTES)
		return true;
	pipe_close(pipe);
	return false;
}

/* Where there is none to be had, it is asked for less and less often. */
static bool
open_in_turn(struct pipes *p, struct pipe *pipe)
{
	if (p->to_skip > 0) {
		p->to_skip--;
		return false;
	}
	if (pipe_open(pipe)) {
		p->refusals = 0;
		return true;
	}
	p->refusals = MIN(p->refusals + 1, SKIP_BITS);
	p->to_skip = 1U << p->refusals;
	return false;
}

static struct pipe *
take(struct pipes *p)
{
	struct pipe *pipe = p->free;

	if (pipe == NULL || (pipe->in == -1 && !open_in_turn(p, pipe)))
		return NULL;
	p->free = pipe->next;
	stat_increment(&p->taken);
	return pipe;
}

void
pipes_give(struct pipes *p, struct pipe **given)
{
	struct pipe *pipe = *given;

	if (pipe == NULL)
		return;
	*given = NULL;
	/* Nobody else may ever get what is left in it. */
	if (pipe->held > 0)
		pipe_close(pipe);
	pipe->next = p->free;
	p->free = pipe;
	stat_decrement(&p->taken);
}

static ssize_t
move(int from, int to, size_t size)
{
	ssize_t n;

	do
		n = splice(from, NULL, to, NULL, size,
		    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n == -1 && errno == EINTR);

	if (n == -1)
		return errno == EAGAIN ? 0 : -errno;
	return n;
}

ssize_t
pipes_fill(struct pipes *p, struct pipe **pipe, int fd, size_t size)
{
	ssize_t n;

	*pipe = take(p);
	if (*pipe == NULL)
		return 0;
	n = move(fd, (*pipe)->in, size);
	if (n <= 0) {
		pipes_give(p, pipe);
		return n;
	}
	(*pipe)->held = (size_t)n;
	return n;
}

ssize_t
pipes_drain(struct pipes *p, struct pipe **pipe, int fd)
{
	ssize_t n = move((*pipe)->out, fd, (*pipe)->held);

	if (n <= 0)
		return n;
	stat_add(&p->moved, (uint64_t)n);
	(*pipe)->held -= (size_t)n;
	if ((*pipe)->held == 0)
		pipes_give(p, pipe);
	return n;
}

int
pipes_unload(struct pipes *p, struct pipe **pipe, struct buf *to,
    void *scratch, size_t size)
{
	while ((*pipe)->held > 0) {
		ssize_t n = read((*pipe)->out, scratch, size);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -errno;
		(*pipe)->held -= (size_t)n;
		if (!buf_append(to, &(struct iovec){ scratch, (size_t)n }, 1,
		    0, BLOCK_PERMIT))
			return -ENOMEM;
	}
	pipes_give(p, pipe);
	return 0;
}
