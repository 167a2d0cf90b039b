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
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log_writer.h"
#include "base/random.h"
#include "daemon/admin.h"
#include "daemon/amounts.h"
#include "daemon/console.h"
#include "daemon/crew.h"
#include "daemon/names.h"
#include "daemon/privs.h"
#include "daemon/reload.h"
#include "daemon/sockets.h"
#include "http/rewrite.h"
#include "net/handover.h"
#include "net/loop.h"
#include "net/resolver.h"
#include "proxy/memory.h"
#include "proxy/setup.h"
#include "proxy/shared.h"

enum { LOG_RING = 1024 * 1024 };

enum state { STARTING, SERVING, DRAINING };

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
	struct log_writer	*access_log;
	struct hosts		*hosts;
	char			*nameservers;	/* text; or NULL */
	struct resolver		*resolver;
	struct resolver_stats	 resolver_stats;
	struct reload		*reload;
	struct names		*names;
	struct console		*console;
	struct crew		*crew;
	int			 signals;	/* signalfd */
	struct watch_kind	 signal_kind;
	struct watch		 on_signals;
	double			 started;
};

static watch_fn	on_signal;

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

/* Before any thread is started, so that none of them ever gets one. */
static int
catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
		return -errno;
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd == -1 ? -errno : fd;
}

static void
end(struct master *m, int signo)
{
	if (m->state == SERVING) {
		m->state = DRAINING;
		log_say(m->shared.log, SAY_NOTICE,
		    "%s: draining; once more to end at once",
		    strsignal(signo));
		reload_end(m->reload);
		crew_drain(m->crew);
	} else {
		log_say(m->shared.log, SAY_NOTICE, "%s: ending at once",
		    strsignal(signo));
		crew_stop(m->crew);
	}
}

static void
hang_up(struct master *m)
{
	if (m->state == SERVING)
		reload_start(m->reload);
	else
		log_say(m->shared.log, SAY_WARNING,
		    "no reload: the process is draining");
}

static void
on_signal(struct watch *w, unsigned ready)
{
	struct master *m = container_of(w, struct master, on_signals);
	struct signalfd_siginfo info;

	(void)ready;
	if (read(m->signals, &info, sizeof info) != sizeof info)
		return;
	if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
		end(m, (int)info.ssi_signo);
	else if (info.ssi_signo == SIGHUP)
		hang_up(m);
	else
		log_say(m->shared.log, SAY_WARNING,
		    "%s: not yet there, nothing is done",
		    strsignal((int)info.ssi_signo));
}

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
		.access_log = m->access_log,
		.now = loop_now(m->loop),
		.started = m->started,
		.loaded = last.when,
		.reloaded = last.ok,
	};
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

	m->signals = catch_signals();
	if (m->signals < 0) {
		complain("signals", m->signals);
		return false;
	}
	err = log_new(&m->shared.log, &(struct log_opts){
		.level = (enum log_level)m->config->log.level,
	});
	if (err == 0)
		err = resolver_global_init();
	if (err != 0) {
		complain("log and resolver", err);
		return false;
	}
	m->loop = loop_new();
	if (m->loop == NULL) {
		complain("event loop", -EMFILE);
		return false;
	}
	/* Main's own: pages for operators, whatever workers use. */
	block_budget_init(&m->budget, admin_budget(amounts_page(m->config)));
	blocks_init(&m->blocks, &m->budget);
	loop_set_blocks(m->loop, &m->blocks);
	return true;
}

static bool
start_access_log(struct master *m)
{
	const char *path = m->config->log.access;
	struct log_writer_opts opts = {
		.path = strcmp(path, "stderr") == 0 ? NULL : path,
		.rings = m->shared.workers,
		.ring_size = LOG_RING,
	};
	int err;

	if (strcmp(path, "off") == 0)
		return true;
	err = log_writer_start(&m->access_log, &opts);
	if (err != 0)
		complain(path, err);
	return err == 0;
}

/* Files and ports are opened before privileges are dropped. */
static bool
start_outside(struct master *m)
{
	struct shared *s = &m->shared;

	init_shared(m);
	m->sockets = sockets_new(m->config, s->workers, stderr);
	if (m->sockets == NULL || !start_access_log(m) ||
	    !privs_drop(m->config->penstock.user, stderr))
		return false;
	return true;
}

static void
on_reloaded(void *arg, bool ok)
{
	struct master *m = arg;

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
		.loop = m->loop,
		.blocks = &m->blocks,
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
		.access_log = m->access_log,
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
	return m->crew != NULL && start_console(m);
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
	names_stop(&m->names);
	resolver_free(&m->resolver);
	if (m->signals >= 0)
		watch_stop(&m->on_signals);
	blocks_fini(&m->blocks);
	loop_free(&m->loop);
}

/* In the order opposite to the start; whatever was not started is passed. */
static void
stop(struct master *m)
{
	crew_free(&m->crew);
	handover_free(&m->shared.handover);
	stop_loop(m);
	reload_free(&m->reload);
	log_writer_stop(&m->access_log);
	hosts_free(&m->hosts);
	free(m->nameservers);
	free(m->via);
	sockets_free(&m->sockets);
	if (m->shared.sessions != NULL)
		gate_free(&m->shared.sessions);
	if (m->shared.limits != NULL)
		limits_free(&m->shared.limits);
	config_free(&m->config);
	log_free(&m->shared.log);
	resolver_global_fini();
	if (m->signals >= 0)
		close(m->signals);
}

/* --- saying so --------------------------------------------------------- */

static struct memory_opts
memory_opts(const struct config *c)
{
	uint64_t descriptors = privs_raise_descriptors();
	unsigned workers = amounts_workers(c);
	bool logs = strcmp(c->log.access, "off") != 0;

	return (struct memory_opts){
		.config = c,
		.workers = workers,
		.sessions = amounts_sessions(c, descriptors),
		.descriptors = descriptors,
		.admin = c->admin.bind.count == 0 ? 0 :
		    console_memory(c),
		.logs = logs ? (uint64_t)LOG_RING * workers : 0,
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
		    "  curl http://127.0.0.1:9480/metrics\n"
		    "and look at http://127.0.0.1:9480/status\n");
	fflush(stdout);
}

int
master_run(const struct master_opts *opts)
{
	struct master m = {
		.config = opts->config,
		.file = opts->file,
		.state = STARTING,
		.signals = -1,
		.started = wall_seconds(),
	};
	bool ok = start_base(&m);

	if (ok) {
		m.signal_kind = (struct watch_kind){ m.loop, on_signal };
		watch_init(&m.on_signals, &m.signal_kind, m.signals);
		ok = start_outside(&m) && start_serving(&m);
	}
	if (ok) {
		m.state = SERVING;
		watch_want(&m.on_signals, WATCH_READ);
		print_addresses(&m);
		say_memory(&m);
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
