/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access.c - who may go where; see access.h.
 */
#include "proxy/access.h"

#include <stdlib.h>

#include "proxy/setup.h"

struct access {
	const struct conf_access	*conf;	/* NULL: loopback only */
};

struct access *
access_new(const struct conf_access *conf)
{
	struct access *a = xcalloc(1, sizeof *a);

	a->conf = conf;
	return a;
}

void
access_free(struct access **a)
{
	free(*a);
	*a = NULL;
}

/* --- rules ------------------------------------------------------------- */

/* How specific a rule is where it fits; 0 where it doesn't. */
static unsigned
weigh_addr(const struct conf_rule *r, const struct addr *a)
{
	unsigned weight;

	if (r->port != 0 && r->port != a->port)
		return 0;
	if (r->kind == RULE_PUBLIC && addr_is_public(a))
		weight = 1;
	else if (r->kind == RULE_RANGE && addr_range_has(&r->range, a))
		weight = 1 + r->range.bits;
	else
		return 0;
	return 2 * weight + (r->port != 0);
}

/* "*.example.com" fits what is below it, not the bare name. */
static bool
is_below(struct str host, struct str suffix)
{
	return host.len > suffix.len + 1 && str_ends_nocase(host, suffix) &&
	    host.at[host.len - suffix.len - 1] == '.';
}

static unsigned
weigh_name(const struct conf_rule *r, struct str host, uint16_t port)
{
	struct str name;
	unsigned weight;

	if ((r->kind != RULE_NAME && r->kind != RULE_SUFFIX) ||
	    (r->port != 0 && r->port != port))
		return 0;
	name = str_of(r->name);
	if (r->kind == RULE_NAME && str_equal_nocase(host, name))
		weight = 512;
	else if (r->kind == RULE_SUFFIX && is_below(host, name))
		weight = 1 + (unsigned)name.len;
	else
		return 0;
	return 2 * weight + (r->port != 0);
}

/* Most lists of rules are empty: asked here, where that costs no call. */
static inline bool
has_none(const struct conf_rules *rules)
{
	return rules->count == 0;
}

static HOT unsigned
best_addr_of(const struct conf_rules *rules, const struct addr *a)
{
	unsigned best = 0;

	for (size_t i = 0; i < rules->count; i++)
		best = MAX(best, weigh_addr(&rules->at[i], a));
	return best;
}

static inline unsigned
best_addr(const struct conf_rules *rules, const struct addr *a)
{
	return has_none(rules) ? 0 : best_addr_of(rules, a);
}

static HOT unsigned
best_name_of(const struct conf_rules *rules, struct str host, uint16_t port)
{
	unsigned best = 0;

	for (size_t i = 0; i < rules->count; i++)
		best = MAX(best, weigh_name(&rules->at[i], host, port));
	return best;
}

static inline unsigned
best_name(const struct conf_rules *rules, struct str host, uint16_t port)
{
	return has_none(rules) ? 0 : best_name_of(rules, host, port);
}

/* --- questions --------------------------------------------------------- */

bool
access_ranges_have(const struct conf_rules *rules, const struct addr *a)
{
	return best_addr(rules, a) > 0;
}

bool
access_client(const struct access *a, const struct addr *client)
{
	if (a->conf == NULL)
		return addr_is_loopback(client) ||
		    client->family == ADDR_UNIX;
	return best_addr(&a->conf->allow, client) >
	    best_addr(&a->conf->deny, client);
}

bool
access_connect_port(const struct access *a, uint16_t port)
{
	if (a->conf == NULL)
		return true;
	for (size_t i = 0; i < a->conf->connect_ports.count; i++)
		if (port >= a->conf->connect_ports.at[i].first &&
		    port <= a->conf->connect_ports.at[i].last)
			return true;
	return false;
}

enum access_name
access_name(const struct access *a, struct str host, uint16_t port)
{
	if (a->conf == NULL)
		return ACCESS_LISTED;
	/* The final dot of a full name says nothing more. */
	if (host.len > 1 && host.at[host.len - 1] == '.')
		host.len--;

	unsigned yes = best_name(&a->conf->allow_destination, host, port);
	unsigned no = best_name(&a->conf->deny_destination, host, port);

	if (no > 0 && no >= yes)
		return ACCESS_DENIED;
	return yes > 0 ? ACCESS_LISTED : ACCESS_UNLISTED;
}

enum failure
access_addr(const struct access *a, const struct addr *to, bool listed)
{
	if (a->conf == NULL)
		return FAIL_NONE;

	unsigned yes = best_addr(&a->conf->allow_destination, to);
	unsigned no = best_addr(&a->conf->deny_destination, to);
	bool may;

	if (yes > 0 || no > 0)
		may = yes > no;
	else
		may = addr_is_public(to) &&
		    (listed || a->conf->allow_destination.count == 0);
	return may ? FAIL_NONE : FAIL_DESTINATION_DENIED;
}

/* --- ourselves --------------------------------------------------------- */

static bool
is_local(const struct own_addrs *all, const struct addr *a)
{
	if (addr_is_loopback(a) || addr_is_any(a))
		return true;
	for (unsigned i = 0; i < all->local_count; i++) {
		struct addr local = all->local[i];

		local.port = a->port;
		if (addr_equal(&local, a))
			return true;
	}
	return false;
}

bool
access_is_own(const struct own_addrs *all, const struct addr *to)
{
	for (unsigned i = 0; i < all->own_count; i++) {
		const struct addr *own = &all->own[i];

		if (own->port != to->port || own->family == ADDR_UNIX)
			continue;
		/* The kernel takes "any" as a destination for loopback. */
		if (addr_equal(own, to) || addr_is_any(to) ||
		    (addr_is_any(own) && is_local(all, to)))
			return true;
	}
	return false;
}
