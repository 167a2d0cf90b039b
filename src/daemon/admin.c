/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admin.c - the admin listener; see admin.h.
 */
#include "daemon/admin.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/block.h"
#include "http/date.h"
#include "http/parse.h"
#include "http/scan.h"
#include "http/status.h"
#include "net/listener.h"
#include "net/stream.h"

enum {
	ADMIN_LISTENERS = 16,
	SLOW_CLIENTS = 8,		/* with a whole page to read */
	ADMIN_SPARE = 160 * 1024,	/* for each: a block, and a request */
	LEAST_BUDGET = 4 * 1024 * 1024,
};

static const struct head_limits limits = {
	.size = 8192, .line = 2048, .fields = 64,
};

/* What a client does, and for how long it may. */
enum phase { IDLE, ASKING, READING, LEAVING };

static const nsec_t patience[] = {
	[IDLE]		= 60 * NSEC_PER_SEC,
	[ASKING]	= 10 * NSEC_PER_SEC,
	[READING]	= 30 * NSEC_PER_SEC,
	[LEAVING]	= 10 * NSEC_PER_SEC,
};

struct admin {
	struct loop		*loop;
	struct site		 site;
	struct stream_pool	*streams;
	struct stream_totals	 totals;
	struct parser		*parser;
	struct date		 date;
	struct list		 clients;	/* answered last: last */
	unsigned		 count;
	struct listener		*listeners[ADMIN_LISTENERS];
	unsigned		 listener_count;
};

struct client {
	struct list		 link;
	struct admin		*admin;
	struct stream		*stream;
	struct stream_writer	 writer;
	struct block		*in;
	struct scan		 scan;
	struct wheel_timer	 timer;
	struct loop_again	 again;
	enum phase		 phase;
	bool			 is_local;	/* over a unix socket */
	bool			 closing;
};

static stream_read_fn	on_readable;
static stream_write_fn	on_sent;
static wheel_fn		on_late;

/* --- memory ------------------------------------------------------------ */

uint64_t
admin_budget(size_t page)
{
	/* The last block may be nearly empty, and there is a request. */
	uint64_t each = (uint64_t)page + page / 512 + ADMIN_SPARE;

	return MAX(SLOW_CLIENTS * each, (uint64_t)LEAST_BUDGET);
}

/* The text grows by doubling, so while it does there are two of it. */
uint64_t
admin_memory(size_t page)
{
	return block_memory(admin_budget(page), 1) + 2 * (uint64_t)page +
	    stream_pool_memory(ADMIN_CLIENTS) +
	    ADMIN_CLIENTS * sizeof(struct client);
}

/* --- clients ----------------------------------------------------------- */

static void
drop(struct client *c)
{
	struct admin *a = c->admin;

	list_remove(&c->link);
	list_remove(&c->again.link);
	loop_cancel(a->loop, &c->timer);
	stream_close(&c->stream);
	block_give(loop_blocks(a->loop), &c->in);
	free(c);
	a->count--;
	for (unsigned i = 0; i < a->listener_count; i++)
		listener_resume(a->listeners[i]);
}

/* From now on c does that. */
static void
enter(struct client *c, enum phase phase)
{
	c->phase = phase;
	loop_arm(c->admin->loop, &c->timer, patience[phase]);
}

/* A head and, but for HEAD, the body after it. */
static bool
respond(struct client *c, const struct site_answer *a, bool head_only)
{
	struct loop *loop = c->admin->loop;
	struct str body;
	struct out o;

	if (!metrics_text(&a->body, &body))
		return false;
	out_init(&o, loop_scratch_out(loop), LOOP_SCRATCH);
	out_put(&o, "HTTP/1.1 ");
	out_number(&o, (uint64_t)a->status);
	out_char(&o, ' ');
	out_put(&o, status_reason(a->status));
	out_put(&o, "\r\nDate: ");
	out_put(&o, date_text(&c->admin->date, loop_wall(loop).tv_sec));
	out_put(&o, "\r\nContent-Type: ");
	out_put(&o, a->type);
	out_put(&o, "\r\nCache-Control: no-store"
	    "\r\nX-Content-Type-Options: nosniff"
	    "\r\nCross-Origin-Resource-Policy: same-origin"
	    "\r\nContent-Length: ");
	out_number(&o, body.len);
	out_put(&o, "\r\n");
	out_put(&o, a->fields);
	if (c->closing)
		out_put(&o, "Connection: close\r\n");
	out_put(&o, "\r\n");

	struct iovec iov[] = {
		{ o.mem, out_len(&o) }, { (void *)body.at, body.len },
	};
	return stream_send(c->stream, iov, head_only ? 1 : 2,
	    BLOCK_PERMIT) == 0;
}

