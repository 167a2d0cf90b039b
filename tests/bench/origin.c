/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * origin.c - a server that costs little: the same answer to every request.
 *
 *	origin PORT BODY_BYTES [any] [fields] [rate=BYTES]
 *
 * It counts ends of heads and answers each, so a request must have no body;
 * the connection stays open.  With `any` it answers on every address that
 * begins with 127, as so many servers.  With `fields` it has as many in its
 * head as a site on the web has.  With a rate each connection is sent no more
 * than so many bytes a second.
 */
#include "bench.h"

struct guest {
	int		 fd;
	int		 matched;	/* of the blank line that ends a head */
	uint64_t	 answers;	/* to send, whole or in part */
	uint64_t	 sent;		/* of the first of them */
	bool		 is_full;	/* and waits to send on */
};

enum { EVENTS = 64, CHUNK = 256 * 1024, SENDS = 16 };

/* The head and the first bytes of the body; then the rest of it, in chunks. */
static char answer[CHUNK + 1024];
static size_t answer_bytes;
static char chunk[CHUNK];
static uint64_t answer_total;
static uint64_t rate;			/* of a connection; 0: any */

static const char site_fields[] =
    "Date: Mon, 30 Nov 2026 15:31:26 GMT\r\n"
    "Last-Modified: Fri, 27 Nov 2026 09:12:44 GMT\r\n"
    "ETag: \"66f3a1c4-400\"\r\n"
    "Cache-Control: public, max-age=3600, must-revalidate\r\n"
    "Vary: Accept-Encoding, Origin\r\n"
    "Accept-Ranges: bytes\r\n"
    "Set-Cookie: theme=dark; Path=/; Secure; HttpOnly; SameSite=Lax\r\n"
    "Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n"
    "X-Content-Type-Options: nosniff\r\n";

static void
make_answer(uint64_t body, const char *fields)
{
	uint64_t first = body < CHUNK ? body : CHUNK;
	size_t head = (size_t)snprintf(answer, sizeof answer,
	    "HTTP/1.1 200 OK\r\nServer: origin\r\n%s"
	    "Content-Type: application/octet-stream\r\n"
	    "Content-Length: %ju\r\n\r\n", fields, (uintmax_t)body);

	memset(answer + head, 'x', first);
	memset(chunk, 'x', sizeof chunk);
	answer_bytes = head + first;
	answer_total = head + body;
}

static void
welcome(int epoll, int listener)
{
	struct guest *g = calloc(1, sizeof *g);

	if (g == NULL)
		die("calloc");
	g->fd = must(accept(listener, NULL, NULL), "accept");
	set_nodelay(g->fd);
	set_nonblocking(g->fd);
	if (rate != 0)
		must(setsockopt(g->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate,
		    sizeof rate), "SO_MAX_PACING_RATE");
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

static ssize_t
send_next(struct guest *g)
{
	uint64_t left = answer_total - g->sent;

	if (g->sent < answer_bytes)
		return send(g->fd, answer + g->sent, answer_bytes - g->sent,
		    MSG_NOSIGNAL);
	return send(g->fd, chunk, left < CHUNK ? left : CHUNK, MSG_NOSIGNAL);
}

/* Send what is owed, as far as it goes; false if the guest has gone. */
static bool
answer_all(struct guest *g)
{
	int sends = SENDS;

	while (g->answers > 0 && sends-- > 0) {
		ssize_t n = send_next(g);

		if (n == -1)
			return errno == EAGAIN;
		g->sent += (uint64_t)n;
		if (g->sent == answer_total) {
			g->sent = 0;
			g->answers--;
		}
	}
	return true;
}

static bool
hear(struct guest *g)
{
	char bytes[16384];
	ssize_t n = recv(g->fd, bytes, sizeof bytes, 0);

	if (n <= 0)
		return n == -1 && errno == EAGAIN;
	g->answers += (uint64_t)count_heads(g, bytes, n);
	return true;
}

static void
serve(int epoll, struct guest *g, uint32_t ready)
{
	bool stays = (ready & ~(uint32_t)EPOLLOUT) == 0 || hear(g);

	if (!stays || !answer_all(g)) {
		close(g->fd);
		free(g);
		return;
	}
	if ((g->answers > 0) == g->is_full)
		return;
	g->is_full = g->answers > 0;

	struct epoll_event e = {
		.events = EPOLLIN | (g->is_full ? EPOLLOUT : 0),
		.data.ptr = g,
	};
	must(epoll_ctl(epoll, EPOLL_CTL_MOD, g->fd, &e), "epoll_ctl");
}

int
main(int argc, char **argv)
{
	struct epoll_event events[EVENTS];

	const char *fields = "";

	if (argc < 3) {
		fprintf(stderr, "usage: origin PORT BODY_BYTES [any] "
		    "[fields] [rate=BYTES]\n");
		return 2;
	}

	struct sockaddr_in at = loopback(number(argv[1]));

	for (int i = 3; i < argc; i++)
		if (strcmp(argv[i], "fields") == 0)
			fields = site_fields;
		else if (strncmp(argv[i], "rate=", 5) == 0)
			rate = number(argv[i] + 5);
		else
			at.sin_addr.s_addr = htonl(INADDR_ANY);
	make_answer(number(argv[2]), fields);

	int epoll = must(epoll_create1(0), "epoll_create1");
	int listener = listen_at(at);

	watch_readable(epoll, listener, NULL);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++)
			if (events[i].data.ptr == NULL)
				welcome(epoll, listener);
			else
				serve(epoll, events[i].data.ptr,
				    events[i].events);
	}
}
