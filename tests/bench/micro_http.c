/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * micro_http.c - a head's way: its end is found, it is parsed, it is written
 * anew.  The heads are those of a browser and of a web server.
 */
#include "bench/micro.h"

#include "base/str.h"
#include "bench/bench.h"
#include "http/date.h"
#include "http/parse.h"
#include "http/rewrite.h"
#include "http/scan.h"

enum { HEADS = 50000 };

static const char request_text[] =
    "GET /articles/2024/a-longer-title.html?page=2&sort=date HTTP/1.1\r\n"
    "Host: www.example.com\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 "
    "Firefox/115.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    "\r\n"
    "Accept-Language: en-US,en;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate\r\n"
    "Referer: http://www.example.com/articles/\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n"
    "Connection: keep-alive\r\n"
    "Upgrade-Insecure-Requests: 1\r\n\r\n";

static const char response_text[] =
    "HTTP/1.1 200 OK\r\n"
    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "Server: Apache\r\n"
    "Content-Type: text/html; charset=utf-8\r\n"
    "Content-Length: 18734\r\n"
    "Last-Modified: Sat, 05 Nov 1994 12:00:00 GMT\r\n"
    "ETag: \"492e-5f3a\"\r\n"
    "Cache-Control: max-age=3600\r\n"
    "Vary: Accept-Encoding\r\n"
    "Connection: keep-alive\r\n\r\n";

static const struct head_limits limits = {
	.size = 32768, .line = 8192, .fields = 100,
};

struct head_case {
	struct parser		*parser;
	enum scan_kind		 kind;
	struct str		 text;
	unsigned		 fields;
	struct head		 head;
	struct request_rewrite	 request;
	struct target		 target;
	struct response_rewrite	 response;
};

static void
find_end(void *arg, uint64_t n)
{
	struct head_case *c = arg;
	enum failure why;
	struct scan s;

	while (n-- > 0) {
		scan_init(&s, c->kind);
		micro_use(scan_run(&s, c->text.at, c->text.len, &limits,
		    &why));
	}
}

static void
parse(void *arg, uint64_t n)
{
	struct head_case *c = arg;

	while (n-- > 0)
		micro_use(c->kind == SCAN_REQUEST ?
		    parse_request(c->parser, c->text, c->fields,
		    &c->head) :
		    parse_response(c->parser, c->text, c->fields,
		    &c->head));
}

static void
write_anew(void *arg, uint64_t n)
{
	static char written[4096];
	struct head_case *c = arg;
	struct out o;

	while (n-- > 0) {
		out_init(&o, written, sizeof written);
		if (c->kind == SCAN_REQUEST)
			rewrite_request(&o, &c->head, &c->request);
		else
			rewrite_response(&o, &c->head, &c->response);
		micro_use(o.len);
	}
}

static void
expect(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s failed\n", what);
	exit(1);
}

static void
count_fields(struct head_case *c)
{
	enum failure why;
	struct scan s;

	scan_init(&s, c->kind);
	expect(scan_run(&s, c->text.at, c->text.len, &limits, &why) ==
	    SCAN_DONE, "scan_run");
	c->fields = s.fields;
}

static void
prepare_request(struct head_case *c)
{
	struct authority host;

	count_fields(c);
	expect(parse_request(c->parser, c->text, c->fields, &c->head) ==
	    FAIL_NONE, "parse_request");
	expect(target_parse(&c->head, &c->target) == FAIL_NONE, "target");
	expect(host_parse(&c->head, &host) == FAIL_NONE, "host");
	c->request = (struct request_rewrite){
		.target = &c->target,
		.host = host.text,
		.via = STR(VIA_LINE("penstock-01234567")),
		.forwarded = {
			.client = STR("192.0.2.17"),
			.proto = "http",
			.host = host.text,
		},
	};
	expect(framing_of_request(&c->head, &c->request.framing) ==
	    FAIL_NONE, "framing");
}

static void
prepare_response(struct head_case *c)
{
	count_fields(c);
	expect(parse_response(c->parser, c->text, c->fields, &c->head) ==
	    FAIL_NONE, "parse_response");
	c->response = (struct response_rewrite){
		.via = STR(VIA_LINE("penstock-01234567")),
		.date = "Sun, 06 Nov 1994 08:49:37 GMT",
	};
	expect(framing_of_response(&c->head, METHOD_GET,
	    &c->response.framing) == FAIL_NONE, "framing");
}

static void
row(const char *what, const struct head_case *c, double nsec)
{
	char text[64];

	snprintf(text, sizeof text, "%s of %zu bytes: %s",
	    c->kind == SCAN_REQUEST ? "request" : "response", c->text.len,
	    what);
	micro_row(text, nsec, 0);
}

static void
all_of(struct head_case *c)
{
	row("end found", c, micro_time(find_end, c, HEADS));
	row("parsed", c, micro_time(parse, c, HEADS));
	row("written anew", c, micro_time(write_anew, c, HEADS));
}

void
micro_http(void)
{
	struct parser *parser = parser_new();
	struct head_case request = { .parser = parser,
	    .kind = SCAN_REQUEST, .text = str_of(request_text) };
	struct head_case response = { .parser = parser,
	    .kind = SCAN_RESPONSE, .text = str_of(response_text) };

	prepare_request(&request);
	all_of(&request);
	prepare_response(&response);
	all_of(&response);
	parser_free(&parser);
}
