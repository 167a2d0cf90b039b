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
#include "daemon/crew.h"
#include "daemon/figures.h"
#include "daemon/health.h"
#include "daemon/logs.h"
#include "daemon/metrics.h"
#include "daemon/names.h"
#include "daemon/privs.h"
#include "daemon/reload.h"
#include "daemon/signals.h"
#include "daemon/sockets.h"
#include "daemon/supervisor.h"
#include "http/rewrite.h"
#include "net/handover.h"
#include "net/loop.h"
#include "net/resolver.h"
#include "proxy/memory.h"
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
	struct admin		*admin;
	struct crew		*crew;
	struct signals		*signals;
	struct supervisor	*supervisor;
	struct health		*health;
	struct wheel_timer	 delay;		/* LEAVING */
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

static char *
nameservers_text(const struct config *c)
{
	const struct conf_addrs *servers = &c->penstock.nameservers;
	char *text;
	struct out o;

	if (servers->count == 0)
		return NULL;
	text = xcalloc(servers->count, ADDR_TEXT);
	out_init(&o, text, servers->count * ADDR_TEXT);
	for (size_t i = 0; i < servers->count; i++) {
		char one[ADDR_TEXT];

		if (i > 0)
			out_char(&o, ',');
		out_put(&o, addr_print(&servers->at[i], one, sizeof one));
	}
	out_char(&o, '\0');
	return text;
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
end(void *arg, int signo)
{
	struct master *m = arg;
	const struct config *c = reload_setup(m->reload)->config;
	nsec_t delay = c->penstock.drain_delay;

	if (m->state == SERVING) {
		m->state = LEAVING;
		log_say(m->shared.log, SAY_NOTICE,
		    "%s: draining%s; once more to end at once",
		    strsignal(signo), delay != 0 ? " after drain_delay" : "");
		reload_end(m->reload);
		supervisor_stopping(m->supervisor,
		    delay + c->timeouts.drain + ENDING);
		if (delay != 0)
			loop_arm(m->loop, &m->delay, delay);
		else
			on_delay_over(&m->delay);
	} else {
		log_say(m->shared.log, SAY_NOTICE, "%s: ending at once",
		    strsignal(signo));
		crew_stop(m->crew);
	}
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
on_later(void *arg, int signo)
{
	log_say(((struct master *)arg)->shared.log, SAY_WARNING,
	    "%s: not yet there, nothing is done", strsignal(signo));
}

static const struct signals_row signal_table[] = {
	{ SIGTERM, end },
	{ SIGINT, end },
	{ SIGHUP, hang_up },
	{ SIGUSR1, reopen },
	{ SIGUSR2, on_later },
};

/* --- what operators read ------------------------------------------------ */

static void
write_metrics(void *arg, struct metrics *out)
{
	struct master *m = arg;
	struct reload_result last = reload_last(m->reload);

	metrics_gather(out, &(struct metrics_source){
		.workers = crew_workers(m->crew),
		.count = m->shared.workers,
		.setup = reload_setup(m->reload),
		.logs = &m->logs,
		.watchdog = health_watchdog(m->health),
		.now = loop_now(m->loop),
		.started = m->started,
		.loaded = last.when,
		.reloaded = last.ok,
	});
}

static void
read_figures(void *arg, struct figures *out)
{
	struct master *m = arg;

	figures_read(out, reload_setup(m->reload), m->shared.workers);
}

static bool
is_ready(void *arg)
{
	return ((struct master *)arg)->state == SERVING;
}

static bool
start_admin(struct master *m)
{
	m->admin = admin_start(&(struct admin_opts){
		.loop = m->loop,
		.metrics = write_metrics,
		.is_ready = is_ready,
		.arg = m,
	});
	FOR_EACH_SOCKET_SET(set, m->sockets)
		if (set->listener == SOCKETS_OF_ADMIN &&
		    !admin_listen(m->admin, set->fds[0]))
			return false;
	return true;
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

/* Files and ports are opened before privileges are dropped. */
static bool
start_outside(struct master *m)
{
	struct shared *s = &m->shared;

	init_shared(m);
	m->sockets = sockets_new(m->config, s->workers, stderr);
	if (m->sockets == NULL || !logs_open_access(&m->logs, &m->config->log,
	    s->workers, stderr))
		return false;
	logs_give(&m->logs, privs_uid(m->config->penstock.user));
	if (!privs_drop(m->config->penstock.user, stderr))
		return false;
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
	m->nameservers = nameservers_text(m->config);
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
	return start_admin(m);
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
	admin_stop(&m->admin);
	supervisor_stop(m->supervisor);
	names_stop(&m->names);
	resolver_free(&m->resolver);
	loop_cancel(m->loop, &m->delay);
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
	if (m->shared.sessions != NULL)
		gate_free(&m->shared.sessions);
	if (m->shared.limits != NULL)
		limits_free(&m->shared.limits);
	config_free(&m->config);
	logs_close(&m->logs);
	resolver_global_fini();
}

/* --- saying so --------------------------------------------------------- */

static struct memory_opts
memory_opts(const struct config *c)
{
	uint64_t descriptors = privs_raise_descriptors();
	unsigned workers = amounts_workers(c);

	return (struct memory_opts){
		.config = c,
		.workers = workers,
		.sessions = amounts_sessions(c, descriptors),
		.descriptors = descriptors,
		.admin = c->admin.bind.count == 0 ? 0 :
		    admin_memory(amounts_page(c)),
		.logs = logs_memory(&c->log, workers),
	};
}

static uint64_t
mib(uint64_t bytes)
{
	return (bytes + 1024 * 1024 - 1) / (1024 * 1024);
}

/* Tables of keyed limits and of turns are made once and never grow. */
static void
say_memory(const struct master *m)
{
	const struct setup *setup = reload_setup(m->reload);
	struct memory_opts o = memory_opts(setup->config);
	struct memory_row rows[MEMORY_ROWS];

	log_say(m->shared.log, SAY_INFO, "memory: %" PRIu64 " MiB in the "
	    "worst case; -t tells for what",
	    mib(memory_worst(&o, rows)));
	for (size_t i = 0; i < setup->config->limit_count; i++) {
		const struct limit *l = setup->limits[i];

		size_t bytes = limit_tables(limit_spec(l),
		    m->shared.workers + 1);

		if (bytes != 0)
			log_say(m->shared.log, SAY_INFO, "limit %s: %zu KiB "
			    "of tables", limit_spec(l)->name, bytes / 1024);
	}
}

static void
print_memory(FILE *out, const struct config *c)
{
	struct memory_row rows[MEMORY_ROWS];
	struct memory_opts o = memory_opts(c);
	uint64_t sum = memory_worst(&o, rows);

	fprintf(out, "memory in the worst case, but for the kernel's and the "
	    "configuration itself,\nwith %u workers and %" PRIu64
	    " descriptors, so max_connections = %" PRIu64 ":\n",
	    o.workers, o.descriptors, o.sessions);
	for (size_t i = 0; i < MEMORY_ROWS; i++)
		fprintf(out, "%8" PRIu64 " MiB  %-24s %s\n",
		    mib(rows[i].bytes), rows[i].what, rows[i].bound);
	fprintf(out, "%8" PRIu64 " MiB  in all\n", mib(sum));
}

static void
print_addresses(const struct master *m)
{
	char text[ADDR_TEXT + 108];

	const struct config *c = reload_setup(m->reload)->config;

	FOR_EACH_SOCKET_SET(set, m->sockets)
		printf("penstock: %s on %s\n",
		    set->listener == SOCKETS_OF_ADMIN ? "admin" :
		    c->listener[set->listener].name_,
		    addr_print(&set->addr, text, sizeof text));
	if (m->file == NULL)
		printf("penstock: no configuration file, so this is the "
		    "built-in one; try\n"
		    "  curl -x http://127.0.0.1:8080 http://example.com/\n"
		    "  curl http://127.0.0.1:9480/metrics\n");
	fflush(stdout);
}

int
master_run(const struct master_opts *opts)
{
	struct master m = {
		.config = opts->config,
		.file = opts->file,
		.state = STARTING,
		.started = wall_seconds(),
	};
	bool ok;

	wheel_timer_init(&m.delay, on_delay_over);
	ok = start_base(&m);
	ok = ok && start_outside(&m) && start_serving(&m);
	if (ok) {
		m.state = SERVING;
		print_addresses(&m);
		say_memory(&m);
		supervisor_ready(m.supervisor, crew_workers(m.crew),
		    m.shared.workers);
		loop_run(m.loop);
	} else if (m.crew != NULL)
		crew_stop(m.crew);
	stop(&m);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
master_test(const struct master_opts *opts, FILE *out)
{
	struct sockets *s = sockets_new(opts->config, 1, stderr);
	bool ok = privs_check(opts->config->penstock.user, stderr);

	ok = logs_check(&opts->config->log, stderr) && ok;
	if (s == NULL || !ok) {
		sockets_free(&s);
		return EXIT_FAILURE;
	}
	sockets_free(&s);
	fprintf(out, "penstock: %s: fine\n",
	    opts->file != NULL ? opts->file : "built-in configuration");
	print_memory(out, opts->config);
	return EXIT_SUCCESS;
}
