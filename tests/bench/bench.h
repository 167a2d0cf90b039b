/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.h - what the helper programs of benchmarks and bulk tests share.
 *
 * They run on 127.0.0.1, for a test that ends them; whatever goes wrong ends
 * them with a word.
 */
#ifndef PENSTOCK_BENCH_BENCH_H
#define PENSTOCK_BENCH_BENCH_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static inline void
die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* `what` failed, if this is negative; otherwise the number. */
static inline int
must(int result, const char *what)
{
	if (result < 0)
		die(what);
	return result;
}

static inline uint64_t
number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (end == text || *end != '\0') {
		fprintf(stderr, "not a number: %s\n", text);
		exit(2);
	}
	return n;
}

static inline struct sockaddr_in
loopback(uint64_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static inline void
set_nodelay(int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static inline int
listen_at(struct sockaddr_in a)
{
	int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	int one = 1;

	must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one),
	    "SO_REUSEADDR");
	/* All addresses: all of this machine's own, and none from outside. */
	if (a.sin_addr.s_addr == htonl(INADDR_ANY))
		must(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3),
		    "SO_BINDTODEVICE");
	must(bind(fd, (struct sockaddr *)&a, sizeof a), "bind");
	must(listen(fd, 4096), "listen");
	return fd;
}

static inline int
listen_on(uint64_t port)
{
	return listen_at(loopback(port));
}

static inline int
connect_to(uint64_t port)
{
	struct sockaddr_in a = loopback(port);
	int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");

	must(connect(fd, (struct sockaddr *)&a, sizeof a), "connect");
	set_nodelay(fd);
	return fd;
}

static inline void
set_nonblocking(int fd)
{
	must(fcntl(fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
}

static inline void
watch_readable(int epoll, int fd, void *data)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = data };

	must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e), "epoll_ctl");
}

/* Watched, and readable from a time on, once alarm_set() says when. */
static inline int
alarm_open(int epoll, void *data)
{
	int fd = must(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK),
	    "timerfd_create");

	watch_readable(epoll, fd, data);
	return fd;
}

/* At this time, as nsec_now() has it, and not before; 0: never. */
static inline void
alarm_set(int fd, uint64_t nsec)
{
	struct itimerspec at = {
		.it_value.tv_sec = (time_t)(nsec / 1000000000),
		.it_value.tv_nsec = (long)(nsec % 1000000000),
	};

	must(timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL),
	    "timerfd_settime");
}

static inline uint64_t
nsec_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) +
	    (uint64_t)t.tv_nsec;
}

static inline double
seconds_now(void)
{
	return (double)nsec_now() / 1e9;
}

/* A number from a fixed sequence: every run asks for the same. */
static inline uint64_t
next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *state >> 33;
}

#endif
