/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dial.c - open one connection; see dial.h.
 */
#include "net/dial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/slab.h"
#include "net/sock.h"
#include "net/stream.h"

struct dial {
	struct dial_pool	*pool;
	struct watch		 writable;
	struct wheel_timer	 late;
	struct mail		 later;		/* what was known at once */
	int			 fd;		/* or -1 */
	int			 err;		/* of the last address */
	nsec_t			 timeout;
	dial_done_fn		*done;
	void			*arg;
	unsigned		 count;
	unsigned		 next;		/* address to try */
	struct addr		 to[DIAL_ADDRS];
};

struct dial_pool {
	struct loop		*loop;
	struct watch_kind	 writable;
	struct stream_pool	*streams;
	struct slab		 slab;
};

static watch_fn		on_writable;
static wheel_fn		on_late;
static mail_fn		on_later;
static bool		try_next(struct dial *d);
static void		report(struct dial *d);

struct dial_pool *
dial_pool_new(struct loop *loop, struct stream_pool *streams, size_t max)
{
	struct dial_pool *p = xcalloc(1, sizeof *p);

	p->loop = loop;
	p->writable = WATCH_KIND(loop, on_writable);
	p->streams = streams;
	SLAB_INIT(&p->slab, struct dial, max);
	return p;
}

uint64_t
dial_pool_memory(uint64_t max)
{
	return sizeof(struct dial_pool) +
	    slab_memory(sizeof(struct dial), max);
}

void
dial_pool_free(struct dial_pool **p)
{
	if (*p == NULL)
		return;
	slab_fini(&(*p)->slab);
	free(*p);
	*p = NULL;
}

int
dial_start(struct dial **out, struct dial_pool *pool,
    const struct dial_opts *opts)
{
	ASSERT(opts->count >= 1 && opts->count <= DIAL_ADDRS);
	ASSERT(opts->timeout > 0);
	*out = NULL;

	struct dial *d = slab_take(&pool->slab);

	if (d == NULL)
		return -ENOMEM;
	d->pool = pool;
	d->fd = -1;
	d->err = 0;
	d->timeout = opts->timeout;
	d->done = opts->done;
	d->arg = opts->arg;
	d->count = opts->count;
	d->next = 0;
	memcpy(d->to, opts->to, opts->count * sizeof d->to[0]);
	wheel_timer_init(&d->late, on_late);
	mail_init(&d->later, on_later);
	if (!try_next(d))
		loop_later(pool->loop, &d->later);
	*out = d;
	return 0;
}

static void
drop_socket(struct dial *d)
{
	if (d->fd == -1)
		return;
	watch_stop(&d->writable);
	close(d->fd);
	d->fd = -1;
}

static void
give_back(struct dial *d)
{
	loop_cancel(d->pool->loop, &d->late);
	loop_later_cancel(d->pool->loop, &d->later);
	slab_give(&d->pool->slab, d);
}

void
dial_cancel(struct dial **dial)
{
	struct dial *d = *dial;

	if (d == NULL)
		return;
	*dial = NULL;
	drop_socket(d);
	give_back(d);
}

/* --- trying ------------------------------------------------------------ */

/* Begin to connect to one address: 0, or a positive errno. */
static int
begin(struct dial *d, const struct addr *to)
{
	int fd = sock_open(to);

	if (fd < 0)
		return -fd;

	int err = sock_connect(fd, to);

	if (err != 0 && err != -EINPROGRESS) {
		close(fd);
		return -err;
	}
	/* A connection that stands at once is writable in the next turn. */
	d->fd = fd;
	watch_init(&d->writable, &d->pool->writable, fd);
	watch_want(&d->writable, WATCH_WRITE);
	loop_arm(d->pool->loop, &d->late, d->timeout);
	return 0;
}

/* False: no address is left, and err says why the last one failed. */
static bool
try_next(struct dial *d)
{
	while (d->next < d->count) {
		d->err = begin(d, &d->to[d->next++]);
		if (d->err == 0)
			return true;
	}
	return false;
}

static void
failed(struct dial *d, int err)
{
	drop_socket(d);
	d->err = err;
	if (!try_next(d))
		report(d);
}

/*
 * On loopback, a free port of ours that is also the destination's may be
 * picked for the local end: TCP then connects the socket to itself.
 */
static bool
is_self(const struct dial *d)
{
	return addr_is_loopback(&d->to[d->next - 1]) &&
	    sock_is_self_connected(d->fd);
}

static void
on_writable(struct watch *w, unsigned ready)
{
	struct dial *d = container_of(w, struct dial, writable);
	int err = ready & WATCH_ERROR ? EIO : sock_error(d->fd);

	if (err == 0 && is_self(d))
		err = ECONNREFUSED;
	if (err != 0)
		failed(d, err);
	else
		report(d);
}

static void
on_late(struct wheel_timer *t)
{
	failed(container_of(t, struct dial, late), ETIMEDOUT);
}

static void
on_later(struct mail *m)
{
	report(container_of(m, struct dial, later));
}

/* --- the end ----------------------------------------------------------- */

/* The socket becomes a stream's, if there is one. */
static struct stream *
make_stream(struct dial *d)
{
	if (d->fd == -1)
		return NULL;
	watch_stop(&d->writable);

	struct stream *s = stream_new(d->pool->streams, d->fd);

	if (s == NULL) {
		d->err = ENOMEM;
		close(d->fd);
	}
	d->fd = -1;
	return s;
}

/* Tear down first and call out last: the callee may start another dial. */
static void
report(struct dial *d)
{
	struct stream *stream = make_stream(d);
	dial_done_fn *done = d->done;
	void *arg = d->arg;
	unsigned tried = d->next - 1;
	int err = d->err;

	give_back(d);
	done(arg, stream, err, tried);
}
