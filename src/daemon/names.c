/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.c - the addresses of servers given by name; see names.h.
 */
#include "daemon/names.h"

#include <stdlib.h>
#include <string.h>

#include "net/loop.h"
#include "proxy/setup.h"

/* How often a name is asked for. */
#define ASK_AGAIN	(1 * NSEC_PER_SEC)

struct name {
	struct list		 link;
	struct names		*names;
	struct server		*server;
	struct resolve		*asking;
	struct wheel_timer	 again;
	bool			 said;		/* that it has no address */
	bool			 asked;		/* and there was an answer */
};

struct names {
	struct names_opts	 opts;
	struct list		 all;
	size_t			 unknown;	/* of them, not asked yet */
	bool			 setting;
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
		    n->server->upstream, n->server->text);
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
	    n->server->upstream, n->server->text);
}

static void
note_asked(struct name *n)
{
	struct names *names = n->names;

	n->asked = true;
	if (--names->unknown == 0 && !names->setting)
		names->opts.asked(names->opts.arg);
}

static void
conclude(struct name *n, enum resolve_result r, const struct addr_set *set)
{
	if (r == RESOLVE_KNOWN)
		publish(n, set);
	else
		complain(n);
	loop_arm(n->names->opts.loop, &n->again, ASK_AGAIN);
	if (!n->asked)
		note_asked(n);
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
		.timeout = NAMES_PATIENCE,
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

static struct name *
name_at(struct list *link)
{
	return container_of(link, struct name, link);
}

/* One that isn't asked for any more. */
static void
forget(struct name *n)
{
	list_remove(&n->link);
	resolve_cancel(&n->asking);
	loop_cancel(n->names->opts.loop, &n->again);
	if (!n->asked)
		n->names->unknown--;
	free(n);
}

/* That of the server, among those from before; they come in that order. */
static struct name *
find(struct list *before, const struct server *s)
{
	LIST_FOR_EACH(l, before)
		if (name_at(l)->server == s)
			return name_at(l);
	return NULL;
}

static void
set_server(struct names *names, struct list *before, struct server *s)
{
	struct name *n = find(before, s);

	if (n != NULL) {
		list_remove(&n->link);
		list_add_last(&names->all, &n->link);
		return;
	}
	n = xcalloc(1, sizeof *n);
	list_init(&n->link);
	list_add_last(&names->all, &n->link);
	names->unknown++;
	n->names = names;
	n->server = s;
	wheel_timer_init(&n->again, on_again);
	ask(n);
}

static void
set_upstream(struct names *names, struct list *before,
    const struct upstream *u)
{
	for (unsigned i = 0; i < u->count; i++)
		if (u->servers[i].server->host != NULL)
			set_server(names, before, u->servers[i].server);
}

struct names *
names_start(const struct names_opts *opts)
{
	struct names *names = xcalloc(1, sizeof *names);

	names->opts = *opts;
	list_init(&names->all);
	return names;
}

bool
names_set(struct names *names, const struct setup *setup)
{
	struct list before;

	list_init(&before);
	list_move_all(&before, &names->all);
	names->setting = true;
	for (size_t i = 0; i < setup->config->upstream_count; i++)
		set_upstream(names, &before, setup->upstreams[i]);
	LIST_FOR_EACH(l, &before)
		forget(name_at(l));
	names->setting = false;
	return names->unknown == 0;
}

void
names_stop(struct names **names)
{
	struct names *n = *names;

	if (n == NULL)
		return;
	*names = NULL;
	LIST_FOR_EACH(l, &n->all)
		forget(name_at(l));
	free(n);
}
