/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.c - many reads or writes in one system call; see ring.h.
 *
 * MSG_DONTWAIT makes the kernel do each operation when it is submitted, and
 * never later: all have ended when io_uring_enter() returns.  Kernels that do
 * otherwise are older than the flag of setup, which they refuse.
 */
#include "net/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "net/sock.h"

static void
do_each(struct ring_op *const *ops, unsigned n, bool send)
{
	for (unsigned i = 0; i < n; i++) {
		struct ring_op *op = ops[i];

		op->n = send ? sock_send(op->fd,
		    &(struct iovec){ op->at, op->size }, 1) :
		    sock_recv(op->fd, op->at, op->size);
	}
}

#ifdef HAVE_LIBURING

#include <liburing.h>

struct ring {
	struct io_uring	 uring;
	bool		 works;
};

struct ring *
ring_new(unsigned most, int *err)
{
	struct ring *r = xcalloc(1, sizeof *r);
	int e = io_uring_queue_init(most, &r->uring, IORING_SETUP_SUBMIT_ALL);

	if (e == 0) {
		r->works = true;
		return r;
	}
	*err = -e;
	free(r);
	return NULL;
}

static void
give_up(struct ring *r)
{
	r->works = false;
	io_uring_queue_exit(&r->uring);
}

void
ring_free(struct ring **r)
{
	if (*r == NULL)
		return;
	if ((*r)->works)
		give_up(*r);
	free(*r);
	*r = NULL;
}

bool
ring_works(const struct ring *r)
{
	return r->works;
}

static HOT void
prepare(struct ring *r, struct ring_op *const *ops, unsigned n, bool send)
{
	for (unsigned i = 0; i < n; i++) {
		/* There is room for `most`, and nothing was left. */
		struct io_uring_sqe *sqe = io_uring_get_sqe(&r->uring);
		struct ring_op *op = ops[i];

		if (send)
			io_uring_prep_send(sqe, op->fd, op->at, op->size,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
		else
			io_uring_prep_recv(sqe, op->fd, op->at, op->size,
			    MSG_DONTWAIT);
		io_uring_sqe_set_data(sqe, op);
	}
}

/* How many have ended. */
static HOT unsigned
collect(struct ring *r)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&r->uring, head, cqe) {
		struct ring_op *op = io_uring_cqe_get_data(cqe);

		op->n = cqe->res;
		n++;
	}
	io_uring_cq_advance(&r->uring, n);
	return n;
}

/*
 * Those that were submitted end, whatever happens; if not all were, for want of
 * memory in the kernel, the first were, and the others are not in flight.
 */
static HOT void
run(struct ring *r, struct ring_op *const *ops, unsigned n, bool send)
{
	unsigned ended = 0, begun = 0;

	if (LIKELY(r->works)) {
		prepare(r, ops, n, send);

		int submitted = io_uring_submit_and_wait(&r->uring, n);

		begun = submitted > 0 ? (unsigned)submitted : 0;
		ended = collect(r);
	}
	if (LIKELY(ended == n))
		return;
	while (ended < begun) {
		struct io_uring_cqe *cqe;

		(void)io_uring_wait_cqe(&r->uring, &cqe);
		ended += collect(r);
	}
	if (r->works)
		give_up(r);
	do_each(ops + begun, n - begun, send);
}

#else

struct ring {
	bool	 works;
};

struct ring *
ring_new(unsigned most, int *err)
{
	(void)most;
	*err = ENOSYS;
	return NULL;
}

void
ring_free(struct ring **r)
{
	free(*r);
	*r = NULL;
}

bool
ring_works(const struct ring *r)
{
	return r->works;
}

static void
run(struct ring *r, struct ring_op *const *ops, unsigned n, bool send)
{
	(void)r;
	do_each(ops, n, send);
}

#endif

HOT void
ring_recv(struct ring *r, struct ring_op *const *ops, unsigned n)
{
	run(r, ops, n, false);
}

HOT void
ring_send(struct ring *r, struct ring_op *const *ops, unsigned n)
{
	run(r, ops, n, true);
}
