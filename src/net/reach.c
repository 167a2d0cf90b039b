/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reach.c - in which order to try addresses; see reach.h.
 */
#include "net/reach.h"

#include <unistd.h>

#include "base/addr.h"
#include "net/names.h"

static void	split(const struct addr_set *from, reach_fn *has_route,
		    struct addr_set *near, struct addr_set *far);
static void	take_turns(struct addr_set *out, const struct addr_set *a,
		    const struct addr_set *b);

/* Connecting a datagram socket asks the routing table and no more. */
bool
reach_has_route(const struct addr *a)
{
	struct sockaddr_storage ss;
	struct addr to = *a;

	to.port = 53;
	socklen_t len = addr_to_sockaddr(&to, &ss);
	int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return false;
	bool routed = connect(fd, (struct sockaddr *)&ss, len) == 0;
	close(fd);
	return routed;
}

void
reach_order(struct addr_set *out, const struct addr_set *ip6,
    const struct addr_set *ip4, reach_fn *has_route)
{
	struct addr_set near6, far6, near4, far4;

	split(ip6, has_route, &near6, &far6);
	split(ip4, has_route, &near4, &far4);
	out->count = 0;
	take_turns(out, &near6, &near4);
	take_turns(out, &far6, &far4);
}

static void
split(const struct addr_set *from, reach_fn *has_route,
    struct addr_set *near, struct addr_set *far)
{
	near->count = far->count = 0;
	for (unsigned i = 0; i < from->count; i++) {
		const struct addr *a = &from->addrs[i];

		addr_set_add(has_route(a) ? near : far, a);
	}
}

static void
take_turns(struct addr_set *out, const struct addr_set *a,
    const struct addr_set *b)
{
	for (unsigned i = 0; i < MAX(a->count, b->count); i++) {
		if (i < a->count)
			addr_set_add(out, &a->addrs[i]);
		if (i < b->count)
			addr_set_add(out, &b->addrs[i]);
	}
}