/* What can't be read ends the connection.  False: the client is gone. */
static bool
refuse(struct client *c)
{
	struct site_answer a = { .status = 400, .type = "text/plain" };

	c->closing = true;
	return respond(c, &a, false);
}

/* The same, for what can. */
static bool
answer(struct client *c, struct str head)
{
	struct admin *a = c->admin;
	struct site_answer said;
	struct head h;

	if (parse_request(a->parser, head, c->scan.fields, &h) != FAIL_NONE)
		return refuse(c);
	/* Nothing here has a body, so a request with one ends it. */
	c->closing = h.close || h.minor == 0 ||
	    head_first(&h, FIELD_CONTENT_LENGTH) != NULL ||
	    head_first(&h, FIELD_TRANSFER_ENCODING) != NULL;
	site_answer(&a->site, &h, c->is_local, &said);
	bool ok = respond(c, &said, h.method == METHOD_HEAD);
	metrics_fini(&said.body);
	return ok;
}

/* It has been answered: what does it do next? */
static void
go_on(struct client *c)
{
	if (c->closing) {
		stream_end(c->stream);
		enter(c, LEAVING);
	} else if (stream_queued(c->stream) > 0) {
		enter(c, READING);
	} else if (c->in != NULL) {
		enter(c, ASKING);
		loop_again(c->admin->loop, &c->again);
	} else {
		enter(c, IDLE);
	}
}

/* Answer one request, if a whole one is there. */
static void
serve(struct client *c)
{
	struct block *b = c->in;
	enum failure why;

	if (b == NULL || c->closing || stream_queued(c->stream) > 0)
		return;
	char *at = (char *)b->data + b->start;
	enum scan_result r = scan_run(&c->scan, at, b->end - b->start,
	    &limits, &why);

	if (r == SCAN_MORE)
		return;
	bool ok = r == SCAN_BAD ? refuse(c) : answer(c, str_make(
	    at + c->scan.start, c->scan.at - c->scan.start));
	if (!ok) {
		drop(c);
		return;
	}
	b->start += c->scan.at;
	scan_init(&c->scan, SCAN_REQUEST);
	if (b->start == b->end)
		block_give(loop_blocks(c->admin->loop), &c->in);
	list_remove(&c->link);
	list_add_last(&c->admin->clients, &c->link);
	go_on(c);
}

/* More requests have come at once: one in each turn. */
static void
on_again(struct loop_again *again)
{
	struct client *c = container_of(again, struct client, again);

	list_remove(&again->link);
	serve(c);
}

/* Who asks for far more than it reads doesn't fit one block, and is cut. */
static void
on_readable(void *arg)
{
	struct client *c = arg;
	struct loop *loop = c->admin->loop;
	uint8_t *scratch = loop_scratch(loop);
	ssize_t n = stream_recv(c->stream, scratch, limits.size);

	if (n == -EAGAIN)
		return;
	if (n <= 0 || (!c->closing && !block_keep(loop_blocks(loop), &c->in,
	    scratch, (size_t)n, BLOCK_PERMIT))) {
		drop(c);
		return;
	}
	if (c->phase == IDLE)
		enter(c, ASKING);
	serve(c);
}

