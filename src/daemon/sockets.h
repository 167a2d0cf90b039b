/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sockets.h - the listening sockets of the process, and its addresses.
 *
 * Every address has a fixed number of sockets (one for each worker), bound when
 * it is first configured: those of the start before anything is served and
 * before privileges are dropped.  A reload binds what is new, or nothing:
 *
 *	sockets_prepare()	what is new is bound, or can't be
 *	sockets_commit()	that counts; what isn't wanted any more leaves
 *	sockets_abandon()	or: what was bound is closed, all is as it was
 *
 * What leaves is open until its last client is out of the queue.  If it is
 * wanted again before, it stays.
 *
 * Owner:    sockets_new() gives a handle; the descriptors stay open until
 *           sockets_sweep() or sockets_free().
 * Threads:  main's, but for a set's `served`.
 */
#ifndef PENSTOCK_DAEMON_SOCKETS_H
#define PENSTOCK_DAEMON_SOCKETS_H

#include <stdatomic.h>
#include <stdio.h>

#include "base/addr.h"
#include "base/list.h"
#include "config/config.h"
#include "proxy/doors.h"
#include "proxy/setup.h"

enum { SOCKETS_PER_ADDRESS = 64 };

/* `listener`, if it is no index of the configuration in use. */
enum { SOCKETS_OF_ADMIN = -1, SOCKETS_LEAVING = -2 };

/* The sockets of one address. */
struct socket_set {
	struct list	 link;
	struct addr	 wanted;	/* as configured */
	struct addr	 addr;		/* as bound: port 0 is resolved */
	int		 fds[SOCKETS_PER_ADDRESS];
	uint8_t		 workers[SOCKETS_PER_ADDRESS];	/* who serves which */
	unsigned	 count;
	int		 listener;
	int		 next;		/* by what is prepared */
	atomic_uint	 served;	/* of them, by workers */
};

struct sockets {
	struct list	 sets;		/* struct socket_set */
	struct list	 coming;	/* prepared */
	unsigned	 count;		/* of sets */
	unsigned	 workers;
	unsigned	 turn;		/* whose worker the next one is */
};

#define FOR_EACH_SOCKET_SET(set, s)					\
	for (struct socket_set *set = sockets_next((s), NULL);		\
	    set != NULL; set = sockets_next((s), set))

/*
 * Bind everything that c names, with `workers` sockets an address.  NULL when
 * something can't be bound: all of that is written to `errors`, a line each.
 */
struct sockets *sockets_new(const struct config *c, unsigned workers,
    FILE *errors);
void sockets_free(struct sockets **s);

/* The set after that one, or the first after NULL; NULL at the end. */
struct socket_set *sockets_next(const struct sockets *s,
    const struct socket_set *set);

/* For a reload; false, said on `errors`, if something can't be bound. */
bool sockets_prepare(struct sockets *s, const struct config *c,
    FILE *errors) MUST_USE;
void sockets_commit(struct sockets *s);
void sockets_abandon(struct sockets *s);

/* Close what leaves and isn't served any more; how many still are. */
unsigned sockets_sweep(struct sockets *s);

/* Tell *setup what is listened on. */
void sockets_tell(const struct sockets *s, struct setup *setup);

/* Those of one worker, in memory of their own; how many. */
unsigned sockets_of_worker(const struct sockets *s, unsigned worker,
    struct door_socket **out);

#endif
