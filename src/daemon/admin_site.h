/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admin_site.h - what the admin listener answers, given a request.
 *
 *	/metrics	Prometheus text, or OpenMetrics where that is asked for
 *	/healthz	200 as long as the process is alive
 *	/readyz		200 while it accepts clients; 503 while it drains, and
 *			between POST /drain and POST /ready
 *	/status		a page for people, live over:
 *	/status.json	all there is to know; ?since=N for samples after N,
 *			&config=1 for the configuration
 *	/drain, /ready, /log-level?level=WORD
 *			POST: they change something
 *	/reload?check	POST, over a unix socket: what a reload would say; 200
 *			if nothing is wrong, else 422 and a line for each
 *
 * A page of somebody else's, in the browser of an operator, must not read or
 * change anything here: not under a name that it has pointed at us (Host is
 * checked), and not by a request across sites (Origin is).
 *
 * Owner:    the caller, who embeds the struct.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_ADMIN_SITE_H
#define PENSTOCK_DAEMON_ADMIN_SITE_H

#include <stdio.h>

#include "base/log.h"
#include "base/metric.h"
#include "config/config.h"
#include "daemon/status.h"
#include "http/head.h"

struct site_opts {
	/* The configuration in use. */
	const struct config *(*config)(void *arg);
	/* Write /metrics. */
	void		(*metrics)(void *arg, struct metrics *m);
	/* Write /status.json. */
	void		(*status)(void *arg, struct metrics *m,
			    const struct status_ask *ask);
	/* Are clients accepted? */
	bool		(*is_ready)(void *arg);
	/* Would a reload go well?  Else `out` says what is wrong; or NULL. */
	bool		(*check)(void *arg, FILE *out);
	void		*arg;
	struct log	*log;
};

struct site {
	struct site_opts opts;
	bool		 held;		/* POST /drain was said */
};

struct site_answer {
	int		 status;
	const char	*type;
	char		 fields[640];	/* more of its head, lines with CRLF */
	struct metrics	 body;		/* the caller frees it */
};

/* May somebody connect from there? */
bool site_admits(const struct site *s, const struct addr *from);

/* is_local: the request came over a unix socket. */
void site_answer(struct site *s, const struct head *h, bool is_local,
    struct site_answer *out);

/* Bytes of /status, at most. */
size_t site_page_size(void);

#endif
