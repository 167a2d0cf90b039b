/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relay.c - the floor of the benchmark: what a proxy on epoll costs at least.
 *
 *	relay PORT UPSTREAM_PORT
 *
 * Each client has a connection to the upstream of its own; what is received
 * on one is sent on the other, and nothing is looked at.  That makes four
 * system calls with data for a request and its response.  What the kernel
 * doesn't take at once is held, and its sender not read until it has gone.
 */
#include "bench.h"

enum { EVENTS = 64, CHUNK = 65536 };

struct end {
	int		 fd;
	struct end	*peer;
	char		*held;		/* CHUNK bytes, once needed */
	size_t		 held_from;
	size_t		 held_to;	/* received, and for the peer */
};

static struct end *
new_end(int fd)
{
	struct end *e = calloc(1, sizeof *e);

	if (e == NULL)
		die("calloc");
	set_nonblocking(fd);
	e->fd = fd;
	return e;
}

static void
open_pair(int epoll, int listener, uint64_t upstream)
{
	int fd = must(accept(listener, NULL, NULL), "accept");

	set_nodelay(fd);

	struct end *client = new_end(fd);
	struct end *server = new_end(connect_to(upstream));

	client->peer = server;
	server->peer = client;
	watch_readable(epoll, client->fd, client);
	watch_readable(epoll, server->fd, server);
}

/*
 * The ends themselves stay until exit: events for them may still be in hand.
 */
static void
close_pair(struct end *e)
{
	close(e->fd);
	close(e->peer->fd);
	free(e->held);
	free(e->peer->held);
	e->held = e->peer->held = NULL;
	e->fd = e->peer->fd = -1;
}

static bool
is_held(const struct end *e)
{
	return e->held_from < e->held_to;
}

static void
watch(int epoll, struct end *e)
{
	struct epoll_event event = {
		.events = (is_held(e) ? 0 : EPOLLIN) |
		    (is_held(e->peer) ? EPOLLOUT : 0),
		.data.ptr = e,
	};

	must(epoll_ctl(epoll, EPOLL_CTL_MOD, e->fd, &event), "epoll_ctl");
}

static void
hold(int epoll, struct end *e, const char *bytes, size_t n)
{
	if (e->held == NULL)
		e->held = malloc(CHUNK);
	if (e->held == NULL)
		die("malloc");
	memcpy(e->held, bytes, n);
	e->held_from = 0;
	e->held_to = n;
	watch(epoll, e);
	watch(epoll, e->peer);
}

/* Send what the peer's sender is held for. */
static void
send_held(int epoll, struct end *to)
{
	struct end *from = to->peer;
	ssize_t n = send(to->fd, from->held + from->held_from,
	    from->held_to - from->held_from, MSG_NOSIGNAL);

	if (n == -1 && errno != EAGAIN) {
		close_pair(to);
		return;
	}
	from->held_from += n > 0 ? (size_t)n : 0;
	if (is_held(from))
		return;
	watch(epoll, from);
	watch(epoll, to);
}

static void
pass_on(int epoll, struct end *e)
{
	static char bytes[CHUNK];
	ssize_t n = recv(e->fd, bytes, sizeof bytes, 0);

	if (n == -1 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close_pair(e);
		return;
	}

	ssize_t sent = send(e->peer->fd, bytes, (size_t)n, MSG_NOSIGNAL);

	if (sent == -1 && errno == EAGAIN)
		sent = 0;
	if (sent == -1)
		close_pair(e);
	else if (sent < n)
		hold(epoll, e, bytes + sent, (size_t)(n - sent));
}

static void
serve(int epoll, struct end *e, uint32_t ready)
{
	if (e->fd != -1 && (ready & EPOLLOUT) != 0 && is_held(e->peer))
		send_held(epoll, e);
	if (e->fd == -1)
		return;
	if ((ready & (EPOLLERR | EPOLLHUP)) != 0 && is_held(e))
		close_pair(e);
	else if ((ready & ~(uint32_t)EPOLLOUT) != 0 && !is_held(e))
		pass_on(epoll, e);
}

int
main(int argc, char **argv)
{
	struct epoll_event events[EVENTS];

	if (argc != 3) {
		fprintf(stderr, "usage: relay PORT UPSTREAM_PORT\n");
		return 2;
	}

	int epoll = must(epoll_create1(0), "epoll_create1");
	int listener = listen_on(number(argv[1]));
	uint64_t upstream = number(argv[2]);

	watch_readable(epoll, listener, NULL);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++)
			if (events[i].data.ptr == NULL)
				open_pair(epoll, listener, upstream);
			else
				serve(epoll, events[i].data.ptr,
				    events[i].events);
	}
}
