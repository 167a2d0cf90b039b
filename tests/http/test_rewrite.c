/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rewrite.c - heads that go on: to the byte, and for many random ones
 * what must always hold.
 */
#include "http/rewrite.h"

#include "http/heads.h"

#define NOW	"Sun, 06 Nov 1994 08:49:37 GMT"
#define VIA	"Via: 1.1 us\r\n"

static char written[2 * HEAD_SIZE_MAX];

/* --- requests ---------------------------------------------------------- */

/* As a proxy would do it, for what a test leaves open. */
static struct str
rewritten(const struct head *h, const struct request_rewrite *given)
{
	struct request_rewrite r = *given;
	struct target t;
	struct authority host;
	struct out o;

	MUST(target_parse(h, &t) == FAIL_NONE);
	MUST(framing_of_request(h, &r.framing) == FAIL_NONE);
	r.target = &t;
	r.via = STR(VIA_LINE("us"));
	r.host = t.authority.text;
	if (t.authority.text.len == 0 && host_parse(h, &host) == FAIL_NONE)
		r.host = host.text;
	out_init(&o, written, sizeof written);
	rewrite_request(&o, h, &r);
	MUST(!out_is_full(&o));
	return out_text(&o);
}

struct request_case {
	int			 row;
	const char		*in;
	const char		*out;
	struct request_rewrite	 r;
};

#define TO	"GET / HTTP/1.1\r\nHost: a\r\n"

