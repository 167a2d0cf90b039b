/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * upgrade.c - hand over to a successor; see upgrade.h.
 */
#include "daemon/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "daemon/signals.h"
#include "daemon/sockets.h"
#include "net/loop.h"

enum {
	FIRST = 3,			/* descriptor; sd_listen_fds(3) */
	CHILD_STACK = 64 * 1024,
	FILES = 2,			/* that aren't sockets */
	PID_DIGITS = 20,
};

#define PID_VARIABLE	"LISTEN_PID="

struct upgrade {
	struct upgrade_opts	 opts;
	char			*program;
	pid_t			 child;		/* or 0 */
	bool			 is_taken;
	int			 ready;		/* or -1: no child starts */
	struct watch_kind	 kind;
	struct watch		 watch;
	struct wheel_timer	 timer;
	char			*said;		/* by the child, so far */
	size_t			 said_len, said_max;
	unsigned		 offered;	/* descriptors */
	unsigned		*sets;		/* id of each; 0: a file */
};

/* What the child needs, made before there is one. */
struct plan {
	const struct upgrade	*u;
	int			*fds;
	unsigned		 count;
	char			**env;
	char			*pid;		/* in env: to be filled in */
	int			 err;		/* why it didn't work */
};

static watch_fn	on_said;
static wheel_fn	on_late;

/* --- life -------------------------------------------------------------- */

/*
 * Not where links lead: the operator may have one lead to another version.
 */
static char *
find_program(const char *name)
{
	char here[PATH_MAX], *path;
	ssize_t n;

	if (name != NULL && name[0] == '/')
		return xstrdup(name);
	if (name != NULL && strchr(name, '/') != NULL &&
	    getcwd(here, sizeof here) != NULL) {
		size_t size = strlen(here) + strlen(name) + 2;

		path = xcalloc(size, 1);
		snprintf(path, size, "%s/%s", here, name);
		return path;
	}
	n = readlink("/proc/self/exe", here, sizeof here - 1);
	here[n > 0 ? n : 0] = '\0';
	return xstrdup(here);
}

struct upgrade *
upgrade_new(const struct upgrade_opts *opts)
{
	struct upgrade *u = xcalloc(1, sizeof *u);

	u->opts = *opts;
	u->program = find_program(opts->argv[0]);
	u->ready = -1;
	wheel_timer_init(&u->timer, on_late);
	return u;
}

/* The child has said all it can. */
static void
forget(struct upgrade *u)
{
	if (u->ready != -1) {
		watch_stop(&u->watch);
		close(u->ready);
		u->ready = -1;
	}
	loop_cancel(u->opts.loop, &u->timer);
	free(u->said);
	u->said = NULL;
	free(u->sets);
	u->sets = NULL;
}

void
upgrade_free(struct upgrade **upgrade)
{
	struct upgrade *u = *upgrade;

	if (u == NULL)
		return;
	*upgrade = NULL;
	upgrade_cancel(u);
	forget(u);
	free(u->program);
	free(u);
}

/* --- what it gets ------------------------------------------------------ */

/* How inherit.h will know it. */
static const char *
name_of(const struct socket_set *set)
{
	if (set->name[0] != '\0')
		return set->name;
	return atomic_load(&set->kept) ? "@kept" : "@own";
}

static void
offer(struct upgrade *u, struct plan *p, int fd, unsigned set)
{
	u->sets[p->count] = set;
	p->fds[p->count++] = fd;
}

/* A variable NAME=text in memory of its own. */
static char *
variable(const char *name, const char *text)
{
	size_t size = strlen(name) + strlen(text) + 2;
	char *v = xcalloc(size, 1);

	snprintf(v, size, "%s=%s", name, text);
	return v;
}

