/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sock.c - descriptors of sockets; see sock.h.
 */
#include "net/sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
domain_of(const struct addr *a)
{
	switch (a->family) {
	case ADDR_IP4:
		return AF_INET;
	case ADDR_IP6:
		return AF_INET6;
	case ADDR_UNIX:
		return AF_UNIX;
	default:
		return AF_UNSPEC;
	}
}

int
sock_open(const struct addr *a)
{
	int fd = socket(domain_of(a),
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd == -1)
		return -errno;
	if (a->family != ADDR_UNIX) {
		int on = 1;

		/* Can't fail for TCP; and if it did, only slowness follows. */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
		    sizeof on);
	}
	return fd;
}

int
sock_connect(int fd, const struct addr *to)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(to, &ss);

	if (connect(fd, (const struct sockaddr *)&ss, len) == 0)
		return 0;
	/* An interrupted connect goes on by itself. */
	return errno == EINTR ? -EINPROGRESS : -errno;
}

int
sock_error(int fd)
{
	int err = 0;
	socklen_t len = sizeof err;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == -1)
		return errno;
	return err;
}

nsec_t
sock_silence(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof info;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == -1)
		return NSEC_NEVER;
	return info.tcpi_last_data_recv * NSEC_PER_MSEC;
}

bool
sock_is_self_connected(int fd)
{
	struct addr local, peer;

	sock_local(fd, &local);
	sock_peer(fd, &peer);
	return (local.family == ADDR_IP4 || local.family == ADDR_IP6) &&
	    addr_equal(&local, &peer);
}

typedef int name_fn(int fd, struct sockaddr *sa, socklen_t *len);

static void
name_of(int fd, name_fn *ask, struct addr *out)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;

	*out = (struct addr){ .family = ADDR_NONE };
	if (ask(fd, (struct sockaddr *)&ss, &len) == 0)
		addr_from_sockaddr(out, (const struct sockaddr *)&ss, len);
}

/* libc's own prototypes may differ in the type of the address. */
static int
ask_peer(int fd, struct sockaddr *sa, socklen_t *len)
{
	return getpeername(fd, sa, len);
}

static int
ask_local(int fd, struct sockaddr *sa, socklen_t *len)
{
	return getsockname(fd, sa, len);
}

void
sock_peer(int fd, struct addr *out)
{
	name_of(fd, ask_peer, out);
}

void
sock_local(int fd, struct addr *out)
{
	name_of(fd, ask_local, out);
}

/*
 * libc's recv() and sendmsg() say before and after that the thread may be
 * cancelled in them, which takes two locked instructions; no thread of ours
 * ever is.  Sanitizers look at the usual ones.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_WATCHED	1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define IS_WATCHED	1
#endif
#endif

#ifdef IS_WATCHED
#define CALL_RECV(fd, to, size)	recv((fd), (to), (size), 0)
#define CALL_SEND(fd, msg)	sendmsg((fd), (msg), MSG_NOSIGNAL)
#define CALL_SEND_ONE(fd, p)	\
	send((fd), (p)->iov_base, (p)->iov_len, MSG_NOSIGNAL)
#else
#define CALL_RECV(fd, to, size) \
	syscall(SYS_recvfrom, (fd), (to), (size), 0, NULL, NULL)
#define CALL_SEND(fd, msg)	syscall(SYS_sendmsg, (fd), (msg), MSG_NOSIGNAL)
#define CALL_SEND_ONE(fd, p)	\
	syscall(SYS_sendto, (fd), (p)->iov_base, (p)->iov_len,		\
	    MSG_NOSIGNAL, NULL, 0)
#endif

ssize_t
sock_recv(int fd, void *to, size_t size)
{
	ssize_t n;

	do
		n = CALL_RECV(fd, to, size);
	while (n == -1 && errno == EINTR);
	return n == -1 ? -errno : n;
}

APART ssize_t
sock_peek(int fd, void *to, size_t size)
{
	ssize_t n;

	do
		n = recv(fd, to, size, MSG_PEEK);
	while (n == -1 && errno == EINTR);
	return n == -1 ? -errno : n;
}

ssize_t
sock_send(int fd, const struct iovec *iov, int n)
{
	struct msghdr msg = {
		.msg_iov = (struct iovec *)iov,	/* not written to */
		.msg_iovlen = (size_t)n,
	};
	ssize_t sent;

	/* The kernel has less to do for one piece that is called so. */
	do
		sent = n == 1 ? CALL_SEND_ONE(fd, iov) : CALL_SEND(fd, &msg);
	while (sent == -1 && errno == EINTR);
	return sent == -1 ? -errno : sent;
}

APART void
sock_reset(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
}
