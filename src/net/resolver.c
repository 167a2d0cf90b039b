/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolver.c - names to addresses; see resolver.h.
 *
 * A name that is being asked for has a flight, with those who wait for it.
 * c-ares can't take a single question back, so a flight always goes on to
 * its end: whoever gives up or runs out of time leaves it, and what it brings
 * fills the cache.
 *
 * A flight is two questions, for IPv4 and IPv6.  When one has brought
 * addresses, the other gets GRACE more (RFC 8305 section 3): servers that
 * never answer for IPv6 exist, and would make every name late.
 *
 * An answer may come inside the call that asks, so answers are only stored,
 * and those who wait are told by mail.
 */
#include "net/resolver.h"

#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/slab.h"
#include "net/hosts.h"
#include "net/names.h"
#include "net/reach.h"
#include "net/resolver_dns.h"

enum { WAITS_MAX = 64 * 1024 };		/* callers, all names together */

#define GRACE	(50 * NSEC_PER_MSEC)

struct resolver {
	struct loop		*loop;
	struct dns		*dns;
	const struct hosts	*hosts;
	struct resolver_stats	*stats;
	struct names		 names;
	struct list		 flights;
	struct slab		 flight_slab;
	struct slab		 wait_slab;
};

struct flight {
	struct list		 link;
	struct resolver		*resolver;
	struct name		*name;
	struct dns_question	 ip4;
	struct dns_question	 ip6;
	nsec_t			 began;
	struct list		 waiting;
	struct wheel_timer	 grace;
	struct mail		 landed;
};

/* One who waits. */
struct resolve {
	struct list		 link;
	struct resolver		*resolver;
	struct flight		*flight;
	struct wheel_timer	 late;
	uint16_t		 port;
	resolve_done_fn		*done;
	void			*arg;
};

static dns_fn		on_ip4;
static dns_fn		on_ip6;
static mail_fn		on_landed;
static wheel_fn		on_grace;
static wheel_fn		on_late;

static bool		is_localhost(const char *key, size_t n,
			    struct addr_set *out);
static enum resolve_result known_or_asked(struct resolver *r,
			    struct name **found, const char *key, size_t n,
			    struct addr_set *out);
static enum resolve_result wait_for(struct resolve **handle, struct flight *f,
			    const struct resolve_opts *opts);
static bool		take_off(struct resolver *r, struct name *name);
static void		come_in(struct flight *f, const struct dns_question *q);
static void		store_addresses(struct flight *f);
static void		land(struct flight *f);
static void		deliver(struct list *waiting,
			    enum resolve_result result,
			    const struct addr_set *set);
static void		tell(struct resolve *w, enum resolve_result result,
			    const struct addr_set *set);
static void		set_port(struct addr_set *set, uint16_t port);

static void
count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

int
resolver_global_init(void)
{
	/* c-ares would let whoever starts us redirect names by these. */
	unsetenv("LOCALDOMAIN");
	unsetenv("RES_OPTIONS");
	unsetenv("HOSTALIASES");

	return dns_global_init();
}

void
resolver_global_fini(void)
{
	dns_global_fini();
}

int
resolver_new(struct resolver **out, struct loop *loop,
    const struct resolver_opts *opts)
{
	struct dns *dns;
	int err;

	ASSERT(opts->stats != NULL);
	*out = NULL;
	err = dns_open(&dns, loop, opts->servers);
	if (err != 0)
		return err;

	struct resolver *r = xcalloc(1, sizeof *r);
	r->loop = loop;
	r->dns = dns;
	r->hosts = opts->hosts;
	r->stats = opts->stats;
	list_init(&r->flights);
	names_init(&r->names, RESOLVER_NAMES);
	SLAB_INIT(&r->flight_slab, struct flight, RESOLVER_ASKING);
	SLAB_INIT(&r->wait_slab, struct resolve, WAITS_MAX);
	*out = r;
	return 0;
}

uint64_t
resolver_memory(uint64_t waiting)
{
	return sizeof(struct resolver) + names_memory(RESOLVER_NAMES) +
	    slab_memory(sizeof(struct flight), RESOLVER_ASKING) +
	    slab_memory(sizeof(struct resolve), MIN(waiting, WAITS_MAX)) +
	    (uint64_t)RESOLVER_ASKING * 2 * DNS_QUESTION;
}

void
resolver_free(struct resolver **resolver)
{
	struct resolver *r = *resolver;

	if (r == NULL)
		return;
	*resolver = NULL;
	dns_close(&r->dns);
	LIST_FOR_EACH(l, &r->flights) {
		struct flight *f = container_of(l, struct flight, link);

		ASSERT(list_is_empty(&f->waiting));
		loop_later_cancel(r->loop, &f->landed);
		loop_cancel(r->loop, &f->grace);
		list_remove(&f->link);
		slab_give(&r->flight_slab, f);
	}
	slab_fini(&r->flight_slab);
	slab_fini(&r->wait_slab);
	names_fini(&r->names);
	free(r);
}