/* The descriptors, in the order of their names; the names. */
static char *
gather(struct upgrade *u, struct plan *p, int pid_file, int ready)
{
	const struct { const char *name; int fd; } more[FILES] = {
		{ "@ready", ready }, { "@pid", pid_file },
	};
	unsigned most = FILES;
	struct out o;

	FOR_EACH_SOCKET_SET(set, u->opts.sockets)
		most += set->count;
	p->fds = xcalloc(most, sizeof *p->fds);
	u->sets = xcalloc(most, sizeof *u->sets);

	size_t size = most * (size_t)(CONF_NAME_MAX + 1) + 1;
	char *names = xcalloc(size, 1);

	out_init(&o, names, size - 1);
	for (unsigned i = 0; i < FILES; i++) {
		if (more[i].fd == -1)
			continue;
		out_put(&o, p->count > 0 ? ":" : "");
		out_put(&o, more[i].name);
		offer(u, p, more[i].fd, 0);
	}
	FOR_EACH_SOCKET_SET(set, u->opts.sockets)
		for (unsigned i = 0; i < set->count &&
		    set->listener != SOCKETS_LEAVING; i++) {
			out_char(&o, ':');
			out_put(&o, name_of(set));
			offer(u, p, set->fds[i], set->id);
		}
	u->offered = p->count;
	return names;
}

/* What is said anew, or was meant for this process alone. */
static bool
is_passed_on(const char *v)
{
	static const char *const ours[] = {
		"LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=",
		"WATCHDOG_PID=",
	};

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (strncmp(v, ours[i], strlen(ours[i])) == 0)
			return false;
	return true;
}

/* The last three are the plan's own. */
static void
make_environment(struct plan *p, const char *names)
{
	size_t n = 0, count = 0;
	char text[16];

	while (environ[count] != NULL)
		count++;
	p->env = xcalloc(count + 4, sizeof *p->env);
	for (size_t i = 0; i < count; i++)
		if (is_passed_on(environ[i]))
			p->env[n++] = environ[i];
	snprintf(text, sizeof text, "%u", p->count);
	p->pid = xcalloc(sizeof PID_VARIABLE + PID_DIGITS, 1);
	memcpy(p->pid, PID_VARIABLE, sizeof PID_VARIABLE);
	p->env[n++] = variable("LISTEN_FDS", text);
	p->env[n++] = variable("LISTEN_FDNAMES", names);
	p->env[n++] = p->pid;
}

static void
drop(struct plan *p)
{
	size_t n = 0;

	while (p->env[n] != NULL)
		n++;
	for (size_t i = 1; i <= 3; i++)
		free(p->env[n - i]);
	free(p->env);
	free(p->fds);
}

/* --- the child --------------------------------------------------------- */

/*
 * From here to its execve() the child has our memory, on a stack of its own,
 * while this thread stands still and the others go on: so it makes nothing but
 * system calls.
 */

/* Descriptors FIRST and up are those of the plan, in order, and no others. */
static bool
lay_out(struct plan *p)
{
	unsigned above = FIRST + p->count;

	/* Out of the way first: they may be where others have to be. */
	for (unsigned i = 0; i < p->count; i++) {
		p->fds[i] = fcntl(p->fds[i], F_DUPFD, above);
		if (p->fds[i] == -1)
			return false;
	}
	for (unsigned i = 0; i < p->count; i++)
		if (dup2(p->fds[i], (int)(FIRST + i)) == -1)
			return false;
	return close_range(above, UINT_MAX, 0) == 0;
}

static void
put_pid(char *to)
{
	char digits[PID_DIGITS];
	long pid = (long)getpid();
	int n = 0;

	do
		digits[n++] = (char)('0' + pid % 10);
	while ((pid /= 10) > 0);
	while (n > 0)
		*to++ = digits[--n];
}

static int
become(void *arg)
{
	struct plan *p = arg;

	signals_undo(p->u->opts.signals);
	put_pid(p->pid + sizeof PID_VARIABLE - 1);
	if (lay_out(p))
		execve(p->u->program, p->u->opts.argv, p->env);
	p->err = errno;
	_exit(127);
}

/* 0, or -errno. */
static int
run(struct upgrade *u, struct plan *p)
{
	char *stack = xcalloc(1, CHILD_STACK);
	pid_t pid;

	/* Without a copy of all our memory, and of its page tables. */
	pid = clone(become, stack + CHILD_STACK, CLONE_VM | CLONE_VFORK |
	    SIGCHLD, p);
	int err = pid == -1 ? errno : p->err;
	free(stack);
	if (pid != -1 && err != 0)
		(void)waitpid(pid, NULL, 0);
	if (err == 0)
		u->child = pid;
	return -err;
}

/* --- its answer -------------------------------------------------------- */

static void
fail(struct upgrade *u, const char *why)
{
	log_say(u->opts.log, SAY_ERROR, "no upgrade: %s; this process goes on "
	    "as before", why);
	forget(u);
}

