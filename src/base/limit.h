/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit.h - a named limit: a gate, a bucket, paces; plain or by key.
 *
 * Limits live by name in a registry outside the configuration, so that a
 * reload changes their numbers and keeps their counts.  The configuration
 * asks for each with limits_get() and holds a reference while it is in use;
 * whoever has a pass holds the configuration.
 *
 * An exchange passes a limit in two steps: limit_rate() for its bucket, which
 * may be undone with limit_rate_undo(), and limit_enter() for its gate, which
 * limit_leave() ends.  Limits are passed in order of `rank`, and one waits at
 * each while holding only lower ones; that excludes deadlock.
 *
 * In dry run a limit lets everybody through at once, and counts whom it would
 * have held or refused.  So that the count is what it would be, tokens are
 * charged and permits taken all the same, but not by those it would have
 * refused; what can't be known is how long one who would have waited would
 * have been inside, and so he counts as if he were at once.
 *
 * What is read for it while it is inside passes the limit's paces, one for each
 * way: limit_pace().
 *
 * Owner:    the registry; limits_get() adds a reference, limit_unref() ends it.
 * Threads:  limits_get(): main's only; the rest: any worker, with its own
 *           number, below the `workers` that limits_new() was told.  A pass is
 *           one worker's.
 * Limits:   a keyed limit's tables have a fixed size (`keys`), allocated when
 *           the limit is made; see limit_tables().
 */
#ifndef PENSTOCK_BASE_LIMIT_H
#define PENSTOCK_BASE_LIMIT_H

#include <stdatomic.h>

#include "base/adapt.h"
#include "base/choice.h"
#include "base/gate.h"
#include "base/hist.h"
#include "base/keygate.h"
#include "base/pace.h"
#include "base/str.h"

enum { LIMIT_HEADER_MAX = 40 };

/* Whom something is counted for, or gets turns with; enum in choice.h. */
struct limit_by {
	enum limit_key	 what;
	char		 header[LIMIT_HEADER_MAX + 1];	/* its name, or "" */
	uint8_t		 ip4_bits;	/* of an address, that are a client */
	uint8_t		 ip6_bits;
};

/* Where it is first attached; keyed limits rank before all others. */
enum limit_site { LIMIT_AT_UPSTREAM, LIMIT_AT_ROUTE, LIMIT_AT_LISTENER };

/*
 * What became of what a limit let in: there was a response; an upstream that
 * takes no more said so; or none came while anybody waited.
 */
enum limit_outcome { LIMIT_SERVED, LIMIT_TURNED_AWAY, LIMIT_LOST };

/* Ways of bytes: from the client, and to it. */
enum limit_way { LIMIT_IN, LIMIT_OUT, LIMIT_WAYS };

struct limit_spec {
	const char	*name;
	struct limit_by	 key;
	struct limit_by	 turns;		/* unkeyed: who waits is let in by */
	uint64_t	 rate;		/* tokens per rate_span; 0: no bucket */
	nsec_t		 rate_span;	/* 1 s, 1 min or 1 h */
	uint64_t	 burst;		/* bucket_spec_fits() */
	nsec_t		 wait;		/* longest hold for a token */
	enum rate_headers rate_headers;	/* for the caller to heed */
	struct gate_spec gate;		/* per key; limit 0: no gate, or: */
	struct adapt_bounds adapt;	/* unkeyed: the limit finds itself */
	uint64_t	 connections;	/* sessions per key; 0: any */
	uint64_t	 bandwidth[LIMIT_WAYS];	/* bytes a second; 0: any */
	uint64_t	 bandwidth_burst[LIMIT_WAYS];	/* bytes, with it */
	uint64_t	 keys;		/* rows of the tables */
	bool		 allow_when_full; /* table_full = allow */
	bool		 dry_run;	/* gate.dry is the same */
};

static inline bool
limit_is_keyed(const struct limit_spec *s)
{
	return s->key.what != LIMIT_KEY_NONE;
}

static inline bool
limit_is_adaptive(const struct limit_spec *s)
{
	return s->adapt.max != 0;
}

struct limits;
struct limit;