static const struct request_case requests[] = {
	{ 0, GET END, TO VIA END, { .close = false } },
	{ 11, "GET http://u/ HTTP/1.0\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: u\r\nVia: 1.0 us\r\n\r\n", { 0 } },
	{ 34, "GET http://b:81/x HTTP/1.1\r\nHost: evil\r\n\r\n",
	    "GET /x HTTP/1.1\r\nHost: b:81\r\n" VIA END, { 0 } },
	{ 35, "GET http://b HTTP/1.1\r\nHost: b\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: b\r\n" VIA END, { 0 } },
	{ 36, "GET http://b?x=1 HTTP/1.1\r\nHost: b\r\n\r\n",
	    "GET /?x=1 HTTP/1.1\r\nHost: b\r\n" VIA END, { 0 } },
	{ 37, "OPTIONS http://b:8001 HTTP/1.1\r\nHost: b:8001\r\n\r\n",
	    "OPTIONS * HTTP/1.1\r\nHost: b:8001\r\n" VIA END, { 0 } },
	{ 211, "CONNECT b:443 HTTP/1.1\r\nHost: x\r\n\r\n",
	    "CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n" VIA END, { 0 } },
	{ 55, "GET / HTTP/1.1\r\nX: y\r\nHost: a\r\n\r\n",
	    TO "X: y\r\n" VIA END, { 0 } },
	{ 57, GET "Connection: host\r\n\r\n", TO VIA END, { 0 } },
	{ 68, GET "X: \xff\x80\r\n\r\n", TO "X: \xff\x80\r\n" VIA END, { 0 } },
	{ 76, GET "A: 1\r\nB: x\r\nA: 2\r\n\r\n",
	    TO "A: 1\r\nB: x\r\nA: 2\r\n" VIA END, { 0 } },
	{ 78, GET "A: 1\r\nX:   b \t \r\nY:\r\nZ:z\r\nC: 2\r\nD: 3\r\n\r\n",
	    TO "A: 1\r\nX: b\r\nY: \r\nZ: z\r\nC: 2\r\nD: 3\r\n" VIA END,
	    { 0 } },
	{ 102, POST "Content-Length: 0010\r\nX: y\r\n\r\n",
	    "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n" VIA
	    "Content-Length: 10\r\n\r\n", { 0 } },
	{ 128, POST "Transfer-Encoding: Chunked\r\nTrailer: X\r\n\r\n",
	    "POST / HTTP/1.1\r\nHost: a\r\n" VIA
	    "Transfer-Encoding: chunked\r\n\r\n", { 0 } },
	{ 168, GET "Connection: X-Foo, close\r\nX-Foo: 1\r\nY: 2\r\n\r\n",
	    TO "Y: 2\r\n" VIA END, { 0 } },
	{ 169, GET "x-foo: 1\r\nConnection: X-Foo\r\nA: 1\r\n"
	    "cOnnection: Y\r\nX-FOO: 2\r\nY: 2\r\n\r\n",
	    TO "A: 1\r\n" VIA END, { 0 } },
	{ 168, GET "Close: 1\r\nConnection: close\r\nA: 1\r\nclose: 2\r\n"
	    "Closed: 3\r\n\r\n", TO "A: 1\r\nClosed: 3\r\n" VIA END, { 0 } },
	{ 170, GET "Proxy-Connection: a\r\nKeep-Alive: b\r\nTE: trailers\r\n"
	    "Upgrade: websocket\r\nHTTP2-Settings: x\r\nTrailer: y\r\n\r\n",
	    TO VIA END, { 0 } },
	{ 1, GET "Connection: Connection\r\nConnection: x\r\n\r\n",
	    TO VIA END, { 0 } },
	{ 192, GET "X: y\r\nTE: trailers\r\nConnection: TE\r\n\r\n",
	    TO "X: y\r\n" VIA "Connection: TE\r\nTE: trailers\r\n\r\n", { 0 } },
	{ 192, GET "TE: gzip;q=0.5, Trailers\r\nConnection: close, te\r\n\r\n",
	    TO VIA "Connection: close, TE\r\nTE: trailers\r\n\r\n",
	    { .close = true } },
	{ 192, GET "TE: gzip\r\nTE: trailers\r\nConnection: te, upgrade\r\n"
	    "Upgrade: websocket\r\n\r\n", TO VIA "Upgrade: websocket\r\n"
	    "Connection: Upgrade, TE\r\nTE: trailers\r\n\r\n",
	    { .upgrade = true } },
	{ 192, "GET / HTTP/1.0\r\nHost: a\r\nTE: trailers\r\n"
	    "Connection: TE\r\n\r\n", TO "Via: 1.0 us\r\n\r\n", { 0 } },
	{ 193, GET "TE: chunked, trailers;q=0.5\r\nConnection: TE\r\n\r\n",
	    TO VIA END, { 0 } },
	{ 195, GET "Via: 1.0 fred\r\nA: 1\r\nVia: 1.1 b (c, d)\r\n\r\n",
	    TO "Via: 1.0 fred\r\nA: 1\r\nVia: 1.1 b (c, d)\r\n" VIA END,
	    { 0 } },
	{ 199, "OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 5\r\n\r\n",
	    "OPTIONS * HTTP/1.1\r\nHost: a\r\n" VIA "Max-Forwards: 4\r\n\r\n",
	    { 0 } },
	{ 200, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
	    "OPTIONS * HTTP/1.1\r\nHost: a\r\n" VIA END, { 0 } },
	{ 202, GET "Max-Forwards: 0\r\n\r\n", TO "Max-Forwards: 0\r\n" VIA END,
	    { 0 } },
	{ 204, POST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
	    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" VIA
	    "Content-Length: 5\r\n\r\n", { 0 } },
	{ 223, GET "Proxy-Authorization: Basic eDp5\r\nAuthorization: x\r\n"
	    "\r\n", TO "Authorization: x\r\n" VIA END, { 0 } },
	{ 228, GET "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	    "Sec-WebSocket-Key: k\r\n\r\n", TO "Sec-WebSocket-Key: k\r\n" VIA
	    "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
	    { .upgrade = true } },
	{ 232, GET "Upgrade: websocket\r\n\r\n", TO VIA END,
	    { .upgrade = true } },
	{ 234, GET "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
	    "HTTP2-Settings: x\r\n\r\n", TO VIA END, { .upgrade = true } },
	{ 234, GET "Connection: Upgrade\r\nUpgrade: a, h2c\r\nUpgrade: h2c\r\n"
	    "Upgrade: b/1\r\n\r\n", TO VIA "Upgrade: a, b/1\r\n"
	    "Connection: close, Upgrade\r\n\r\n",
	    { .upgrade = true, .close = true } },
	{ 261, GET "CDN-Loop: x\r\n\r\n", TO "CDN-Loop: x\r\n" VIA END, { 0 } },
	{ 265, GET END, TO VIA "Connection: close\r\n\r\n", { .close = true } },
	{ 270, GET "Range: banana=1-2\r\n\r\n", TO "Range: banana=1-2\r\n" VIA
	    END, { 0 } },
};

