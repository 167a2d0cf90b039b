/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz.c - see fuzz.h.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "http/chars.h"
#include "http/frame.h"

static const struct head_limits limits = {
	.size = HEAD_SIZE_MAX, .line = 8192, .fields = HEAD_FIELDS_MAX,
};

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	fuzz_one(str_make(bytes, n));
	return 0;
}

void
fuzz_same(struct str is, struct str must)
{
	if (str_equal(is, must))
		return;
	fprintf(stderr, "--- is:\n" STR_FMT "\n--- must be:\n" STR_FMT
	    "\n---\n", STR_ARG(is), STR_ARG(must));
	HOLDS(!"the two texts are equal");
}

/* --- bytes that arrive ------------------------------------------------- */

void
fuzz_arrival_init(struct fuzz_arrival *a, enum fuzz_delivery how,
    struct str in)
{
	*a = (struct fuzz_arrival){ how, in.len };
	for (size_t i = 0; i < in.len; i++)
		a->random = a->random * 31 + (uint8_t)in.at[i];
}

size_t
fuzz_arrives(struct fuzz_arrival *a, size_t left)
{
	if (a->how == FUZZ_WHOLE)
		return left;
	if (a->how == FUZZ_BYTES)
		return 1;
	a->random = a->random * UINT64_C(6364136223846793005) + 1;
	size_t n = 1 + (a->random >> 33) % (a->random >> 60 == 0 ? 500 : 23);
	return MIN(n, left);
}

void *
fuzz_copy(struct str s)
{
	void *copy = malloc(MAX(s.len, (size_t)1));

	HOLDS(copy != NULL);
	if (s.len > 0)
		memcpy(copy, s.at, s.len);
	return copy;
}

/* --- heads ------------------------------------------------------------- */

struct scanned {
	struct scan		scan;
	enum scan_result	result;
	enum failure		why;
};

static struct scanned
scan_as(struct str in, enum scan_kind kind, enum fuzz_delivery how)
{
	struct scanned r = { .result = SCAN_MORE, .why = FAIL_NONE };
	struct fuzz_arrival a;
	size_t n = 0;

	fuzz_arrival_init(&a, how, in);
	scan_init(&r.scan, kind);
	while (n < in.len && r.result == SCAN_MORE) {
		n += fuzz_arrives(&a, in.len - n);
		r.result = scan_run(&r.scan, in.at, n, &limits, &r.why);
		HOLDS(r.scan.at <= n && r.scan.start <= r.scan.at);
		HOLDS(r.result != SCAN_MORE || r.scan.at == n);
	}
	return r;
}

static struct scanned
scan_all(struct str in, enum scan_kind kind)
{
	struct scanned r = scan_as(in, kind, FUZZ_WHOLE);

	for (int how = FUZZ_BYTES; how < FUZZ_DELIVERIES; how++) {
		struct scanned s = scan_as(in, kind, how);
		HOLDS(s.result == r.result && s.why == r.why);
		HOLDS(s.scan.at == r.scan.at && s.scan.start == r.scan.start);
	}
	return r;
}

/* The next line, which must end in CRLF and have neither of them in it. */
static struct str
take_line(struct str *rest)
{
	size_t n = str_find(*rest, '\n');
	struct str line = str_head(*rest, n);

	HOLDS(n < rest->len && str_ends(line, STR("\r")));
	line.len--;
	*rest = str_skip(*rest, n + 1);
	HOLDS(str_find(line, '\r') == line.len);
	HOLDS(str_find(line, '\0') == line.len);
	return line;
}

/* A plain reading of the lines finds the same fields. */
static void
check_lines(const struct head *h)
{
	struct str rest = str_make(h->base, h->length);
	struct str line = take_line(&rest), name;

	for (unsigned i = 0; i < h->count; i++) {
		line = take_line(&rest);
		HOLDS(str_split(&line, ':', &name) && line.at != NULL);
		HOLDS(chars_are(name, CHAR_TOKEN));
		fuzz_same(field_name(h, &h->fields[i]), name);
		fuzz_same(field_value(h, &h->fields[i]), str_trim(line));
	}
	line = take_line(&rest);
	HOLDS(line.len == 0 && rest.len == 0);
}

/* What is found by its id is what is found by its name. */
static void
check_ids(const struct head *h)
{
	static const char *const names[FIELD_IDS] = {
		[FIELD_OTHER] = NULL,
#define FIELD(ID, name, ...)	[FIELD_##ID] = name,
#include "http/fields.def"
	};

	for (unsigned id = FIELD_OTHER + 1; id < FIELD_IDS; id++) {
		const struct field *f = head_first(h, id);
		unsigned n = 0;
		for (; f != NULL; f = head_next(h, f)) {
			HOLDS(str_equal_nocase(field_name(h, f),
			    str_of(names[id])));
			n++;
		}
		HOLDS(n == fuzz_count(h, names[id]));
	}
}

