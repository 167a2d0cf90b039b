/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * announce.c - what a start says; see announce.h.
 */
#include "daemon/announce.h"

#include <inttypes.h>

#include "base/log.h"
#include "daemon/amounts.h"
#include "daemon/console.h"
#include "daemon/logs.h"
#include "daemon/privs.h"
#include "daemon/sockets.h"
#include "proxy/memory.h"
#include "proxy/setup.h"

static struct memory_opts
memory_opts(const struct config *c)
{
	uint64_t descriptors = privs_raise_descriptors();
	unsigned workers = amounts_workers(c);

	return (struct memory_opts){
		.config = c,
		.workers = workers,
		.sessions = amounts_sessions(c, descriptors),
		.descriptors = descriptors,
		.admin = c->admin.bind.count == 0 ? 0 : console_memory(c),
		.logs = logs_memory(&c->log, workers),
	};
}

static uint64_t
mib(uint64_t bytes)
{
	return (bytes + 1024 * 1024 - 1) / (1024 * 1024);
}

/* Tables of keyed limits and of turns are made once and never grow. */
static void
say_memory(struct log *log, const struct setup *setup)
{
	struct memory_opts o = memory_opts(setup->config);
	struct memory_row rows[MEMORY_ROWS];

	log_say(log, SAY_INFO, "memory: %" PRIu64 " MiB in the "
	    "worst case; -t tells for what",
	    mib(memory_worst(&o, rows)));
	for (size_t i = 0; i < setup->config->limit_count; i++) {
		const struct limit *l = setup->limits[i];

		size_t bytes = limit_tables(limit_spec(l), o.workers + 1);

		if (bytes != 0)
			log_say(log, SAY_INFO, "limit %s: %zu KiB "
			    "of tables", limit_spec(l)->name, bytes / 1024);
	}
}

void
announce_memory(FILE *out, const struct config *c)
{
	struct memory_row rows[MEMORY_ROWS];
	struct memory_opts o = memory_opts(c);
	uint64_t sum = memory_worst(&o, rows);

	fprintf(out, "memory in the worst case, but for the kernel's and the "
	    "configuration itself,\nwith %u workers and %" PRIu64
	    " descriptors, so max_connections = %" PRIu64 ":\n",
	    o.workers, o.descriptors, o.sessions);
	for (size_t i = 0; i < MEMORY_ROWS; i++)
		fprintf(out, "%8" PRIu64 " MiB  %-24s %s\n",
		    mib(rows[i].bytes), rows[i].what, rows[i].bound);
	fprintf(out, "%8" PRIu64 " MiB  in all\n", mib(sum));
}

static void
print_addresses(const struct announce_opts *o)
{
	const struct config *c = o->setup->config;
	char text[ADDR_TEXT + 108];

	FOR_EACH_SOCKET_SET(set, o->sockets)
		printf("penstock: %s on %s\n",
		    set->listener == SOCKETS_OF_ADMIN ? "admin" :
		    c->listener[set->listener].name_,
		    addr_print(&set->addr, text, sizeof text));
	if (o->is_builtin)
		printf("penstock: no configuration file, so this is the "
		    "built-in one; try\n"
		    "  curl -x http://127.0.0.1:8080 http://example.com/\n"
		    "  curl http://127.0.0.1:9480/metrics\n"
		    "and look at http://127.0.0.1:9480/status\n");
	fflush(stdout);
}

void
announce_start(const struct announce_opts *o)
{
	print_addresses(o);
	say_memory(o->log, o->setup);
}
