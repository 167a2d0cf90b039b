/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * console.c - all that operators look at; see console.h.
 */
#include "daemon/console.h"

#include <stdlib.h>

#include "daemon/admin.h"
#include "daemon/amounts.h"
#include "daemon/history.h"
#include "daemon/status.h"
#include "proxy/setup.h"

struct console {
	struct console_opts	 opts;
	struct admin		*admin;
	struct history		*history;
	struct status_reload	 reload;
};

/* --- what is told ------------------------------------------------------- */

static double
wall_of(struct loop *loop)
{
	struct timespec t = loop_wall(loop);

	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const struct config *
config_in_use(void *arg)
{
	struct console *c = arg;
	struct metrics_source from;

	c->opts.source(c->opts.arg, &from);
	return from.setup->config;
}

static void
write_metrics(void *arg, struct metrics *out)
{
	struct console *c = arg;
	struct metrics_source from;

	c->opts.source(c->opts.arg, &from);
	metrics_gather(out, &from);
}

static bool
is_serving(void *arg)
{
	struct console *c = arg;

	return c->opts.is_serving(c->opts.arg);
}

static bool
check_reload(void *arg, FILE *out)
{
	struct console *c = arg;

	return c->opts.check(c->opts.arg, out);
}

static void
write_status(void *arg, struct metrics *out, const struct status_ask *ask)
{
	struct console *c = arg;
	struct metrics_source from;

	c->opts.source(c->opts.arg, &from);
	status_write(out, &(struct status_source){
		.metrics = &from,
		.sockets = c->opts.sockets,
		.history = c->history,
		.reload = &c->reload,
		.file = c->opts.file,
		.state = is_serving(c) ? "serving" : "draining",
		.wall = wall_of(c->opts.loop),
	}, ask);
}

void
console_reloaded(struct console *c, bool ok, const char *text)
{
	c->reload.at = wall_of(c->opts.loop);
	c->reload.ok = ok;
	snprintf(c->reload.text, sizeof c->reload.text, "%s", text);
}

/* --- memory ------------------------------------------------------------- */

uint64_t
console_memory(const struct config *c)
{
	return admin_memory(amounts_page(c)) + history_memory();
}

/* --- its life ----------------------------------------------------------- */

static bool
listen_on_all(struct console *c)
{
	FOR_EACH_SOCKET_SET(set, c->opts.sockets)
		if (set->listener == SOCKETS_OF_ADMIN &&
		    set->count > 0 && !admin_listen(c->admin, set->fds[0]))
			return false;
	return true;
}

struct console *
console_start(const struct console_opts *opts)
{
	struct console *c = xcalloc(1, sizeof *c);

	c->opts = *opts;
	c->history = history_start(&(struct history_opts){
		.loop = opts->loop,
		.source = opts->source,
		.arg = opts->arg,
	});
	c->admin = admin_start(&(struct admin_opts){
		.loop = opts->loop,
		.site = {
			.config = config_in_use,
			.metrics = write_metrics,
			.status = write_status,
			.is_ready = is_serving,
			.check = opts->check == NULL ? NULL : check_reload,
			.log = opts->log,
			.arg = c,
		},
	});
	if (!listen_on_all(c))
		console_stop(&c);
	return c;
}

void
console_leave(struct console *c)
{
	admin_leave(c->admin);
}

void
console_stop(struct console **console)
{
	struct console *c = *console;

	if (c == NULL)
		return;
	*console = NULL;
	admin_stop(&c->admin);
	history_stop(&c->history);
	free(c);
}