/* What one exchange (or session) has to do with one limit. */
struct limit_pass {
	struct limit		*limit;
	uint64_t		 key;		/* hash; 0 for unkeyed */
	union {
		struct gate_waiter	 waiter;
		struct keygate_waiter	 keyed;	/* begins with a waiter */
	};
	gate_fn			*waited;
	nsec_t			 entered;	/* when the wait began */
	unsigned		 worker;	/* whose wait it is */
	uint32_t		 session_row;	/* of the keyed sessions */
	bool			 charged;	/* a token was taken */
	bool			 inside;	/* a permit is held */
	bool			 session;	/* a session is counted */
	enum failure		 would;		/* be refused for; dry run */
	bool			 adapts;	/* its limit does */
	void			*owner;		/* the caller's, untouched */
};

/* A registry for workers 0 to workers - 1, main's included. */
struct limits *limits_new(unsigned workers, gate_wake_fn *wake, void *arg);

/* Free it and every limit, with no regard to references. */
void limits_free(struct limits **l);

/*
 * The limit of that name with these numbers: the one there is, changed, or a
 * new one; also new when `key` or `keys` changed, the old one living on until
 * its last holder has gone.  Adds a reference.
 */
struct limit *limits_get(struct limits *l, const struct limit_spec *spec,
    enum limit_site site, unsigned worker, nsec_t now);

/*
 * Every worker has come to the end of whatever it did when limits_get() was
 * last called: what that replaced is freed.  Main's.
 */
void limits_settle(struct limits *l, nsec_t now);

/* One more reference, to one that has some; limits_look()'s have. */
void limit_ref(struct limit *limit);

/* End a reference and set *limit to NULL; does nothing if it is NULL. */
void limit_unref(struct limits *l, struct limit **limit);

/* Orders limits: pass lower first.  Never equal for two limits. */
uint32_t limit_rank(const struct limit *limit);

/* Its numbers now; valid, though not current, until limits_settle(). */
const struct limit_spec *limit_spec(const struct limit *limit);

/*
 * The pace of what passes it that way; NULL if any may.  Lives as long as the
 * limit.
 */
struct pace *limit_pace(struct limit *limit, enum limit_way way);

/* Bytes that such a limit takes, with so many workers; and its tables alone. */
size_t limit_memory(const struct limit_spec *spec, unsigned workers);
size_t limit_tables(const struct limit_spec *spec, unsigned workers);

/*
 * Keys: hashes with a secret seed, so that nobody outside can choose two that
 * are equal, and nobody inside can tell what was hashed.  Never 0, nor
 * LIMIT_KEY_ABSENT, which is for those who have nothing to be hashed.
 */
#define LIMIT_KEY_ABSENT	UINT64_C(1)

struct addr;
uint64_t limit_key_of_addr(const struct limits *l, const struct limit_by *by,
    const struct addr *client);
uint64_t limit_key_of_text(const struct limits *l, struct str text);

/* Set *p up for `limit`, of p->owner = NULL; waited: see limit_enter(). */
void limit_pass_init(struct limit_pass *p, struct limit *limit, uint64_t key,
    gate_fn *waited);

/* Where it stands while it waits: the key of its turns, and its class. */
void limit_pass_stand(struct limit_pass *p, uint64_t turns_key,
    enum gate_class class);

/*
 * Take a token.  0: taken (or no bucket).  Otherwise the time after which it
 * would be due: up to the spec's `wait` the token is taken all the same
 * (p->charged) and the caller holds the exchange that long; beyond it none
 * is, and the exchange is refused with that as its Retry-After.  In dry run
 * always 0.
 */
nsec_t limit_rate(struct limit_pass *p, nsec_t now) MUST_USE;

/* It is held for so long: that counts as a wait for this limit. */
void limit_note_hold(const struct limit_pass *p, unsigned worker, nsec_t wait);

/* It is refused for something that the caller has found. */
void limit_note_refusal(const struct limit_pass *p, enum failure why);

/* Give the token back, if one was taken. */
void limit_rate_undo(struct limit_pass *p);

/* The time until there is a token for one who isn't held; 0 without a rate. */
nsec_t limit_token_due(const struct limit_pass *p, nsec_t now);

