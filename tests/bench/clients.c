/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clients.c - many kept-alive HTTP clients in one process.
 *
 *	clients PORT CONNECTIONS IN_FLIGHT
 *
 * Opens the connections, says "open N", and then reads numbers from standard
 * input, a line each: so many requests are made, IN_FLIGHT at a time (a
 * closed loop), each by the client that has been idle for longest.  As many
 * requests as connections are thus one each.  After them it says
 *
 *	GOOD FAILED SECONDS
 *
 * A response is good if its status is 200 and it is as long as it says.  A
 * client whose connection ends, or whose response is bad, has failed, and is
 * not used again.
 */
#include "bench.h"

enum { EVENTS = 256, STALL_MSEC = 20000 };

struct client {
	int		 fd;		/* -1: failed */
	bool		 busy;
	size_t		 missing;	/* of the response's body */
	bool		 in_body;
	size_t		 head_bytes;
	char		 head[1024];
};

struct crowd {
	int		 epoll;
	struct client	*clients;
	struct client	**idle;		/* a ring */
	size_t		 count;
	size_t		 first;		/* of the ring */
	size_t		 idle_count;
	uint64_t	 to_send;
	uint64_t	 waiting;
	uint64_t	 good;
};

static const char request[] =
    "GET /small HTTP/1.1\r\nHost: bench.test\r\nUser-Agent: clients\r\n"
    "Accept: */*\r\n\r\n";

static void
put_idle(struct crowd *w, struct client *c)
{
	w->idle[(w->first + w->idle_count++) % w->count] = c;
}

static struct client *
take_idle(struct crowd *w)
{
	struct client *c = w->idle[w->first];

	w->first = (w->first + 1) % w->count;
	w->idle_count--;
	return c;
}

static void
fail(struct crowd *w, struct client *c)
{
	if (c->busy)
		w->waiting--;
	close(c->fd);
	c->fd = -1;
}

static void
ask(struct crowd *w)
{
	struct client *c = take_idle(w);

	if (c->fd == -1)
		return;
	w->to_send--;
	w->waiting++;
	c->busy = true;
	c->in_body = false;
	c->head_bytes = 0;
	if (send(c->fd, request, sizeof request - 1, MSG_NOSIGNAL) !=
	    sizeof request - 1)
		fail(w, c);
}

/* False if it is none that a good response has. */
static bool
read_head(struct client *c)
{
	const char *length;

	c->head[c->head_bytes] = '\0';
	if (strncmp(c->head, "HTTP/1.1 200 ", 13) != 0)
		return false;
	length = strcasestr(c->head, "\r\ncontent-length:");
	if (length == NULL)
		return false;
	c->missing = strtoull(length + 17, NULL, 10);
	c->in_body = true;
	return true;
}

/* Bytes of the head, up to its end; how many were used, or -1. */
static ssize_t
add_to_head(struct client *c, const char *bytes, size_t n)
{
	size_t before = c->head_bytes;
	size_t room = sizeof c->head - 1 - before;
	size_t add = n < room ? n : room;

	memcpy(c->head + before, bytes, add);
	c->head_bytes += add;

	char *end = memmem(c->head, c->head_bytes, "\r\n\r\n", 4);
	if (end == NULL)
		return add == n ? (ssize_t)n : -1;
	c->head_bytes = (size_t)(end - c->head) + 4;
	return read_head(c) ? (ssize_t)(c->head_bytes - before) : -1;
}

/* False if the response is bad. */
static bool
take_bytes(struct crowd *w, struct client *c, const char *bytes, size_t n)
{
	if (!c->busy)
		return false;
	if (!c->in_body) {
		ssize_t used = add_to_head(c, bytes, n);

		if (used == -1)
			return false;
		n -= (size_t)used;
	}
	if (!c->in_body)
		return true;
	if (n > c->missing)
		return false;
	c->missing -= n;
	if (c->missing > 0)
		return true;
	c->busy = false;
	w->waiting--;
	w->good++;
	put_idle(w, c);
	return true;
}

static void
on_readable(struct crowd *w, struct client *c)
{
	static char bytes[65536];
	ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);

	if (n <= 0 || !take_bytes(w, c, bytes, (size_t)n))
		fail(w, c);
}

static void
run(struct crowd *w, uint64_t requests, uint64_t in_flight)
{
	struct epoll_event events[EVENTS];
	double began = seconds_now();

	w->good = 0;
	w->to_send = requests;
	for (;;) {
		while (w->to_send > 0 && w->waiting < in_flight &&
		    w->idle_count > 0)
			ask(w);
		if (w->waiting == 0)
			break;

		int n = epoll_wait(w->epoll, events, EVENTS, STALL_MSEC);
		if (n == 0)
			break;		/* what is missing has failed */
		for (int i = 0; i < n; i++)
			on_readable(w, events[i].data.ptr);
	}
	printf("%ju %ju %.6f\n", (uintmax_t)w->good,
	    (uintmax_t)(requests - w->good), seconds_now() - began);
	fflush(stdout);
}

static void
open_all(struct crowd *w, uint64_t port)
{
	w->epoll = must(epoll_create1(0), "epoll_create1");
	w->clients = calloc(w->count, sizeof *w->clients);
	w->idle = calloc(w->count, sizeof *w->idle);
	if (w->clients == NULL || w->idle == NULL)
		die("calloc");
	for (size_t i = 0; i < w->count; i++) {
		struct client *c = &w->clients[i];

		c->fd = connect_to(port);
		watch_readable(w->epoll, c->fd, c);
		put_idle(w, c);
	}
	printf("open %zu\n", w->count);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct crowd w = { .epoll = -1 };
	char line[64];

	if (argc != 4) {
		fprintf(stderr, "usage: clients PORT CONNECTIONS IN_FLIGHT\n");
		return 2;
	}
	w.count = number(argv[2]);
	open_all(&w, number(argv[1]));
	while (fgets(line, sizeof line, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		run(&w, number(line), number(argv[3]));
	}
	return 0;
}