START_TEST(a_request_goes_on_as_it_must)
{
	const struct request_case *c = &requests[_i];
	struct head h;

	good_request(c->in, &h);
	same_text(rewritten(&h, &c->r), c->out);
}
END_TEST

#define SAYS	"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: b\r\n" \
		"A: 1\r\nX-Forwarded-For: 5.6.7.8, 9.9.9.9\r\n" \
		"Forwarded: for=\"a\\\", for=evil\"\r\n" \
		"X-Forwarded-Proto: https\r\n"
#define OURS	"X-Forwarded-For: ::1\r\nX-Forwarded-Proto: http\r\n" \
		"X-Forwarded-Host: a:1\r\n"

/* Rows 82 and 249. */
START_TEST(a_clients_address_is_told)
{
	struct request_rewrite r = { .forwarded = {
		.client = STR_INIT("::1"), .proto = "http",
		.host = STR_INIT("a:1") } };
	struct head h;

	good_request(GET SAYS END, &h);
	same_text(rewritten(&h, &r), TO "A: 1\r\n" VIA OURS END);
	r.forwarded.trusted = true;
	same_text(rewritten(&h, &r), TO "X-Forwarded-Host: b\r\nA: 1\r\n"
	    "Forwarded: for=\"a\\\", for=evil\"\r\n"
	    "X-Forwarded-Proto: https\r\n" VIA
	    "X-Forwarded-For: 1.2.3.4, 5.6.7.8, 9.9.9.9, ::1\r\n\r\n");
	r.forwarded.client = STR("");
	r.forwarded.trusted = false;
	same_text(rewritten(&h, &r), TO SAYS VIA END);

	good_request(GET "X-Forwarded-For:\r\n\r\n", &h);
	r.forwarded.client = STR("::1");
	r.forwarded.trusted = true;
	same_text(rewritten(&h, &r), TO VIA OURS END);
}
END_TEST

START_TEST(a_head_that_does_not_fit_says_so)
{
	struct head h;
	struct target t;
	char text[100];
	struct out o;

	good_request(GET "X: y\r\n\r\n", &h);
	ck_assert_int_eq(target_parse(&h, &t), FAIL_NONE);
	struct request_rewrite r = { .target = &t, .host = STR_INIT("a"),
	    .via = STR_INIT(VIA_LINE("us")) };
	for (size_t size = 0; size < sizeof text; size++) {
		out_init(&o, text, size);
		rewrite_request(&o, &h, &r);
		ck_assert(out_is_full(&o) ==
		    (size < strlen(TO "X: y\r\n" VIA END)));
	}
}
END_TEST

/* --- responses --------------------------------------------------------- */

struct response_case {
	int			 row;
	enum method		 to;
	const char		*in;
	const char		*out;
	struct response_rewrite	 r;
};

#define DATE	"Date: " NOW "\r\n"

