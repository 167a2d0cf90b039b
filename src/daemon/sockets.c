/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sockets.c - the listening sockets of the process; see sockets.h.
 */
#include "daemon/sockets.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/listener.h"

static struct socket_set *
set_at(const struct list *link)
{
	return container_of(link, struct socket_set, link);
}

struct socket_set *
sockets_next(const struct sockets *s, const struct socket_set *set)
{
	const struct list *next = set == NULL ? s->sets.next : set->link.next;

	return next == &s->sets ? NULL : set_at(next);
}

/* --- binding ----------------------------------------------------------- */

/* Would a socket of the one take connections to the other? */
static bool
overlap(const struct addr *a, const struct addr *b)
{
	return a->family == b->family && a->family != ADDR_UNIX &&
	    a->port == b->port && a->port != 0 &&
	    (addr_is_any(a) || addr_is_any(b) || addr_equal(a, b));
}

/* Will any set have to leave that has a part of this address? */
static bool
is_beside(const struct sockets *s, const struct addr *at)
{
	LIST_FOR_EACH(l, &s->sets)
		if (set_at(l)->next == SOCKETS_LEAVING &&
		    overlap(at, &set_at(l)->addr))
			return true;
	return false;
}

static void
close_set(struct socket_set *set)
{
	list_remove(&set->link);
	for (unsigned i = 0; i < set->count; i++)
		close(set->fds[i]);
	if (set->wanted.family == ADDR_UNIX) {
		if (set->listener != SOCKETS_LEAVING)
			unlink(set->wanted.path);
		free((char *)set->wanted.path);
	}
	free(set);
}

static void
note_bound(struct socket_set *set)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;

	set->addr = set->wanted;
	if (set->addr.family != ADDR_UNIX && set->addr.port == 0 &&
	    getsockname(set->fds[0], (struct sockaddr *)&ss, &len) == 0)
		addr_from_sockaddr(&set->addr, (struct sockaddr *)&ss, len);
}

/*
 * Round robin over all sockets of all addresses, so that an address with fewer
 * sockets than there are workers doesn't always fall to the first.
 */
static void
assign(struct sockets *s, struct socket_set *set)
{
	for (unsigned i = 0; i < set->count; i++)
		set->workers[i] = (uint8_t)(s->turn++ % s->workers);
}

/* Bind one address, into what is coming. */
static bool
bind_one(struct sockets *s, const struct addr *at, int listener, FILE *errors)
{
	struct socket_set *set = xcalloc(1, sizeof *set);
	bool one = at->family == ADDR_UNIX || listener == SOCKETS_OF_ADMIN;
	char text[ADDR_TEXT + 108];
	int err;

	list_init(&set->link);
	set->count = one ? 1 : s->workers;
	err = bind_address(at, set->fds, set->count, is_beside(s, at));
	if (err != 0) {
		fprintf(errors, "can't listen on %s: %s\n",
		    addr_print(at, text, sizeof text), strerror(-err));
		free(set);
		return false;
	}
	set->wanted = *at;
	if (at->family == ADDR_UNIX)
		set->wanted.path = xstrdup(at->path);
	note_bound(set);
	set->listener = set->next = listener;
	list_add_last(&s->coming, &set->link);
	return true;
}

/* --- preparing --------------------------------------------------------- */

/*
 * A set that has this address and that nobody has taken yet.  What leaves has
 * no name in the file system any more.
 */
static struct socket_set *
find_set(const struct sockets *s, const struct addr *at, bool admin)
{
	LIST_FOR_EACH(l, &s->sets) {
		struct socket_set *set = set_at(l);

		if (set->next == SOCKETS_LEAVING &&
		    (set->listener == SOCKETS_OF_ADMIN) == admin &&
		    !(set->listener == SOCKETS_LEAVING &&
		    at->family == ADDR_UNIX) &&
		    addr_equal(&set->wanted, at))
			return set;
	}
	return NULL;
}

static void
keep(struct sockets *s, const struct conf_addrs *addrs, int listener)
{
	for (size_t i = 0; i < addrs->count; i++) {
		struct socket_set *set = find_set(s, &addrs->at[i],
		    listener == SOCKETS_OF_ADMIN);

		if (set != NULL)
			set->next = listener;
	}
}

static bool
is_kept(const struct sockets *s, const struct addr *at, int listener)
{
	LIST_FOR_EACH(l, &s->sets)
		if (set_at(l)->next == listener &&
		    addr_equal(&set_at(l)->wanted, at))
			return true;
	return false;
}

static bool
bind_new(struct sockets *s, const struct conf_addrs *addrs, int listener,
    FILE *errors)
{
	bool ok = true;

	for (size_t i = 0; i < addrs->count; i++)
		if (!is_kept(s, &addrs->at[i], listener) &&
		    !bind_one(s, &addrs->at[i], listener, errors))
			ok = false;
	return ok;
}

