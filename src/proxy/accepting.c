/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accepting.c - how connections come to a worker; see accepting.h.
 */
#include "proxy/accepting.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/handover.h"
#include "net/listener.h"
#include "proxy/session.h"
#include "proxy/worker.h"
#include "upstream/pool.h"

/* A permit that no connection came for is given back after this. */
#define PERMIT_UNUSED	(10 * NSEC_PER_MSEC)

/* A listening socket that this worker adopted. */
struct adopted {
	struct list		 link;
	struct door		*door;
	struct listener		*listener;
	int			 fd;		/* not ours */
	atomic_uint		*served;	/* main's */
	bool			 leaves;
	struct wheel_timer	 patience;	/* with those who come yet */
};

static gate_fn		on_permit;
static wheel_fn		on_permit_unused, on_patience_over;
static handover_fn	on_taken;
static bool		may_accept(void *arg);
static void		on_not_accepted(void *arg);
static void		on_accepted(void *arg, int fd,
			    const struct addr *from);
static void		on_shortage(void *arg, int err);
static void		on_drained(void *arg);

void
accepting_init(struct accepting *a, struct worker *w, struct mail *unserved)
{
	a->worker = w;
	a->unserved = unserved;
	list_init(&a->sockets);
	gate_waiter_init(&a->permit, on_permit);
	wheel_timer_init(&a->permit_timer, on_permit_unused);
	handover_join(w->shared->handover, w->id, &(struct handover_opts){
		.loop = w->loop,
		.open = &w->client_totals.open,
		.taken = on_taken,
		.arg = a,
	});
}

static struct adopted *
adopted_at(struct list *link)
{
	return container_of(link, struct adopted, link);
}

/* Serve it no more; it stays open. */
static void
shut(struct adopted *s)
{
	struct door *door = s->door;
	struct worker *w = door->worker;

	list_remove(&s->link);
	listener_stop(&s->listener);
	loop_cancel(w->loop, &s->patience);
	if (atomic_fetch_sub(s->served, 1) == 1)
		loop_post(w->shared->loops[w->shared->workers],
		    w->accepting.unserved);
	free(s);
	door_leave(door);
}

void
accepting_fini(struct accepting *a)
{
	while (!list_is_empty(&a->sockets))
		shut(adopted_at(a->sockets.next));
}

/* --- permits ----------------------------------------------------------- */

static bool
may_accept(void *arg)
{
	struct worker *w = ((struct adopted *)arg)->door->worker;
	struct accepting *a = &w->accepting;
	enum failure why;

	if (a->has_permit) {
		a->has_permit = false;
		return true;
	}
	if (gate_is_waiting(&a->permit))
		return false;
	switch (gate_take(w->shared->sessions, w->id, &a->permit,
	    worker_now(w), &why)) {
	case GATE_TAKEN:
		return true;
	case GATE_WAITS:
		break;
	case GATE_REFUSED:
		/* Never a pause that nothing ends. */
		loop_arm(w->loop, &a->permit_timer, PERMIT_UNUSED);
		break;
	}
	stat_increment(&w->stats.accept_paused);
	return false;
}

void
accepting_give_back(struct accepting *a)
{
	struct worker *w = a->worker;

	gate_release(w->shared->sessions, w->id, worker_now(w));
}

static void
resume(struct accepting *a)
{
	LIST_FOR_EACH(l, &a->sockets)
		listener_resume(adopted_at(l)->listener);
}

/*
 * There is a permit again.  It is meant for a connection that waits in the
 * kernel; should that have gone, others must get it.
 */
static void
on_permit(struct gate_waiter *waiter, enum failure why)
{
	struct accepting *a = container_of(waiter, struct accepting, permit);

	(void)why;			/* nobody is thrown out of this gate */
	if (list_is_empty(&a->sockets)) {
		accepting_give_back(a);
		return;
	}
	a->has_permit = true;
	loop_arm(a->worker->loop, &a->permit_timer, PERMIT_UNUSED);
	resume(a);
}

static void
on_permit_unused(struct wheel_timer *t)
{
	struct accepting *a = container_of(t, struct accepting, permit_timer);

	if (a->has_permit) {
		a->has_permit = false;
		accepting_give_back(a);
	} else
		resume(a);
}

/* --- connections ------------------------------------------------------- */

static void
on_not_accepted(void *arg)
{
	accepting_give_back(&((struct adopted *)arg)->door->worker->accepting);
}

static void
on_accepted(void *arg, int fd, const struct addr *from)
{
	struct adopted *s = arg;
	struct door *d = s->door;
	struct worker *w = d->worker;
	struct handover_item item = {
		.door = d->service->state, .fd = fd, .from = *from,
	};

	/* Where a socket leaves, others may have no such door any more. */
	if (s->leaves || !handover_give(w->shared->handover, w->id, &item))
		session_start(d, fd, from);
}

/* From another worker, with the permit that it took. */
static void
on_taken(void *arg, const struct handover_item *item)
{
	struct accepting *a = arg;

	if (!a->worker->stopping) {
		session_start(doors_find(a->worker, item->door), item->fd,
		    &item->from);
		return;
	}
	close(item->fd);
	worker_session_over(a->worker);
}

