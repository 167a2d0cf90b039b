/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inherit.h - descriptors that came with the start: from a service manager that
 * listens for us (LISTEN_FDS, LISTEN_FDNAMES; sd_listen_fds(3)), or from the
 * process that this one is to succeed (upgrade.h), which uses the same way.
 *
 * A socket belongs to the listener whose name it has, whatever address it is
 * bound to; one that has no listener's name, to whoever wants its address.
 * Names with @ in front are a predecessor's:
 *
 *	@own	a socket that it bound itself
 *	@kept	one that it was given for its address
 *	@ready	where to say that we serve: see inherit_tell()
 *	@pid	the pid file
 *
 * Owner:    inherit_new() gives a handle; what is taken is the taker's, the
 *           rest is closed with it.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_INHERIT_H
#define PENSTOCK_DAEMON_INHERIT_H

#include <stdio.h>

#include "base/addr.h"

struct conf_addrs;
struct inherit;
struct loop;

/*
 * Read the environment, and take those variables out of it.  Whatever is no
 * listening socket is said on `errors`.
 */
struct inherit *inherit_new(FILE *errors);
void inherit_free(struct inherit **h);

/* What a listener wants. */
struct inherit_wish {
	const char		*listener;	/* its name */
	const struct addr	*at;		/* one of: */
	const struct conf_addrs	*binds;
};

/* What it gets. */
struct inherit_got {
	int		*fds;			/* room for `max` */
	unsigned	 max, count;
	bool		 kept;			/* another has them, too */
	bool		 named;			/* taken for the name */
};

/*
 * The sockets for that address, ready for use.  False if the listener has to
 * bind it itself; true and a count of 0 if another socket of its serves it.
 * A NULL h has none.
 */
bool inherit_take(struct inherit *h, const struct inherit_wish *wish,
    struct inherit_got *got);

/* The descriptor of that name; -1 if there is none. */
int inherit_take_file(struct inherit *h, const char *name);

/* Say of each socket that nobody has taken that it is closed now. */
void inherit_close_rest(struct inherit *h, FILE *errors);

/*
 * We serve.  If there is a predecessor it is told, with what was taken, and
 * ends; `alone` is called when it has understood, or at once if there is none.
 */
void inherit_tell(struct inherit *h, struct loop *loop,
    void (*alone)(void *arg), void *arg);

#endif
