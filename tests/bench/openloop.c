/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * openloop.c - requests that come when they come, whatever became of others.
 *
 *	openloop [OPTIONS] PORT CONNECTIONS RATE WARM_UP SECONDS
 *
 *	-e		they come at equal distances; otherwise at random,
 *			independently of each other (Poisson)
 *	-s SEED		of the random distances; 1 unless given
 *
 * So many requests a second come for WARM_UP + SECONDS, each on an idle
 * connection, of which it opens as many as it needs.  One that finds all
 * CONNECTIONS in use goes out once one is idle.  Its time counts from when it
 * was to come all the same: nothing that is slow keeps others from being
 * counted.  Then it says
 *
 *	ASKED OFFERED SERVED REFUSED FAILED DONE P50 P99
 *
 * ASKED have gone out.  OFFERED were to come after the warm-up; of these, 200
 * was the answer to SERVED, 429 or 503 to REFUSED, and anything else, or none
 * in 2 s after the end, to FAILED.  DONE is how often 200 came within those
 * SECONDS, whenever it was asked for.  The last two are of the SERVED, in
 * microseconds, to 3 %.
 */
#include <math.h>

#include "bench.h"
#include "latency.h"
#include "response.h"

enum { EVENTS = 256 };

#define GRACE	UINT64_C(2000000000)

struct client {
	int			 fd;		/* -1: not connected */
	bool			 is_asking;
	uint64_t		 due;		/* when it was to ask */
	struct client		*next_idle;
	struct response		 response;
};

struct crowd {
	uint64_t		 port;
	bool			 is_even;
	double			 gap;		/* nanoseconds, on average */
	uint64_t		 random;

	int			 epoll;
	int			 alarm;
	struct client		*idle;		/* the last used is first */
	uint64_t		 asking;
	uint64_t		 next;		/* when a request is to come */
	uint64_t		 from;		/* end of the warm-up */
	uint64_t		 until;

	uint64_t		 asked;
	uint64_t		 offered;
	uint64_t		 refused;
	uint64_t		 done;
	struct latency		 served;
};

static void
put_idle(struct crowd *w, struct client *c)
{
	c->is_asking = false;
	c->next_idle = w->idle;
	w->idle = c;
}

static void
disconnect(struct client *c)
{
	close(c->fd);
	c->fd = -1;
}

static void
hang_up(struct crowd *w, struct client *c)
{
	disconnect(c);
	if (!c->is_asking)
		return;
	w->asking--;
	put_idle(w, c);
}

/* --- requests ---------------------------------------------------------- */

/* The time to the next one; of 31 random bits, none of which make it 0. */
static uint64_t
gap_after(struct crowd *w)
{
	double share;

	if (w->is_even)
		return (uint64_t)w->gap;
	share = ((double)next_random(&w->random) + 1) / 2147483648.0;
	return (uint64_t)(-log(share) * w->gap);
}

static void
ask(struct crowd *w)
{
	static const char request[] = "GET /small HTTP/1.1\r\n"
	    "Host: bench.test\r\nUser-Agent: openloop\r\nAccept: */*\r\n\r\n";
	const size_t n = sizeof request - 1;
	struct client *c = w->idle;

	w->idle = c->next_idle;
	c->due = w->next;
	c->is_asking = true;
	w->asking++;
	w->asked++;
	response_begin(&c->response);
	if (c->fd == -1) {
		c->fd = connect_to(w->port);
		watch_readable(w->epoll, c->fd, c);
	}
	if (send(c->fd, request, n, MSG_NOSIGNAL) != (ssize_t)n)
		hang_up(w, c);
}

/* One that was to come: it has, or never will. */
static void
pass(struct crowd *w)
{
	w->offered += w->next >= w->from;
	w->next += gap_after(w);
}

static void
ask_all_due(struct crowd *w, uint64_t now)
{
	while (w->next < w->until && w->next <= now && w->idle != NULL) {
		ask(w);
		pass(w);
	}
	alarm_set(w->alarm, w->next < w->until && w->idle != NULL ? w->next :
	    w->until + GRACE);
}

/* --- responses --------------------------------------------------------- */

static void
count(struct crowd *w, const struct client *c)
{
	uint64_t now = nsec_now();
	unsigned status = c->response.status;

	if (status == 200 && now >= w->from && now < w->until)
		w->done++;
	if (c->due < w->from)
		return;
	if (status == 200)
		latency_add(&w->served, now - c->due);
	else if (status == 429 || status == 503)
		w->refused++;
}

static void
on_readable(struct crowd *w, struct client *c)
{
	static char bytes[65536];
	ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);

	if (n <= 0 || !c->is_asking ||
	    !response_add(&c->response, bytes, (size_t)n)) {
		hang_up(w, c);
		return;
	}
	if (!c->response.is_whole)
		return;
	count(w, c);
	if (c->response.closes)
		disconnect(c);
	w->asking--;
	put_idle(w, c);
}

/* --- the whole --------------------------------------------------------- */

static void
run(struct crowd *w)
{
	struct epoll_event events[EVENTS];

	for (;;) {
		uint64_t now = nsec_now();

		ask_all_due(w, now);
		if (now >= w->until + GRACE ||
		    (w->next >= w->until && w->asking == 0))
			break;

		int n = epoll_wait(w->epoll, events, EVENTS, -1);
		for (int i = 0; i < n; i++)
			if (events[i].data.ptr != NULL)
				on_readable(w, events[i].data.ptr);
	}
	while (w->next < w->until)
		pass(w);
}

static void
print(const struct crowd *w)
{
	const struct latency *s = &w->served;

	printf("%ju %ju %ju %ju %ju %ju %.1f %.1f\n", (uintmax_t)w->asked,
	    (uintmax_t)w->offered, (uintmax_t)s->count, (uintmax_t)w->refused,
	    (uintmax_t)(w->offered - s->count - w->refused),
	    (uintmax_t)w->done, latency_quantile(s, 0.5),
	    latency_quantile(s, 0.99));
}

static void
open_all(struct crowd *w, uint64_t count)
{
	struct client *clients = calloc(count, sizeof *clients);

	if (clients == NULL)
		die("calloc");
	for (uint64_t i = 0; i < count; i++) {
		clients[i].fd = -1;
		put_idle(w, &clients[i]);
	}
	w->epoll = must(epoll_create1(0), "epoll_create1");
	w->alarm = alarm_open(w->epoll, NULL);
}

static void
read_options(struct crowd *w, int argc, char **argv)
{
	int option;

	w->random = 1;
	while ((option = getopt(argc, argv, "es:")) != -1) {
		switch (option) {
		case 'e': w->is_even = true; break;
		case 's': w->random = number(optarg); break;
		default: exit(2);
		}
	}
	if (argc - optind == 5)
		return;
	fprintf(stderr, "usage: openloop [-e] [-s SEED] PORT CONNECTIONS "
	    "RATE WARM_UP SECONDS\n");
	exit(2);
}

int
main(int argc, char **argv)
{
	static struct crowd w;
	const uint64_t second = UINT64_C(1000000000);

	read_options(&w, argc, argv);
	argv += optind;
	w.port = number(argv[0]);
	open_all(&w, number(argv[1]));
	w.gap = (double)second / (double)number(argv[2]);
	w.next = nsec_now();
	w.from = w.next + number(argv[3]) * second;
	w.until = w.from + number(argv[4]) * second;
	run(&w);
	print(&w);
	return 0;
}
