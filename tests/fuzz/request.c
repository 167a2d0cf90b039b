/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.c - fuzz target: bytes of a client, relayed.
 *
 * What goes to the server is read again, and must be the same requests: each
 * ends where the relayed one ended, with the same method, target and content,
 * and the fields that it must have, in their order.
 */
#include "fuzz/fuzz.h"

#include "http/chars.h"
#include "http/rewrite.h"

enum { REQUESTS = 16 };

#define SERVER	"10.0.0.1:81"
#define CLIENT	"2001:db8::1"
#define US	"us"

enum mode { FORWARD, GATEWAY, TRUSTING, MODES };

struct request {
	struct fuzz_head	head;
	struct request_rewrite	how;
	struct target		target;
	enum mode		mode;
};

static char sent[1 << 19], wanted[1 << 17], got[1 << 17];

/* --- what is done with a request --------------------------------------- */

static bool
find_host(struct request *r)
{
	const struct head *h = &r->head.h;
	struct authority host;

	r->how.host = r->target.authority.text;
	if (r->mode == FORWARD)
		return r->target.form == (h->method == METHOD_CONNECT ?
		    TARGET_AUTHORITY : TARGET_ABSOLUTE);
	if (h->method == METHOD_CONNECT)
		return false;
	if (r->target.form == TARGET_ABSOLUTE)
		return true;
	if (h->minor == 0 && head_first(h, FIELD_HOST) == NULL) {
		r->how.host = STR(SERVER);
		return true;
	}
	if (host_parse(h, &host) != FAIL_NONE)
		return false;
	r->how.host = host.text;
	return true;
}

/*
 * What came has one length, a target that is read in one way only, and all
 * fields that others rely on.
 */
static void
check_trust(const struct head *h, const struct framing *ours)
{
	static const char *const relied_on[] = {
		"authorization", "content-length", "cookie", "forwarded",
		"transfer-encoding", "x-forwarded-for", "x-forwarded-host",
	};
	struct framing f = fuzz_framing(h, METHOD_NONE);

	HOLDS(f.kind == ours->kind && f.length == ours->length);
	HOLDS(f.kind != FRAMING_CHUNKED || h->minor == 1);
	HOLDS(f.kind == FRAMING_NONE || h->method != METHOD_CONNECT);
	for (uint32_t i = 0; i < h->target.len; i++) {
		unsigned char c = (unsigned char)h->base[h->target.at + i];
		HOLDS(c > ' ' && c < 0x7f && c != '#');
	}
	HOLDS(!h->upgrade || (h->minor == 1 &&
	    fuzz_is_named(h, STR("upgrade"))));
	HOLDS(fuzz_count(h, "host") <= 1);
	HOLDS(fuzz_count(h, "host") == 1 || h->minor == 0);
	for (unsigned i = 0; i < ARRAY_LEN(relied_on); i++)
		HOLDS(!fuzz_is_named(h, str_of(relied_on[i])));
}

/* As proxy/routing and proxy/relaying do it; false: it does not go on. */
static bool
route(struct request *r)
{
	const struct head *h = &r->head.h;
	bool counts = h->method == METHOD_OPTIONS ||
	    h->method == METHOD_TRACE;

	r->how = (struct request_rewrite){
		.target = &r->target,
		.via = STR(VIA_LINE(US)),
	};
	if (framing_of_request(h, &r->how.framing) != FAIL_NONE)
		return false;
	check_trust(h, &r->how.framing);
	if (target_parse(h, &r->target) != FAIL_NONE ||
	    via_has(h, STR(US)) || !find_host(r) ||
	    (counts && max_forwards(h) == 0))
		return false;
	r->how.upgrade = h->upgrade && h->method != METHOD_CONNECT;
	/* As if a forward proxy kept no connections. */
	r->how.close = r->mode == FORWARD && !r->how.upgrade;
	if (r->mode == FORWARD)
		return true;
	r->how.forwarded = (struct forwarded){
		.client = STR(CLIENT),
		.proto = "http",
		.host = r->how.host,
		.trusted = r->mode == TRUSTING,
	};
	return true;
}

/* --- what must come of it ---------------------------------------------- */

