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

/* A request's head, a pause between two, and a reader that doesn't. */
#define ADMIN_PATIENCE	(60 * NSEC_PER_SEC)

enum {
	ADMIN_LISTENERS = 16,
	SLOW_CLIENTS = 8,		/* with a whole page to read */
	ADMIN_SPARE = 160 * 1024,	/* for each: a block, and a request */
	LEAST_BUDGET = 4 * 1024 * 1024,
};

static const struct head_limits limits = {
	.size = 8192, .line = 2048, .fields = 64,
};

struct admin {
	struct admin_opts	 opts;
	struct stream_pool	*streams;
	struct stream_totals	 totals;
	struct parser		*parser;
	struct date		 date;
	struct list		 clients;
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
	bool			 local;		/* came by a unix socket */
	bool			 closing;
};

static stream_read_fn	on_readable;
static stream_write_fn	on_sent;
static wheel_fn		on_late;

/* --- pages ------------------------------------------------------------- */

typedef int page_fn(struct admin *a, struct metrics *body);

static page_fn	page_metrics, page_healthz, page_readyz;

static const struct page {
	struct str	 path;
	const char	*type;
	page_fn		*build;		/* returns the status */
} pages[] = {
	{ STR_INIT("/metrics"), "text/plain; version=0.0.4; charset=utf-8",
	    page_metrics },
	{ STR_INIT("/healthz"), "text/plain; charset=utf-8", page_healthz },
	{ STR_INIT("/readyz"), "text/plain; charset=utf-8", page_readyz },
};

static int
page_metrics(struct admin *a, struct metrics *body)
{
	a->opts.metrics(a->opts.arg, body);
	return 200;
}

static int
page_healthz(struct admin *a, struct metrics *body)
{
	(void)a;
	metric_text(body, STR("ok\n"));
	return 200;
}

static int
page_readyz(struct admin *a, struct metrics *body)
{
	bool ready = a->opts.is_ready(a->opts.arg);

	metric_text(body, ready ? STR("ready\n") : STR("draining\n"));
	return ready ? 200 : 503;
}

/* Who may write to the socket may know what is in the file. */
static int
check_reload(struct client *c, struct metrics *body)
{
	struct admin *a = c->admin;
	char *text = NULL;
	size_t n;
	FILE *out;

	if (!c->local)
		return 403;
	out = open_memstream(&text, &n);
	if (out == NULL)
		return 500;
	bool ok = a->opts.check(a->opts.arg, out);
	fclose(out);
	metric_text(body, ok ? STR("fine\n") : str_make(text, n));
	free(text);
	return ok ? 200 : 422;
}

static int
build_page(struct client *c, const struct head *h, struct metrics *body,
    const char **type)
{
	struct admin *a = c->admin;
	struct str path = head_str(h, h->target);

	*type = "text/plain; charset=utf-8";
	if (h->method == METHOD_POST &&
	    str_equal(path, STR("/reload?check")))
		return check_reload(c, body);
	if (h->method != METHOD_GET && h->method != METHOD_HEAD)
		return 405;
	path = str_head(path, str_find(path, '?'));
	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (str_equal(path, pages[i].path)) {
			*type = pages[i].type;
			return pages[i].build(a, body);
		}
	metric_text(body, STR("Here are /metrics, /healthz and /readyz.\n"));
	return 404;
}

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
	loop_cancel(a->opts.loop, &c->timer);
	stream_close(&c->stream);
	block_give(loop_blocks(a->opts.loop), &c->in);
	free(c);
	a->count--;
	for (unsigned i = 0; i < a->listener_count; i++)
		listener_resume(a->listeners[i]);
}

