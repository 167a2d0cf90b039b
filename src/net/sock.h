/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sock.h - descriptors of sockets: made, connected, asked.
 *
 * Everything made here is non-blocking, closed on exec, and, if it is TCP,
 * without Nagle's delay.
 *
 * Owner:    descriptors are the caller's.
 * Threads:  any; nothing is shared.
 */
#ifndef PENSTOCK_NET_SOCK_H
#define PENSTOCK_NET_SOCK_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/addr.h"

/* A stream socket for addresses like `a`; or -errno. */
int sock_open(const struct addr *a) MUST_USE;

/* 0, or -EINPROGRESS: writable when it is decided; or another -errno. */
int sock_connect(int fd, const struct addr *to) MUST_USE;

/* 0, or the error that is pending, as a positive errno; forgets it. */
int sock_error(int fd) MUST_USE;

/* Time since the last bytes came; NSEC_NEVER if it isn't TCP. */
nsec_t sock_silence(int fd);

/* Both ends have the same address: it is connected to itself. */
bool sock_is_self_connected(int fd);

/* The other end's address and the local one; ADDR_NONE if there is none. */
void sock_peer(int fd, struct addr *out);
void sock_local(int fd, struct addr *out);

/*
 * recv(2), and sendmsg(2) with MSG_NOSIGNAL, again if a signal came between:
 * what they return, or -errno.
 */
ssize_t sock_recv(int fd, void *to, size_t size) MUST_USE;
ssize_t sock_send(int fd, const struct iovec *iov, int n) MUST_USE;

/* As sock_recv(), but what it returns stays there. */
ssize_t sock_peek(int fd, void *to, size_t size) MUST_USE;

/* Close in such a way that the other end sees a reset. */
void sock_reset(int fd);

#endif
