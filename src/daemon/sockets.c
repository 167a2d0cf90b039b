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

/* Bind one address into the next set. */
static bool
bind_one(struct sockets *s, const struct addr *at, int listener,
    unsigned workers, FILE *errors)
{
	struct socket_set *set = &s->sets[s->count];
	char text[ADDR_TEXT + 108];
	int err;

	set->addr = *at;
	set->listener = listener;
	set->count = at->family == ADDR_UNIX || listener == SOCKETS_OF_ADMIN ?
	    1 : workers;
	err = bind_address(at, set->fds, set->count);
	if (err != 0) {
		fprintf(errors, "can't listen on %s: %s\n",
		    addr_print(at, text, sizeof text), strerror(-err));
		return false;
	}

	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	if (at->family != ADDR_UNIX && at->port == 0 &&
	    getsockname(set->fds[0], (struct sockaddr *)&ss, &len) == 0)
		addr_from_sockaddr(&set->addr, (struct sockaddr *)&ss, len);
	s->count++;
	return true;
}

static bool
bind_all(struct sockets *s, const struct conf_addrs *addrs, int listener,
    unsigned workers, FILE *errors)
{
	bool ok = true;

	for (size_t i = 0; i < addrs->count; i++)
		if (!bind_one(s, &addrs->at[i], listener, workers, errors))
			ok = false;
	return ok;
}

/* All addresses of this machine, for the detection of loops. */
static void
read_local(struct sockets *s)
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

struct sockets *
sockets_new(const struct config *c, unsigned workers, FILE *errors)
{
	struct sockets *s = xcalloc(1, sizeof *s);
	size_t count = c->admin.bind.count;
	bool ok;

	for (size_t i = 0; i < c->listener_count; i++)
		count += c->listener[i].bind.count;
	s->sets = xcalloc(count, sizeof *s->sets);
	s->own = xcalloc(count, sizeof *s->own);

	ok = bind_all(s, &c->admin.bind, SOCKETS_OF_ADMIN, workers, errors);
	for (size_t i = 0; i < c->listener_count; i++)
		if (!bind_all(s, &c->listener[i].bind, (int)i, workers,
		    errors))
			ok = false;
	if (!ok) {
		sockets_free(&s);
		return NULL;
	}
	for (unsigned i = 0; i < s->count; i++)
		s->own[i] = s->sets[i].addr;
	read_local(s);
	return s;
}

static void
close_set(const struct socket_set *set)
{
	for (unsigned i = 0; i < set->count; i++)
		close(set->fds[i]);
	if (set->addr.family == ADDR_UNIX)
		unlink(set->addr.path);
}

void
sockets_free(struct sockets **sockets)
{
	struct sockets *s = *sockets;

	if (s == NULL)
		return;
	*sockets = NULL;
	for (unsigned i = 0; i < s->count; i++)
		close_set(&s->sets[i]);
	free(s->sets);
	free(s->own);
	free(s->local);
	free(s);
}
