/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h - what is known about names, and for how long.
 *
 * The resolver's cache, without the asking: a bounded table of names, each
 * with its last answer.  It reads no clock; the caller says what time it is.
 *
 *	answered        until             good_until
 *	 |--- fresh ------|--- last good answer ---|
 *
 * While fresh the answer is used as it is.  After that somebody asks again;
 * if that fails, the last good addresses are used for up to an hour more.
 *
 * A name in use (somebody asks for it) is pinned; of the others, the one not
 * wanted for longest makes room when the table is full.
 *
 * Owner:    the caller, who embeds the struct; the names are the table's.
 * Threads:  one.
 * Limits:   as given to names_init().
 */
#ifndef PENSTOCK_NET_NAMES_H
#define PENSTOCK_NET_NAMES_H

#include "base/list.h"
#include "base/map.h"
#include "base/slab.h"
#include "net/resolver.h"

enum { NAME_MAX_BYTES = 253 };

struct flight;

struct name {
	struct map_node		 node;
	struct list		 recent;	/* by use; alone while pinned */
	struct flight		*flight;	/* the resolver's: asks now */
	nsec_t			 until;		/* fresh until */
	nsec_t			 good_until;	/* `good` may be used until */
	struct addr_set		 good;		/* the last good answer */
	enum resolve_result	 last;		/* not WAITS */
	char			 text[NAME_MAX_BYTES + 1];
};

struct names {
	struct map		 map;
	struct list		 recent;	/* oldest first */
	struct slab		 slab;
};

/*
 * Write what names are compared by, lower case and without a final dot, with
 * a NUL, into `key` of NAME_MAX_BYTES + 1.  Its length, or 0 if it can't be a
 * name; see resolver_is_name().
 */
size_t name_key(char *key, const char *name, size_t n);

/* Add unless it is full or has it; false only if full. */
bool addr_set_add(struct addr_set *set, const struct addr *a);

/* Bytes that so many names take. */
uint64_t names_memory(size_t max);

/* At most max names. */
void names_init(struct names *t, size_t max);
void names_fini(struct names *t);

/* By key; NULL if it isn't there. */
struct name *names_find(const struct names *t, const char *key, size_t n);

/*
 * A new name without an answer, pinned.  NULL if all are pinned or there is
 * no memory.  It must not be there already.
 */
struct name *names_add(struct names *t, const char *key, size_t n) MUST_USE;

/* Keep it whatever happens; harmless twice. */
void names_pin(struct name *name);

/* It may make room again, though last of all; or just was used. */
void names_unpin(struct names *t, struct name *name);

/*
 * Set what was answered.  The TTL is taken for at least a second and at most
 * an hour.  A failure leaves the last good answer; "no such name" ends it.
 * Late is the failure where no server has said anything.
 */
void name_set_known(struct name *name, const struct addr_set *set,
    unsigned ttl, nsec_t now);
void name_set_none(struct name *name, nsec_t now);
void name_set_failed(struct name *name, nsec_t now);
void name_set_late(struct name *name, nsec_t now);

/* Was the last answer a failure? */
bool name_is_failing(const struct name *name);

/*
 * What to say without asking: KNOWN and *out, NONE, FAILED, LATE; or WAITS
 * if nothing fresh is known.
 */
enum resolve_result name_answer(const struct name *name, nsec_t now,
    struct addr_set *out);

/* The same by the last answer, fresh or not. */
enum resolve_result name_verdict(const struct name *name, nsec_t now,
    struct addr_set *out);

/* Is there a last good answer, young enough?  Then *out. */
bool name_last_good(const struct name *name, nsec_t now,
    struct addr_set *out);

#endif
