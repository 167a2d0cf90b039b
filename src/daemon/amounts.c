/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * amounts.c - how much there will be of what; see amounts.h.
 */
#include "daemon/amounts.h"

#include <inttypes.h>
#include <unistd.h>

#include "daemon/admin_site.h"
#include "daemon/metrics_size.h"
#include "proxy/shared.h"

unsigned
amounts_workers(const struct config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (c->penstock.workers != 0)
		return (unsigned)c->penstock.workers;
	return (unsigned)MIN(MAX(cpus, 1), 64);
}

size_t
amounts_page(const struct config *c)
{
	return MAX(status_size(c, metrics_size(c, amounts_workers(c))),
	    site_page_size());
}

uint64_t
amounts_sessions(const struct config *c, uint64_t descriptors)
{
	return c->penstock.max_connections != 0 ?
	    c->penstock.max_connections : descriptors * 6 / 10;
}

struct gate_spec
amounts_gate(const struct config *c, const struct shared *shared)
{
	uint64_t most = amounts_sessions(c, shared->descriptors);

	if (most > shared->descriptors)
		log_say(shared->log, SAY_WARNING, "max_connections = %" PRIu64
		    " needs more than the %" PRIu64 " descriptors there are",
		    most, shared->descriptors);
	return (struct gate_spec){
		.limit = most,
		.queue = shared->workers,
		/* Nobody leaves this queue: no wait is too long for it. */
		.queue_timeout = 365 * 24 * 3600 * NSEC_PER_SEC,
	};
}
