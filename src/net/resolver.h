/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolver.h - names to addresses, with a cache; resolver_dns.c is on c-ares.
 *
 * A literal address, `localhost`, a name in the hosts table or in the cache is
 * answered at once; for others the caller waits.  Several who ask for one
 * name wait for one look-up.  An answer is kept for its TTL, a "no such name"
 * for a short time; when all servers fail, the last good answer is used.
 *
 * Names are asked for as they are, never with a search domain.
 *
 * Owner:    resolver_new() gives a handle; each resolve_start() one more,
 *           the caller's until `done` runs or resolve_cancel().
 * Threads:  the loop's; the hosts table is shared and constant.
 * Promise:  `done` runs once, never inside resolve_start(), and not after
 *           resolve_cancel().  It comes within `timeout`, whatever servers do.
 * Limits:   RESOLVER_NAMES cached, RESOLVER_ADDRS a name, RESOLVER_ASKING
 *           look-ups at once.
 */
#ifndef PENSTOCK_NET_RESOLVER_H
#define PENSTOCK_NET_RESOLVER_H

#include "base/addr.h"
#include "net/loop.h"

enum { RESOLVER_ADDRS = 8, RESOLVER_NAMES = 4096, RESOLVER_ASKING = 1024 };

/* Addresses of a name; ports are those asked for. */
struct addr_set {
	unsigned	count;
	struct addr	addrs[RESOLVER_ADDRS];
};

enum resolve_result {
	RESOLVE_KNOWN,		/* *out is filled */
	RESOLVE_WAITS,		/* done comes */
	RESOLVE_NONE,		/* there is no such name, or it is no name */
	RESOLVE_FAILED,		/* servers said nothing useful */
	RESOLVE_LATE,		/* they said nothing in time */
};

/* How a look-up ended: RESOLVE_KNOWN with a set, or another without. */
typedef void resolve_done_fn(void *arg, enum resolve_result result,
    const struct addr_set *set);

struct hosts;
struct resolve;
struct resolver;

/* Read a file like /etc/hosts; one that can't be read has no names. */
struct hosts *hosts_read(const char *path);
void hosts_free(struct hosts **h);

struct resolver_stats {
	_Atomic uint64_t	found;		/* by look-up */
	_Atomic uint64_t	none;
	_Atomic uint64_t	failed;
	_Atomic uint64_t	late;
	_Atomic uint64_t	cached;		/* answered from the cache */
	struct hist		time;		/* of look-ups */
};

struct resolver_opts {
	const char		*servers;	/* ip:port,...; NULL: system */
	const struct hosts	*hosts;		/* or NULL; outlives it */
	struct resolver_stats	*stats;		/* the caller's */
};

/* Once, in main, before any resolver, with no thread running; -errno. */
int resolver_global_init(void) MUST_USE;
void resolver_global_fini(void);

/*
 * 0 and *out, or -errno: -EINVAL if `servers` are no addresses with ports, or
 * more than eight.  Reads /etc/resolv.conf here and never again.
 */
int resolver_new(struct resolver **out, struct loop *loop,
    const struct resolver_opts *opts) MUST_USE;

/* Everybody who waits must have cancelled; it may happen inside `done`. */
/* Most bytes that one takes while so many wait. */
uint64_t resolver_memory(uint64_t waiting);
void resolver_free(struct resolver **r);

struct resolve_opts {
	const char		*name;		/* not NUL-terminated */
	size_t			 length;
	uint16_t		 port;
	nsec_t			 timeout;
	resolve_done_fn		*done;
	void			*arg;
};

/*
 * With RESOLVE_WAITS a handle in *handle; else it is NULL.  Addresses come in
 * the order in which to try them, see reach.h.
 */
enum resolve_result resolve_start(struct resolve **handle,
    struct resolver *r, const struct resolve_opts *opts,
    struct addr_set *out) MUST_USE;

void resolve_cancel(struct resolve **handle);

/*
 * Could it be a name at all?  253 bytes, labels of 1 to 63 letters, digits,
 * hyphens and underscores; one final dot is fine.  No address is a name, nor
 * what some take for one: 127.1, 2130706433, 0x7f000001.
 */
bool resolver_is_name(const char *name, size_t n);

#endif
