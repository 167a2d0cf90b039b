/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * console.h - all that operators look at: the admin listener, what it tells,
 * and the history behind it.
 *
 * Owner:    console_start() gives a handle.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_CONSOLE_H
#define PENSTOCK_DAEMON_CONSOLE_H

#include "base/log.h"
#include "daemon/metrics.h"
#include "daemon/sockets.h"
#include "net/loop.h"

struct console;

struct console_opts {
	struct loop		*loop;
	struct log		*log;
	const struct sockets	*sockets;
	const char		*file;	/* NULL: the built-in configuration */
	/* What there is to be counted, now. */
	void			(*source)(void *arg,
				    struct metrics_source *out);
	/* Serving, which is what load balancers ask; or draining. */
	bool			(*is_serving)(void *arg);
	/* Would a reload go well?  Else `out` says what is wrong; or NULL. */
	bool			(*check)(void *arg, FILE *out);
	void			*arg;
};

/* Bytes that it takes, with the budget of its blocks: admin_budget(). */
uint64_t console_memory(const struct config *c);

/* Serve on the admin's sockets; NULL without memory. */
struct console *console_start(const struct console_opts *opts);
void console_stop(struct console **c);

/* Accept nobody any more. */
void console_leave(struct console *c);

/* How a reload went, in words. */
void console_reloaded(struct console *c, bool ok, const char *text);

#endif