enum resolve_result
resolve_start(struct resolve **handle, struct resolver *r,
    const struct resolve_opts *opts, struct addr_set *out)
{
	char key[NAME_MAX_BYTES + 1];
	enum resolve_result result = RESOLVE_KNOWN;
	struct name *name = NULL;

	*handle = NULL;
	out->count = 0;
	if (addr_parse_ip(&out->addrs[0], opts->name, opts->length,
	    opts->port)) {
		out->count = 1;
		return RESOLVE_KNOWN;
	}
	size_t n = name_key(key, opts->name, opts->length);
	if (n == 0)
		return RESOLVE_NONE;
	if (!is_localhost(key, n, out) && !hosts_find(r->hosts, key, n, out))
		result = known_or_asked(r, &name, key, n, out);
	if (result == RESOLVE_WAITS)
		return wait_for(handle, name->flight, opts);
	set_port(out, opts->port);
	return result;
}

/* RFC 6761 section 6.3: never asked for. */
static bool
is_localhost(const char *key, size_t n, struct addr_set *out)
{
	static const char word[] = "localhost";
	size_t length = sizeof word - 1;

	if (n < length || memcmp(key + n - length, word, length) != 0)
		return false;
	if (n > length && key[n - length - 1] != '.')
		return false;
	out->count = 2;
	return addr_parse_ip(&out->addrs[0], "127.0.0.1", 9, 0) &&
	    addr_parse_ip(&out->addrs[1], "::1", 3, 0);
}

/* With WAITS, the name has a flight. */
static enum resolve_result
known_or_asked(struct resolver *r, struct name **found, const char *key,
    size_t n, struct addr_set *out)
{
	nsec_t now = loop_now(r->loop);
	enum resolve_result result = RESOLVE_WAITS;
	struct name *name = names_find(&r->names, key, n);

	if (name != NULL)
		result = name_answer(name, now, out);
	else
		name = names_add(&r->names, key, n);
	if (result != RESOLVE_WAITS) {
		count(&r->stats->cached);
		if (name->flight == NULL)
			names_unpin(&r->names, name);
		return result;
	}
	if (name == NULL || (name->flight == NULL && !take_off(r, name))) {
		count(&r->stats->failed);
		return name != NULL && name_last_good(name, now, out) ?
		    RESOLVE_KNOWN : RESOLVE_FAILED;
	}
	*found = name;

	/* Don't wait for servers that failed last time. */
	if (name_is_failing(name) && name_last_good(name, now, out)) {
		count(&r->stats->cached);
		return RESOLVE_KNOWN;
	}
	/* It may have landed at once: there is no server to ask. */
	return name_answer(name, now, out);
}

static enum resolve_result
wait_for(struct resolve **handle, struct flight *f,
    const struct resolve_opts *opts)
{
	struct resolver *r = f->resolver;
	struct resolve *w = slab_take(&r->wait_slab);

	if (w == NULL) {
		count(&r->stats->failed);
		return RESOLVE_FAILED;
	}
	w->resolver = r;
	w->flight = f;
	w->port = opts->port;
	w->done = opts->done;
	w->arg = opts->arg;
	list_add_last(&f->waiting, &w->link);
	wheel_timer_init(&w->late, on_late);
	loop_arm(r->loop, &w->late, opts->timeout);
	*handle = w;
	return RESOLVE_WAITS;
}

HOT void
resolve_cancel(struct resolve **handle)
{
	struct resolve *w = *handle;

	if (w == NULL)
		return;
	*handle = NULL;
	list_remove(&w->link);
	loop_cancel(w->resolver->loop, &w->late);
	slab_give(&w->resolver->wait_slab, w);
}

/* --- flights --- */

/* Ask for name, which stays pinned until the flight has landed. */
static bool
take_off(struct resolver *r, struct name *name)
{
	struct flight *f = slab_take(&r->flight_slab);

	if (f == NULL) {
		names_unpin(&r->names, name);
		return false;
	}
	names_pin(name);
	name->flight = f;
	f->resolver = r;
	f->name = name;
	f->began = loop_now(r->loop);
	list_init(&f->waiting);
	list_add_last(&r->flights, &f->link);
	wheel_timer_init(&f->grace, on_grace);
	mail_init(&f->landed, on_landed);
	/* The first may be answered before the second is asked. */
	f->ip6.result = RESOLVE_WAITS;
	f->ip6.set.count = 0;
	dns_ask(r->dns, &f->ip4, name->text, AF_INET, on_ip4);
	dns_ask(r->dns, &f->ip6, name->text, AF_INET6, on_ip6);
	return true;
}

