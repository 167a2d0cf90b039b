/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sockets.h - the listening sockets of the process, and its addresses.
 *
 * Every address is bound once, before anything is served and before privileges
 * are dropped, with a fixed number of sockets each (one for each worker).
 *
 * Owner:    sockets_new() gives a handle; the descriptors stay open until
 *           sockets_free().
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_SOCKETS_H
#define PENSTOCK_DAEMON_SOCKETS_H

#include <stdio.h>

#include "base/addr.h"
#include "config/config.h"

enum { SOCKETS_PER_ADDRESS = 64 };

/* The sockets of one address. */
struct socket_set {
	struct addr	 addr;		/* as bound: port 0 is resolved */
	int		 fds[SOCKETS_PER_ADDRESS];
	unsigned	 count;
	int		 listener;	/* index in the configuration, or: */
};

enum { SOCKETS_OF_ADMIN = -1 };

struct sockets {
	struct socket_set	*sets;
	unsigned		 count;
	struct addr		*own;	/* the address of each set */
	struct addr		*local;	/* all addresses of this machine */
	unsigned		 local_count;
};

/*
 * Bind everything that c names, with `workers` sockets an address.  NULL when
 * something can't be bound: all of that is written to `errors`, a line each.
 */
struct sockets *sockets_new(const struct config *c, unsigned workers,
    FILE *errors);
void sockets_free(struct sockets **s);

#endif