/* Is it ours to say, whatever the client said? */
static bool
is_ours(const struct request *r, const struct field *f)
{
	const struct head *h = &r->head.h;

	if (fuzz_is(h, f, "host"))
		return true;
	if (fuzz_is(h, f, "expect"))
		return h->minor == 0;
	if (fuzz_is(h, f, "max-forwards"))
		return h->method == METHOD_OPTIONS ||
		    h->method == METHOD_TRACE;
	if (fuzz_is(h, f, "x-forwarded-for"))
		return r->mode != FORWARD;
	return r->mode == GATEWAY && (fuzz_is(h, f, "forwarded") ||
	    fuzz_is(h, f, "x-forwarded-proto") ||
	    fuzz_is(h, f, "x-forwarded-host"));
}

static void
want_forwarded(struct out *o, const struct request *r)
{
	const struct head *h = &r->head.h;
	bool trusted = r->mode == TRUSTING;

	if (r->mode == FORWARD)
		return;
	out_put(o, "X-Forwarded-For: ");
	for (unsigned i = 0; i < h->count && trusted; i++) {
		const struct field *f = &h->fields[i];
		struct str value = field_value(h, f);
		if (!fuzz_is(h, f, "x-forwarded-for") || value.len == 0)
			continue;
		out_str(o, value);
		out_put(o, ", ");
	}
	out_put(o, CLIENT "\r\n");
	if (!trusted || fuzz_count(h, "x-forwarded-proto") == 0)
		fuzz_put(o, "X-Forwarded-Proto", STR("http"));
	if (!trusted || fuzz_count(h, "x-forwarded-host") == 0)
		fuzz_put(o, "X-Forwarded-Host", r->how.host);
}

/* RFC 9110 section 10.1.4: of the next hop too. */
static bool
wants_trailers(const struct head *h)
{
	struct str list, element;
	bool any = false;

	for (unsigned i = 0; i < h->count; i++) {
		if (!fuzz_is(h, &h->fields[i], "te"))
			continue;
		list = field_value(h, &h->fields[i]);
		while (list_next(&list, &element))
			any = any || str_equal_nocase(element,
			    STR("trailers"));
	}
	return any && h->minor == 1 && fuzz_is_named(h, STR("te"));
}

static void
want_connection(struct out *o, const struct request *r)
{
	static const char *const options[] = { "close", "Upgrade", "TE" };
	bool trailers = wants_trailers(&r->head.h);
	const bool has[] = { r->how.close, r->how.upgrade, trailers };
	const char *before = "Connection: ";

	for (unsigned i = 0; i < ARRAY_LEN(options); i++) {
		if (!has[i])
			continue;
		out_put(o, before);
		out_put(o, options[i]);
		before = ", ";
	}
	if (before[0] == ',')
		out_put(o, "\r\n");
	if (trailers)
		out_put(o, "TE: trailers\r\n");
}

/* Ours at the end. */
static void
want_ours(struct out *o, const struct request *r)
{
	const struct head *h = &r->head.h;

	fuzz_put(o, "Via", h->minor == 0 ? STR("1.0 " US) : STR("1.1 " US));
	want_forwarded(o, r);
	if ((h->method == METHOD_OPTIONS || h->method == METHOD_TRACE) &&
	    max_forwards(h) > 0) {
		out_put(o, "Max-Forwards: ");
		out_number(o, (uint64_t)max_forwards(h) - 1);
		out_put(o, "\r\n");
	}
	if (r->how.upgrade) {
		out_put(o, "Upgrade: ");
		fuzz_put_upgrade(o, h);
		out_put(o, "\r\n");
	}
	want_connection(o, r);
	if (r->how.framing.kind == FRAMING_CHUNKED) {
		fuzz_put(o, "Transfer-Encoding", STR("chunked"));
	} else if (r->how.framing.kind == FRAMING_LENGTH) {
		out_put(o, "Content-Length: ");
		out_number(o, r->how.framing.length);
		out_put(o, "\r\n");
	}
}

