/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listener.c - take connections; see listener.h.
 */
#include "net/listener.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/sock.h"

#define SHORTAGE_PAUSE	(100 * NSEC_PER_MSEC)

struct listener {
	struct listener_opts	 opts;
	struct loop		*loop;
	struct watch_kind	 kind;
	struct watch		 watch;
	struct wheel_timer	 timer;		/* armed in a shortage */
	struct loop_again	 again;		/* linked while draining */
	bool			 paused;
	bool			 draining;
	bool			 drained;
	bool			*stopped;	/* for who is calling out */
};

static watch_fn	on_readable;
static wheel_fn	on_timer;
static void	on_again(struct loop_again *a);
static void	accept_batch(struct listener *l);

/* --- binding ----------------------------------------------------------- */

static int
set_flag(int fd, int level, int name)
{
	int on = 1;

	return setsockopt(fd, level, name, &on, sizeof on) == 0 ? 0 : -errno;
}

/* Close a socket that didn't work out, and say why. */
static int
give_up(int fd, int err)
{
	close(fd);
	return err;
}

/* A bound socket; or -errno. */
static int
open_bound(const struct addr *at, bool shared)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(at, &ss);
	int fd = sock_open(at);
	int err = 0;

	if (fd < 0)
		return fd;
	if (at->family != ADDR_UNIX)
		err = set_flag(fd, SOL_SOCKET, SO_REUSEADDR);
	if (err == 0 && at->family == ADDR_IP6)
		err = set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (err == 0 && shared)
		err = set_flag(fd, SOL_SOCKET, SO_REUSEPORT);
	/* The mode that bind(2) creates a unix socket with, at most. */
	if (err == 0 && at->family == ADDR_UNIX)
		err = fchmod(fd, 0660) == 0 ? 0 : -errno;
	if (err == 0 && bind(fd, (const struct sockaddr *)&ss, len) == -1)
		err = -errno;
	return err == 0 ? fd : give_up(fd, err);
}

/* The socket, which listens; or it is closed, and -errno. */
static int
listen_on(int fd, const struct addr *at)
{
	int err = 0;

	/* Nagle's delay is off already, and inherited too. */
	if (at->family != ADDR_UNIX)
		err = set_flag(fd, SOL_SOCKET, SO_KEEPALIVE);
	if (err == 0 && listen(fd, SOMAXCONN) == -1)
		err = -errno;
	return err == 0 ? fd : give_up(fd, err);
}

