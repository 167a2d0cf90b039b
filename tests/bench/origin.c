/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * origin.c - a server that costs little: the same answer to every request.
 *
 *	origin PORT BODY_BYTES [any] [fields] [rate=BYTES]
 *	    [slots=N service=USEC [spread=PERCENT]]
 *
 * It counts ends of heads and answers each, so a request must have no body;
 * the connection stays open.  With `any` it answers on every address that
 * begins with 127, as so many servers.  With `fields` it has as many in its
 * head as a site on the web has.  With a rate each connection is sent no more
 * than so many bytes a second.
 *
 * With slots it works on N requests at a time, on each for as long or, with a
 * spread, for up to so much less or more, and the others wait in line: its
 * capacity is N / USEC, whatever is asked of it.  What it has been asked it
 * works on, even if nobody waits for it any more.
 */
#include "bench.h"

struct guest {
	int		 fd;
	int		 matched;	/* of the blank line that ends a head */
	uint64_t	 answers;	/* to send, whole or in part */
	uint64_t	 sent;		/* of the first of them */
	uint64_t	 in_line;	/* its requests there */
	bool		 is_full;	/* and waits to send on */
};

enum { EVENTS = 64, CHUNK = 256 * 1024, SENDS = 16 };
enum { LINE = 1 << 16, SLOTS = 256 };

/* The head and the first bytes of the body; then the rest of it, in chunks. */
static char answer[CHUNK + 1024];
static size_t answer_bytes;
static char chunk[CHUNK];
static uint64_t answer_total;
static uint64_t rate;			/* of a connection; 0: any */

/* Requests that wait, in the order they came. */
static struct {
	struct guest	*guest;
	uint64_t	 came;
} line[LINE];
static uint64_t joined, departed;	/* the line, since ever */

/* Those that are worked on, in any order. */
static struct job {
	struct guest	*guest;
	uint64_t	 due;
} jobs[SLOTS];
static uint64_t working;
static uint64_t slots;			/* 0: any number, at once */
static uint64_t service;		/* nanoseconds in a slot */
static uint64_t spread;			/* of it, in per cent */

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

static void
begin_job(struct guest *g, uint64_t now)
{
	uint64_t least = service / 100 * (100 - spread);
	uint64_t more = service / 100 * 2 * spread;
	uint64_t time = least;

	if (more > 0)
		time += (uint64_t)random() % more;
	jobs[working++] = (struct job){ g, now + time };
}

static void
join_line(struct guest *g, uint64_t now)
{
	g->in_line++;
	if (working < slots) {
		begin_job(g, now);
		return;
	}
	if (joined - departed == LINE) {
		fprintf(stderr, "the line is too long\n");
		exit(1);
	}
	line[joined % LINE].guest = g;
	line[joined++ % LINE].came = now;
}

static bool
hear(struct guest *g, uint64_t now)
{
	char bytes[16384];
	ssize_t n = recv(g->fd, bytes, sizeof bytes, 0);

	if (n <= 0)
		return n == -1 && errno == EAGAIN;

	int heads = count_heads(g, bytes, n);

	if (slots == 0)
		g->answers += (uint64_t)heads;
	else
		for (int i = 0; i < heads; i++)
			join_line(g, now);
	return true;
}

static void
say_farewell(struct guest *g)
{
	if (g->fd != -1)
		close(g->fd);
	g->fd = -1;
	if (g->in_line == 0)
		free(g);
}

static void
serve(int epoll, struct guest *g, bool stays)
{
	if (!stays || !answer_all(g)) {
		say_farewell(g);
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

/* Which is done first, of those there are? */
static struct job *
first_job(void)
{
	struct job *first = &jobs[0];

	for (uint64_t i = 1; i < working; i++)
		if (jobs[i].due < first->due)
			first = &jobs[i];
	return working > 0 ? first : NULL;
}

/* Its slot is the next one's, from when it was done or that one came. */
static struct guest *
end_job(struct job *j)
{
	struct job done = *j;

	*j = jobs[--working];
	if (departed != joined) {
		uint64_t came = line[departed % LINE].came;

		begin_job(line[departed++ % LINE].guest,
		    done.due > came ? done.due : came);
	}
	return done.guest;
}

/* Answer what is done by now, and have the alarm ring for the next. */
static void
serve_line(int epoll, int alarm, uint64_t now)
{
	struct job *first;

	while ((first = first_job()) != NULL && first->due <= now) {
		struct guest *g = end_job(first);

		g->in_line--;
		g->answers++;
		serve(epoll, g, g->fd != -1);
	}
	alarm_set(alarm, first == NULL ? 0 : first->due);
}

static struct sockaddr_in
read_options(int argc, char **argv)
{
	struct sockaddr_in at;
	const char *fields = "";

	if (argc < 3) {
		fprintf(stderr, "usage: origin PORT BODY_BYTES [any] "
		    "[fields] [rate=BYTES]\n"
		    "\t[slots=N service=USEC [spread=PERCENT]]\n");
		exit(2);
	}
	at = loopback(number(argv[1]));
	for (int i = 3; i < argc; i++)
		if (strcmp(argv[i], "fields") == 0)
			fields = site_fields;
		else if (strncmp(argv[i], "rate=", 5) == 0)
			rate = number(argv[i] + 5);
		else if (strncmp(argv[i], "slots=", 6) == 0)
			slots = number(argv[i] + 6);
		else if (strncmp(argv[i], "service=", 8) == 0)
			service = number(argv[i] + 8) * 1000;
		else if (strncmp(argv[i], "spread=", 7) == 0)
			spread = number(argv[i] + 7);
		else
			at.sin_addr.s_addr = htonl(INADDR_ANY);
	if (slots > SLOTS || spread > 100) {
		fprintf(stderr, "too many slots, or too wide a spread\n");
		exit(2);
	}
	make_answer(number(argv[2]), fields);
	return at;
}

/* Watched beside the guests. */
static struct guest newcomers, time_is_up;

/* One clock for a turn: the line is left in the order of time. */
static void
take_turn(int epoll, int listener, int alarm)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(epoll, events, EVENTS, -1);
	uint64_t now = slots > 0 ? nsec_now() : 0;

	for (int i = 0; i < n; i++) {
		struct guest *g = events[i].data.ptr;

		if (g == &newcomers)
			welcome(epoll, listener);
		else if (g != &time_is_up)
			serve(epoll, g, (events[i].events &
			    ~(uint32_t)EPOLLOUT) == 0 || hear(g, now));
	}
	if (slots > 0)
		serve_line(epoll, alarm, now);
}

int
main(int argc, char **argv)
{
	struct sockaddr_in at = read_options(argc, argv);
	int epoll = must(epoll_create1(0), "epoll_create1");
	int listener = listen_at(at);
	int alarm = slots > 0 ? alarm_open(epoll, &time_is_up) : -1;

	watch_readable(epoll, listener, &newcomers);
	for (;;)
		take_turn(epoll, listener, alarm);
}
