/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange.h - one request and its response, from head to log line.
 *
 * An exchange begins when the head of a request is complete (tcp: when the
 * connection is there), and ends with its line in the access log.  It goes
 * through the states of exchange_states.def; what each of them does stands in
 * a file of its own:
 *
 *	ROUTE	 routing.c		where does it go, may it?
 *	ADMIT	 admit.c		through its limits
 *	RESOLVE	 connecting.c		a name to addresses
 *	CONNECT	 connecting.c		a server, a connection
 *	RELAY	 relaying.c, responding.c	the two halves
 *	TUNNEL	 tunnelling.c		bytes as they are
 *	REPLY	 exchange.c		an answer of our own
 *	OVER	 exchange.c		everything is given back
 *
 * Owner:    the session, which starts it and is told when it is over.
 * Threads:  its worker's.
 * Promise:  exchange_start() doesn't call the session's `end`; that is called
 *           once, later.
 */
#ifndef PENSTOCK_PROXY_EXCHANGE_H
#define PENSTOCK_PROXY_EXCHANGE_H

#include "base/addr.h"
#include "base/buf.h"
#include "http/body.h"
#include "http/uri.h"
#include "net/flow.h"
#include "net/hangup.h"
#include "net/resolver.h"
#include "net/tunnel.h"
#include "proxy/setup.h"

struct conn;
struct dial;
struct exchange;
struct pool_group;
struct session;
struct worker;

/* How an exchange left its client. */
struct client_end {
	bool		keep;		/* the connection may go on */
	bool		cut;		/* close it at once */
	bool		reset;		/* and the client must see a reset */
	bool		last;		/* it sends no more, as it said */
	uint64_t	skip;		/* bytes of body still to be dropped */
};

/*
 * What a session does for its exchange.  HTTP/1 has one exchange at a time;
 * a session that carries many would have another table.
 */
struct client_ops {
	/* Send a head, our own text, or both.  False: the client is gone. */
	bool		(*send)(struct session *s, const struct iovec *iov,
			    int n);
	/* Where the request's body comes from and the response's goes to. */
	struct stream *	(*stream)(struct session *s);
	/* What was read and not used yet; whoever empties it, clears it. */
	struct block **	(*input)(struct session *s);
	/* Keep bytes that belong to what comes next; false without memory. */
	bool		(*keep)(struct session *s, const uint8_t *bytes,
			    size_t n);
	/* Read on as before: the exchange doesn't any more. */
	void		(*watch)(struct session *s);
	/* Call exchange_on_late() at `due`; NSEC_NEVER: don't. */
	void		(*arm)(struct session *s, nsec_t due);
	/* The stream is the exchange's from now on. */
	struct stream *	(*detach)(struct session *s);
	/* The exchange is over, and freed. */
	void		(*end)(struct session *s, const struct client_end *how);
};

enum exchange_state {
#define WAITS(NAME, ...)	XS_##NAME,
#define FLOWS(NAME, ...)	XS_##NAME,
#define PASSES(NAME, ...)	XS_##NAME,
#include "proxy/exchange_states.def"
	XS_COUNT
};

/* When things happened; 0: they did not. */
struct exchange_times {
	nsec_t		began;		/* first byte of the request */
	nsec_t		asked;		/* its head was complete */
	nsec_t		admitted;
	nsec_t		connecting;	/* first try */
	nsec_t		connected;
	nsec_t		requested;	/* last byte of it sent upstream */
	nsec_t		responded;	/* first byte of the response */
};

struct exchange {
	enum exchange_state	 state;
	enum failure		 why;		/* first cause */
	struct worker		*worker;
	struct session		*session;
	const struct client_ops	*client;
	const struct service	*service;
	struct listener_stats	*stats;		/* the worker's share */
	const struct route	*route;
	const struct addr	*from;		/* the client's address */
	struct str		 from_text;	/* if it is at hand; or "" */
	struct exchange_times	 times;
	nsec_t			 due;		/* of this state; or never */
	nsec_t			 total_due;	/* of `total`; or never */
	nsec_t			 armed;		/* the earlier; 0: neither */
	struct mail		 over;
	struct stream_writer	 reply;		/* REPLY: to the client */

	/* The request; spans point into the arena. */
	struct block		*arena;
	struct head		 request;
	struct target		 target;
	struct authority	 host;		/* it asks for */
	struct framing		 framing;
	struct body		 body;
	bool			 has_head;
	bool			 framing_bad;	/* nobody knows where it ends */
	bool			 expects;	/* Expect, unanswered */
	bool			 upgrades;	/* asks for another protocol */

	/* Admission. */
	struct limit_pass	*passes;	/* in the arena */
	struct throttle		*throttles;	/* also; by way; or NULL */
	unsigned		 pass_count;
	unsigned		 charged;	/* buckets that are behind us */
	unsigned		 admitted;	/* gates that are */
	const struct limit	*refused_by;	/* or its connection; or NULL */
	bool			 holds;		/* until its tokens are due */
	bool			 engaged;	/* and nothing was released */

