/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - a client connection: from accept to close.
 *
 * A session finds heads in what the client sends (reading.h) and gives each to
 * an exchange, one after another.  It is born with a permit, passes the limits
 * on connections, and dies in one of many ways; in between one timer and one
 * reader serve whatever state it is in.
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
#include "base/failure.h"
#include "base/limit.h"
#include "http/scan.h"
#include "net/stream.h"
#include "proxy/doors.h"
#include "proxy/worker.h"

struct exchange;
struct head;
struct timeouts;

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
	char			 client_text[ADDR_IP4_TEXT]; /* if IPv4 */
	uint8_t			 client_text_length;
	uint8_t			 state;
	bool			 ended;		/* the client has sent FIN */
	bool			 to_head;	/* what can't be read */
	bool			 tunnels;	/* that took its stream */
};

/*
 * Serve the connection fd, which came in by that door of its worker; it is
 * closed if that is not possible.  Uses up the worker's session permit either
 * way.
 */
void session_start(struct door *d, int fd, const struct addr *from);

/*
 * The worker drains, or its listener is gone: end at the next chance, or after
 * a second's idleness.
 */
void session_drain(struct session *s);

/* End at once. */
void session_stop(struct session *s);

/* --- for reading.c: what comes of what was read --- */

/*
 * A request begins: by the newest setup that the worker has, if the listener is
 * in it.
 */
void session_change_door(struct session *s);

static inline void
session_follow(struct session *s)
{
	if (UNLIKELY(s->door->doors != s->door->worker->doors))
		session_change_door(s);
}

/*
 * Give the request to an exchange: its head; or NULL and why there is none,
 * FAIL_NONE if there needs to be none (tcp).  *s may be gone after it.
 */
void session_exchange(struct session *s, const struct head *head,
    enum failure why);

/*
 * Close it now; or when the client had a chance to read what it was sent,
 * which is now as well if it has sent its `last` request whole.
 */
void session_close(struct session *s);
void session_linger(struct session *s, bool last);

/* Read what the client sends, unless it has ended or the stream is gone. */
void session_watch(struct session *s);

/*
 * It may stay idle for so long; for a second at most if the worker drains, or
 * its listener is gone.
 */
void session_wait(struct session *s, nsec_t time);

const struct timeouts *session_timeouts(const struct session *s);

#endif
