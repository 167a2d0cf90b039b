/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * master.c - the life of the process; see master.h.
 */
#include "daemon/master.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "daemon/admin.h"
#include "daemon/amounts.h"
#include "daemon/announce.h"
#include "daemon/console.h"
#include "daemon/crew.h"
#include "daemon/figures.h"
#include "daemon/health.h"
#include "daemon/inherit.h"
#include "daemon/logs.h"
#include "daemon/names.h"
#include "daemon/pid_file.h"
#include "daemon/privs.h"
#include "daemon/reload.h"
#include "daemon/signals.h"
#include "daemon/sockets.h"
#include "daemon/supervisor.h"
#include "daemon/upgrade.h"
#include "http/rewrite.h"
#include "net/handover.h"
#include "net/loop.h"
#include "net/resolver.h"
#include "proxy/setup.h"
#include "proxy/shared.h"

/* To end what has no end of its own. */
#define ENDING	(5 * NSEC_PER_SEC)

enum state { STARTING, SERVING, LEAVING, DRAINING };

struct master {
	struct config		*config;	/* until `reload` has it */
	const char		*file;
	enum state		 state;
	struct shared		 shared;
	char			 name[24];	/* shared.name, if made up */
	char			*via;		/* shared.via */
	struct loop		*loop;
	struct block_budget	 budget;
	struct blocks		 blocks;
	struct sockets		*sockets;
	struct logs		 logs;
	struct hosts		*hosts;
	char			*nameservers;	/* text; or NULL */
	struct resolver		*resolver;
	struct resolver_stats	 resolver_stats;
	struct reload		*reload;
	struct names		*names;
	struct console		*console;
	struct crew		*crew;
	struct signals		*signals;
	struct supervisor	*supervisor;
	struct health		*health;
	struct wheel_timer	 delay;		/* LEAVING */
	struct inherit		*inherit;
	struct upgrade		*upgrade;
	char *const		*argv;
	struct pid_file		 pid_file;
	bool			 is_told_to_end;
	bool			 is_succeeded;	/* another process serves */
	double			 started;
};

/* --- what there will be ------------------------------------------------ */

static double
wall_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A name that no other proxy has, and that tells nobody who we are. */
static void
choose_name(struct master *m)
{
	uint32_t random;

	m->shared.name = str_of(m->config->penstock.name);
	if (!str_equal(m->shared.name, STR("auto")))
		return;
	random_fill(&random, sizeof random);
	snprintf(m->name, sizeof m->name, "penstock-%08x", random);
	m->shared.name = str_of(m->name);
}

static void
make_via(struct master *m)
{
	size_t size = m->shared.name.len + sizeof VIA_LINE("");

	m->via = xcalloc(1, size);
	snprintf(m->via, size, VIA_LINE("%s"), m->shared.name.at);
	m->shared.via = str_of(m->via);
}

static void
init_shared(struct master *m)
{
	struct shared *s = &m->shared;
	const struct config *c = m->config;

	s->workers = amounts_workers(c);
	s->descriptors = privs_raise_descriptors();
	s->loops[s->workers] = m->loop;
	choose_name(m);
	make_via(m);
	block_budget_init(&s->budget, c->penstock.buffers);
	/* Main takes part as the last worker: it releases, and changes. */
	s->limits = limits_new(s->workers + 1, shared_wake, s);
	struct gate_spec spec = amounts_gate(c, s);
	s->sessions = gate_new(&spec, s->workers + 1, shared_wake, s);
	s->handover = handover_new(s->workers);
}

/* --- signals ----------------------------------------------------------- */

static void
on_delay_over(struct wheel_timer *t)
{
	struct master *m = container_of(t, struct master, delay);

	m->state = DRAINING;
	crew_drain(m->crew);
}

