/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * origin.c - a server that costs little: the same answer to every request.
 *
 *	origin PORT BODY_BYTES
 *
 * It counts ends of heads and answers each, so a request must have no body;
 * the connection stays open.
 */
#include "bench.h"

struct guest {
	int	 fd;
	int	 matched;	/* of the blank line that ends a head */
};

enum { EVENTS = 64, BODY_MAX = 65536 };

static char answer[BODY_MAX + 256];
static size_t answer_bytes;

static void
make_answer(uint64_t body)
{
	if (body > BODY_MAX)
		body = BODY_MAX;
	answer_bytes = (size_t)snprintf(answer, sizeof answer,
	    "HTTP/1.1 200 OK\r\nServer: origin\r\n"
	    "Content-Type: application/octet-stream\r\n"
	    "Content-Length: %ju\r\n\r\n", (uintmax_t)body);
	memset(answer + answer_bytes, 'x', body);
	answer_bytes += body;
}

static void
welcome(int epoll, int listener)
{
	struct guest *g = calloc(1, sizeof *g);

	if (g == NULL)
		die("calloc");
	g->fd = must(accept(listener, NULL, NULL), "accept");
	set_nodelay(g->fd);
	watch_readable(epoll, g->fd, g);
}

static int
count_heads(struct guest *g, const char *bytes, ssize_t n)
{
	static const char end[] = "\r\n\r\n";
	int heads = 0;

	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == end[g->matched])
			g->matched++;
		else
			g->matched = bytes[i] == end[0];
		if (g->matched == 4) {
			heads++;
			g->matched = 0;
		}
	}
	return heads;
}

static void
serve(struct guest *g)
{
	char bytes[16384];
	ssize_t n = recv(g->fd, bytes, sizeof bytes, 0);
	int heads = n > 0 ? count_heads(g, bytes, n) : 0;

	while (heads-- > 0)
		if (send(g->fd, answer, answer_bytes, MSG_NOSIGNAL) == -1)
			n = -1;
	if (n > 0)
		return;
	close(g->fd);
	free(g);
}

int
main(int argc, char **argv)
{
	struct epoll_event events[EVENTS];

	if (argc != 3) {
		fprintf(stderr, "usage: origin PORT BODY_BYTES\n");
		return 2;
	}
	make_answer(number(argv[2]));

	int epoll = must(epoll_create1(0), "epoll_create1");
	int listener = listen_on(number(argv[1]));

	watch_readable(epoll, listener, NULL);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++)
			if (events[i].data.ptr == NULL)
				welcome(epoll, listener);
			else
				serve(events[i].data.ptr);
	}
}