static void
end_child(struct upgrade *u, const char *why)
{
	fail(u, why);
	(void)kill(u->child, SIGKILL);
}

static void
on_late(struct wheel_timer *t)
{
	end_child(container_of(t, struct upgrade, timer),
	    "the new process did not serve in time, and is ended");
}

/* A digit for each descriptor, and a newline. */
static bool
is_answer(const struct upgrade *u)
{
	return u->said_len == u->said_max &&
	    strspn(u->said, "01") == u->offered &&
	    u->said[u->offered] == '\n';
}

/* A reload may have closed it meanwhile. */
static void
keep_set(struct upgrade *u, unsigned id)
{
	FOR_EACH_SOCKET_SET(set, u->opts.sockets)
		if (set->id == id)
			atomic_store(&set->kept, true);
}

static void
take_answer(struct upgrade *u)
{
	unsigned n = 0, taken = 0;

	for (unsigned i = 0; i < u->offered; i++) {
		if (u->sets[i] == 0)
			continue;
		n++;
		if (u->said[i] == '0')
			continue;
		taken++;
		keep_set(u, u->sets[i]);
	}
	log_say(u->opts.log, SAY_NOTICE, "process %ld serves, with %u of %u "
	    "sockets; this one drains", (long)u->child, taken, n);
	u->is_taken = true;
	u->opts.taken(u->opts.arg, u->child);
	forget(u);
}

static void
on_said(struct watch *w, unsigned ready)
{
	struct upgrade *u = container_of(w, struct upgrade, watch);
	ssize_t n = recv(u->ready, u->said + u->said_len,
	    u->said_max - u->said_len, 0);

	(void)ready;
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* It has ended, or will be late: that tells more. */
		watch_stop(w);
		return;
	}
	u->said_len += (size_t)n;
	if (is_answer(u))
		take_answer(u);
	else if (u->said_len == u->said_max)
		end_child(u, "the new process said what is no answer");
}

/* --- from outside ------------------------------------------------------ */

static void
wait_for_child(struct upgrade *u, nsec_t timeout)
{
	u->said_max = u->offered + 1;
	u->said = xcalloc(u->said_max + 1, 1);
	u->said_len = 0;
	u->kind = (struct watch_kind){ u->opts.loop, on_said, "upgrade" };
	watch_init(&u->watch, &u->kind, u->ready);
	watch_want(&u->watch, WATCH_READ);
	loop_arm(u->opts.loop, &u->timer, timeout);
}

void
upgrade_start(struct upgrade *u, int pid_file, nsec_t timeout)
{
	struct plan p = { .u = u };
	int pair[2], err;

	if (u->child != 0) {
		log_say(u->opts.log, SAY_WARNING, "an upgrade is under way, by "
		    "process %ld", (long)u->child);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
	    pair) == -1) {
		fail(u, strerror(errno));
		return;
	}
	u->ready = pair[0];

	char *names = gather(u, &p, pid_file, pair[1]);
	make_environment(&p, names);
	err = run(u, &p);
	close(pair[1]);
	drop(&p);
	free(names);
	wait_for_child(u, timeout);
	if (err != 0) {
		log_say(u->opts.log, SAY_ERROR, "%s: %s", u->program,
		    strerror(-err));
		fail(u, "the program can't be run");
		return;
	}
	log_say(u->opts.log, SAY_NOTICE, "upgrade: process %ld starts, of %s",
	    (long)u->child, u->program);
}

void
upgrade_on_child(struct upgrade *u)
{
	char why[64];
	int status;

	if (u->child == 0 || waitpid(u->child, &status, WNOHANG) != u->child)
		return;
	u->child = 0;
	if (WIFSIGNALED(status))
		snprintf(why, sizeof why, "the new process ended by %s",
		    strsignal(WTERMSIG(status)));
	else
		snprintf(why, sizeof why, "the new process ended with %d",
		    WEXITSTATUS(status));
	if (u->is_taken)
		log_say(u->opts.log, SAY_ERROR, "%s, after it had taken over",
		    why);
	else if (u->ready != -1)
		fail(u, why);
}

void
upgrade_cancel(struct upgrade *u)
{
	if (u->ready != -1)
		end_child(u, "it is to end");
}
