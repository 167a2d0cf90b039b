/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clients.c - many HTTP clients in one process.
 *
 *	clients [OPTIONS] PORT CONNECTIONS IN_FLIGHT
 *
 *	-b		each request has the fields that a browser sends
 *	-c		each request has a connection of its own
 *	-u TARGET	what is asked for; /small unless given
 *	-t HOST:PORT	each connection goes through CONNECT first
 *	-n HOSTS	of so many Hosts, h0.bench.test and on
 *	-a ADDRESSES	from so many of our own, 127.1.0.0 and on
 *
 * Opens the connections, says "open N", and then reads numbers from standard
 * input, a line each: so many requests are made, IN_FLIGHT at a time (a
 * closed loop), each by the client that has been idle for longest.  As many
 * requests as connections are thus one each.  After them it says
 *
 *	GOOD FAILED SECONDS P50 P99
 *
 * the last two of the time from a request (with -c, from before it connects)
 * to the end of its response, in microseconds, to 3 %.  Hosts are drawn at
 * random, addresses are taken in turn.
 *
 * A response is good if its status is 200 and it is as long as it says; with
 * -c, its connection must also end.  A client whose response is bad, or whose
 * connection ends when it should not, has failed, and is not used again.
 */
#include "bench.h"
#include "latency.h"
#include "response.h"

enum {
	EVENTS = 256,
	STALL_MSEC = 20000,
	LIMIT_SECONDS = 180,	/* of a line; what is missing has failed */
	REQUEST_MAX = 2048,
};

enum client_state { IDLE, ASKED, ENDING, FAILED };

struct client {
	int			 fd;
	enum client_state	 state;
	uint64_t		 asked;		/* when */
	struct response		 response;
};

struct crowd {
	bool		 closes;
	const char	*fields;
	const char	*target;
	const char	*tunnel;	/* or NULL */
	uint64_t	 hosts;		/* 0: one */
	uint64_t	 addresses;	/* 0: the usual one */
	uint64_t	 next_address;
	uint64_t	 random;
	uint64_t	 port;
	char		 request[REQUEST_MAX];
	size_t		 request_bytes;

	int		 epoll;
	struct client	*clients;
	struct client	**idle;		/* a ring */
	size_t		 count;
	size_t		 first;		/* of the ring */
	size_t		 idle_count;
	uint64_t	 to_send;
	uint64_t	 waiting;
	uint64_t	 good;
	struct latency	 latency;
};

/* --- connections ------------------------------------------------------- */

static const char few_fields[] =
    "User-Agent: clients\r\n"
    "Accept: */*\r\n";

static const char browser_fields[] =
    "Connection: keep-alive\r\n"
    "sec-ch-ua: \"Chromium\";v=\"128\", \"Not;A=Brand\";v=\"24\"\r\n"
    "sec-ch-ua-mobile: ?0\r\n"
    "sec-ch-ua-platform: \"Linux\"\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 "
    "(KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36\r\n"
    "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,"
    "*/*;q=0.8\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "Sec-Fetch-Mode: no-cors\r\n"
    "Sec-Fetch-Dest: image\r\n"
    "Referer: http://bench.test/articles/2026/11/a-page-of-ours.html\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
    "Cookie: session=4f1c2a9be07d4c3a8d5e6f7081929aab; theme=dark\r\n"
    "If-None-Match: \"66f3a1c4-3ff\"\r\n";

static void
make_request(struct crowd *w)
{
	char host[64] = "bench.test";

	if (w->hosts > 0)
		snprintf(host, sizeof host, "h%ju.bench.test",
		    (uintmax_t)(next_random(&w->random) % w->hosts));
	w->request_bytes = (size_t)snprintf(w->request, sizeof w->request,
	    "GET %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", w->target, host,
	    w->fields, w->closes ? "Connection: close\r\n" : "");
	if (w->request_bytes >= sizeof w->request) {
		fprintf(stderr, "too long a target\n");
		exit(2);
	}
}

static int
connect_from_next(struct crowd *w)
{
	struct sockaddr_in to = loopback(w->port), from = { 0 };
	int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	int one = 1;

	from.sin_family = AF_INET;
	from.sin_addr.s_addr = htonl(0x7f010000U +
	    (uint32_t)(w->next_address++ % w->addresses));
	/* The port is chosen when it is known where to. */
	must(setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
	    sizeof one), "IP_BIND_ADDRESS_NO_PORT");
	must(bind(fd, (struct sockaddr *)&from, sizeof from), "bind");
	must(connect(fd, (struct sockaddr *)&to, sizeof to), "connect");
	set_nodelay(fd);
	return fd;
}

