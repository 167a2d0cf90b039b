/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * response.c - fuzz target: bytes of a server, relayed.
 *
 * What goes to the client is read again as RFC 9112 says, by somebody who
 * knows the request and nothing else: the same responses, each of which ends
 * where it ended for us.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "http/chars.h"
#include "http/frame.h"
#include "http/rewrite.h"
#include "http/status.h"
#include "http/trailers.h"

enum { RESPONSES = 16 };

#define DATE	"Sun, 06 Nov 1994 08:49:37 GMT"
#define US	"us"

/* Whom a response goes to. */
struct client {
	enum method	method;
	uint8_t		minor;
	bool		wants_close;
	bool		wants_trailers;
};

struct response {
	struct fuzz_head	head;
	struct framing		framing;	/* as it came */
	struct response_rewrite	how;
};

static char sent[1 << 19], wanted[1 << 17], got[1 << 17];

/* --- what is done with a response -------------------------------------- */

/* Every protocol may pass; then a client may have asked for them. */
static bool
switches(const struct head *h)
{
	const struct field *f = head_first(h, FIELD_UPGRADE);
	struct str list = f == NULL ? STR("") : field_value(h, f);
	struct str all = list, element;
	unsigned any = 0, good = 0;

	while (list_next(&all, &element))
		any++;
	while (upgrade_next(&list, &element))
		good++;
	return any > 0 && good == any && head_next(h, f) == NULL;
}

/* Where there is content, nobody could think that it ends elsewhere. */
static void
check_length(const struct head *h, const struct client *to,
    const struct framing *ours)
{
	struct framing f;

	if (ours->kind == FRAMING_NONE || ours->kind == FRAMING_TUNNEL)
		return;
	f = fuzz_framing(h, to->method);
	HOLDS(f.kind == ours->kind && f.length == ours->length);
	HOLDS(f.kind != FRAMING_CHUNKED || h->minor == 1);
}

/* As proxy/responding does it; false: there is no response. */
static bool
decide(struct response *r, const struct client *to)
{
	const struct head *h = &r->head.h;
	struct response_rewrite *how = &r->how;

	*how = (struct response_rewrite){ .via = STR(VIA_LINE(US)),
	    .date = DATE };
	if (framing_of_response(h, to->method, &r->framing) != FAIL_NONE)
		return false;
	check_length(h, to, &r->framing);
	how->upgrade = h->status == 101;
	if (h->status == 101)
		return switches(h);
	if (h->status < 200)
		return to->minor == 1;
	how->framing = r->framing;
	if (r->framing.kind == FRAMING_CHUNKED ||
	    r->framing.kind == FRAMING_CLOSE)
		how->framing.kind = to->minor == 1 ? FRAMING_CHUNKED :
		    FRAMING_CLOSE;
	how->trailers = to->wants_trailers &&
	    r->framing.kind == FRAMING_CHUNKED;
	how->close = to->wants_close || how->framing.kind == FRAMING_CLOSE;
	how->keep_alive = !how->close && to->minor == 0;
	return true;
}

/* --- what must come of it ---------------------------------------------- */

static void
want_connection(struct out *o, const struct response *r)
{
	static char protocols[1 << 16];
	const char *option = r->how.close ? "close" :
	    r->how.keep_alive ? "keep-alive" : "";
	struct out list;

	out_init(&list, protocols, sizeof protocols);
	if (r->head.h.status == 101 || r->head.h.status == 426)
		fuzz_put_upgrade(&list, &r->head.h);
	if (out_len(&list) > 0)
		fuzz_put(o, "Upgrade", out_text(&list));
	if (out_len(&list) == 0 && *option == '\0')
		return;
	out_put(o, "Connection: ");
	out_put(o, option);
	if (out_len(&list) > 0)
		out_put(o, *option != '\0' ? ", Upgrade" : "Upgrade");
	out_put(o, "\r\n");
}