static const struct response_case responses[] = {
	{ 12, METHOD_GET, "HTTP/1.0 200 OK\r\nContent-Length: 02\r\n\r\n",
	    OK DATE "Via: 1.0 us\r\nContent-Length: 2\r\n\r\n", { 0 } },
	{ 85, METHOD_GET, OK "Date: Sunday, 06-Nov-94 08:49:37 GMT\r\n\r\n",
	    OK "Date: Sunday, 06-Nov-94 08:49:37 GMT\r\n" VIA END, { 0 } },
	{ 133, METHOD_HEAD, OK DATE "Content-Length: 5\r\n\r\n",
	    OK DATE VIA "Content-Length: 5\r\n\r\n", { 0 } },
	{ 135, METHOD_GET, "HTTP/1.1 204 N\r\nContent-Length: 5\r\n\r\n",
	    "HTTP/1.1 204 N\r\n" DATE VIA END, { 0 } },
	{ 136, METHOD_GET, "HTTP/1.1 304 N\r\nTransfer-Encoding: chunked\r\n"
	    "ETag: x\r\n\r\n", "HTTP/1.1 304 N\r\nETag: x\r\n" DATE VIA END,
	    { 0 } },
	{ 137, METHOD_GET, "HTTP/1.1 103 E\r\nLink: x\r\nContent-Length: 5\r\n"
	    "\r\n", "HTTP/1.1 103 E\r\nLink: x\r\n" VIA END, { 0 } },
	{ 138, METHOD_GET, "HTTP/1.1 205 R\r\n" DATE END,
	    "HTTP/1.1 205 R\r\n" DATE VIA "Content-Length: 0\r\n\r\n",
	    { 0 } },
	{ 139, METHOD_CONNECT, OK DATE "Content-Length: 3\r\n\r\n",
	    OK DATE VIA END, { 0 } },
	{ 151, METHOD_GET, "HTTP/1.1 200\r\n\r\n",
	    "HTTP/1.1 200 \r\n" DATE VIA END, { 0 } },
	{ 155, METHOD_GET, OK "Connection: date\r\nDate: x\r\n\r\n",
	    OK DATE VIA END, { 0 } },
	{ 156, METHOD_GET, "HTTP/1.1 401 U\r\nWWW-Authenticate: a, b\r\n"
	    DATE END, "HTTP/1.1 401 U\r\nWWW-Authenticate: a, b\r\n" DATE VIA
	    END, { 0 } },
	{ 76, METHOD_GET, OK "Set-Cookie: a\r\nX: y\r\nSet-Cookie: ;b\r\n" DATE
	    END, OK "Set-Cookie: a\r\nX: y\r\nSet-Cookie: ;b\r\n" DATE VIA END,
	    { 0 } },
	{ 162, METHOD_GET, OK "Connection: close, x\r\nKeep-Alive: y\r\n"
	    "X: 1\r\n" DATE END, OK DATE VIA "Connection: keep-alive\r\n\r\n",
	    { .keep_alive = true } },
	{ 168, METHOD_GET, OK "Connection: Host, close\r\nHost: x\r\n"
	    "Close: y\r\n" DATE END, OK DATE VIA END, { 0 } },
	{ 165, METHOD_GET, OK "Transfer-Encoding: chunked\r\nTrailer: x\r\n"
	    DATE END, OK DATE VIA "Connection: close\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n",
	    { .close = true, .keep_alive = true } },
	{ 267, METHOD_GET, OK "Transfer-Encoding: chunked\r\nTrailer: x\r\n"
	    DATE "Trailer: y, z\r\n\r\n", OK "Trailer: x\r\n" DATE
	    "Trailer: y, z\r\n" VIA "Transfer-Encoding: chunked\r\n\r\n",
	    { .trailers = true } },
	{ 267, METHOD_GET, OK "Transfer-Encoding: chunked\r\nTrailer: x\r\n"
	    DATE "Connection: trailer\r\n\r\n", OK DATE VIA
	    "Transfer-Encoding: chunked\r\n\r\n", { .trailers = true } },
	{ 228, METHOD_GET, "HTTP/1.1 101 S\r\nUpgrade: websocket\r\n"
	    "Connection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
	    "HTTP/1.1 101 S\r\nSec-WebSocket-Accept: x\r\n" VIA
	    "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
	    { .upgrade = true } },
	{ 231, METHOD_GET, OK "Upgrade: websocket\r\n" DATE END,
	    OK DATE VIA END, { 0 } },
	{ 239, METHOD_GET, "HTTP/1.1 426 U\r\nUpgrade: websocket\r\n" DATE END,
	    "HTTP/1.1 426 U\r\n" DATE VIA "Upgrade: websocket\r\n"
	    "Connection: Upgrade\r\n\r\n", { 0 } },
	{ 250, METHOD_GET, OK "Forwarded: x\r\nHost: y\r\n" DATE END,
	    OK "Forwarded: x\r\nHost: y\r\n" DATE VIA END, { 0 } },
	{ 252, METHOD_GET, OK "Proxy-Status: b; error=x\r\n" DATE END,
	    OK "Proxy-Status: b; error=x\r\n" DATE VIA END, { 0 } },
	{ 271, METHOD_GET, OK "Server: s\r\nETag: e\r\nLast-Modified: l\r\n"
	    "Content-Type: t\r\n" DATE END, OK "Server: s\r\nETag: e\r\n"
	    "Last-Modified: l\r\nContent-Type: t\r\n" DATE VIA END, { 0 } },
};

