/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doors.h - the ways into a worker, by one setup: a door for each service.
 *
 * How a reload reaches the workers.  Main makes the next setup, and for each
 * worker its doors, with the sockets that it serves.  Then:
 *
 *	main		doors_post() ------> every worker: ENTER
 *	a worker	goes by the new doors from here on: those of its
 *			sockets that stay lead to them, those that go begin to
 *			leave; pools follow.  What runs, runs on by the old.
 *			<------ `moved`
 *	main		when all have: doors_post() ------> every worker: OPEN
 *	a worker	serves the sockets that are new, and gives up its hold
 *			on the old doors.
 *			<------ `moved`
 *	main		when all have, the reload is over; it may begin another.
 *
 * Why twice: a connection that one worker accepts may be handed to another,
 * which has another setup for a moment.  It finds the door by the listener: in
 * its own setup or the one before, since new listeners open only when everybody
 * has them, and the doors before are kept until nobody hands over by them.
 *
 * A session holds the doors that it came in by, so their setup, with all that
 * an exchange has pointers to.  At its next request it moves to the newest that
 * the worker has, unless its listener is gone: then that is its last.  The last
 * to leave old doors tells main, which frees them, and with the last of its
 * doors the setup.  Tunnels, which may last, are told apart: when they alone
 * are left, main is told that, too.  So nothing of this is shared by workers:
 * `users` is the worker's, `holds` of the setup is main's.
 *
 * Owner:    the setup, on whose list they are.
 * Threads:  made and freed by main; the rest the worker's.
 */
#ifndef PENSTOCK_PROXY_DOORS_H
#define PENSTOCK_PROXY_DOORS_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/mail.h"

struct doors;
struct listener_state;
struct service;
struct setup;
struct worker;

/*
 * A service at one worker: where sessions come in, through whichever socket of
 * whichever worker.
 */
struct door {
	struct worker		*worker;
	struct service		*service;
	struct doors		*doors;
};

/* A listening socket that this worker serves, for a service by its index. */
struct door_socket {
	int			 fd;
	unsigned		 service;
	atomic_uint		*served;	/* sockets of its address */
};

struct doors_opts {
	struct worker		*worker;
	struct setup		*setup;
	struct door_socket	*sockets;	/* the doors' from now on */
	unsigned		 socket_count;
	/* On main's loop: the worker has done what was posted. */
	void			(*moved)(void *arg);
	void			*arg;
};

struct doors {
	struct doors_opts	 opts;
	struct worker		*worker;
	struct setup		*setup;
	struct doors		*before;	/* between ENTER and OPEN */
	unsigned		 users;		/* sessions, sockets, ... */
	unsigned		 tunnels;	/* of them */
	bool			 eased;		/* and told main of it */
	bool			 entered;
	struct mail		 post;		/* to the worker */
	struct mail		 moved;		/* to main */
	struct mail		 settle;	/* the worker's own */
	struct mail		 ease;		/* tunnels alone are left */
	struct mail		 left;		/* the last has */
	struct list		 link;		/* of the setup; main's */
	struct door		 at[];		/* by index of the service */
};

struct doors *doors_new(const struct doors_opts *opts);

/* For setup.c, when nobody runs any more. */
void doors_free(struct doors *d);

/* First ENTER, then OPEN: see above. */
void doors_post(struct doors *d);

/* The same at once, of a worker that doesn't run yet.  False: no memory. */
bool doors_begin(struct doors *d) MUST_USE;

/* Where that listener's connections come in; by the newest doors with it. */
struct door *doors_find(const struct worker *w,
    const struct listener_state *state);

/* The same listener in the newest doors; NULL if it isn't there. */
struct door *doors_follow(const struct door *at);

/*
 * Somebody uses a door; or does no more, nor its setup, which are there until
 * the end of the turn.
 */
static inline void
door_enter(struct door *d)
{
	d->doors->users++;
}

void door_leave(struct door *d);

/* A session has become a tunnel; and leaves. */
void door_tunnel_begins(struct door *d);
void door_tunnel_leaves(struct door *d);

#endif
