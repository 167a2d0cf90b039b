/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * figures.c - a few numbers; see figures.h.
 */
#include "daemon/figures.h"

#include "base/stats.h"
#include "proxy/setup.h"

void
figures_read(struct figures *f, const struct setup *setup, unsigned workers)
{
	*f = (struct figures){ 0 };
	for (unsigned i = 0; i < setup->service_count; i++) {
		const struct listener_stats *all =
		    setup->services[i].state->stats;

		for (unsigned j = 0; j < workers; j++) {
			f->clients += stat_read(&all[j].sessions);
			f->requests += hist_total(&all[j].duration);
			for (unsigned k = 1; k < FAIL_COUNT; k++)
				f->failures += stat_read(&all[j].failed[k]);
		}
	}
}
