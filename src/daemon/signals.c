/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.c - signals as events; see signals.h.
 */
#include "daemon/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "net/loop.h"

struct signals {
	const struct signals_row	*rows;
	size_t				 count;
	void				*arg;
	sigset_t			 before;	/* mask at start */
	struct watch_kind		 kind;
	struct watch			 watch;
};

static watch_fn	on_readable;

int
signals_new(struct signals **out, struct loop *loop,
    const struct signals_row *rows, size_t n, void *arg)
{
	struct signals *s = xcalloc(1, sizeof *s);
	sigset_t set;
	int fd, err;

	*out = NULL;
	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, rows[i].signo);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, &s->before) == -1)
		goto free_signals;
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd == -1)
		goto free_signals;

	s->rows = rows;
	s->count = n;
	s->arg = arg;
	s->kind = WATCH_KIND(loop, on_readable);
	watch_init(&s->watch, &s->kind, fd);
	watch_want(&s->watch, WATCH_READ);
	*out = s;
	return 0;

free_signals:
	err = -errno;
	free(s);
	return err;
}

void
signals_free(struct signals **signals)
{
	struct signals *s = *signals;

	if (s == NULL)
		return;
	*signals = NULL;
	watch_stop(&s->watch);
	close(watch_fd(&s->watch));
	free(s);
}

void
signals_undo(const struct signals *s)
{
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}

static void
on_readable(struct watch *w, unsigned ready)
{
	struct signals *s = container_of(w, struct signals, watch);
	struct signalfd_siginfo info;

	(void)ready;
	if (read(watch_fd(w), &info, sizeof info) != sizeof info)
		return;
	for (size_t i = 0; i < s->count; i++)
		if (s->rows[i].signo == (int)info.ssi_signo) {
			s->rows[i].fn(s->arg, s->rows[i].signo);
			return;
		}
}
