/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * story.c - what tests/bench/plots draws: how limits and queues do before a
 * simulated upstream, second by second, as lines of
 *
 *	picture,run,second,limit,right,latency,wait,goodput,capacity
 *
 * with times in ms and goodput and capacity a second; `right` is the limit
 * that would be.  The clock is simulated, so every run prints the same.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/upstream_sim.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC

/* Later than that, nobody waits for it any more. */
#define DEADLINE	(200 * MSEC)

static const struct run {
	const char	*picture, *name;
	uint64_t	 limit;		/* 0: adaptive */
	bool		 newest_first;	/* while overloaded */
} runs[] = {
	{ "adaptive",	"adaptive",	0,	true },
	{ "adaptive",	"fixed at 80",	80,	true },
	{ "adaptive",	"fixed at 20",	20,	true },
	{ "codel",	"adaptive",	40,	true },
	{ "codel",	"fifo",		40,	false },
};

/* What changes at a second of it. */
static const struct scene {
	const char	*picture;
	int		 second;
	unsigned	 servers;
	nsec_t		 service;
	double		 clients;	/* a second */
} scenes[] = {
	/* Three quarters of the servers fail, and come back. */
	{ "adaptive",	0,	40,	50 * MSEC,	1200 },
	{ "adaptive",	40,	10,	50 * MSEC,	1200 },
	{ "adaptive",	80,	40,	50 * MSEC,	1200 },
	{ "codel",	0,	40,	50 * MSEC,	600 },
	{ "codel",	20,	40,	50 * MSEC,	1200 },
	{ "codel",	60,	40,	50 * MSEC,	600 },
};

enum { SECONDS_ADAPTIVE = 120, SECONDS_CODEL = 80 };

static void
open_run(const struct run *r)
{
	struct sim_opts opts = {
		.gate = {
			.limit = r->limit,
			.queue = 2000,
			.queue_timeout = SEC,
			.adaptive = r->newest_first,
			.queue_target = 20 * MSEC,
		},
		.times = SIM_EXPONENTIAL,
		.deadline = DEADLINE,
		.seed = 7,
	};

	if (r->limit == 0)
		opts.bounds = (struct adapt_bounds){ 1, 1000 };
	sim_open(&opts);
}

static void
set_scene(const char *picture, int second)
{
	for (size_t i = 0; i < ARRAY_LEN(scenes); i++) {
		const struct scene *s = &scenes[i];

		if (s->second != second || strcmp(s->picture, picture) != 0)
			continue;
		sim_upstream(s->servers, s->service);
		sim_clients(s->clients);
	}
}

static double
mean_ms(nsec_t sum, uint64_t count)
{
	return (double)sum / (double)MAX(count, 1) / MSEC;
}

static void
print_second(const struct run *r, int second)
{
	const struct sim_sums *s = &sim.sums;
	double wait = mean_ms(s->waited, s->served);
	struct gate_state g;

	gate_look(sim.gate, sim.now, &g);
	printf("%s,%s,%d,%" PRIu64 ",%u,%.2f,%.2f,%" PRIu64 ",%.0f\n",
	    r->picture, r->name, second, g.limit, sim.servers,
	    wait + mean_ms(s->inside, s->served), wait, s->good,
	    sim_capacity());
}

static void
tell(const struct run *r)
{
	int seconds = strcmp(r->picture, "codel") == 0 ? SECONDS_CODEL :
	    SECONDS_ADAPTIVE;

	open_run(r);
	for (int second = 0; second < seconds; second++) {
		set_scene(r->picture, second);
		memset(&sim.sums, 0, sizeof sim.sums);
		sim_run(1);
		print_second(r, second + 1);
	}
	sim_close();
}

int
main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		tell(&runs[i]);
	return 0;
}
