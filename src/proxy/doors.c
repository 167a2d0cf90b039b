/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doors.c - the ways into a worker; see doors.h.
 */
#include "proxy/doors.h"

#include <stdlib.h>

#include "proxy/session.h"
#include "proxy/worker.h"

static mail_fn	on_post, on_moved, on_settle, on_ease, on_left;

struct doors *
doors_new(const struct doors_opts *opts)
{
	struct setup *s = opts->setup;
	struct doors *d = xcalloc(1, sizeof *d +
	    s->service_count * sizeof d->at[0]);

	d->opts = *opts;
	d->worker = opts->worker;
	d->setup = s;
	d->users = 1;			/* until others take their place */
	mail_init(&d->post, on_post);
	mail_init(&d->moved, on_moved);
	mail_init(&d->settle, on_settle);
	mail_init(&d->ease, on_ease);
	mail_init(&d->left, on_left);
	for (unsigned i = 0; i < s->service_count; i++)
		d->at[i] = (struct door){ d->worker, &s->services[i], d };
	setup_hold(s);
	list_init(&d->link);
	list_add_last(&s->doors, &d->link);
	return d;
}

void
doors_free(struct doors *d)
{
	list_remove(&d->link);
	free(d->opts.sockets);
	free(d);
}

static struct loop *
main_loop(const struct doors *d)
{
	const struct shared *shared = d->worker->shared;

	return shared->loops[shared->workers];
}

/* --- coming and going -------------------------------------------------- */

/* Whoever is in the middle of something may still look at the setup. */
static void
settle_later(struct doors *d)
{
	if (d->users == d->tunnels)
		loop_later(d->worker->loop, &d->settle);
}

static void
on_settle(struct mail *m)
{
	struct doors *d = container_of(m, struct doors, settle);
	struct loop *loop = main_loop(d);
	bool all_left = d->users == 0;

	ASSERT(d->users == d->tunnels);
	if (!d->eased)
		loop_post(loop, &d->ease);
	d->eased = true;
	if (all_left)
		loop_post(loop, &d->left);	/* may be gone now */
}

static void
leave(struct doors *d)
{
	ASSERT(d->users > d->tunnels);
	d->users--;
	settle_later(d);
}

void
door_leave(struct door *d)
{
	leave(d->doors);
}

void
door_tunnel_begins(struct door *at)
{
	at->doors->tunnels++;
	settle_later(at->doors);
}

void
door_tunnel_leaves(struct door *at)
{
	at->doors->tunnels--;
	at->doors->users--;
	settle_later(at->doors);
}

static void
on_ease(struct mail *m)
{
	setup_ease(container_of(m, struct doors, ease)->setup);
}

static void
on_left(struct mail *m)
{
	struct doors *d = container_of(m, struct doors, left);
	struct setup *s = d->setup;

	doors_free(d);
	setup_release(s);
}

static struct door *
find(struct doors *d, const struct listener_state *state)
{
	struct service *service = setup_find(d->setup, state);

	return service == NULL ? NULL :
	    &d->at[service - d->setup->services];
}

struct door *
doors_find(const struct worker *w, const struct listener_state *state)
{
	struct door *d = find(w->doors, state);

	if (d == NULL && w->doors->before != NULL)
		d = find(w->doors->before, state);
	ASSERT(d != NULL);
	return d;
}

struct door *
doors_follow(const struct door *at)
{
	return find(at->worker->doors, at->service->state);
}

/* --- a reload ---------------------------------------------------------- */

static void
use_upstreams(const struct setup *s, const struct setup *before,
    unsigned worker)
{
	for (size_t i = 0; i < s->upstream_count; i++)
		upstream_use(s->upstreams[i], worker, s->round);
	for (size_t i = 0; before != NULL && i < before->upstream_count; i++)
		upstream_disuse(before->upstreams[i], worker, s->round);
}

static bool
is_any_gone(const struct setup *s)
{
	for (unsigned i = 0; i < s->service_count; i++)
		if (atomic_load(&s->services[i].state->gone))
			return true;
	return false;
}

/* ENTER. */
static void
enter(struct doors *d)
{
	struct worker *w = d->worker;
	struct doors *before = w->doors;
	const struct setup *old = before == NULL ? NULL : before->setup;

	d->entered = true;
	d->before = before;
	use_upstreams(d->setup, old, w->id);
	w->doors = d;
	w->setup = d->setup;
	worker_adjust(w);
	accepting_change(&w->accepting, d);
	if (old != NULL && is_any_gone(old))
		worker_dismiss(w);
}

/* OPEN. */
static bool
open_doors(struct doors *d)
{
	struct doors *before = d->before;
	bool ok = accepting_open(&d->worker->accepting, d);

	d->before = NULL;
	if (before != NULL)
		leave(before);
	worker_stop_if_empty(d->worker);
	return ok;
}

bool
doors_begin(struct doors *d)
{
	enter(d);
	return open_doors(d);
}

static void
on_post(struct mail *m)
{
	struct doors *d = container_of(m, struct doors, post);
	struct worker *w = d->worker;

	if (!d->entered)
		enter(d);
	else if (!open_doors(d))
		log_say(w->shared->log, SAY_ERROR, "worker %u can't serve all "
		    "listeners: no memory", w->id);
	loop_post(main_loop(d), &d->moved);
}

void
doors_post(struct doors *d)
{
	loop_post(d->worker->loop, &d->post);
}

static void
on_moved(struct mail *m)
{
	struct doors *d = container_of(m, struct doors, moved);

	d->opts.moved(d->opts.arg);
}