static void
open_tunnel(int fd, const char *to)
{
	char text[REQUEST_MAX];
	int n = snprintf(text, sizeof text,
	    "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to);
	size_t have = 0;

	if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
		die("send");
	do {
		ssize_t got = recv(fd, text + have, sizeof text - 1 - have, 0);

		if (got <= 0)
			die("CONNECT");
		have += (size_t)got;
		text[have] = '\0';
	} while (strstr(text, "\r\n\r\n") == NULL);
	if (strncmp(text, "HTTP/1.", 7) != 0 ||
	    strncmp(text + 8, " 200", 4) != 0) {
		fprintf(stderr, "CONNECT: %.60s\n", text);
		exit(1);
	}
}

static void
open_client(struct crowd *w, struct client *c)
{
	c->fd = w->addresses > 0 ? connect_from_next(w) :
	    connect_to(w->port);
	if (w->tunnel != NULL)
		open_tunnel(c->fd, w->tunnel);
	watch_readable(w->epoll, c->fd, c);
}

static void
put_idle(struct crowd *w, struct client *c)
{
	c->state = IDLE;
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
	if (c->state != IDLE)
		w->waiting--;
	c->state = FAILED;
	close(c->fd);
	c->fd = -1;
}

/* --- requests and responses -------------------------------------------- */

static void
ask(struct crowd *w)
{
	struct client *c = take_idle(w);

	if (c->state == FAILED)
		return;
	w->to_send--;
	w->waiting++;
	if (w->hosts > 0)
		make_request(w);
	c->asked = nsec_now();
	if (w->closes)
		open_client(w, c);
	c->state = ASKED;
	response_begin(&c->response);
	if (send(c->fd, w->request, w->request_bytes, MSG_NOSIGNAL) !=
	    (ssize_t)w->request_bytes)
		fail(w, c);
}

static void
is_done(struct crowd *w, struct client *c)
{
	w->waiting--;
	w->good++;
	put_idle(w, c);
}

/* False if the response is bad. */
static bool
take_bytes(struct crowd *w, struct client *c, const char *bytes, size_t n)
{
	if (c->state != ASKED || !response_add(&c->response, bytes, n))
		return false;
	if (!c->response.is_whole)
		return true;
	if (c->response.status != 200)
		return false;
	latency_add(&w->latency, nsec_now() - c->asked);
	if (w->closes)
		c->state = ENDING;
	else
		is_done(w, c);
	return true;
}

static void
on_readable(struct crowd *w, struct client *c)
{
	static char bytes[256 * 1024];
	ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);

	if (n == 0 && c->state == ENDING) {
		close(c->fd);
		c->fd = -1;
		is_done(w, c);
	} else if (n <= 0 || !take_bytes(w, c, bytes, (size_t)n)) {
		fail(w, c);
	}
}

/* --- the whole --------------------------------------------------------- */

static void
run(struct crowd *w, uint64_t requests, uint64_t in_flight)
{
	struct epoll_event events[EVENTS];
	double began = seconds_now();

	w->good = 0;
	w->to_send = requests;
	memset(&w->latency, 0, sizeof w->latency);
	while (seconds_now() - began < LIMIT_SECONDS) {
		while (w->to_send > 0 && w->waiting < in_flight &&
		    w->idle_count > 0)
			ask(w);
		if (w->waiting == 0)
			break;

		int n = epoll_wait(w->epoll, events, EVENTS, STALL_MSEC);
		if (n == 0)
			break;
		for (int i = 0; i < n; i++)
			on_readable(w, events[i].data.ptr);
	}
	printf("%ju %ju %.6f %.1f %.1f\n", (uintmax_t)w->good,
	    (uintmax_t)(requests - w->good), seconds_now() - began,
	    latency_quantile(&w->latency, 0.5),
	    latency_quantile(&w->latency, 0.99));
	fflush(stdout);
}

static void
open_all(struct crowd *w)
{
	w->epoll = must(epoll_create1(0), "epoll_create1");
	w->clients = calloc(w->count, sizeof *w->clients);
	w->idle = calloc(w->count, sizeof *w->idle);
	if (w->clients == NULL || w->idle == NULL)
		die("calloc");
	for (size_t i = 0; i < w->count; i++) {
		if (!w->closes)
			open_client(w, &w->clients[i]);
		put_idle(w, &w->clients[i]);
	}
	make_request(w);
	printf("open %zu\n", w->count);
	fflush(stdout);
}

static void
read_options(struct crowd *w, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "bcu:t:n:a:")) != -1) {
		switch (option) {
		case 'b': w->fields = browser_fields; break;
		case 'c': w->closes = true; break;
		case 'u': w->target = optarg; break;
		case 't': w->tunnel = optarg; break;
		case 'n': w->hosts = number(optarg); break;
		case 'a': w->addresses = number(optarg); break;
		default: exit(2);
		}
	}
	if (argc - optind == 3)
		return;
	fprintf(stderr, "usage: clients [-b] [-c] [-u TARGET] [-t HOST:PORT] "
	    "[-n HOSTS] [-a ADDRESSES]\n\tPORT CONNECTIONS IN_FLIGHT\n");
	exit(2);
}

int
main(int argc, char **argv)
{
	static struct crowd w = {
		.fields = few_fields,
		.target = "/small",
	};
	char line[64];

	read_options(&w, argc, argv);
	w.port = number(argv[optind]);
	w.count = number(argv[optind + 1]);
	open_all(&w);
	while (fgets(line, sizeof line, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		run(&w, number(line), number(argv[optind + 2]));
	}
	return 0;
}
