/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - a client connection: from accept to close.
 *
 * A session reads heads and gives each to an exchange, one after another;
 * what the client sends ahead of its turn waits in one block, then in the
 * kernel.
 *
 *	       first byte      head complete         over, keep
 *	IDLE -----------> HEAD ------------> EXCHANGE -----------> IDLE
 *	  |                |                     | over, close
 *	  v                v                     v
 *	close          (answer)                LINGER ----> close
 *
 * Owner:    its worker, on whose list it is.
 * Threads:  its worker's.
 */
#ifndef PENSTOCK_PROXY_SESSION_H
#define PENSTOCK_PROXY_SESSION_H

#include "base/addr.h"
#include "base/limit.h"
#include "http/scan.h"
#include "net/stream.h"

struct exchange;
struct door;

enum session_state { SS_IDLE, SS_HEAD, SS_EXCHANGE, SS_LINGER };

/*
 * There may be a hundred thousand of them, most idle: what only one state
 * needs shares its place with what only another does.
 */
struct session {
	struct list		 link;		/* of the worker's sessions */
	struct door		*door;		/* it came in by */
	struct stream		*stream;	/* NULL: a tunnel took it */
	struct block		*in;		/* read, not used yet */
	struct limit_pass	*passes;	/* or NULL */
	union {
		uint64_t	 skip;		/* IDLE: of an unread body */
		struct {			/* HEAD */
			nsec_t		 began;	/* first byte */
			struct scan	 scan;	/* of what is in `in` */
		};
		struct exchange	*exchange;	/* EXCHANGE */
		struct {			/* LINGER */
			uint64_t		 lingered; /* dropped */
			struct stream_writer	 flushed;
		};
	};
	struct wheel_timer	 timer;
	struct addr		 client;
	uint8_t			 state;
	bool			 ended;		/* the client has sent FIN */
	bool			 to_head;	/* what can't be read */
};

/*
 * Serve the connection fd, which came in by that door of its worker; it is
 * closed if that is not possible.  Uses up the worker's session permit either
 * way.
 */
void session_start(struct door *d, int fd, const struct addr *from);

/* It is the turn of what the client has sent ahead: worker_go_on_later(). */
void session_go_on(struct session *s);

/* The worker drains: end at the next chance, or after a second's idleness. */
void session_drain(struct session *s);

/* End at once. */
void session_stop(struct session *s);

#endif