bool
sockets_prepare(struct sockets *s, const struct config *c, FILE *errors)
{
	bool ok;

	LIST_FOR_EACH(l, &s->sets)
		set_at(l)->next = SOCKETS_LEAVING;
	keep(s, &c->admin.bind, SOCKETS_OF_ADMIN);
	for (size_t i = 0; i < c->listener_count; i++)
		keep(s, &c->listener[i].bind, (int)i);

	ok = bind_new(s, &c->admin.bind, SOCKETS_OF_ADMIN, errors);
	for (size_t i = 0; i < c->listener_count; i++)
		if (!bind_new(s, &c->listener[i].bind, (int)i, errors))
			ok = false;
	if (!ok)
		sockets_abandon(s);
	return ok;
}

void
sockets_abandon(struct sockets *s)
{
	LIST_FOR_EACH(l, &s->coming)
		close_set(set_at(l));
}

/* Nobody finds the way to it any more; workers see to those who have. */
static void
part_with(struct socket_set *set)
{
	if (set->listener != SOCKETS_LEAVING &&
	    set->wanted.family == ADDR_UNIX)
		unlink(set->wanted.path);
	set->listener = SOCKETS_LEAVING;
}

static void
stay(struct socket_set *set)
{
	if (set->listener == SOCKETS_LEAVING)
		for (unsigned i = 0; i < set->count; i++)
			listener_take_new(set->fds[i]);
	set->listener = set->next;
}

void
sockets_commit(struct sockets *s)
{
	struct list *l;

	LIST_FOR_EACH(old, &s->sets)
		if (set_at(old)->next == SOCKETS_LEAVING)
			part_with(set_at(old));
		else
			stay(set_at(old));
	while ((l = list_pop_first(&s->coming)) != NULL) {
		if (set_at(l)->listener != SOCKETS_OF_ADMIN)
			assign(s, set_at(l));
		list_add_last(&s->sets, l);
	}
	s->count = 0;
	LIST_FOR_EACH(set, &s->sets)
		s->count++;
}

unsigned
sockets_sweep(struct sockets *s)
{
	unsigned served = 0;

	LIST_FOR_EACH(l, &s->sets) {
		struct socket_set *set = set_at(l);

		if (set->listener != SOCKETS_LEAVING)
			continue;
		if (atomic_load(&set->served) != 0)
			served++;
		else
			close_set(set);
	}
	return served;
}

/* --- all of them ------------------------------------------------------- */

struct sockets *
sockets_new(const struct config *c, unsigned workers, FILE *errors)
{
	struct sockets *s = xcalloc(1, sizeof *s);

	list_init(&s->sets);
	list_init(&s->coming);
	s->workers = workers;
	if (!sockets_prepare(s, c, errors)) {
		sockets_free(&s);
		return NULL;
	}
	sockets_commit(s);
	return s;
}

void
sockets_free(struct sockets **sockets)
{
	struct sockets *s = *sockets;

	if (s == NULL)
		return;
	*sockets = NULL;
	sockets_abandon(s);
	LIST_FOR_EACH(l, &s->sets)
		close_set(set_at(l));
	free(s);
}

/* --- telling ----------------------------------------------------------- */

/* All addresses of this machine, for the detection of loops. */
static void
read_local(struct own_addrs *s)
{
	struct ifaddrs *all;
	unsigned count = 0;

	if (getifaddrs(&all) == -1)
		return;
	for (struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		count++;
	s->local = xcalloc(count, sizeof *s->local);
	for (struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		struct addr *a = &s->local[s->local_count];

		if (i->ifa_addr == NULL)
			continue;
		addr_from_sockaddr(a, i->ifa_addr,
		    sizeof(struct sockaddr_in6));
		if (a->family == ADDR_IP4 || a->family == ADDR_IP6)
			s->local_count++;
	}
	freeifaddrs(all);
}

void
sockets_tell(const struct sockets *s, struct setup *setup)
{
	struct own_addrs all = { .own = xcalloc(s->count, sizeof *all.own) };

	/* Destinations are no paths. */
	LIST_FOR_EACH(l, &s->sets)
		if (set_at(l)->listener != SOCKETS_LEAVING &&
		    set_at(l)->addr.family != ADDR_UNIX)
			all.own[all.own_count++] = set_at(l)->addr;
	read_local(&all);
	setup_set_addrs(setup, &all);
	free(all.own);
	free(all.local);
}

unsigned
sockets_of_worker(const struct sockets *s, unsigned worker,
    struct door_socket **out)
{
	struct door_socket *to = xcalloc(s->count * s->workers, sizeof *to);
	unsigned n = 0;

	LIST_FOR_EACH(l, &s->sets) {
		struct socket_set *set = set_at(l);

		for (unsigned i = 0; set->listener >= 0 && i < set->count; i++)
			if (set->workers[i] == worker)
				to[n++] = (struct door_socket){ set->fds[i],
				    (unsigned)set->listener, &set->served };
	}
	*out = to;
	return n;
}
