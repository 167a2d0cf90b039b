/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.c - what the sessions of one thread share; see worker.h.
 */
#include "proxy/worker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "http/parse.h"
#include "net/dial.h"
#include "net/listener.h"
#include "proxy/exchange.h"
#include "proxy/reading.h"
#include "proxy/session.h"
#include "upstream/pool.h"

/* There may be a hundred thousand of them. */
static_assert(sizeof(struct session) <= 144, "struct session has grown");

/* A dial leaves at least this many descriptors: see worker_spare_.... */
enum { SPARE_DESCRIPTORS = 64 };

/* A permit that no connection came for is given back after this. */
#define PERMIT_UNUSED	(10 * NSEC_PER_MSEC)

static gate_fn		on_permit;
static wheel_fn		on_permit_unused;
static mail_fn		on_drain, on_stop;
static wheel_fn		on_drain_over;
static void		on_again(struct loop_again *a);
static void		on_door_drained(void *arg);
static void		stop_if_empty(struct worker *w);

void
shared_wake(void *arg, unsigned worker, struct mail *m)
{
	struct shared *shared = arg;

	loop_post(shared->loops[worker], m);
}

static bool
has_sessions(const struct worker *w)
{
	return !list_is_empty(&w->open) || !list_is_empty(&w->ahead);
}

/* --- making ------------------------------------------------------------ */

/* What came in by it keeps it. */
static void
shut_door(struct door *d)
{
	list_remove(&d->link);
	listener_stop(&d->listener);
	list_add_last(&d->worker->closed, &d->link);
}

static void
free_doors(struct worker *w)
{
	struct list *l;

	while (!list_is_empty(&w->doors))
		shut_door(container_of(w->doors.next, struct door, link));
	while ((l = list_pop_first(&w->closed)) != NULL)
		free(container_of(l, struct door, link));
}

static void
init_members(struct worker *w, const struct worker_opts *opts)
{
	struct shared *shared = opts->shared;

	w->id = opts->id;
	w->shared = shared;
	w->setup = opts->setup;
	w->access_log = opts->access_log;
	list_init(&w->open);
	list_init(&w->ahead);
	list_init(&w->again.link);
	w->again.fn = on_again;
	list_init(&w->doors);
	list_init(&w->closed);
	gate_waiter_init(&w->permit, on_permit);
	mail_init(&w->drain_mail, on_drain);
	mail_init(&w->stop_mail, on_stop);
	wheel_timer_init(&w->drain_timer, on_drain_over);
	wheel_timer_init(&w->permit_timer, on_permit_unused);
	random_fill(&w->id_mix, sizeof w->id_mix);
	/* Sessions come with a permit; exchanges are one a session. */
	slab_init(&w->sessions, sizeof(struct session), shared->max_sessions);
	slab_init(&w->exchanges, sizeof(struct exchange),
	    shared->max_sessions);
	blocks_init(&w->blocks, &shared->budget);
	loop_set_blocks(w->loop, &w->blocks);
	w->streams = stream_pool_new(w->loop, shared->max_sessions,
	    &w->client_totals);
	w->upstream_streams = stream_pool_new(w->loop, shared->descriptors,
	    &w->upstream_totals);
	w->dials = dial_pool_new(w->loop, w->upstream_streams,
	    shared->descriptors);
	w->pool = pool_new(w->loop, shared->descriptors, &w->stats);
	w->parser = parser_new();
}

struct worker *
worker_new(const struct worker_opts *opts)
{
	struct worker *w = xcalloc(1, sizeof *w);
	struct resolver_opts resolver = {
		.servers = opts->nameservers,
		.hosts = opts->hosts,
		.stats = &w->resolver_stats,
	};

	w->loop = loop_new();
	if (w->loop == NULL)
		goto free_worker;
	int err = resolver_new(&w->resolver, w->loop, &resolver);
	if (err != 0)
		goto free_loop;
	init_members(w, opts);
	opts->shared->loops[w->id] = w->loop;
	return w;

free_loop:
	loop_free(&w->loop);
free_worker:
	free(w);
	return NULL;
}

