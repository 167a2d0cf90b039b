/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admin.h - the admin listener: what operators and their tools read.
 *
 * What it answers is in admin_site.h.  It runs on main's loop with memory of
 * its own, so it answers while every worker is saturated, and no limit applies
 * to it.
 *
 * Owner:    admin_start() gives a handle.
 * Threads:  main's.
 * Limits:   ADMIN_CLIENTS connections: for one more the one that has asked
 *           nothing for longest is closed, and while all are being answered it
 *           waits.  A head has 8 KiB and 10 s, an answer 30 s to be read, and a
 *           pause between two requests 60 s.  A client has one answer a turn.
 *           One for whose page there is no memory, as others don't read
 *           theirs, is cut.
 */
#ifndef PENSTOCK_DAEMON_ADMIN_H
#define PENSTOCK_DAEMON_ADMIN_H

#include "daemon/admin_site.h"
#include "net/loop.h"

struct admin;

enum { ADMIN_CLIENTS = 64 };

struct admin_opts {
	struct loop	*loop;
	struct site_opts site;
};

/*
 * The budget of the loop's blocks with which some clients that don't read may
 * each have a page of at most so many bytes, and others are still served.
 */
uint64_t admin_budget(size_t page);

/* Most bytes that it takes, that budget and the page in the making included. */
uint64_t admin_memory(size_t page);

struct admin *admin_start(const struct admin_opts *opts);

/* Serve on a listening socket; false without memory, or for one too many. */
bool admin_listen(struct admin *a, int fd) MUST_USE;

/* Accept nobody any more. */
void admin_leave(struct admin *a);

/* Close everything at once. */
void admin_stop(struct admin **a);

#endif