/* Out of descriptors: said once a second, since it comes in floods. */
static void
on_shortage(void *arg, int err)
{
	struct door *d = ((struct adopted *)arg)->door;
	struct worker *w = d->worker;
	struct accepting *a = &w->accepting;

	nsec_t now = worker_now(w);

	stat_increment(&w->stats.accept_failed);
	pool_evict(w->pool);
	if (a->said_shortage != 0 && now - a->said_shortage < NSEC_PER_SEC)
		return;
	a->said_shortage = now;
	log_say(w->shared->log, SAY_ERROR, "listener %s: can't accept: %s",
	    d->service->conf->name_, strerror(err));
}

/* --- sockets come and go ----------------------------------------------- */

static bool
adopt(struct accepting *a, struct door *door, const struct door_socket *at)
{
	struct loop *loop = a->worker->loop;
	struct adopted *s = xcalloc(1, sizeof *s);

	s->door = door;
	s->fd = at->fd;
	s->served = at->served;
	wheel_timer_init(&s->patience, on_patience_over);
	list_init(&s->link);
	s->listener = listener_start(loop, &(struct listener_opts){
		.fd = at->fd,
		.admit = may_accept,
		.unadmit = on_not_accepted,
		.accepted = on_accepted,
		.shortage = on_shortage,
		.drained = on_drained,
		.arg = s,
	});
	if (s->listener == NULL) {
		free(s);
		return false;
	}
	list_add_last(&a->sockets, &s->link);
	atomic_fetch_add(s->served, 1);
	door_enter(door);
	return true;
}

static const struct door_socket *
find_socket(const struct doors *d, int fd)
{
	for (unsigned i = 0; i < d->opts.socket_count; i++)
		if (d->opts.sockets[i].fd == fd)
			return &d->opts.sockets[i];
	return NULL;
}

static void
lead_to(struct adopted *s, struct door *door)
{
	struct door *from = s->door;

	door_enter(door);
	s->door = door;
	door_leave(from);
}

static void
let_go(struct adopted *s)
{
	s->leaves = true;
	(void)listener_refuse_new(s->fd);
	loop_arm(s->door->worker->loop, &s->patience, ACCEPTING_LEAVES);
}

static void
on_patience_over(struct wheel_timer *t)
{
	listener_drain(container_of(t, struct adopted, patience)->listener);
}

/* One that was to leave, and stays after all, is adopted anew. */
void
accepting_change(struct accepting *a, struct doors *to)
{
	LIST_FOR_EACH(l, &a->sockets) {
		struct adopted *s = adopted_at(l);
		const struct door_socket *stays = find_socket(to, s->fd);

		if (stays != NULL && s->leaves)
			shut(s);
		else if (stays != NULL)
			lead_to(s, &to->at[stays->service]);
		else if (!s->leaves)
			let_go(s);
	}
}

static void
drain(struct adopted *s)
{
	s->leaves = true;
	(void)listener_refuse_new(s->fd);
	listener_drain(s->listener);
}

/* The others it has, or had: it may have begun to drain meanwhile. */
static bool
is_new(const struct doors *d, const struct door_socket *at)
{
	return d->before == NULL || find_socket(d->before, at->fd) == NULL;
}

bool
accepting_open(struct accepting *a, struct doors *to)
{
	bool ok = true;

	for (unsigned i = 0; i < to->opts.socket_count; i++) {
		const struct door_socket *at = &to->opts.sockets[i];

		if (!is_new(to, at) || a->worker->stopping)
			continue;
		if (!adopt(a, &to->at[at->service], at))
			ok = false;
		else if (a->worker->draining)
			drain(adopted_at(a->sockets.prev));
	}
	return ok;
}

/* --- the end ----------------------------------------------------------- */

static void
close_socket(struct adopted *s)
{
	struct worker *w = s->door->worker;
	struct accepting *a = &w->accepting;

	if (w->draining)
		listener_close(s->fd);
	shut(s);
	if (!list_is_empty(&a->sockets))
		return;
	gate_leave(w->shared->sessions, w->id, &a->permit, worker_now(w));
	on_permit_unused(&a->permit_timer);
	loop_cancel(w->loop, &a->permit_timer);
}

void
accepting_drain(struct accepting *a)
{
	handover_close(a->worker->shared->handover, a->worker->id);
	LIST_FOR_EACH(l, &a->sockets)
		drain(adopted_at(l));
}

static void
on_drained(void *arg)
{
	struct adopted *s = arg;
	struct worker *w = s->door->worker;

	close_socket(s);
	worker_stop_if_empty(w);
}

void
accepting_stop(struct accepting *a)
{
	while (!list_is_empty(&a->sockets))
		close_socket(adopted_at(a->sockets.next));
}

bool
accepting_is_over(const struct accepting *a)
{
	const struct worker *w = a->worker;

	return list_is_empty(&a->sockets) &&
	    handover_is_quiet(w->shared->handover, w->id);
}