static void
leave(struct master *m, int signo)
{
	const struct config *c = reload_setup(m->reload)->config;
	nsec_t delay = c->penstock.drain_delay;

	m->state = LEAVING;
	log_say(m->shared.log, SAY_NOTICE,
	    "%s: draining%s; once more to end at once",
	    strsignal(signo), delay != 0 ? " after drain_delay" : "");
	supervisor_stopping(m->supervisor,
	    delay + c->timeouts.drain + ENDING);
	upgrade_cancel(m->upgrade);
	reload_end(m->reload);
	if (delay != 0)
		loop_arm(m->loop, &m->delay, delay);
	else
		on_delay_over(&m->delay);
}

static void
end(void *arg, int signo)
{
	struct master *m = arg;

	if (m->is_told_to_end) {
		log_say(m->shared.log, SAY_NOTICE, "%s: ending at once",
		    strsignal(signo));
		crew_stop(m->crew);
	} else if (m->state == SERVING) {
		leave(m, signo);
	} else
		log_say(m->shared.log, SAY_NOTICE, "%s: draining already; "
		    "once more to end at once", strsignal(signo));
	m->is_told_to_end = true;
}

static void
hang_up(void *arg, int signo)
{
	struct master *m = arg;

	(void)signo;
	if (m->state == SERVING)
		reload_start(m->reload);
	else
		log_say(m->shared.log, SAY_WARNING,
		    "no reload: the process is draining");
}

static void
reopen(void *arg, int signo)
{
	(void)signo;
	logs_reopen(&((struct master *)arg)->logs);
}

static void
renew(void *arg, int signo)
{
	struct master *m = arg;
	const struct config *c = reload_setup(m->reload)->config;

	(void)signo;
	if (m->state != SERVING)
		log_say(m->shared.log, SAY_WARNING,
		    "no upgrade: the process is draining");
	else if (getpid() == 1)
		log_say(m->shared.log, SAY_ERROR, "no upgrade: with process 1 "
		    "all others would end, the new one too");
	else
		upgrade_start(m->upgrade, m->pid_file.fd,
		    c->penstock.upgrade_timeout);
}

/* A successor serves. */
static void
on_taken(void *arg, pid_t successor)
{
	struct master *m = arg;

	m->is_succeeded = true;
	supervisor_succeeded(m->supervisor, successor);
	reload_end(m->reload);
	console_leave(m->console);
	on_delay_over(&m->delay);
}

static void
on_child(void *arg, int signo)
{
	(void)signo;
	upgrade_on_child(((struct master *)arg)->upgrade);
}

static const struct signals_row signal_table[] = {
	{ SIGTERM, end },
	{ SIGINT, end },
	{ SIGHUP, hang_up },
	{ SIGUSR1, reopen },
	{ SIGUSR2, renew },
	{ SIGCHLD, on_child },
};

/* --- what operators read ------------------------------------------------ */

static void
describe(void *arg, struct metrics_source *out)
{
	struct master *m = arg;
	struct reload_result last = reload_last(m->reload);

	*out = (struct metrics_source){
		.workers = crew_workers(m->crew),
		.count = m->shared.workers,
		.setup = reload_setup(m->reload),
		.logs = &m->logs,
		.watchdog = health_watchdog(m->health),
		.now = loop_now(m->loop),
		.started = m->started,
		.loaded = last.when,
		.reloaded = last.ok,
	};
}

static void
read_figures(void *arg, struct figures *out)
{
	struct master *m = arg;

	figures_read(out, reload_setup(m->reload), m->shared.workers);
}

static bool
is_serving(void *arg)
{
	return ((struct master *)arg)->state == SERVING;
}

static bool
check_reload(void *arg, FILE *out)
{
	return reload_check(((struct master *)arg)->reload, out);
}

static bool
start_console(struct master *m)
{
	m->console = console_start(&(struct console_opts){
		.loop = m->loop,
		.log = m->shared.log,
		.sockets = m->sockets,
		.file = m->file,
		.source = describe,
		.is_serving = is_serving,
		.check = check_reload,
		.arg = m,
	});
	return m->console != NULL;
}

/* --- starting ---------------------------------------------------------- */

static void
complain(const char *what, int err)
{
	fprintf(stderr, "penstock: %s: %s\n", what, strerror(-err));
}

