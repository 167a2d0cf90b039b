/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relay.c - the floor of the benchmark: what a proxy on epoll costs at least.
 *
 *	relay PORT UPSTREAM_PORT
 *
 * Each client has a connection to the upstream of its own; what is received
 * on one is sent on the other, and nothing is looked at.  That makes four
 * system calls with data for a request and its response.  What the kernel
 * doesn't take at once ends the connection: the benchmark's messages are
 * small.
 */
#include "bench.h"

struct end {
	int		 fd;
	struct end	*peer;
};

enum { EVENTS = 64 };

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
	e->fd = e->peer->fd = -1;
}

static void
pass_on(struct end *e)
{
	static char bytes[65536];

	if (e->fd == -1)
		return;

	ssize_t n = recv(e->fd, bytes, sizeof bytes, 0);

	if (n <= 0 || send(e->peer->fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
		close_pair(e);
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
				pass_on(events[i].data.ptr);
	}
}