void
worker_free(struct worker **worker)
{
	struct worker *w = *worker;

	if (w == NULL)
		return;
	*worker = NULL;
	ASSERT(!has_sessions(w));
	free_doors(w);
	pool_free(&w->pool);
	dial_pool_free(&w->dials);
	stream_pool_free(&w->upstream_streams);
	stream_pool_free(&w->streams);
	resolver_free(&w->resolver);
	parser_free(&w->parser);
	slab_fini(&w->exchanges);
	slab_fini(&w->sessions);
	blocks_fini(&w->blocks);
	loop_free(&w->loop);
	free(w);
}

/* --- doors ------------------------------------------------------------- */

static bool
may_accept(void *arg)
{
	struct worker *w = ((struct door *)arg)->worker;
	enum failure why;

	if (w->has_permit) {
		w->has_permit = false;
		return true;
	}
	if (gate_is_waiting(&w->permit))
		return false;
	switch (gate_take(w->shared->sessions, w->id, &w->permit,
	    worker_now(w), &why)) {
	case GATE_TAKEN:
		return true;
	case GATE_WAITS:
		break;
	case GATE_REFUSED:
		/* Never a pause that nothing ends. */
		loop_arm(w->loop, &w->permit_timer, PERMIT_UNUSED);
		break;
	}
	stat_increment(&w->stats.accept_paused);
	return false;
}

static void
give_permit_back(struct worker *w)
{
	gate_release(w->shared->sessions, w->id, worker_now(w));
}

static void
on_not_accepted(void *arg)
{
	give_permit_back(((struct door *)arg)->worker);
}

static void
on_accepted(void *arg, int fd, const struct addr *from)
{
	struct door *d = arg;

	session_start(d, fd, from);
}

/* Out of descriptors: said once a second, since it comes in floods. */
static void
on_shortage(void *arg, int err)
{
	struct door *d = arg;
	struct worker *w = d->worker;

	nsec_t now = worker_now(w);

	stat_increment(&w->stats.accept_failed);
	pool_evict(w->pool);
	if (w->said_shortage != 0 && now - w->said_shortage < NSEC_PER_SEC)
		return;
	w->said_shortage = now;
	log_say(w->shared->log, SAY_ERROR, "listener %s: can't accept: %s",
	    d->service->conf->name_, strerror(err));
}

static void
resume_doors(struct worker *w)
{
	LIST_FOR_EACH(l, &w->doors)
		listener_resume(container_of(l, struct door, link)->listener);
}

/*
 * There is a permit again.  It is meant for a connection that waits in the
 * kernel; should that have gone, others must get it.
 */
static void
on_permit(struct gate_waiter *waiter, enum failure why)
{
	struct worker *w = container_of(waiter, struct worker, permit);

	(void)why;			/* nobody is thrown out of this gate */
	if (list_is_empty(&w->doors)) {
		give_permit_back(w);
		return;
	}
	w->has_permit = true;
	loop_arm(w->loop, &w->permit_timer, PERMIT_UNUSED);
	resume_doors(w);
}

static void
on_permit_unused(struct wheel_timer *t)
{
	struct worker *w = container_of(t, struct worker, permit_timer);

	if (w->has_permit) {
		w->has_permit = false;
		give_permit_back(w);
	} else
		resume_doors(w);
}

bool
worker_adopt(struct worker *w, struct service *service, int fd)
{
	struct door *d = xcalloc(1, sizeof *d);

	d->worker = w;
	d->service = service;
	d->fd = fd;
	d->listener = listener_start(w->loop, &(struct listener_opts){
		.fd = fd,
		.admit = may_accept,
		.unadmit = on_not_accepted,
		.accepted = on_accepted,
		.shortage = on_shortage,
		.drained = on_door_drained,
		.arg = d,
	});
	if (d->listener == NULL) {
		free(d);
		return false;
	}
	list_add_last(&w->doors, &d->link);
	return true;
}

