/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reload.c - another configuration; see reload.h.
 */
#include "daemon/reload.h"

#include <stdlib.h>
#include <time.h>

#include "base/block.h"
#include "daemon/admin.h"
#include "daemon/amounts.h"
#include "daemon/crew.h"
#include "daemon/names.h"
#include "daemon/sockets.h"
#include "net/loop.h"
#include "proxy/shared.h"

enum state { IDLE, ASKING, PUBLISHING };

struct reload {
	struct reload_opts	 opts;
	struct crew		*crew;
	struct names		*names;
	struct list		 setups;	/* all there are */
	struct setup		*current;
	struct setup		*next;		/* not IDLE */
	enum state		 state;
	bool			 again;		/* asked for meanwhile */
	bool			 ended;
	struct reload_result	 last;
};

static double
wall_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct reload *
reload_new(const struct reload_opts *opts, struct config *config)
{
	struct reload *r = xcalloc(1, sizeof *r);

	r->opts = *opts;
	list_init(&r->setups);
	r->current = setup_new(config, opts->shared, NULL, &r->setups,
	    loop_now(opts->loop));
	sockets_tell(opts->sockets, r->current);
	setup_replace(r->current, NULL);
	r->last = (struct reload_result){ true, wall_seconds() };
	return r;
}

void
reload_free(struct reload **reload)
{
	struct reload *r = *reload;

	if (r == NULL)
		return;
	*reload = NULL;
	setups_free(&r->setups);
	free(r);
}

void
reload_use(struct reload *r, struct crew *crew, struct names *names)
{
	r->crew = crew;
	r->names = names;
}

struct setup *
reload_setup(const struct reload *r)
{
	return r->current;
}

struct reload_result
reload_last(const struct reload *r)
{
	return r->last;
}

/* --- what may go wrong ------------------------------------------------- */

/*
 * The configuration that the file says now, its addresses bound; or NULL, and
 * all that is wrong on `errors`.
 */
static struct config *
prepare(struct reload *r, FILE *errors)
{
	struct config *c;

	if (r->opts.file == NULL) {
		fprintf(errors, "there is no configuration file; one needs a "
		    "restart\n");
		return NULL;
	}
	c = config_load(r->opts.file, errors);
	if (c == NULL)
		return NULL;
	if (config_reload_conflicts(errors, r->current->config, c) != 0 ||
	    !sockets_prepare(r->opts.sockets, c, errors))
		config_free(&c);
	return c;
}

bool
reload_check(struct reload *r, FILE *out)
{
	struct config *c;

	/* What is prepared must not be prepared anew. */
	if (r->state == ASKING) {
		fprintf(out, "a reload is under way\n");
		return false;
	}
	c = prepare(r, out);
	if (c == NULL)
		return false;
	sockets_abandon(r->opts.sockets);
	config_free(&c);
	return true;
}

static void
end(struct reload *r, bool ok)
{
	r->last.ok = ok;
	if (ok)
		r->last.when = wall_seconds();
	if (r->opts.over != NULL)
		r->opts.over(r->opts.arg, ok);
}

static void
refuse(struct reload *r, const char *errors)
{
	struct log *log = r->opts.shared->log;

	log_lines(log, SAY_ERROR, errors);
	log_say(log, SAY_ERROR, "reload refused: nothing has changed");
	end(r, false);
}

/* --- what may not ------------------------------------------------------ */

/* What is main's to change. */
static void
adjust(struct reload *r, const struct config *c)
{
	struct shared *s = r->opts.shared;
	struct blocks *own = r->opts.blocks;
	struct gate_spec spec = amounts_gate(c, s);

	log_set_level(s->log, (enum log_level)c->log.level);
	gate_set(s->sessions, &spec, s->workers, loop_now(r->opts.loop));
	block_budget_set(&s->budget, c->penstock.buffers);
	block_budget_set(own->budget, admin_budget(amounts_page(c)));
	blocks_adjust(own);
}

static void
publish(struct reload *r)
{
	struct setup *before = r->current;

	r->state = PUBLISHING;
	sockets_commit(r->opts.sockets);
	sockets_tell(r->opts.sockets, r->next);
	setup_replace(r->next, before);
	r->current = r->next;
	r->next = before;
	adjust(r, r->current->config);
	crew_publish(r->crew, r->current, r->opts.sockets);
}

static void
begin(struct reload *r, struct config *config)
{
	/* Reading the file took its time. */
	loop_now_update(r->opts.loop);
	r->next = setup_new(config, r->opts.shared, r->current, &r->setups,
	    loop_now(r->opts.loop));
	r->state = ASKING;
	if (names_set(r->names, r->next))
		publish(r);
}

void
reload_start(struct reload *r)
{
	char *errors = NULL;
	size_t n;

	if (r->ended || r->state != IDLE) {
		r->again = true;
		return;
	}
	if (r->opts.began != NULL)
		r->opts.began(r->opts.arg);

	FILE *out = open_memstream(&errors, &n);
	struct config *config = out != NULL ? prepare(r, out) : NULL;

	if (out != NULL)
		fclose(out);
	if (config == NULL)
		refuse(r, errors != NULL ? errors : "");
	else
		begin(r, config);
	free(errors);
}

void
reload_on_asked(void *arg)
{
	struct reload *r = arg;

	if (r->state == ASKING)
		publish(r);
}

/* Of the setup that isn't in use; others may still hold it. */
static void
let_go(struct reload *r)
{
	setup_ease(r->next);
	setup_release(r->next);
	r->next = NULL;
}

/*
 * The workers have all come to the end of whatever they did before, and none
 * hands connections over by the setup before: see doors.h.
 */
void
reload_on_published(void *arg)
{
	struct reload *r = arg;
	const struct config *c = r->current->config;

	r->state = IDLE;
	let_go(r);
	limits_settle(r->opts.shared->limits, loop_now(r->opts.loop));
	sockets_sweep(r->opts.sockets);
	log_say(r->opts.shared->log, SAY_NOTICE, "reloaded: %zu listeners, "
	    "%zu routes, %zu upstreams, %zu limits", c->listener_count,
	    c->route_count, c->upstream_count, c->limit_count);
	end(r, true);
	if (r->again) {
		r->again = false;
		reload_start(r);
	}
}

void
reload_on_unserved(void *arg)
{
	struct reload *r = arg;

	/* Some may be on their way to a worker that will serve them. */
	if (r->state == IDLE)
		sockets_sweep(r->opts.sockets);
}

void
reload_end(struct reload *r)
{
	r->ended = true;
	r->again = false;
	if (r->state != ASKING)
		return;
	/* Workers won't go by it: they have been told to end. */
	r->state = IDLE;
	sockets_abandon(r->opts.sockets);
	names_set(r->names, r->current);
	let_go(r);
}
