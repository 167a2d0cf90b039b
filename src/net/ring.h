/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - many reads, or many writes, of sockets in one system call; on
 * io_uring.
 *
 * Nothing is left to the kernel when a call returns: each operation has been
 * done, or has failed, as if it had been a recv(2) or send(2) of its own.  What
 * is saved is the way into the kernel and back, which costs more than the
 * copying of a small message where the CPU needs its tables of pages changed
 * for it.
 *
 * Owner:    ring_new() gives a handle to the caller.
 * Threads:  one at a time.
 * Errors:   a ring that fails is given up: then each operation is done by
 *           itself, and so it is for good.
 * Source:   io_uring(7); Linux 5.18, for IORING_SETUP_SUBMIT_ALL.
 */
#ifndef PENSTOCK_NET_RING_H
#define PENSTOCK_NET_RING_H

#include <sys/types.h>

#include "base/defs.h"

struct ring;

struct ring_op {
	int		 fd;
	uint32_t	 size;
	uint8_t		*at;
	ssize_t		 n;		/* what came of it: bytes, or -errno */
};

/*
 * For up to `most` operations at once.  NULL when the kernel has none for us,
 * or the program was built without: *err is the positive errno.
 */
struct ring *ring_new(unsigned most, int *err) MUST_USE;
void ring_free(struct ring **r);

/* Do all of them, each for another socket; never blocks. */
void ring_recv(struct ring *r, struct ring_op *const *ops, unsigned n);
void ring_send(struct ring *r, struct ring_op *const *ops, unsigned n);

/* It has not been given up. */
bool ring_works(const struct ring *r);

#endif