START_TEST(a_response_goes_on_as_it_must)
{
	const struct response_case *c = &responses[_i];
	struct response_rewrite r = c->r;
	struct out o;
	struct head h;

	good_response(c->in, &h);
	ck_assert_int_eq(framing_of_response(&h, c->to, &r.framing),
	    FAIL_NONE);
	r.via = STR(VIA_LINE("us"));
	r.date = NOW;
	out_init(&o, written, sizeof written);
	rewrite_response(&o, &h, &r);
	same_text(out_text(&o), c->out);
}
END_TEST

/* --- questions --------------------------------------------------------- */

static const struct {
	const char	*value;
	bool		 has;
} vias[] = {
	{ "1.1 us", true },
	{ "1.0 fred, HTTP/1.1 US", true },
	{ "1.1 us (comment, 1.1 b)", true },
	{ "1.1 us(c)", true },
	{ "1.1\t us", true },
	{ ",, 1.1 a,1.1 us,", true },
	{ "1.1 us2", false },
	{ "1.1 us:80", false },
	{ "us", false },
	{ "us 1.1", false },
	{ "1.1 a (1.1 us)", false },
	{ "1.1 a (b, 1.1 us, c)", false },
	{ "1.1 a (\\), 1.1 us)", false },
	{ "1.1 a ((b), 1.1 us, c), 1.1 us", true },
	{ "", false },
	{ ",", false },
};

START_TEST(our_name_is_found_in_via)
{
	char text[200];
	struct head h;

	snprintf(text, sizeof text, GET "Via: 1.1 x\r\nVia: %s\r\n\r\n",
	    vias[_i].value);
	good_request(text, &h);
	ck_assert_msg(via_has(&h, STR("us")) == vias[_i].has, "%s",
	    vias[_i].value);
}
END_TEST

START_TEST(max_forwards_is_a_number_or_nothing)
{
	struct head h;

	good_request(GET "Max-Forwards: 0\r\n\r\n", &h);
	ck_assert_int_eq(max_forwards(&h), 0);
	good_request(GET "Max-Forwards: 9223372036854775807\r\n\r\n", &h);
	ck_assert_int_eq(max_forwards(&h), INT64_MAX);
	good_request(GET "Max-Forwards: 9223372036854775808\r\n\r\n", &h);
	ck_assert_int_eq(max_forwards(&h), -1);
	good_request(GET "Max-Forwards: 1\r\nMax-Forwards: 1\r\n\r\n", &h);
	ck_assert_int_eq(max_forwards(&h), -1);
	good_request(GET END, &h);
	ck_assert_int_eq(max_forwards(&h), -1);
}
END_TEST

/* --- what always holds ------------------------------------------------- */

static void
put_random(struct out *o, uint64_t *seed, const char *of, unsigned max)
{
	unsigned n = next_random(seed) % (max + 1);

	while (n-- > 0)
		out_char(o, of[next_random(seed) % strlen(of)]);
}

