/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.c - the addresses of servers given by name; see names.h.
 */
#include "daemon/names.h"

#include <stdlib.h>
#include <string.h>

#include "net/loop.h"
#include "proxy/setup.h"

/* How often a name is asked for, and how long an answer may take. */
#define ASK_AGAIN	(1 * NSEC_PER_SEC)
#define ASK_TIMEOUT	(5 * NSEC_PER_SEC)

struct name {
	struct names		*names;
	struct server		*server;
	struct resolve		*asking;
	struct wheel_timer	 again;
	bool			 said;		/* that it has no address */
};

struct names {
	struct names_opts	 opts;
	struct name		*all;
	size_t			 count;
};

static wheel_fn		on_again;
static resolve_done_fn	on_answer;

/* --- what comes of it -------------------------------------------------- */

static void
publish(struct name *n, const struct addr_set *set)
{
	server_set_addrs(n->server, set);
	if (n->said)
		log_say(n->names->opts.log, SAY_NOTICE,
		    "upstream %s: server %s has an address again",
		    n->server->upstream->name, n->server->text);
	n->said = false;
}

/* The last good addresses stay in use. */
static void
complain(struct name *n)
{
	if (n->said)
		return;
	n->said = true;
	log_say(n->names->opts.log, SAY_WARNING,
	    "upstream %s: no address is known for server %s",
	    n->server->upstream->name, n->server->text);
}

static void
conclude(struct name *n, enum resolve_result r, const struct addr_set *set)
{
	if (r == RESOLVE_KNOWN)
		publish(n, set);
	else
		complain(n);
	loop_arm(n->names->opts.loop, &n->again, ASK_AGAIN);
}

/* --- asking ------------------------------------------------------------ */

static void
ask(struct name *n)
{
	struct addr_set set;
	struct resolve_opts opts = {
		.name = n->server->host,
		.length = strlen(n->server->host),
		.port = n->server->port,
		.timeout = ASK_TIMEOUT,
		.done = on_answer,
		.arg = n,
	};
	enum resolve_result r = resolve_start(&n->asking,
	    n->names->opts.resolver, &opts, &set);

	if (r != RESOLVE_WAITS)
		conclude(n, r, &set);
}

static void
on_answer(void *arg, enum resolve_result result, const struct addr_set *set)
{
	struct name *n = arg;

	n->asking = NULL;
	conclude(n, result, set);
}

static void
on_again(struct wheel_timer *t)
{
	ask(container_of(t, struct name, again));
}

/* --- all of them ------------------------------------------------------- */

static void
add_upstream(struct names *names, struct upstream *u)
{
	for (unsigned i = 0; i < u->count; i++) {
		struct name *n = &names->all[names->count];

		if (u->servers[i].host == NULL)
			continue;
		names->count++;
		n->names = names;
		n->server = &u->servers[i];
		wheel_timer_init(&n->again, on_again);
		ask(n);
	}
}

struct names *
names_start(const struct names_opts *opts)
{
	struct names *names = xcalloc(1, sizeof *names);
	const struct setup *setup = opts->setup;
	size_t upstreams = setup->config->upstream_count, servers = 0;

	names->opts = *opts;
	for (size_t i = 0; i < upstreams; i++)
		servers += setup->upstreams[i]->count;
	names->all = xcalloc(servers, sizeof *names->all);
	for (size_t i = 0; i < upstreams; i++)
		add_upstream(names, setup->upstreams[i]);
	return names;
}

void
names_stop(struct names **names)
{
	struct names *n = *names;

	if (n == NULL)
		return;
	*names = NULL;
	for (size_t i = 0; i < n->count; i++) {
		resolve_cancel(&n->all[i].asking);
		loop_cancel(n->opts.loop, &n->all[i].again);
	}
	free(n->all);
	free(n);
}
