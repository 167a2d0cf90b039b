/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pipe.h - the kernel's pipes, through which bytes go from one socket to
 * another without being copied to us.
 *
 *	    pipes_fill          pipes_drain
 *	socket ---------> pipe -----------> socket
 *
 * A thread has a bounded set of them.  A pipe is taken when it is filled, and
 * given back as soon as it is empty, so that few serve many: one that waits in
 * its set holds no bytes, and no memory worth the name.
 *
 * Owner:    the caller, who embeds the set.  A pipe is its set's; who filled
 *           it drains it, or gives it back as it is.
 * Threads:  a set is one thread's; the figures may be read by any.
 * Limits:   PIPES of PIPE_BYTES over all sets: half of what the kernel gives
 *           one user before it refuses to make them large.
 */
#ifndef PENSTOCK_NET_PIPE_H
#define PENSTOCK_NET_PIPE_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/stats.h"

/* Measured: 256 KiB cost a tenth to a fifth more, 1 MiB no less. */
enum { PIPES = 64, PIPE_BYTES = 512 * 1024 };

struct pipe {
	int		 in;		/* -1: not open */
	int		 out;
	size_t		 held;		/* bytes in it */
	struct pipe	*next;		/* of those that are free */
};

struct pipes {
	struct pipe		 all[PIPES];
	struct pipe		*free;
	unsigned		 refusals;	/* by the kernel, in a row */
	unsigned		 to_skip;	/* before it is asked again */
	counter_t		 taken;		/* pipes in use */
	counter_t		 moved;		/* bytes that left one */
};

/* At most `max` of them are ever open, none of them yet. */
void pipes_init(struct pipes *p, unsigned max);
void pipes_fini(struct pipes *p);

/* Is one left, or has the kernel to be asked for it? */
static inline bool
pipes_are_left(const struct pipes *p)
{
	return p->free != NULL;
}

/*
 * Move up to `size` bytes from a socket into an empty pipe, *pipe from then on.
 * How many; 0 for none: there are none, or it is the end, or something that
 * only recv() can get past (urgent data), or there is no pipe to be had.  Or
 * -errno; -EINVAL and -ENOSYS say that this can't be done with that socket.
 * *pipe is NULL unless bytes were moved.
 */
ssize_t pipes_fill(struct pipes *p, struct pipe **pipe, int fd,
    size_t size) MUST_USE;

/*
 * Move what is in *pipe to a socket, as far as it takes it: how much, or -errno
 * as above.  Clears *pipe once it is empty.
 */
ssize_t pipes_drain(struct pipes *p, struct pipe **pipe, int fd) MUST_USE;

/*
 * Copy what is in *pipe to the end of *to, where draining is impossible, by way
 * of a scratch area of that size; clears *pipe.  Or -errno, and bytes are lost.
 */
int pipes_unload(struct pipes *p, struct pipe **pipe, struct buf *to,
    void *scratch, size_t size) MUST_USE;

/* Give *pipe back, and clear it; bytes left in it are lost. */
void pipes_give(struct pipes *p, struct pipe **pipe);

#endif
