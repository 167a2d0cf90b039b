/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hangup.h - who is at the other end of a socket goes, and nobody reads it.
 *
 * The loop tells of an end as of something to read: not while reading isn't
 * wanted, and behind all bytes that came before.  Here bytes wake nobody, only
 * a FIN or the connection's breaking does, as soon as it comes.  That takes two
 * system calls for each descriptor, and so is for the few that must wait.
 *
 * Owner:    hangups_new() gives a handle, whose loop outlives it.  A hangup is
 *           its owner's, who embeds it; so is the descriptor.
 * Threads:  the loop's.
 * Promise:  the function runs in a turn of the loop, never in hangups_add(),
 *           and not after hangups_remove().
 */
#ifndef PENSTOCK_NET_HANGUP_H
#define PENSTOCK_NET_HANGUP_H

#include "base/defs.h"

struct hangup;
struct hangups;
struct loop;

/*
 * A FIN has come, or the connection is broken: which of them, the socket has
 * to be asked.  Once for each, and once if it was so from the beginning.
 */
typedef void hangup_fn(struct hangup *h);

struct hangup {
	hangup_fn	*fn;		/* the owner's to set */
};

/* NULL if the kernel gives no descriptor for it. */
struct hangups *hangups_new(struct loop *loop) MUST_USE;
void hangups_free(struct hangups **h);

/*
 * Tell h about fd, which is not told about yet.  If the kernel will watch no
 * more descriptors, it is told nothing.
 */
void hangups_add(struct hangups *hs, int fd, struct hangup *h);

/* No more; before fd is closed. */
void hangups_remove(struct hangups *hs, int fd);

#endif