/* What needs no privileges to be undone, and nothing to be bound. */
static bool
start_base(struct master *m)
{
	int err;

	/* Its thread takes no signals. */
	if (!logs_open_error(&m->logs, &m->config->log, stderr))
		return false;
	m->shared.log = m->logs.error;
	m->loop = loop_new();
	if (m->loop == NULL) {
		complain("event loop", -EMFILE);
		return false;
	}
	/* Before any thread is started, so that none of them gets one. */
	err = signals_new(&m->signals, m->loop, signal_table,
	    ARRAY_LEN(signal_table), m);
	if (err == 0)
		err = resolver_global_init();
	if (err != 0) {
		complain("signals and resolver", err);
		return false;
	}
	m->supervisor = supervisor_new(&(struct supervisor_opts){
		.loop = m->loop,
		.log = m->shared.log,
		.figures = read_figures,
		.arg = m,
	});
	/* Main's own: pages for operators, whatever workers use. */
	block_budget_init(&m->budget, admin_budget(amounts_page(m->config)));
	blocks_init(&m->blocks, &m->budget);
	loop_set_blocks(m->loop, &m->blocks);
	return true;
}

static bool
open_pid_file(struct master *m)
{
	const char *path = m->config->penstock.pid_file;
	int err = pid_file_open(&m->pid_file, path,
	    inherit_take_file(m->inherit, "@pid"));

	if (err != 0)
		complain(path, err);
	return err == 0;
}

/* Files and ports are opened before privileges are dropped. */
static bool
start_outside(struct master *m)
{
	struct shared *s = &m->shared;

	m->inherit = inherit_new(stderr);
	init_shared(m);
	m->sockets = sockets_new(m->config, s->workers, m->inherit, stderr);
	if (m->sockets == NULL || !logs_open_access(&m->logs, &m->config->log,
	    s->workers, stderr) || !open_pid_file(m))
		return false;
	logs_give(&m->logs, privs_uid(m->config->penstock.user));
	if (!privs_drop(m->config->penstock.user, stderr))
		return false;
	inherit_close_rest(m->inherit, stderr);
	m->upgrade = upgrade_new(&(struct upgrade_opts){
		.loop = m->loop,
		.log = s->log,
		.signals = m->signals,
		.sockets = m->sockets,
		.argv = m->argv,
		.taken = on_taken,
		.arg = m,
	});
	return true;
}

static void
on_reload(void *arg)
{
	supervisor_reloading(((struct master *)arg)->supervisor);
}

static void
on_reloaded(void *arg, bool ok)
{
	struct master *m = arg;

	if (ok)
		health_set(m->health, &reload_setup(m->reload)->config->log);
	supervisor_reloaded(m->supervisor, ok ? "reloaded" :
	    "reload refused, nothing has changed: see the log");
	if (m->console != NULL)
		console_reloaded(m->console, ok, ok ? "" : "The log tells "
		    "what is wrong.");
}

static struct reload *
new_reload(struct master *m)
{
	struct config *config = m->config;

	m->config = NULL;
	return reload_new(&(struct reload_opts){
		.file = m->file,
		.shared = &m->shared,
		.sockets = m->sockets,
		.logs = &m->logs,
		.loop = m->loop,
		.blocks = &m->blocks,
		.began = on_reload,
		.over = on_reloaded,
		.arg = m,
	}, config);
}

static void on_all_ended(void *arg);

static bool
start_serving(struct master *m)
{
	m->hosts = hosts_read(m->config->penstock.hosts);
	m->nameservers = names_servers(m->config);
	int err = resolver_new(&m->resolver, m->loop, &(struct resolver_opts){
		.servers = m->nameservers,
		.hosts = m->hosts,
		.stats = &m->resolver_stats,
	});
	if (err != 0) {
		complain("resolver", err);
		return false;
	}
	m->reload = new_reload(m);
	m->names = names_start(&(struct names_opts){
		.loop = m->loop,
		.resolver = m->resolver,
		.log = m->shared.log,
		.asked = reload_on_asked,
		.arg = m->reload,
	});
	(void)names_set(m->names, reload_setup(m->reload));
	m->crew = crew_new(&(struct crew_opts){
		.shared = &m->shared,
		.setup = reload_setup(m->reload),
		.sockets = m->sockets,
		.access_log = m->logs.access,
		.nameservers = m->nameservers,
		.hosts = m->hosts,
		.main_loop = m->loop,
		.all_ended = on_all_ended,
		.arg = m,
		.published = reload_on_published,
		.unserved = reload_on_unserved,
		.publisher = m->reload,
	});
	reload_use(m->reload, m->crew, m->names);
	if (m->crew == NULL)
		return false;
	m->health = health_start(&(struct health_opts){
		.loop = m->loop,
		.crew = m->crew,
		.reload = m->reload,
		.workers = m->shared.workers,
		.log = m->shared.log,
	}, &reload_setup(m->reload)->config->log);
	return start_console(m);
}