static void
put_random_field(struct out *o, uint64_t *seed)
{
	static const char *const known[] = {
		"Via", "TE", "Accept", "connection", "Keep-Alive", "Cookie",
		"X-Forwarded-For", "Upgrade", "Trailer", "User-Agent",
	};
	static const char *const spaces[] = { "", " ", "  ", "\t", " \t" };

	if (next_random(seed) % 2 == 0) {
		out_put(o, known[next_random(seed) % ARRAY_LEN(known)]);
	} else {
		out_put(o, "x");
		put_random(o, seed, "abcXYZ-_!09", 12);
	}
	out_char(o, ':');
	out_put(o, spaces[next_random(seed) % ARRAY_LEN(spaces)]);
	put_random(o, seed, "ab, ;=\"\t\x80\xff/.xyz", 30);
	out_put(o, spaces[next_random(seed) % ARRAY_LEN(spaces)]);
	out_put(o, "\r\n");
}

/* Most are accepted. */
static struct str
random_request(struct out *o, uint64_t *seed)
{
	static const char *const targets[] = {
		"/", "/a/b?c", "http://b", "http://b:81?x", "http://b/%zz",
	};
	const char *version = next_random(seed) % 5 == 0 ? "1.0" : "1.1";
	unsigned n = next_random(seed) % 20;

	out_cut(o, 0);
	out_put(o, next_random(seed) % 2 == 0 ? "GET " : "POST ");
	out_put(o, targets[next_random(seed) % ARRAY_LEN(targets)]);
	out_put(o, " HTTP/");
	out_put(o, version);
	out_put(o, "\r\nHost: a\r\n");
	if (next_random(seed) % 3 == 0)
		out_put(o, "Content-Length: 007\r\n");
	while (n-- > 0)
		put_random_field(o, seed);
	out_put(o, "\r\n");
	return out_text(o);
}

/* A received field must be in `to`, in its order, unless it may not pass. */
static void
compare_fields(const struct head *from, const struct head *to)
{
	unsigned at = 1;		/* Host is first */

	for (unsigned i = 0; i < from->count; i++) {
		const struct field *f = &from->fields[i];
		const struct field *t = &to->fields[at];
		bool passes = f->id == FIELD_OTHER || f->id == FIELD_VIA ||
		    f->id == FIELD_COOKIE || f->id == FIELD_USER_AGENT ||
		    f->id == FIELD_X_FORWARDED_FOR;
		if (!passes || f->named)
			continue;
		MUST(at < to->count);
		MUST(str_equal(field_name(from, f), field_name(to, t)));
		MUST(str_equal(field_value(from, f), field_value(to, t)));
		at++;
	}
	MUST(to->fields[at].id == FIELD_VIA);
	MUST(to->first[FIELD_CONNECTION] == 0 && to->first[FIELD_TE] == 0 &&
	    to->first[FIELD_UPGRADE] == 0 && to->first[FIELD_KEEP_ALIVE] == 0);
	MUST(to->fields[0].id == FIELD_HOST);
}

static enum failure
read_whole(struct str in, struct head *h)
{
	struct scanned s = scan_in(in, SCAN_REQUEST, &usual_limits, WHOLE);

	if (s.result != SCAN_DONE)
		return FAIL_BAD_REQUEST;
	return parse_request(the_parser(),
	    str_make(in.at + s.start, s.at - s.start), s.fields, h);
}

/* Read, written, read again: nothing but what must go is lost. */
START_TEST(a_rewritten_head_reads_the_same)
{
	static char text[HEAD_SIZE_MAX];
	static uint64_t copied[HEAD_SIZE_MAX / 4];
	struct request_rewrite r = { .close = false };
	uint64_t seed = 7;
	unsigned good = 0;
	struct out o;
	struct head h, again;

	out_init(&o, text, sizeof text);
	for (int i = 0; i < 20000; i++) {
		struct str in = random_request(&o, &seed);
		if (read_whole(in, &h) != FAIL_NONE)
			continue;
		good++;
		MUST(head_copy_size(&h) <= sizeof copied);
		head_copy(&h, copied);
		struct framing was, is;
		MUST(framing_of_request(&h, &was) == FAIL_NONE);
		MUST(read_whole(rewritten(&h, &r), &again) == FAIL_NONE);
		MUST(framing_of_request(&again, &is) == FAIL_NONE);
		MUST(was.kind == is.kind && was.length == is.length);
		MUST(again.method == h.method && again.minor == 1);
		compare_fields(&h, &again);
	}
	ck_assert_uint_gt(good, 15000);
}
END_TEST

