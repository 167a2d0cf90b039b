/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.h - a worker: what the sessions and exchanges of one thread share.
 *
 * Owner:    worker_new() gives a handle, to whoever starts its thread.
 * Threads:  made and freed by main while the thread doesn't run; otherwise
 *           the worker's own, except what is marked.
 */
#ifndef PENSTOCK_PROXY_WORKER_H
#define PENSTOCK_PROXY_WORKER_H

#include "base/log_writer.h"
#include "base/slab.h"
#include "http/date.h"
#include "net/loop.h"
#include "net/pipe.h"
#include "net/resolver.h"
#include "net/stream.h"
#include "proxy/accepting.h"
#include "proxy/setup.h"
#include "proxy/shared.h"

struct dial_pool;
struct batch;
struct hangups;
struct parser;
struct pool;
struct worker;

struct worker {
	unsigned		 id;
	struct shared		*shared;
	struct doors		*doors;		/* newest; of that setup: */
	struct setup		*setup;
	struct loop		*loop;
	struct blocks		 blocks;
	struct stream_pool	*streams;
	struct stream_totals	 client_totals;		/* read by any */
	struct stream_pool	*upstream_streams;
	struct stream_totals	 upstream_totals;	/* read by any */
	struct pipes		 pipes;			/* figures: any */
	struct batch		*batch;
	struct hangups		*hangups;		/* of clients */
	struct dial_pool	*dials;
	struct pool		*pool;
	struct resolver		*resolver;
	struct resolver_stats	 resolver_stats;	/* read by any */
	struct parser		*parser;
	struct slab		 sessions;
	struct slab		 exchanges;
	struct date		 date;
	struct log_ring		*access_log;	/* NULL: off */
	struct worker_stats	 stats;		/* read by any */
	uint64_t		 next_id;	/* of exchanges */
	uint64_t		 id_mix;	/* makes them unguessable */

	struct list		 open;		/* sessions, but for those */
	struct list		 ahead;		/* with a request in hand */
	struct loop_again	 again;		/* for them */
	struct accepting	 accepting;
	bool			 draining;
	bool			 stopping;	/* whatever that cuts off */
	struct mail		 drain_mail;	/* put by main */
	struct mail		 stop_mail;
	struct wheel_timer	 drain_timer;
};

struct worker_opts {
	bool			 io_uring;	/* if the kernel has it */
	unsigned		 id;
	struct shared		*shared;
	struct log_ring		*access_log;
	struct mail		*unserved;	/* see accepting_init() */
	const char		*nameservers;	/* NULL: the system's */
	const struct hosts	*hosts;
};

/* NULL when the kernel has no more descriptors.  It needs doors to begin. */
struct worker *worker_new(const struct worker_opts *opts) MUST_USE;
void worker_free(struct worker **w);

/* --- from main, while it runs --- */

/*
 * Accept no more; end exchanges and sessions as they come to their end, those
 * left after `timeouts.drain` at once.  Then its loop stops.
 */
void worker_drain(struct worker *w);

/* End everything at once; then its loop stops. */
void worker_stop(struct worker *w);

/* --- for doors.c --- */

/* It has another setup: go by what that says of workers. */
void worker_adjust(struct worker *w);

/* Some listeners are gone: their idle clients are to go, too. */
void worker_dismiss(struct worker *w);

/* --- for sessions --- */

/* One has ended: its permit is free, and draining may be over. */
void worker_session_over(struct worker *w);

/* Draining is over if there is no session, and none will come. */
void worker_stop_if_empty(struct worker *w);

/* Call reading_go_on() in the next turn, of the session with that link. */
void worker_go_on_later(struct worker *w, struct list *link);

/* The date of this turn. */
const char *worker_date(struct worker *w);

static inline nsec_t
worker_now(const struct worker *w)
{
	return loop_now(w->loop);
}

/* Make room for one more descriptor, if there are few left. */
void worker_spare_descriptors(struct worker *w);

#endif