static void
check_fields(const struct request *r, const struct head *again)
{
	const struct head *h = &r->head.h;
	struct out is, must;

	out_init(&is, got, sizeof got);
	out_init(&must, wanted, sizeof wanted);
	fuzz_put_fields(&is, again);
	fuzz_put(&must, "Host", r->how.host);
	for (unsigned i = 0; i < h->count; i++) {
		const struct field *f = &h->fields[i];
		if (is_ours(r, f) || !fuzz_goes_on(h, f))
			continue;
		out_str(&must, field_name(h, f));
		fuzz_put(&must, "", field_value(h, f));
	}
	want_ours(&must, r);
	HOLDS(!out_is_full(&is) && !out_is_full(&must));
	fuzz_same(out_text(&is), out_text(&must));
}

/* The absolute target, but for its path, is now Host. */
static void
check_target(const struct request *r, const struct head *again)
{
	struct str was = head_str(&r->head.h, r->head.h.target);
	struct str is = head_str(again, again->target);
	struct target t;

	HOLDS(target_parse(again, &t) == FAIL_NONE);
	HOLDS(!t.slash && t.form != TARGET_ABSOLUTE);
	if (!str_starts_nocase(was, STR("http://")) ||
	    r->head.h.method == METHOD_CONNECT) {
		fuzz_same(is, was);
		return;
	}
	was = str_skip(was, strlen("http://"));
	HOLDS(str_starts(was, r->how.host));
	was = str_skip(was, r->how.host.len);
	if (str_starts(was, STR("/")))
		fuzz_same(is, was);
	else if (was.len == 0)
		fuzz_same(is, r->head.h.method == METHOD_OPTIONS ? STR("*") :
		    STR("/"));
	else if (str_starts(is, STR("/")))
		fuzz_same(str_skip(is, 1), was);
	else
		HOLDS(!"an absolute target has become another");
}

static void
check_head(const struct request *r, const struct head *again)
{
	struct framing f = fuzz_framing(again, METHOD_NONE), ours;

	HOLDS(again->minor == 1 && again->method == r->head.h.method);
	HOLDS(again->upgrade == r->how.upgrade);
	HOLDS(again->close == r->how.close);
	check_target(r, again);
	check_fields(r, again);
	HOLDS(via_has(again, STR(US)));
	HOLDS(f.kind == r->how.framing.kind &&
	    f.length == r->how.framing.length);
	HOLDS(framing_of_request(again, &ours) == FAIL_NONE);
	HOLDS(ours.kind == f.kind && ours.length == f.length);
}

/* --- a connection ------------------------------------------------------ */

static void
check_body(const struct request *r, struct str is, struct str content)
{
	struct fuzz_body b;

	fuzz_body_read(&b, &r->how.framing, is, FUZZ_PIECES);
	HOLDS(b.result == BODY_DONE && b.used == is.len);
	fuzz_same(b.content, content);
	fuzz_body_free(&b);
}

/* One request of `in`, sent on; the bytes it took, or 0 for the last one. */
static size_t
relay(struct request *r, struct str in)
{
	struct fuzz_head again;
	struct fuzz_body body;
	struct out o;

	out_init(&o, sent, sizeof sent);
	rewrite_request(&o, &r->head.h, &r->how);
	HOLDS(!out_is_full(&o));
	fuzz_body_read(&body, &r->how.framing, str_skip(in, r->head.used),
	    FUZZ_PIECES);
	bool whole = body.result == BODY_DONE;
	fuzz_put_body(&o, r->how.framing.kind, body.content, whole);
	HOLDS(!out_is_full(&o));

	HOLDS(fuzz_head_read(&again, out_text(&o), SCAN_REQUEST));
	check_head(r, &again.h);
	if (whole)
		check_body(r, str_skip(out_text(&o), again.used),
		    body.content);
	fuzz_head_free(&again);
	fuzz_body_free(&body);
	return whole ? r->head.used + body.used : 0;
}

static void
converse(struct str in, enum mode mode)
{
	size_t used = 1;

	for (int i = 0; i < REQUESTS && used > 0 && in.len > 0; i++) {
		struct request r = { .mode = mode };

		used = 0;
		if (fuzz_head_read(&r.head, in, SCAN_REQUEST) && route(&r))
			used = relay(&r, in);
		fuzz_head_free(&r.head);
		in = str_skip(in, used);
	}
}

void
fuzz_one(struct str in)
{
	for (enum mode mode = FORWARD; mode < MODES; mode++)
		converse(in, mode);
}
