/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crew.h - the workers and their threads.
 *
 * Owner:    crew_new() gives a handle.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_CREW_H
#define PENSTOCK_DAEMON_CREW_H

#include "base/log_writer.h"
#include "daemon/sockets.h"
#include "proxy/setup.h"
#include "proxy/shared.h"

struct crew;
struct hosts;
struct worker;

struct crew_opts {
	struct shared		*shared;
	struct setup		*setup;		/* the first */
	const struct sockets	*sockets;
	struct log_writer	*access_log;	/* a ring each; or NULL */
	const char		*nameservers;	/* NULL: the system's */
	const struct hosts	*hosts;
	struct loop		*main_loop;
	/* On main's loop: every worker's thread has come to its end. */
	void			(*all_ended)(void *arg);
	void			*arg;
	/* Also: all go by what crew_publish() gave them. */
	void			(*published)(void *publisher);
	/* Also: a socket that left isn't served any more. */
	void			(*unserved)(void *publisher);
	void			*publisher;
};

/*
 * Make the workers, have them adopt the sockets round robin, and start their
 * threads.  NULL, said in the log, if one can't be made.
 */
struct crew *crew_new(const struct crew_opts *opts);

/*
 * Have all workers go by another setup, with the sockets there are now: see
 * doors.h.  `published` follows; not before that another.
 */
void crew_publish(struct crew *c, struct setup *setup,
    const struct sockets *sockets);

/* Have all of them drain, or stop at once; all_ended follows. */
void crew_drain(struct crew *c);
void crew_stop(struct crew *c);

/* After all_ended. */
void crew_free(struct crew **c);

struct worker *const *crew_workers(const struct crew *c);

#endif