/* --- ending ------------------------------------------------------------ */

static void
on_all_ended(void *arg)
{
	loop_stop(((struct master *)arg)->loop);
}

static void
stop_loop(struct master *m)
{
	if (m->loop == NULL)
		return;
	console_stop(&m->console);
	supervisor_stop(m->supervisor);
	names_stop(&m->names);
	resolver_free(&m->resolver);
	loop_cancel(m->loop, &m->delay);
	upgrade_free(&m->upgrade);
	inherit_free(&m->inherit);
	signals_free(&m->signals);
	blocks_fini(&m->blocks);
	loop_free(&m->loop);
}

/* In the order opposite to the start; whatever was not started is passed. */
static void
stop(struct master *m)
{
	health_stop(&m->health);
	crew_free(&m->crew);
	handover_free(&m->shared.handover);
	stop_loop(m);
	supervisor_free(&m->supervisor);
	reload_free(&m->reload);
	hosts_free(&m->hosts);
	free(m->nameservers);
	free(m->via);
	sockets_free(&m->sockets);
	pid_file_close(&m->pid_file, m->is_succeeded);
	if (m->shared.sessions != NULL)
		gate_free(&m->shared.sessions);
	if (m->shared.limits != NULL)
		limits_free(&m->shared.limits);
	config_free(&m->config);
	logs_close(&m->logs);
	resolver_global_fini();
}

/* --- all of it --------------------------------------------------------- */

/* No other process is or was in our place, or not any more. */
static void
on_alone(void *arg)
{
	struct master *m = arg;
	int err = pid_file_write(&m->pid_file);

	if (err != 0)
		log_say(m->shared.log, SAY_ERROR, "%s: %s", m->pid_file.path,
		    strerror(-err));
	supervisor_ready(m->supervisor, crew_workers(m->crew),
	    m->shared.workers);
}

int
master_run(const struct master_opts *opts)
{
	struct master m = {
		.config = opts->config,
		.file = opts->file,
		.argv = opts->argv,
		.state = STARTING,
		.pid_file = { .fd = -1 },
		.started = wall_seconds(),
	};
	bool ok;

	wheel_timer_init(&m.delay, on_delay_over);
	ok = start_base(&m);
	ok = ok && start_outside(&m) && start_serving(&m);
	if (ok) {
		m.state = SERVING;
		announce_start(&(struct announce_opts){
			.log = m.shared.log,
			.setup = reload_setup(m.reload),
			.sockets = m.sockets,
			.is_builtin = m.file == NULL,
		});
		inherit_tell(m.inherit, m.loop, on_alone, &m);
		loop_run(m.loop);
	} else if (m.crew != NULL)
		crew_stop(m.crew);
	stop(&m);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
master_test(const struct master_opts *opts, FILE *out)
{
	struct sockets *s = sockets_new(opts->config, 1, NULL, stderr);
	bool ok = privs_check(opts->config->penstock.user, stderr);

	ok = logs_check(&opts->config->log, stderr) && ok;
	if (s == NULL || !ok) {
		sockets_free(&s);
		return EXIT_FAILURE;
	}
	sockets_free(&s);
	fprintf(out, "penstock: %s: fine\n",
	    opts->file != NULL ? opts->file : "built-in configuration");
	announce_memory(out, opts->config);
	return EXIT_SUCCESS;
}
