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
#include "net/batch.h"
#include "net/dial.h"
#include "net/hangup.h"
#include "proxy/exchange.h"
#include "proxy/reading.h"
#include "proxy/session.h"
#include "upstream/pool.h"

/* There may be a hundred thousand of them. */
static_assert(sizeof(struct session) <= 160, "struct session has grown");

/* A dial leaves at least this many descriptors: see worker_spare_.... */
enum { SPARE_DESCRIPTORS = 64 };

/* A pipe for so many descriptors; it takes two. */
enum { PIPE_SHARE = 128 };

static mail_fn		on_drain, on_stop;
static wheel_fn		on_drain_over;
static void		on_again(struct loop_again *a);

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

static void
init_members(struct worker *w, const struct worker_opts *opts)
{
	struct shared *shared = opts->shared;
	/* So many sockets are there at most, and permits may become more. */
	uint64_t most = shared->descriptors;

	w->id = opts->id;
	w->shared = shared;
	w->access_log = opts->access_log;
	list_init(&w->open);
	list_init(&w->ahead);
	list_init(&w->again.link);
	w->again.fn = on_again;
	mail_init(&w->drain_mail, on_drain);
	mail_init(&w->stop_mail, on_stop);
	wheel_timer_init(&w->drain_timer, on_drain_over);
	random_fill(&w->id_mix, sizeof w->id_mix);
	/* Sessions come with a permit; exchanges are one a session. */
	SLAB_INIT(&w->sessions, struct session, most);
	SLAB_INIT(&w->exchanges, struct exchange, most);
	blocks_init(&w->blocks, &shared->budget);
	loop_set_blocks(w->loop, &w->blocks);
	w->streams = stream_pool_new(w->loop, most, &w->client_totals);
	w->upstream_streams = stream_pool_new(w->loop, shared->descriptors,
	    &w->upstream_totals);
	/* They are descriptors too: hardly any where those are scarce. */
	pipes_init(&w->pipes, (unsigned)MIN(PIPES, shared->descriptors /
	    PIPE_SHARE) / shared->workers);
	stream_pool_set_pipes(w->streams, &w->pipes);
	stream_pool_set_pipes(w->upstream_streams, &w->pipes);
	stream_pool_set_hangups(w->streams, w->hangups);
	w->dials = dial_pool_new(w->loop, w->upstream_streams,
	    shared->descriptors);
	w->pool = pool_new(w->loop, shared->descriptors, &w->stats);
	w->parser = parser_new();
	accepting_init(&w->accepting, w, opts->unserved);
}

/* Without one, each read and write is a system call of its own. */
static void
make_batch(struct worker *w, bool wanted)
{
	int err;

	if (!wanted)
		return;
	w->batch = batch_new(w->loop, &err);
	if (w->batch == NULL && w->id == 0)
		log_say(w->shared->log, SAY_NOTICE,
		    "no io_uring, so each read and write is a system call of "
		    "its own: %s", strerror(err));
	stream_pool_set_batch(w->streams, w->batch);
	stream_pool_set_batch(w->upstream_streams, w->batch);
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
	w->hangups = hangups_new(w->loop);
	if (w->hangups == NULL)
		goto free_loop;
	int err = resolver_new(&w->resolver, w->loop, &resolver);
	if (err != 0)
		goto free_hangups;
	init_members(w, opts);
	make_batch(w, opts->io_uring);
	opts->shared->loops[w->id] = w->loop;
	return w;

free_hangups:
	hangups_free(&w->hangups);
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
	accepting_fini(&w->accepting);
	pool_free(&w->pool);
	dial_pool_free(&w->dials);
	stream_pool_free(&w->upstream_streams);
	stream_pool_free(&w->streams);
	batch_free(&w->batch);
	pipes_fini(&w->pipes);
	resolver_free(&w->resolver);
	hangups_free(&w->hangups);
	parser_free(&w->parser);
	slab_fini(&w->exchanges);
	slab_fini(&w->sessions);
	blocks_fini(&w->blocks);
	loop_free(&w->loop);
	free(w);
}

/* --- another setup ----------------------------------------------------- */

void
worker_adjust(struct worker *w)
{
	nsec_t most = w->setup->config->penstock.max_loop_lag;

	loop_set_max_lag(w->loop, most != 0 ? most : NSEC_NEVER);
	blocks_adjust(&w->blocks);
}

void
worker_dismiss(struct worker *w)
{
	LIST_FOR_EACH(l, &w->open) {
		struct session *s = container_of(l, struct session, link);

		if (atomic_load(&s->door->service->state->gone))
			session_drain(s);
	}
}

/* --- draining ---------------------------------------------------------- */

void
worker_stop_if_empty(struct worker *w)
{
	if (!w->draining || has_sessions(w) ||
	    !accepting_is_over(&w->accepting))
		return;
	/* Sockets may come yet that have clients in their queues. */
	if (w->doors->before != NULL && !w->stopping)
		return;
	loop_cancel(w->loop, &w->drain_timer);
	pool_clear(w->pool);
	loop_stop(w->loop);
}

/* The end, whatever it cuts off. */
static void
stop_all(struct worker *w)
{
	w->stopping = true;
	accepting_stop(&w->accepting);
	LIST_FOR_EACH(l, &w->open)
		session_stop(container_of(l, struct session, link));
	LIST_FOR_EACH(l, &w->ahead)
		session_stop(container_of(l, struct session, link));
	worker_stop_if_empty(w);
}

static void
on_drain(struct mail *m)
{
	struct worker *w = container_of(m, struct worker, drain_mail);

	if (w->draining)
		return;
	w->draining = true;
	accepting_drain(&w->accepting);
	LIST_FOR_EACH(l, &w->open)
		session_drain(container_of(l, struct session, link));
	loop_arm(w->loop, &w->drain_timer,
	    w->setup->config->timeouts.drain);
	worker_stop_if_empty(w);
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
	accepting_give_back(&w->accepting);
	worker_stop_if_empty(w);
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
