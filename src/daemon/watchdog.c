/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watchdog.c - a thread that tells of loops which don't get on; see
 * watchdog.h.
 *
 * What it reads of others is their figures, which are atomic, and what /proc
 * says of their threads; it waits for nobody.
 */
#include "daemon/watchdog.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/crew.h"
#include "net/clock.h"
#include "net/loop.h"
#include "net/spent.h"
#include "proxy/worker.h"

enum { LOOK_EVERY = 100 };		/* milliseconds */

struct watched {
	nsec_t			 stuck;		/* turn that was told; or 0 */
	_Atomic uint64_t	 times;
};

struct watchdog {
	const struct crew	*crew;
	struct log		*log;
	struct watched		*watched;	/* by worker */
	unsigned		 count;
	_Atomic unsigned	 stuck;
	int			 stop_fd;
	pthread_t		 thread;
};

/* --- what is told ------------------------------------------------------- */

/* The letter behind "(name)" in /proc/PID/stat; 0 if it can't be read. */
static char
thread_state(pid_t tid)
{
	char path[64], text[256];
	char *end;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' ? end[2] : 0;
}

static const char *
state_text(char state)
{
	switch (state) {
	case 'R':
		return "runs or waits for a processor";
	case 'S':
		return "sleeps in the kernel";
	case 'D':
		return "waits for a device";
	case 'T':
	case 't':
		return "was stopped";
	default:
		return "can't be looked at";
	}
}

static void
say_stuck(struct watchdog *d, unsigned i, nsec_t time)
{
	const struct worker *w = crew_workers(d->crew)[i];

	log_say(d->log, SAY_WARNING, "worker %u is stuck: for %llu ms in %s; "
	    "its thread %s; %llu sessions wait", i,
	    (unsigned long long)(time / NSEC_PER_MSEC),
	    callback_name(spent_running(loop_spent(w->loop))),
	    state_text(thread_state(crew_tid(d->crew, i))),
	    (unsigned long long)stat_read(&w->client_totals.open));
}

/* --- looking ------------------------------------------------------------ */

/* Its turn is another than the one that was told, or it polls. */
static void
is_over(struct watchdog *d, unsigned i, nsec_t end)
{
	struct watched *w = &d->watched[i];

	log_say(d->log, SAY_WARNING, "worker %u goes on, after %llu ms", i,
	    (unsigned long long)((end - w->stuck) / NSEC_PER_MSEC));
	w->stuck = 0;
	atomic_fetch_sub(&d->stuck, 1);
}

static void
look(struct watchdog *d, unsigned i)
{
	const struct worker *worker = crew_workers(d->crew)[i];
	nsec_t began = crew_tid(d->crew, i) == 0 ? 0 :
	    stat_read(&loop_stats(worker->loop)->turn_began);
	nsec_t now = read_clock(CLOCK_MONOTONIC);
	struct watched *w = &d->watched[i];

	if (w->stuck != 0 && began != w->stuck)
		is_over(d, i, began != 0 ? began : now);
	if (began == 0 || w->stuck != 0 || now < began + WATCHDOG_STUCK)
		return;
	w->stuck = began;
	atomic_fetch_add(&d->stuck, 1);
	atomic_fetch_add(&w->times, 1);
	say_stuck(d, i, now - began);
}

static void *
run(void *arg)
{
	struct watchdog *d = arg;
	struct pollfd stop = { .fd = d->stop_fd, .events = POLLIN };
	nsec_t then = read_clock(CLOCK_MONOTONIC);

	pthread_setname_np(pthread_self(), "watchdog");
	while (poll(&stop, 1, LOOK_EVERY) == 0) {
		nsec_t now = read_clock(CLOCK_MONOTONIC);
		bool was_late = now - then > WATCHDOG_STUCK;

		then = now;
		for (unsigned i = 0; !was_late && i < d->count; i++)
			look(d, i);
	}
	return NULL;
}

/* --- the handle --------------------------------------------------------- */

struct watchdog *
watchdog_start(const struct crew *crew, unsigned workers, struct log *log)
{
	struct watchdog *d = xcalloc(1, sizeof *d);
	sigset_t all, old;

	d->crew = crew;
	d->log = log;
	d->count = workers;
	d->watched = xcalloc(workers, sizeof *d->watched);
	d->stop_fd = eventfd(0, EFD_CLOEXEC);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	bool ok = d->stop_fd != -1 &&
	    pthread_create(&d->thread, NULL, run, d) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ok)
		return d;
	if (d->stop_fd != -1)
		close(d->stop_fd);
	free(d->watched);
	free(d);
	return NULL;
}

void
watchdog_stop(struct watchdog **w)
{
	struct watchdog *d = *w;
	uint64_t one = 1;

	if (d == NULL)
		return;
	*w = NULL;
	ssize_t n = write(d->stop_fd, &one, sizeof one);
	(void)n;
	pthread_join(d->thread, NULL);
	close(d->stop_fd);
	free(d->watched);
	free(d);
}

uint64_t
watchdog_times(const struct watchdog *w, unsigned i)
{
	return w == NULL ? 0 : atomic_load(&w->watched[i].times);
}

unsigned
watchdog_stuck(const struct watchdog *w)
{
	return w == NULL ? 0 : atomic_load(&w->stuck);
}