	/* Upstream. */
	bool			 listed;	/* by its name */
	struct resolve		*resolve;
	const struct addr_set	*addrs;		/* entering CONNECT */
	struct dial		*dial;
	nsec_t			 dialling;	/* since when */
	unsigned		 dials;		/* that failed */
	enum failure		 last_failure;	/* of them */
	struct server		*server;
	struct server		*last_server;	/* for the log */
	uint64_t		 tried;		/* servers, by index */
	struct pool_group	*group;
	struct conn		*conn;
	struct stream		*upstream;	/* the conn's, or our own */
	struct stream_writer	 start;		/* to it: head, no flow */
	struct addr		 upstream_addr;	/* for the log */
	unsigned		 retries;
	bool			 reused;	/* and so, may be dead */
	bool			 was_reused;	/* for the log */
	bool			 fresh_only;	/* after a dead one */

	/* Relaying. */
	union {
		struct {
			struct flow	 up;
			struct flow	 down;
		};
		struct tunnel		 tunnel;	/* in TUNNEL */
	};
	struct buf		 kept;		/* of the request */
	size_t			 keep_most;	/* bytes of it */
	bool			 keeps;		/* it is all there so far */
	bool			 head_sent;	/* of the request */
	bool			 request_done;	/* all read and sent on */
	struct block		*in;		/* part of head or trailers */
	uint32_t		 named;		/* bytes in front of those */
	struct scan		 scan;		/* of the head */
	struct framing		 response_framing; /* as received */
	struct framing		 sent_framing;	/* as sent on */
	struct body		 response_body;
	int			 response_status; /* of the final head */
	bool			 has_response;	/* that has come */
	bool			 trailers;	/* of it go on */
	bool			 begun;		/* its first byte went out */
	bool			 upstream_keep;	/* may be used again */
	nsec_t			 upstream_keep_for;
	unsigned		 interims;	/* 1xx so far */
	uint8_t			*early;		/* after a 101 */
	size_t			 early_length;
	bool			 tunnelling;	/* `tunnel` is running */

	/* How it leaves its client. */
	bool			 close;		/* the connection */
	bool			 cut;		/* the response is incomplete */
	bool			 lingers;	/* and framing shows it */
	bool			 half_closed;	/* the client has sent FIN */
	uint64_t		 skip;		/* of the body, unread */
	struct hangup		 hangup;	/* the client's */
	bool			 minds;		/* it: see leaving.h */

	/* For the log and the reply. */
	int			 status;
	uint64_t		 id;
	uint64_t		 bytes_in;	/* content from the client */
	uint64_t		 bytes_out;	/* and to it */
	uint64_t		 retry_after;	/* seconds */
	const char		*allow;		/* for 405 */
};

struct exchange_opts {
	struct worker		*worker;
	struct session		*session;
	const struct client_ops	*client;
	const struct service	*service;
	const struct addr	*from;
	struct str		 from_text;	/* of an IPv4 address; or "" */
	const struct limit	*refused_by;	/* the connection; or NULL */
	nsec_t			 began;
	bool			 to_head;	/* which can't be read */
};

/* NULL at the bound. */
struct exchange *exchange_new(const struct exchange_opts *opts) MUST_USE;

/*
 * Begin with this head (which is copied), or without one (tcp), or, if `why`
 * is not FAIL_NONE, with the answer to a request that could not be read.
 */
void exchange_start(struct exchange *x, const struct head *head,
    enum failure why);

/* The time given to client->arm() has come. */
void exchange_on_late(struct exchange *x);

/* The client's connection broke. */
void exchange_on_client_lost(struct exchange *x);

/* There was no memory for what it sent: that is missing from now on. */
void exchange_on_input_dropped(struct exchange *x);

/* The process stops: end it now, whatever that cuts off. */
void exchange_stop(struct exchange *x, enum failure why);

/* --- for the states' own files --- */

/* Wait in this state until `due` at most, or `total`'s end. */
void exchange_arm(struct exchange *x, nsec_t due);

/* Move on to `next`, from an event. */
void exchange_run(struct exchange *x, enum exchange_state next);

/* Note the failure, and say where it leads. */
enum exchange_state exchange_failed(struct exchange *x, enum failure why);

/* exchange_run(exchange_failed()): from an event. */
void exchange_fail(struct exchange *x, enum failure why);

/*
 * Give back what was taken upstream since admission, once; harmless later.  A
 * connection that is still there is closed; only whoever has read a response to
 * its end may have given it to the pool before.
 */
void exchange_release_upstream(struct exchange *x);

/*
 * No request is taken from the client after this one: it has said so, or has
 * sent FIN and nothing that would be another request; or we won't, by the
 * configuration, since the worker drains, or its listener is gone.
 */
bool exchange_is_last(const struct exchange *x);

/* The response's first byte has been handed to the client. */
void exchange_begin_response(struct exchange *x, int status);

#endif