/* RFC 9112 section 2.2: only empty lines may come before a request. */
static void
check_start(struct str before, enum scan_kind kind)
{
	HOLDS(before.len <= (kind == SCAN_REQUEST ? 4 : 0));
	while (before.len > 0)
		HOLDS(take_line(&before).len == 0);
}

bool
fuzz_head_read(struct fuzz_head *f, struct str in, enum scan_kind kind)
{
	static struct parser *parser;
	struct scanned s = scan_all(in, kind);
	enum failure why;

	f->mem = NULL;
	if (s.result != SCAN_DONE)
		return false;
	if (parser == NULL)
		parser = parser_new();
	check_start(str_head(in, s.scan.start), kind);
	f->used = s.scan.at;
	size_t n = s.scan.at - s.scan.start;
	void *bytes = fuzz_copy(str_make(in.at + s.scan.start, n));
	struct str head = str_make(bytes, n);
	why = kind == SCAN_REQUEST ?
	    parse_request(parser, head, s.scan.fields, &f->h) :
	    parse_response(parser, head, s.scan.fields, &f->h);
	if (why == FAIL_NONE) {
		f->mem = malloc(head_copy_size(&f->h));
		HOLDS(f->mem != NULL);
		head_copy(&f->h, f->mem);
		check_lines(&f->h);
		check_ids(&f->h);
	}
	free(bytes);
	return why == FAIL_NONE;
}

void
fuzz_head_free(struct fuzz_head *f)
{
	free(f->mem);
	f->mem = NULL;
}

void
fuzz_put(struct out *o, const char *name, struct str value)
{
	out_put(o, name);
	out_put(o, ": ");
	out_str(o, value);
	out_put(o, "\r\n");
}

void
fuzz_put_fields(struct out *o, const struct head *h)
{
	for (unsigned i = 0; i < h->count; i++) {
		out_str(o, field_name(h, &h->fields[i]));
		fuzz_put(o, "", field_value(h, &h->fields[i]));
	}
}

bool
fuzz_is(const struct head *h, const struct field *f, const char *name)
{
	return str_equal_nocase(field_name(h, f), str_of(name));
}

unsigned
fuzz_count(const struct head *h, const char *name)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->count; i++)
		n += fuzz_is(h, &h->fields[i], name);
	return n;
}

bool
fuzz_is_named(const struct head *h, struct str name)
{
	struct str list, option;

	for (unsigned i = 0; i < h->count; i++) {
		if (!fuzz_is(h, &h->fields[i], "connection"))
			continue;
		list = field_value(h, &h->fields[i]);
		while (str_split(&list, ',', &option))
			if (str_equal_nocase(str_trim(option), name))
				return true;
	}
	return false;
}

bool
fuzz_goes_on(const struct head *h, const struct field *f)
{
	static const char *const hops[] = {
		"Connection", "Content-Length", "HTTP2-Settings",
		"Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authentication-Info", "Proxy-Authorization",
		"Proxy-Connection", "TE", "Trailer", "Transfer-Encoding",
		"Upgrade",
	};

	for (unsigned i = 0; i < ARRAY_LEN(hops); i++) {
		if (fuzz_is(h, f, hops[i]))
			return false;
	}
	return !fuzz_is_named(h, field_name(h, f));
}

/* "name" or "name/version", and not h2c, whatever follows. */
static bool
may_upgrade_to(struct str protocol)
{
	unsigned slashes = 0;

	if (str_starts_nocase(protocol, STR("h2c")) ||
	    str_starts(protocol, STR("/")) || str_ends(protocol, STR("/")))
		return false;
	for (size_t i = 0; i < protocol.len; i++) {
		if (protocol.at[i] == '/')
			slashes++;
		else if (!char_is(protocol.at[i], CHAR_TOKEN))
			return false;
	}
	return slashes <= 1;
}

void
fuzz_put_upgrade(struct out *o, const struct head *h)
{
	struct str list, protocol;
	size_t start = out_len(o);

	for (unsigned i = 0; i < h->count; i++) {
		if (!fuzz_is(h, &h->fields[i], "upgrade"))
			continue;
		list = field_value(h, &h->fields[i]);
		while (list_next(&list, &protocol)) {
			if (!may_upgrade_to(protocol))
				continue;
			if (out_len(o) > start)
				out_put(o, ", ");
			out_str(o, protocol);
		}
	}
}

