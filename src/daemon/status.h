/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status.h - /status.json: all that a person wants to know, at once.
 *
 * The figures are those of /metrics, read in the same way, but as they are:
 * who asks makes rates and quantiles of two answers.  A histogram is an array
 * of counts, not summed up, whose bounds are in `bounds`.
 *
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_STATUS_H
#define PENSTOCK_DAEMON_STATUS_H

#include "daemon/history.h"
#include "daemon/metrics.h"
#include "daemon/sockets.h"

enum { RELOAD_TEXT = 500 };

/* How the last reload went. */
struct status_reload {
	double	at;			/* seconds since 1970; 0: none yet */
	bool	ok;
	char	text[RELOAD_TEXT];	/* what was changed, or wrong */
};

struct status_source {
	const struct metrics_source	*metrics;
	const struct sockets		*sockets;
	const struct history		*history;
	const struct status_reload	*reload;
	const char			*file;	/* NULL: the built-in one */
	const char			*state;	/* serving, draining */
	double				 wall;	/* seconds since 1970 */
};

/* What is asked for. */
struct status_ask {
	uint64_t	since;		/* samples with higher numbers */
	bool		config;		/* the configuration, too */
	bool		held;		/* POST /drain was said */
};

void status_write(struct metrics *out, const struct status_source *from,
    const struct status_ask *ask);

/* Bytes that it has at most, where /metrics has at most `metrics` of them. */
size_t status_size(const struct config *c, size_t metrics);

#endif