static void
on_ip4(struct dns_question *q)
{
	come_in(container_of(q, struct flight, ip4), q);
}

static void
on_ip6(struct dns_question *q)
{
	come_in(container_of(q, struct flight, ip6), q);
}

static void
come_in(struct flight *f, const struct dns_question *q)
{
	if (f->ip4.result != RESOLVE_WAITS && f->ip6.result != RESOLVE_WAITS)
		land(f);
	else if (q->result == RESOLVE_KNOWN)
		loop_arm(f->resolver->loop, &f->grace, GRACE);
}

/* The addresses there are so far become the answer. */
static void
store_addresses(struct flight *f)
{
	struct addr_set set;

	reach_order(&set, &f->ip6.set, &f->ip4.set, reach_has_route);
	name_set_known(f->name, &set, MIN(f->ip4.ttl, f->ip6.ttl),
	    loop_now(f->resolver->loop));
}

static bool
has_addresses(const struct flight *f)
{
	return f->ip4.set.count > 0 || f->ip6.set.count > 0;
}

/* No answer of use has come. */
static void
store_failure(struct flight *f, nsec_t now)
{
	if (f->ip4.result == RESOLVE_FAILED || f->ip6.result == RESOLVE_FAILED)
		name_set_failed(f->name, now);
	else
		name_set_late(f->name, now);
}

/* Both answers have come; perhaps inside take_off(). */
static void
land(struct flight *f)
{
	struct resolver *r = f->resolver;
	struct resolver_stats *s = r->stats;
	nsec_t now = loop_now(r->loop);
	bool none = f->ip4.result == RESOLVE_NONE &&
	    f->ip6.result == RESOLVE_NONE;

	if (has_addresses(f)) {
		store_addresses(f);
		count(&s->found);
	} else if (!none && !f->ip4.no_name && !f->ip6.no_name) {
		store_failure(f, now);
		count(&s->failed);
	} else {
		name_set_none(f->name, now);
		count(&s->none);
	}
	hist_add(&s->time, now - f->began);
	loop_cancel(r->loop, &f->grace);
	loop_later(r->loop, &f->landed);
}

static void
on_landed(struct mail *m)
{
	struct flight *f = container_of(m, struct flight, landed);
	struct resolver *r = f->resolver;
	struct name *name = f->name;
	enum resolve_result result;
	struct addr_set set;
	struct list waiting;

	list_move_all(&waiting, &f->waiting);
	name->flight = NULL;
	names_unpin(&r->names, name);
	list_remove(&f->link);
	slab_give(&r->flight_slab, f);

	result = name_verdict(name, loop_now(r->loop), &set);
	deliver(&waiting, result, &set);
}

static void
on_grace(struct wheel_timer *t)
{
	struct flight *f = container_of(t, struct flight, grace);
	struct list waiting;

	store_addresses(f);
	list_move_all(&waiting, &f->waiting);
	struct addr_set set = f->name->good;
	deliver(&waiting, RESOLVE_KNOWN, &set);
}

static void
on_late(struct wheel_timer *t)
{
	struct resolve *w = container_of(t, struct resolve, late);
	struct flight *f = w->flight;
	nsec_t now = loop_now(w->resolver->loop);
	enum resolve_result result;
	struct addr_set set;

	/* Better half an answer, or an old one, than none. */
	if (wheel_is_armed(&f->grace))
		store_addresses(f);
	result = name_answer(f->name, now, &set);
	if (result == RESOLVE_WAITS && name_last_good(f->name, now, &set)) {
		name_set_failed(f->name, now);	/* nobody else waits so */
		result = RESOLVE_KNOWN;
	}
	if (result == RESOLVE_WAITS) {
		count(&w->resolver->stats->late);
		result = RESOLVE_LATE;
	}
	tell(w, result, &set);
}

/* Those told may free the resolver with the last of them. */
static void
deliver(struct list *waiting, enum resolve_result result,
    const struct addr_set *set)
{
	struct list *l;

	while ((l = list_pop_first(waiting)) != NULL)
		tell(container_of(l, struct resolve, link), result, set);
}

static void
tell(struct resolve *w, enum resolve_result result, const struct addr_set *set)
{
	resolve_done_fn *done = w->done;
	void *arg = w->arg;
	struct addr_set copy;

	if (result == RESOLVE_KNOWN) {
		copy = *set;
		set_port(&copy, w->port);
	}
	resolve_cancel(&w);
	done(arg, result, result == RESOLVE_KNOWN ? &copy : NULL);
}

static void
set_port(struct addr_set *set, uint16_t port)
{
	for (unsigned i = 0; i < set->count; i++)
		set->addrs[i].port = port;
}