struct framing
fuzz_framing(const struct head *h, enum method to)
{
	struct framing f = { .kind = FRAMING_NONE };
	struct str length = STR(""), coding = STR("");

	HOLDS(fuzz_count(h, "content-length") +
	    fuzz_count(h, "transfer-encoding") <= 1);
	for (unsigned i = 0; i < h->count; i++) {
		if (fuzz_is(h, &h->fields[i], "content-length"))
			length = field_value(h, &h->fields[i]);
		if (fuzz_is(h, &h->fields[i], "transfer-encoding"))
			coding = field_value(h, &h->fields[i]);
	}
	if (length.len > 0)
		HOLDS(str_number(length, &f.length));
	f.has_length = length.len > 0 && (to == METHOD_HEAD ||
	    h->status == 304);
	if (h->status == 101 || (to == METHOD_CONNECT &&
	    h->status / 100 == 2))
		f.kind = FRAMING_TUNNEL;
	else if (to == METHOD_HEAD || h->status / 100 == 1 ||
	    h->status == 204 || h->status == 304)
		f.kind = FRAMING_NONE;
	else if (str_equal_nocase(coding, STR("chunked")))
		f.kind = FRAMING_CHUNKED;
	else if (length.len > 0)
		f.kind = FRAMING_LENGTH;
	else if (to != METHOD_NONE)
		f.kind = FRAMING_CLOSE;
	return f;
}

/* --- bodies ------------------------------------------------------------ */

static void
add_content(struct fuzz_body *b, const struct body_content *c,
    struct str in)
{
	HOLDS(c->count >= 0 && c->count <= BODY_SPANS && c->used <= in.len);
	HOLDS(c->trailers <= c->used);
	for (int i = 0; i < c->count; i++) {
		HOLDS(c->iov[i].iov_len > 0);
		memcpy(b->mem + b->content.len, c->iov[i].iov_base,
		    c->iov[i].iov_len);
		b->content.len += c->iov[i].iov_len;
	}
	b->used += c->used;
	memcpy((char *)b->trailers.at + b->trailers.len,
	    in.at + c->used - c->trailers, c->trailers);
	b->trailers.len += c->trailers;
	HOLDS(b->content.len <= b->used);
}

/* All of what has arrived at once. */
static void
decode(struct fuzz_body *b, struct body *body, struct str in)
{
	struct body_content c;
	uint8_t one[1] = { (uint8_t)in.at[0] };
	void *copy = in.len > 1 ? fuzz_copy(in) : NULL;
	uint8_t *bytes = copy != NULL ? copy : one;
	size_t n = in.len;

	do {
		b->result = body_decode(body, bytes, n, &c);
		add_content(b, &c, str_make(bytes, n));
		bytes += c.used;
		n -= c.used;
	} while (b->result == BODY_SPANS_FULL);
	HOLDS(b->result != BODY_MORE || n == 0);
	free(copy);
}

void
fuzz_body_read(struct fuzz_body *b, const struct framing *f, struct str in,
    enum fuzz_delivery how)
{
	struct fuzz_arrival a;
	struct body body;
	size_t n;

	*b = (struct fuzz_body){ .mem = malloc(2 * in.len + 1) };
	HOLDS(b->mem != NULL);
	b->content.at = b->mem;
	b->trailers.at = b->mem + in.len;
	body_init(&body, f);
	fuzz_arrival_init(&a, how, in);
	b->result = body_is_done(&body) ? BODY_DONE : BODY_MORE;
	for (size_t at = 0; at < in.len && b->result == BODY_MORE; at += n) {
		n = fuzz_arrives(&a, in.len - at);
		decode(b, &body, str_make(in.at + at, n));
	}
	HOLDS(body_is_done(&body) == (b->result == BODY_DONE));
	HOLDS(body.content == b->content.len);
	HOLDS(body.scan.at == b->trailers.len);
	b->ends_at_close = body_ends_at_close(&body);
}

void
fuzz_body_free(struct fuzz_body *b)
{
	free(b->mem);
	b->mem = NULL;
}

void
fuzz_put_body(struct out *o, enum framing_kind kind, struct str content,
    bool last)
{
	struct fuzz_arrival a;
	struct frame f;

	fuzz_arrival_init(&a, FUZZ_PIECES, content);
	do {
		struct iovec iov[2];
		size_t n = content.len == 0 ? 0 :
		    fuzz_arrives(&a, content.len);

		iov[0] = (struct iovec){ (void *)content.at, n / 2 };
		iov[1] = (struct iovec){ (char *)content.at + n / 2,
		    n - n / 2 };
		content = str_skip(content, n);
		frame_init(&f);
		frame_content(&f, kind, iov, n == 0 ? 0 : 2,
		    last && content.len == 0);
		for (int i = 0; i < f.count; i++)
			out_add(o, f.iov[i].iov_base, f.iov[i].iov_len);
	} while (content.len > 0);
}