static void
want_framing(struct out *o, const struct framing *f)
{
	if (f->kind == FRAMING_CHUNKED) {
		fuzz_put(o, "Transfer-Encoding", STR("chunked"));
	} else if (f->kind == FRAMING_LENGTH || f->has_length) {
		out_put(o, "Content-Length: ");
		out_number(o, f->length);
		out_put(o, "\r\n");
	}
}

/* Trailer stays where trailers do. */
static bool
goes_on(const struct response *r, const struct field *f)
{
	const struct head *h = &r->head.h;

	if (r->how.trailers && fuzz_is(h, f, "trailer"))
		return !fuzz_is_named(h, STR("trailer"));
	return fuzz_goes_on(h, f);
}

static void
check_fields(const struct response *r, const struct head *again)
{
	const struct head *h = &r->head.h;
	bool dated = h->status < 200;
	struct out is_out, must;

	out_init(&is_out, got, sizeof got);
	out_init(&must, wanted, sizeof wanted);
	fuzz_put_fields(&is_out, again);
	for (unsigned i = 0; i < h->count; i++) {
		const struct field *f = &h->fields[i];
		if (!goes_on(r, f))
			continue;
		dated = dated || fuzz_is(h, f, "date");
		out_str(&must, field_name(h, f));
		fuzz_put(&must, "", field_value(h, f));
	}
	if (!dated)
		fuzz_put(&must, "Date", STR(DATE));
	fuzz_put(&must, "Via", h->minor == 0 ? STR("1.0 " US) :
	    STR("1.1 " US));
	want_connection(&must, r);
	want_framing(&must, &r->how.framing);
	HOLDS(!out_is_full(&is_out) && !out_is_full(&must));
	fuzz_same(out_text(&is_out), out_text(&must));
}

static void
check_reason(const struct head *h, const struct head *again)
{
	struct str reason = head_str(h, h->reason);

	HOLDS(h->status == again->status);
	if (reason.len > 0 && !chars_are(reason, CHAR_TEXT))
		reason = str_of(status_reason(h->status));
	fuzz_same(head_str(again, again->reason), reason);
}

/* Whoever reads it takes its end to be where we put it. */
static void
check_framing(const struct response *r, const struct head *again,
    const struct client *to)
{
	struct framing f = fuzz_framing(again, to->method), ours;
	struct framing must = r->how.framing;

	HOLDS(framing_of_response(again, to->method, &ours) == FAIL_NONE);
	if (r->framing.kind == FRAMING_TUNNEL) {
		HOLDS(f.kind == FRAMING_TUNNEL && ours.kind == f.kind);
		return;
	}
	if (again->status == 205 && to->method != METHOD_HEAD) {
		/* We take it to be empty, and say so. */
		HOLDS(f.kind == ours.kind || f.kind == FRAMING_CLOSE);
		if (must.kind == FRAMING_NONE)
			must.kind = FRAMING_LENGTH;
		must.has_length = false;
	} else {
		HOLDS(f.kind == ours.kind);
	}
	HOLDS(f.kind == must.kind && f.length == must.length);
	HOLDS(f.has_length == must.has_length);
	HOLDS(f.kind != FRAMING_CLOSE || again->close);
	HOLDS(f.kind != FRAMING_CHUNKED || to->minor == 1);
}

/* --- trailers ---------------------------------------------------------- */

/* As proxy/responding keeps it: all that Connection lists. */
static struct str
named(const struct head *h)
{
	static char list[1 << 16];
	struct out o;

	out_init(&o, list, sizeof list);
	for (unsigned i = 0; i < h->count; i++) {
		if (!fuzz_is(h, &h->fields[i], "connection"))
			continue;
		out_str(&o, field_value(h, &h->fields[i]));
		out_char(&o, ',');
	}
	return out_text(&o);
}

static bool
may_be_trailer(const struct head *h, struct str name)
{
	static const char *const headers[] = {
#define FIELD(ID, name, ...)	name,
#define HEADER(name)		name,
#include "http/fields.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		if (str_equal_nocase(name, str_of(headers[i])))
			return false;
	}
	return !fuzz_is_named(h, name);
}