/* A head and, but for HEAD, the body after it. */
static bool
respond(struct client *c, int status, const char *type, struct str body,
    bool head_only)
{
	struct loop *loop = c->admin->opts.loop;
	struct out o;

	out_init(&o, loop_scratch_out(loop), LOOP_SCRATCH);
	out_put(&o, "HTTP/1.1 ");
	out_number(&o, (uint64_t)status);
	out_char(&o, ' ');
	out_put(&o, status_reason(status));
	out_put(&o, "\r\nDate: ");
	out_put(&o, date_text(&c->admin->date, loop_wall(loop).tv_sec));
	out_put(&o, "\r\nContent-Type: ");
	out_put(&o, type);
	out_put(&o, "\r\nCache-Control: no-store\r\nContent-Length: ");
	out_number(&o, body.len);
	if (status == 405)
		out_put(&o, "\r\nAllow: GET, HEAD");
	if (c->closing)
		out_put(&o, "\r\nConnection: close");
	out_put(&o, "\r\n\r\n");

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
	c->closing = true;
	return respond(c, 400, "text/plain", STR(""), false);
}

/* The same, for what can. */
static bool
answer(struct client *c, struct str head)
{
	struct admin *a = c->admin;
	struct metrics body;
	struct str text;
	struct head h;
	const char *type;

	if (parse_request(a->parser, head, c->scan.fields, &h) != FAIL_NONE)
		return refuse(c);
	/* Nothing here has a body, so a request with one ends it. */
	c->closing = h.close || h.minor == 0 ||
	    head_first(&h, FIELD_CONTENT_LENGTH) != NULL ||
	    head_first(&h, FIELD_TRANSFER_ENCODING) != NULL;
	metrics_init(&body);
	int status = build_page(c, &h, &body, &type);
	if (!metrics_text(&body, &text))
		status = 500;
	bool ok = respond(c, status, type, text, h.method == METHOD_HEAD);
	metrics_fini(&body);
	return ok;
}

/* Answer what is there; one at a time while the client is slow to read. */
static void
serve(struct client *c)
{
	struct blocks *blocks = loop_blocks(c->admin->opts.loop);
	enum failure why;

	while (c->in != NULL && !c->closing && stream_queued(c->stream) == 0) {
		struct block *b = c->in;
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
			block_give(blocks, &c->in);
	}
	if (c->closing)
		stream_end(c->stream);
}

static void
on_readable(void *arg)
{
	struct client *c = arg;
	struct loop *loop = c->admin->opts.loop;
	uint8_t *scratch = loop_scratch(loop);
	ssize_t n = stream_recv(c->stream, scratch, limits.size);

	if (n == -EAGAIN)
		return;
	if (n <= 0 || (!c->closing && !block_keep(loop_blocks(loop), &c->in,
	    scratch, (size_t)n, BLOCK_PERMIT))) {
		drop(c);
		return;
	}
	if (!c->closing)
		loop_arm(loop, &c->timer, ADMIN_PATIENCE);
	serve(c);
}

static void
on_sent(struct stream_writer *w, int err)
{
	struct client *c = container_of(w, struct client, writer);

	if (err != 0)
		drop(c);
	else
		serve(c);
}

static void
on_late(struct wheel_timer *t)
{
	drop(container_of(t, struct client, timer));
}

/* --- listening --------------------------------------------------------- */

static bool
may_accept(void *arg)
{
	return ((struct admin *)arg)->count < ADMIN_CLIENTS;
}

static void
on_not_accepted(void *arg)
{
	(void)arg;
}

static void
on_accepted(void *arg, int fd, const struct addr *from)
{
	struct admin *a = arg;
	struct client *c = calloc(1, sizeof *c);

	if (c == NULL || (c->stream = stream_new(a->streams, fd)) == NULL) {
		free(c);
		close(fd);
		return;
	}
	c->admin = a;
	c->local = from->family == ADDR_UNIX;
	list_add_last(&a->clients, &c->link);
	a->count++;
	scan_init(&c->scan, SCAN_REQUEST);
	wheel_timer_init(&c->timer, on_late);
	loop_arm(a->opts.loop, &c->timer, ADMIN_PATIENCE);
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

	a->opts = *opts;
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
	l = listener_start(a->opts.loop, &(struct listener_opts){
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
