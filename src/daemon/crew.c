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
#include "proxy/worker.h"

struct member {
	struct crew	*crew;
	struct worker	*worker;
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
};

static mail_fn	on_all_ended;

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

/* --- making ------------------------------------------------------------ */

static bool
make_worker(struct crew *c, unsigned id)
{
	struct worker *w = worker_new(&(struct worker_opts){
		.id = id,
		.shared = c->opts.shared,
		.setup = c->opts.setup,
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

/*
 * Round robin over all sockets of all addresses, so that an address with
 * fewer sockets than there are workers doesn't always fall to the first.
 */
static bool
adopt_sockets(struct crew *c)
{
	const struct sockets *s = c->opts.sockets;
	unsigned next = 0;

	for (unsigned i = 0; i < s->count; i++) {
		const struct socket_set *set = &s->sets[i];

		if (set->listener == SOCKETS_OF_ADMIN)
			continue;
		for (unsigned j = 0; j < set->count; j++)
			if (!accepting_adopt(
			    &c->workers[next++ % c->count]->accepting,
			    &c->opts.setup->services[set->listener],
			    set->fds[j]))
				return false;
	}
	return true;
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
	c->members = xcalloc(count, sizeof *c->members);
	c->workers = xcalloc(count, sizeof *c->workers);
	for (unsigned i = 0; ok && i < count; i++)
		ok = make_worker(c, i);
	if (!ok || !adopt_sockets(c) || !start_threads(c)) {
		log_say(opts->shared->log, SAY_ERROR,
		    "can't start %u workers: no descriptors or threads",
		    count);
		crew_stop(c);
		crew_free(&c);
	}
	return c;
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