static void
on_sent(struct stream_writer *w, int err)
{
	struct client *c = container_of(w, struct client, writer);

	if (err != 0)
		drop(c);
	else if (c->phase == READING && stream_queued(c->stream) == 0)
		go_on(c);
}

static void
on_late(struct wheel_timer *t)
{
	drop(container_of(t, struct client, timer));
}

/* --- listening --------------------------------------------------------- */

static struct client *
find_phase(struct admin *a, enum phase phase)
{
	LIST_FOR_EACH(link, &a->clients) {
		struct client *c = container_of(link, struct client, link);

		if (c->phase == phase)
			return c;
	}
	return NULL;
}

/* Whom one more takes the place of: who asks nothing, then who is at it. */
static struct client *
find_victim(struct admin *a)
{
	struct client *c = find_phase(a, IDLE);

	if (c == NULL)
		c = find_phase(a, LEAVING);
	return c != NULL ? c : find_phase(a, ASKING);
}

/* It is also asked when nobody comes after all, so nobody goes yet. */
static bool
may_accept(void *arg)
{
	struct admin *a = arg;

	return a->count < ADMIN_CLIENTS || find_victim(a) != NULL;
}

static void
on_not_accepted(void *arg)
{
	(void)arg;
}

static void
refuse_address(struct admin *a, int fd, const struct addr *from)
{
	char text[ADDR_TEXT];

	log_say(a->site.opts.log, SAY_WARNING, "admin: %s isn't in "
	    "admin.allow", addr_print_ip(from, text, sizeof text));
	close(fd);
}

static void
on_accepted(void *arg, int fd, const struct addr *from)
{
	struct admin *a = arg;
	struct client *c;

	if (!site_admits(&a->site, from)) {
		refuse_address(a, fd, from);
		return;
	}
	if (a->count == ADMIN_CLIENTS)
		drop(find_victim(a));
	c = calloc(1, sizeof *c);
	if (c == NULL || (c->stream = stream_new(a->streams, fd)) == NULL) {
		free(c);
		close(fd);
		return;
	}
	c->admin = a;
	c->is_local = from->family == ADDR_UNIX;
	list_add_last(&a->clients, &c->link);
	a->count++;
	scan_init(&c->scan, SCAN_REQUEST);
	wheel_timer_init(&c->timer, on_late);
	c->again.fn = on_again;
	list_init(&c->again.link);
	enter(c, IDLE);
	c->writer.fn = on_sent;
	stream_set_writer(c->stream, &c->writer, 0);
	stream_set_reader(c->stream, on_readable, c);
}

static void
on_shortage(void *arg, int err)
{
	(void)arg;
	(void)err;			/* the workers say it */
}

struct admin *
admin_start(const struct admin_opts *opts)
{
	struct admin *a = xcalloc(1, sizeof *a);

	a->loop = opts->loop;
	a->site.opts = opts->site;
	a->streams = stream_pool_new(opts->loop, ADMIN_CLIENTS, &a->totals);
	a->parser = parser_new();
	list_init(&a->clients);
	return a;
}

bool
admin_listen(struct admin *a, int fd)
{
	struct listener *l;

	if (a->listener_count == ADMIN_LISTENERS)
		return false;
	l = listener_start(a->loop, &(struct listener_opts){
		.fd = fd,
		.admit = may_accept,
		.unadmit = on_not_accepted,
		.accepted = on_accepted,
		.shortage = on_shortage,
		.arg = a,
	});
	if (l == NULL)
		return false;
	a->listeners[a->listener_count++] = l;
	return true;
}

void
admin_leave(struct admin *a)
{
	for (unsigned i = 0; i < a->listener_count; i++)
		listener_stop(&a->listeners[i]);
	a->listener_count = 0;
}

void
admin_stop(struct admin **admin)
{
	struct admin *a = *admin;

	if (a == NULL)
		return;
	*admin = NULL;
	while (!list_is_empty(&a->clients))
		drop(container_of(a->clients.next, struct client, link));
	admin_leave(a);
	stream_pool_free(&a->streams);
	parser_free(&a->parser);
	free(a);
}
