/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health.c - what the log says of how the process feels; see health.h.
 */
#include "daemon/health.h"

#include <stdlib.h>

#include "daemon/crew.h"
#include "daemon/summary.h"
#include "daemon/watchdog.h"

struct health {
	struct crew		*crew;
	struct watchdog		*watchdog;	/* NULL: no thread for it */
	struct summary		*summary;
};

struct health *
health_start(const struct health_opts *opts, const struct conf_log *conf)
{
	struct health *h = xcalloc(1, sizeof *h);

	h->crew = opts->crew;
	h->watchdog = watchdog_start(opts->crew, opts->workers, opts->log);
	h->summary = summary_start(&(struct summary_opts){
		.loop = opts->loop,
		.reload = opts->reload,
		.workers = opts->workers,
		.log = opts->log,
	});
	health_set(h, conf);
	return h;
}

void
health_stop(struct health **health)
{
	struct health *h = *health;

	if (h == NULL)
		return;
	*health = NULL;
	watchdog_stop(&h->watchdog);
	summary_stop(&h->summary);
	free(h);
}

void
health_set(struct health *h, const struct conf_log *conf)
{
	crew_set_slow(h->crew, conf->debug ? conf->slow_callback :
	    NSEC_NEVER);
	summary_set(h->summary, conf->summary);
}

const struct watchdog *
health_watchdog(const struct health *h)
{
	return h->watchdog;
}