/* Remove a unix socket that nobody listens on; -EADDRINUSE if one does. */
static int
remove_stale(const struct addr *at)
{
	struct stat st;

	if (lstat(at->path, &st) == -1)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EADDRINUSE;

	int fd = sock_open(at);

	if (fd < 0)
		return fd;

	int err = sock_connect(fd, at);

	close(fd);
	if (err != -ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(at->path) == 0 ? 0 : -errno;
}

static int
bind_unix(const struct addr *at)
{
	int err = remove_stale(at);

	if (err != 0)
		return err;

	int fd = open_bound(at, false);

	if (fd < 0)
		return fd;
	/* Whatever the umask took away. */
	if (chmod(at->path, 0660) == -1)
		return give_up(fd, -errno);
	return listen_on(fd, at);
}

/* Does another process have it?  With SO_REUSEPORT it wouldn't be told. */
static int
probe(const struct addr *at)
{
	int fd = open_bound(at, false);

	return fd < 0 ? fd : give_up(fd, 0);
}

static int
open_shared(const struct addr *at)
{
	int fd = open_bound(at, true);

	return fd < 0 ? fd : listen_on(fd, at);
}

int
bind_address(const struct addr *at, int fds[], unsigned count, bool beside)
{
	struct addr to = *at;
	unsigned n = 0;
	int err;

	ASSERT(count >= 1);
	if (at->family == ADDR_UNIX) {
		ASSERT(count == 1);
		fds[0] = bind_unix(at);
		return MIN(fds[0], 0);
	}

	err = beside ? 0 : probe(at);
	if (err != 0)
		return err;
	for (; n < count; n++) {
		fds[n] = open_shared(&to);
		if (fds[n] < 0) {
			err = fds[n];
			goto close_all;
		}
		if (to.port == 0)
			sock_local(fds[n], &to);
	}
	return 0;

close_all:
	while (n > 0)
		close(fds[--n]);
	return err;
}

/* --- life -------------------------------------------------------------- */

struct listener *
listener_start(struct loop *loop, const struct listener_opts *opts)
{
	struct listener *l = calloc(1, sizeof *l);

	if (l == NULL)
		return NULL;
	l->opts = *opts;
	l->loop = loop;
	list_init(&l->again.link);
	l->again.fn = on_again;
	wheel_timer_init(&l->timer, on_timer);
	l->kind = (struct watch_kind){ loop, on_readable };
	watch_init(&l->watch, &l->kind, opts->fd);
	watch_want(&l->watch, WATCH_READ);
	return l;
}

void
listener_stop(struct listener **listener)
{
	struct listener *l = *listener;

	if (l == NULL)
		return;
	*listener = NULL;
	watch_stop(&l->watch);
	loop_cancel(l->loop, &l->timer);
	list_remove(&l->again.link);
	if (l->stopped != NULL)
		*l->stopped = true;
	free(l);
}

/* Have what the listener waits for follow from its state. */
static void
update(struct listener *l)
{
	bool may = !l->paused && !l->drained && !wheel_is_armed(&l->timer);

	watch_want(&l->watch, may && !l->draining ? WATCH_READ : 0);
	if (may && l->draining)
		loop_again(l->loop, &l->again);
	else
		list_remove(&l->again.link);
}

void
listener_pause(struct listener *l)
{
	l->paused = true;
	update(l);
}

void
listener_resume(struct listener *l)
{
	l->paused = false;
	update(l);
}

void
listener_drain(struct listener *l)
{
	l->draining = true;
	update(l);
}

bool
listener_is_drained(const struct listener *l)
{
	return l->drained;
}

int
listener_refuse_new(int fd)
{
	/* Of the TCP header: byte 13 are the flags, 2 is SYN. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x02, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };
	struct addr at;

	sock_local(fd, &at);
	if (at.family == ADDR_UNIX)
		return 0;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
	    sizeof program) == 0 ? 0 : -errno;
}

void
listener_take_new(int fd)
{
	int none = 0;

	(void)setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none,
	    sizeof none);
}

void
listener_close(int fd)
{
	/* Not close(2): the descriptor is the caller's, or another's too. */
	(void)shutdown(fd, SHUT_RDWR);
}

/* --- accepting --------------------------------------------------------- */

static void
on_readable(struct watch *w, unsigned ready)
{
	(void)ready;
	accept_batch(container_of(w, struct listener, watch));
}

static void
on_again(struct loop_again *a)
{
	accept_batch(container_of(a, struct listener, again));
}

static void
on_timer(struct wheel_timer *t)
{
	update(container_of(t, struct listener, timer));
}

/* Errors that are over with the connection they came from; accept(2). */
static bool
is_of_client(int err)
{
	switch (err) {
	case EINTR:
	case ECONNABORTED:
	case ENETDOWN:
	case EPROTO:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
	case EPERM:
	case ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

/*
 * Nothing was accepted: shall the batch go on?  What is neither over with its
 * connection nor the end of the queue is a shortage, or would come again at
 * once: the listener must not spin.  Calls out last.
 */
static bool
refused(struct listener *l, int err)
{
	if (is_of_client(err))
		return true;
	if (err == EAGAIN) {
		l->drained = l->draining;
		update(l);
		if (l->drained && l->opts.drained != NULL)
			l->opts.drained(l->opts.arg);
		return false;
	}
	loop_arm(l->loop, &l->timer, SHORTAGE_PAUSE);
	update(l);
	l->opts.shortage(l->opts.arg, err);
	return false;
}

static bool
take_one(struct listener *l)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	struct addr from;
	int fd = accept4(l->opts.fd, (struct sockaddr *)&ss, &len,
	    SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd == -1) {
		int err = errno;

		l->opts.unadmit(l->opts.arg);
		return refused(l, err);
	}
	addr_from_sockaddr(&from, (const struct sockaddr *)&ss, len);
	l->opts.accepted(l->opts.arg, fd, &from);
	return true;
}

/* Whatever is called may stop the listener: then it is gone. */
static void
accept_batch(struct listener *l)
{
	bool stopped = false;
	bool more = true;

	l->stopped = &stopped;
	for (int i = 0; more && i < LISTENER_BATCH; i++) {
		bool admitted = l->opts.admit(l->opts.arg);

		if (stopped)
			return;
		if (!admitted) {
			listener_pause(l);
			break;
		}
		more = take_one(l);
		if (stopped)
			return;
		more = more && !l->paused;
	}
	l->stopped = NULL;
}