static void
close_door(struct door *d)
{
	struct worker *w = d->worker;

	listener_close(d->fd);
	shut_door(d);
	if (!list_is_empty(&w->doors))
		return;
	gate_leave(w->shared->sessions, w->id, &w->permit, worker_now(w));
	on_permit_unused(&w->permit_timer);
}

static void
close_doors(struct worker *w)
{
	while (!list_is_empty(&w->doors))
		close_door(container_of(w->doors.next, struct door, link));
}

/* What the kernel has queued is still served, then no more. */
static void
drain_doors(struct worker *w)
{
	LIST_FOR_EACH(l, &w->doors) {
		struct door *d = container_of(l, struct door, link);

		(void)listener_refuse_new(d->fd);
		listener_drain(d->listener);
	}
}

static void
on_door_drained(void *arg)
{
	struct door *d = arg;
	struct worker *w = d->worker;

	close_door(d);
	stop_if_empty(w);
}

/* --- draining ---------------------------------------------------------- */

static void
stop_if_empty(struct worker *w)
{
	if (!w->draining || has_sessions(w) || !list_is_empty(&w->doors))
		return;
	loop_cancel(w->loop, &w->drain_timer);
	loop_cancel(w->loop, &w->permit_timer);
	pool_clear(w->pool);
	loop_stop(w->loop);
}

/* The end, whatever it cuts off. */
static void
stop_all(struct worker *w)
{
	w->stopping = true;
	close_doors(w);
	LIST_FOR_EACH(l, &w->open)
		session_stop(container_of(l, struct session, link));
	LIST_FOR_EACH(l, &w->ahead)
		session_stop(container_of(l, struct session, link));
	stop_if_empty(w);
}

static void
on_drain(struct mail *m)
{
	struct worker *w = container_of(m, struct worker, drain_mail);

	if (w->draining)
		return;
	w->draining = true;
	drain_doors(w);
	LIST_FOR_EACH(l, &w->open)
		session_drain(container_of(l, struct session, link));
	loop_arm(w->loop, &w->drain_timer,
	    w->setup->config->timeouts.drain);
	stop_if_empty(w);
}

static void
on_drain_over(struct wheel_timer *t)
{
	stop_all(container_of(t, struct worker, drain_timer));
}

static void
on_stop(struct mail *m)
{
	struct worker *w = container_of(m, struct worker, stop_mail);

	on_drain(&w->drain_mail);
	stop_all(w);
}

void
worker_drain(struct worker *w)
{
	loop_post(w->loop, &w->drain_mail);
}

void
worker_stop(struct worker *w)
{
	loop_post(w->loop, &w->stop_mail);
}

/* --- sessions ------------------------------------------------------ */

/*
 * One request that was read ahead a turn: others want theirs too.  None comes
 * back meanwhile, since an exchange is over later than it is started.
 */
static void
on_again(struct loop_again *a)
{
	struct worker *w = container_of(a, struct worker, again);
	struct list *l;

	list_remove(&a->link);
	while ((l = list_pop_first(&w->ahead)) != NULL) {
		list_add_last(&w->open, l);
		reading_go_on(container_of(l, struct session, link));
	}
}

void
worker_go_on_later(struct worker *w, struct list *link)
{
	list_remove(link);
	list_add_last(&w->ahead, link);
	loop_again(w->loop, &w->again);
}

void
worker_session_over(struct worker *w)
{
	give_permit_back(w);
	stop_if_empty(w);
}

const char *
worker_date(struct worker *w)
{
	return date_text(&w->date, loop_wall(w->loop).tv_sec);
}

void
worker_spare_descriptors(struct worker *w)
{
	struct shared *shared = w->shared;
	uint64_t open = 0;

	/* Cheap when there is plenty: this worker alone is far from it. */
	open = atomic_load_explicit(&w->client_totals.open,
	    memory_order_relaxed) + atomic_load_explicit(
	    &w->upstream_totals.open, memory_order_relaxed);
	if (open * shared->workers + SPARE_DESCRIPTORS >= shared->descriptors)
		pool_evict(w->pool);
}