/* Any byte anywhere: refused or rewritten into something we would accept. */
START_TEST(damaged_heads_do_no_harm)
{
	static const char bytes[] = "\r\n :,\t\"/#?[]@0Hh\x80\x7f;=";
	static char text[HEAD_SIZE_MAX];
	struct request_rewrite r = { .upgrade = true };
	uint64_t seed = 11;
	struct out o;
	struct head h, again;
	struct framing f;
	struct target t;

	out_init(&o, text, sizeof text);
	for (int i = 0; i < 100000; i++) {
		struct str in = random_request(&o, &seed);
		unsigned faults = 1 + next_random(&seed) % 3;
		while (faults-- > 0)
			text[next_random(&seed) % in.len] =
			    next_random(&seed) % 4 == 0 ?
			    (char)next_random(&seed) :
			    bytes[next_random(&seed) % (sizeof bytes - 1)];
		if (read_whole(in, &h) != FAIL_NONE ||
		    framing_of_request(&h, &f) != FAIL_NONE ||
		    target_parse(&h, &t) != FAIL_NONE)
			continue;
		char was = h.minor == 1 && h.upgrade;
		uint16_t count = h.count;
		struct str to = rewritten(&h, &r);
		MUST(read_whole(to, &again) == FAIL_NONE);
		MUST(again.upgrade == was && again.length == to.len);
		MUST(again.count <= count + 4);
	}
}
END_TEST

START_TEST(damaged_responses_do_no_harm)
{
	static const char good[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
	    "Connection: x, close\r\nX: y\r\nDate: z\r\n\r\n";
	static const char bytes[] = "\r\n :,\t0129H/\x80\x7f";
	struct response_rewrite r = { .via = STR(VIA_LINE("us")),
	    .date = NOW };
	uint64_t seed = 13;
	struct head h;
	struct out o;

	for (int i = 0; i < 100000; i++) {
		char text[sizeof good];
		memcpy(text, good, sizeof good);
		unsigned faults = 1 + next_random(&seed) % 3;
		while (faults-- > 0)
			text[next_random(&seed) % strlen(good)] =
			    bytes[next_random(&seed) % (sizeof bytes - 1)];
		struct str in = str_make(text, strlen(good));
		struct scanned s = scan_in(in, SCAN_RESPONSE, &usual_limits,
		    WHOLE);
		if (s.result != SCAN_DONE || parse_response(the_parser(),
		    str_head(in, s.at), s.fields, &h) != FAIL_NONE ||
		    framing_of_response(&h, METHOD_GET, &r.framing) !=
		    FAIL_NONE)
			continue;
		out_init(&o, written, sizeof written);
		rewrite_response(&o, &h, &r);
		s = scan_in(out_text(&o), SCAN_RESPONSE, &usual_limits, WHOLE);
		MUST(s.result == SCAN_DONE && s.at == out_len(&o));
		MUST(parse_response(the_parser(), out_text(&o), s.fields,
		    &h) == FAIL_NONE);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/rewrite");
	TCase *t = tcase_create("rewrite");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, a_request_goes_on_as_it_must, 0,
	    ARRAY_LEN(requests));
	tcase_add_test(t, a_clients_address_is_told);
	tcase_add_test(t, a_head_that_does_not_fit_says_so);
	tcase_add_loop_test(t, a_response_goes_on_as_it_must, 0,
	    ARRAY_LEN(responses));
	tcase_add_loop_test(t, our_name_is_found_in_via, 0, ARRAY_LEN(vias));
	tcase_add_test(t, max_forwards_is_a_number_or_nothing);
	tcase_add_test(t, a_rewritten_head_reads_the_same);
	tcase_add_test(t, damaged_heads_do_no_harm);
	tcase_add_test(t, damaged_responses_do_no_harm);
	return run_suite(s);
}