/*
 * Take a permit.  GATE_TAKEN (also when there is no gate), GATE_WAITS: the
 * pass's function is called later, as in gate.h, with &p->waiter; then
 * p->inside says whether it has the permit.  GATE_REFUSED with *why.  In dry
 * run always GATE_TAKEN, with or without a permit.
 */
enum gate_result limit_enter(struct limit_pass *p, unsigned worker,
    nsec_t now, enum failure *why) MUST_USE;

/*
 * Stop waiting, or give the permit back, whichever is true; nothing if
 * neither.  `why` is what the wait ended with (FAIL_QUEUE_TIMEOUT, ...) or
 * FAIL_NONE; it is counted.
 */
void limit_leave(struct limit_pass *p, unsigned worker, nsec_t now,
    enum failure why);

/*
 * What p let in took so long there, and says something of what is behind the
 * limit; for p->adapts, before limit_leave().  It may change the limit.
 */
void limit_sample(struct limit_pass *p, unsigned worker,
    enum limit_outcome what, nsec_t time, nsec_t now);

/*
 * A session of this key begins, or why not: FAIL_CONNECTION_LIMIT by the
 * `connections` of the spec, FAIL_KEYS_FULL if its keys can't be counted.
 */
enum failure limit_session_begin(struct limit_pass *p) MUST_USE;

/* The same of one that is there already: it counts if there is room. */
void limit_session_count(struct limit_pass *p);

/* It ends; does nothing if none has begun. */
void limit_session_end(struct limit_pass *p);

/* What *from has begun is *to's from now on; of the same limit and key. */
void limit_session_move(struct limit_pass *to, struct limit_pass *from);

/*
 * After how long a refused client may come again, at least 1 ns: when a token
 * is due and, for an unkeyed gate with history, a place in it is likely.
 */
nsec_t limit_retry_after(const struct limit_pass *p, nsec_t now);

/* What a bucket holds, for those who are told. */
struct limit_quota {
	uint64_t	most;		/* tokens in a full one */
	nsec_t		span;		/* in which an empty one is filled */
	uint64_t	left;		/* tokens in it */
	nsec_t		more;		/* until one more is; 0: it is full */
};

/* The bucket of p's limit and key as it is now; false if there is none. */
bool limit_quota(const struct limit_pass *p, nsec_t now,
    struct limit_quota *out) MUST_USE;

/* What the metrics say of one; a copy, but for the name. */
struct limit_state {
	const char		*name;		/* the limit's */
	struct limit		*limit;
	struct gate_state	 gate;		/* keyed: sums, limit a key's */
	uint64_t		 peak;		/* of in use: gate_peak() */
	uint64_t		 holders;	/* passes that are inside */
	bool			 adapts;
	nsec_t			 base;		/* if so: as adapt.h has it */
	uint64_t		 refused[FAIL_COUNT];
	uint64_t		 would_refuse[FAIL_COUNT];	/* dry run */
	uint64_t		 would_wait;
	struct hist		 waits;		/* of those who waited */
	uint64_t		 passed[LIMIT_WAYS];	/* bytes */
	uint64_t		 throttled[LIMIT_WAYS];	/* pace_waited() */
};
typedef void limit_look_fn(void *arg, const struct limit_state *s);

/*
 * The self-check: permits that are given out, by the gate's account, less
 * those that passes hold, by theirs.  0 but for the moment in which one is on
 * its way; what stays is lost, or held twice.  A keyed limit looks at each row
 * of its table.  While many come and go it may be nearer to 0 than what is
 * true, or not known at all: false.
 */
bool limit_unaccounted(const struct limit *limit, int64_t *out) MUST_USE;

/*
 * Call fn for each limit in use; not for one that a newer has replaced.  It may
 * call limit_ref(), and nothing else of the registry.
 */
void limits_look(struct limits *l, nsec_t now, limit_look_fn *fn, void *arg);

/*
 * The same without what is dear or is reset by looking: of *s only name, limit,
 * gate and refused are filled.
 */
void limits_glance(struct limits *l, nsec_t now, limit_look_fn *fn, void *arg);

/* No more than so many does limits_look() find, until the next limits_get(). */
size_t limits_count(struct limits *l);

#endif
