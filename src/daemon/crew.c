/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crew.c - the workers and their threads; see crew.h.
 */
#include "daemon/crew.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop.h"
#include "proxy/doors.h"
#include "proxy/worker.h"

struct member {
	struct crew	*crew;
	struct worker	*worker;
	struct doors	*doors;		/* the newest */
	pthread_t	 thread;
	bool		 started;
};

struct crew {
	struct crew_opts	 opts;
	struct member		*members;
	struct worker		**workers;	/* the same, for others */
	unsigned		 count;
	_Atomic unsigned	 running;
	struct mail		 ended;
	struct mail		 unserved;
	unsigned		 moving;	/* workers, by a new setup */
	bool			 entered;	/* all have, and open it now */
};

static mail_fn	on_all_ended, on_unserved;
static void	on_moved(void *arg);

static void *
run(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;
	char name[16];

	snprintf(name, sizeof name, "worker-%u", m->worker->id);
	pthread_setname_np(pthread_self(), name);
	loop_run(m->worker->loop);
	if (atomic_fetch_sub(&c->running, 1) == 1)
		loop_post(c->opts.main_loop, &c->ended);
	return NULL;
}

static void
on_all_ended(struct mail *mail)
{
	struct crew *c = container_of(mail, struct crew, ended);

	c->opts.all_ended(c->opts.arg);
}

static void
on_unserved(struct mail *mail)
{
	struct crew *c = container_of(mail, struct crew, unserved);

	c->opts.unserved(c->opts.publisher);
}

/* --- making ------------------------------------------------------------ */

static bool
make_worker(struct crew *c, unsigned id)
{
	struct worker *w = worker_new(&(struct worker_opts){
		.id = id,
		.shared = c->opts.shared,
		.io_uring = c->opts.setup->config->penstock.io_uring !=
		    IF_IT_PAYS_OFF,
		.unserved = &c->unserved,
		.access_log = c->opts.access_log == NULL ? NULL :
		    log_writer_ring(c->opts.access_log, id),
		.nameservers = c->opts.nameservers,
		.hosts = c->opts.hosts,
	});

	if (w == NULL)
		return false;
	c->members[id].crew = c;
	c->members[id].worker = w;
	c->workers[id] = w;
	c->count++;
	return true;
}

static void
make_doors(struct crew *c, struct setup *setup, const struct sockets *s)
{
	for (unsigned i = 0; i < c->count; i++) {
		struct doors_opts opts = {
			.worker = c->workers[i],
			.setup = setup,
			.moved = on_moved,
			.arg = c,
		};

		opts.socket_count = sockets_of_worker(s, i, &opts.sockets);
		c->members[i].doors = doors_new(&opts);
	}
}

static bool
begin(struct crew *c)
{
	bool ok = true;

	make_doors(c, c->opts.setup, c->opts.sockets);
	for (unsigned i = 0; i < c->count; i++)
		if (!doors_begin(c->members[i].doors))
			ok = false;
	return ok;
}

static bool
start_threads(struct crew *c)
{
	atomic_store(&c->running, c->count);
	for (unsigned i = 0; i < c->count; i++) {
		struct member *m = &c->members[i];

		if (pthread_create(&m->thread, NULL, run, m) != 0) {
			/* Those that were not started count as ended. */
			atomic_fetch_sub(&c->running, c->count - i);
			return false;
		}
		m->started = true;
	}
	return true;
}

struct crew *
crew_new(const struct crew_opts *opts)
{
	unsigned count = opts->shared->workers;
	struct crew *c = xcalloc(1, sizeof *c);
	bool ok = true;

	c->opts = *opts;
	mail_init(&c->ended, on_all_ended);
	mail_init(&c->unserved, on_unserved);
	c->members = xcalloc(count, sizeof *c->members);
	c->workers = xcalloc(count, sizeof *c->workers);
	for (unsigned i = 0; ok && i < count; i++)
		ok = make_worker(c, i);
	if (!ok || !begin(c) || !start_threads(c)) {
		log_say(opts->shared->log, SAY_ERROR,
		    "can't start %u workers: no descriptors or threads",
		    count);
		crew_stop(c);
		crew_free(&c);
	}
	return c;
}

/* --- another setup ----------------------------------------------------- */

static void
post_all(struct crew *c)
{
	c->moving = c->count;
	for (unsigned i = 0; i < c->count; i++)
		doors_post(c->members[i].doors);
}

void
crew_publish(struct crew *c, struct setup *setup, const struct sockets *s)
{
	ASSERT(c->moving == 0);
	make_doors(c, setup, s);
	c->entered = false;
	post_all(c);
}

static void
on_moved(void *arg)
{
	struct crew *c = arg;

	if (--c->moving > 0)
		return;
	if (!c->entered) {
		c->entered = true;
		post_all(c);
	} else
		c->opts.published(c->opts.publisher);
}

/* --- ending ------------------------------------------------------------ */

void
crew_drain(struct crew *c)
{
	for (unsigned i = 0; i < c->count; i++)
		worker_drain(c->workers[i]);
}

void
crew_stop(struct crew *c)
{
	for (unsigned i = 0; i < c->count; i++)
		worker_stop(c->workers[i]);
}

void
crew_free(struct crew **crew)
{
	struct crew *c = *crew;

	if (c == NULL)
		return;
	*crew = NULL;
	for (unsigned i = 0; i < c->count; i++)
		if (c->members[i].started)
			pthread_join(c->members[i].thread, NULL);
	for (unsigned i = 0; i < c->count; i++)
		worker_free(&c->members[i].worker);
	free(c->workers);
	free(c->members);
	free(c);
}

struct worker *const *
crew_workers(const struct crew *c)
{
	return c->workers;
}