/* The lines that may go on, to the byte, and the empty one. */
static void
check_trailers(const struct response *r, struct str is, struct str came)
{
	struct str line, name;
	struct out must;

	out_init(&must, wanted, sizeof wanted);
	for (; came.len > 0; came = str_skip(came, line.len)) {
		line = str_head(came, str_find(came, '\n') + 1);
		name = str_head(line, str_find(line, ':'));
		if (may_be_trailer(&r->head.h, name))
			out_str(&must, line);
	}
	HOLDS(!out_is_full(&must));
	fuzz_same(is, out_text(&must));
}

static void
put_trailers(struct out *o, const struct response *r, struct str came)
{
	char *lines = fuzz_copy(came);
	struct frame f;

	frame_init(&f);
	frame_trailers(&f, str_make(lines, trailers_filter(lines, came.len,
	    named(&r->head.h))));
	for (int i = 0; i < f.count; i++)
		out_add(o, f.iov[i].iov_base, f.iov[i].iov_len);
	free(lines);
}

/* --- a connection ------------------------------------------------------ */

static void
check_body(const struct response *r, struct str is,
    const struct fuzz_body *came)
{
	struct fuzz_body b;

	fuzz_body_read(&b, &r->how.framing, is, FUZZ_PIECES);
	HOLDS(b.used == is.len && b.result == (r->how.framing.kind ==
	    FRAMING_CLOSE ? BODY_MORE : BODY_DONE));
	fuzz_same(b.content, came->content);
	if (r->how.trailers)
		check_trailers(r, b.trailers, came->trailers);
	else
		HOLDS(b.trailers.len <= strlen("\r\n"));
	fuzz_body_free(&b);
}

/* One response of `in`, sent on; the bytes it took, or 0 for the last one. */
static size_t
relay(struct response *r, struct str in, const struct client *to)
{
	bool tunnel = r->framing.kind == FRAMING_TUNNEL;
	struct fuzz_head again;
	struct fuzz_body body;
	struct out o;

	out_init(&o, sent, sizeof sent);
	rewrite_response(&o, &r->head.h, &r->how);
	HOLDS(!out_is_full(&o));
	fuzz_body_read(&body, &r->framing, str_skip(in, r->head.used),
	    FUZZ_PIECES);
	bool whole = body.result == BODY_DONE || body.ends_at_close;
	if (!tunnel)
		fuzz_put_body(&o, r->how.framing.kind, body.content,
		    whole && !r->how.trailers);
	if (whole && r->how.trailers)
		put_trailers(&o, r, body.trailers);
	HOLDS(!out_is_full(&o));

	HOLDS(fuzz_head_read(&again, out_text(&o), SCAN_RESPONSE));
	HOLDS(again.h.minor == 1);
	HOLDS(again.h.close == r->how.close);
	check_reason(&r->head.h, &again.h);
	check_fields(r, &again.h);
	check_framing(r, &again.h, to);
	if (whole && !tunnel)
		check_body(r, str_skip(out_text(&o), again.used), &body);
	fuzz_head_free(&again);
	fuzz_body_free(&body);
	return body.result == BODY_DONE ? r->head.used + body.used : 0;
}

static void
converse(struct str in, const struct client *to)
{
	size_t used = 1;

	for (int i = 0; i < RESPONSES && used > 0 && in.len > 0; i++) {
		struct response r;

		used = 0;
		if (fuzz_head_read(&r.head, in, SCAN_RESPONSE)) {
			if (decide(&r, to))
				used = relay(&r, in, to);
			else if (r.head.h.status < 200 &&
			    r.head.h.status != 101)
				used = r.head.used;
		}
		fuzz_head_free(&r.head);
		in = str_skip(in, used);
	}
}

void
fuzz_one(struct str in)
{
	static const struct client clients[] = {
		{ METHOD_GET, 1, .wants_trailers = true },
		{ METHOD_GET, 0, .wants_close = false },
		{ METHOD_HEAD, 1, .wants_close = true },
		{ METHOD_CONNECT, 1, .wants_close = false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(clients); i++)
		converse(in, &clients[i]);
}
