/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * supervisor.c - what the service manager is told; see supervisor.h.
 */
#include "daemon/supervisor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/figures.h"
#include "daemon/notify.h"
#include "net/clock.h"
#include "net/loop.h"
#include "proxy/worker.h"

#define STATUS_EVERY	(5 * NSEC_PER_SEC)

/* Signs in the time after which one is missed: one may be lost. */
enum { SIGNS = 3 };

struct round {
	struct mail	 mail;		/* in a worker's box: not back yet */
	bool		 missed;	/* said */
};

struct supervisor {
	struct supervisor_opts	 opts;
	struct notify		*notify;	/* NULL: nobody to tell */
	struct wheel_timer	 timer;
	nsec_t			 every;		/* it fires */
	bool			 has_watchdog;
	bool			 stopping;
	struct worker *const	*workers;
	struct round		*rounds;	/* one for each */
	unsigned		 count;
	nsec_t			 status_due;
	nsec_t			 counted_at;
	struct figures		 counted;
	char			 said[NOTIFY_TEXT];	/* last STATUS */
};

static wheel_fn	on_time;

/* --- life -------------------------------------------------------------- */

/* A number of the environment; 0 if there is none. */
static uint64_t
number_of(const char *name)
{
	const char *text = getenv(name);
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return 0;

	unsigned long long n = strtoull(text, &end, 10);

	return *end == '\0' ? n : 0;
}

/* How often a sign of life is wanted: 0 if it isn't, or another's is. */
static nsec_t
watchdog_time(void)
{
	uint64_t usec = number_of("WATCHDOG_USEC");
	uint64_t whose = number_of("WATCHDOG_PID");

	if (whose != 0 && whose != (uint64_t)getpid())
		return 0;
	return usec > NSEC_NEVER / 1000 ? 0 : usec * 1000;
}

struct supervisor *
supervisor_new(const struct supervisor_opts *opts)
{
	struct supervisor *s = xcalloc(1, sizeof *s);
	const char *to = getenv("NOTIFY_SOCKET");
	nsec_t watchdog = watchdog_time();
	int err;

	s->opts = *opts;
	wheel_timer_init(&s->timer, on_time);
	s->every = STATUS_EVERY;
	if (watchdog != 0) {
		s->has_watchdog = true;
		s->every = MIN(s->every, MAX(watchdog / SIGNS, 1));
	}
	if (to == NULL || to[0] == '\0')
		return s;
	err = notify_new(&s->notify, to);
	if (err != 0)
		log_say(opts->log, SAY_WARNING, "NOTIFY_SOCKET %s: %s", to,
		    strerror(-err));
	return s;
}

void
supervisor_stop(struct supervisor *s)
{
	if (s != NULL)
		loop_cancel(s->opts.loop, &s->timer);
}

void
supervisor_free(struct supervisor **supervisor)
{
	struct supervisor *s = *supervisor;

	if (s == NULL)
		return;
	*supervisor = NULL;
	notify_free(&s->notify);
	free(s->rounds);
	free(s);
}

/* --- signs of life ----------------------------------------------------- */

static void
on_round(struct mail *m)
{
	(void)m;			/* that it was called is all */
}

/* All have come back since the last time; and they are sent again. */
static bool
all_go_on(struct supervisor *s)
{
	bool all = true;

	for (unsigned i = 0; i < s->count; i++) {
		struct round *r = &s->rounds[i];

		if (!atomic_load(&r->mail.put)) {
			r->missed = false;
			loop_post(s->workers[i]->loop, &r->mail);
			continue;
		}
		all = false;
		if (!r->missed)
			log_say(s->opts.log, SAY_ERROR, "worker %u is stuck: "
			    "the watchdog isn't told that all is well", i);
		r->missed = true;
	}
	return all;
}

/* --- status ------------------------------------------------------------ */

/* So many of them in all that is new; in tenths of a percent. */
static uint64_t
share(uint64_t some, uint64_t all)
{
	return all == 0 ? 0 : MIN(some, all) * 1000 / all;
}

static void
say_status(struct supervisor *s)
{
	nsec_t now = loop_now(s->opts.loop);
	nsec_t span = MAX(now - s->counted_at, 1);
	struct figures f, was = s->counted;
	char text[NOTIFY_TEXT];

	s->opts.figures(s->opts.arg, &f);

	uint64_t requests = f.requests - was.requests;
	uint64_t failed = share(f.failures - was.failures, requests);

	snprintf(text, sizeof text, "STATUS=%s: %" PRIu64 " clients, %" PRIu64
	    " requests/s, %" PRIu64 ".%" PRIu64 " %% failed; %u workers",
	    s->stopping ? "draining" : "serving", f.clients,
	    (requests * NSEC_PER_SEC + span / 2) / span, failed / 10,
	    failed % 10, s->count);
	s->counted = f;
	s->counted_at = now;
	if (strcmp(text, s->said) == 0)
		return;
	notify_news(s->notify, "%s", text);
	memcpy(s->said, text, sizeof text);
}

static void
on_time(struct wheel_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, timer);
	nsec_t now = loop_now(s->opts.loop);

	loop_arm(s->opts.loop, &s->timer, s->every);
	notify_retry(s->notify);
	/* Workers end one after another: then it is no sign of anything. */
	if (s->has_watchdog && (s->stopping || all_go_on(s)))
		notify_news(s->notify, "WATCHDOG=1");
	if (now < s->status_due)
		return;
	s->status_due = now + STATUS_EVERY;
	say_status(s);
}

/* --- what happens ------------------------------------------------------ */

void
supervisor_ready(struct supervisor *s, struct worker *const *workers,
    unsigned count)
{
	if (s->notify == NULL)
		return;
	s->workers = workers;
	s->count = count;
	s->rounds = xcalloc(count, sizeof *s->rounds);
	for (unsigned i = 0; i < count; i++)
		mail_init(&s->rounds[i].mail, on_round);
	notify_state(s->notify, "READY=1");
	s->counted_at = loop_now(s->opts.loop);
	on_time(&s->timer);
}

void
supervisor_reloading(struct supervisor *s)
{
	/* In one datagram: the time tells this reload from one before. */
	notify_state(s->notify, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64
	    "\nSTATUS=reloading",
	    (uint64_t)(read_clock(CLOCK_MONOTONIC) / 1000));
}

void
supervisor_reloaded(struct supervisor *s, const char *outcome)
{
	notify_state(s->notify, "READY=1\nSTATUS=%s", outcome);
	s->said[0] = '\0';
	s->status_due = loop_now(s->opts.loop) + STATUS_EVERY;
}

void
supervisor_stopping(struct supervisor *s, nsec_t within)
{
	s->stopping = true;
	/* However long it may take by the manager's own settings. */
	notify_state(s->notify, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
	    (uint64_t)(within / 1000));
	s->status_due = 0;
}

void
supervisor_succeeded(struct supervisor *s, pid_t by)
{
	notify_state(s->notify, "MAINPID=%ld", (long)by);
	loop_cancel(s->opts.loop, &s->timer);
	notify_free(&s->notify);
}
