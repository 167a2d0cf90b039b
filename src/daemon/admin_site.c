/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admin_site.c - what the admin listener answers; see admin_site.h.
 */
#include "daemon/admin_site.h"

#include <stdlib.h>

#include "base/random.h"
#include "config/types.h"
#include "daemon/status_page.h"
#include "proxy/access.h"

#define TEXT_PLAIN	"text/plain; charset=utf-8"
#define TEXT_METRICS	"text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS	"application/openmetrics-text"

enum { NONCE_BYTES = 16, NONCE_TEXT = 2 * NONCE_BYTES };

/* What is asked, taken apart. */
struct asked {
	struct site		*site;
	const struct head	*head;
	struct str		 path;
	struct str		 query;
	bool			 is_local;
};

typedef void page_fn(const struct asked *a, struct site_answer *out);

static page_fn	page_metrics, page_healthz, page_readyz, page_status,
		page_status_json, page_root, do_drain, do_ready, do_log_level,
		do_reload;

static const struct page {
	struct str	 path;
	bool		 writes;	/* by POST; the others by GET, HEAD */
	page_fn		*answer;
} pages[] = {
	{ STR_INIT("/metrics"), false, page_metrics },
	{ STR_INIT("/healthz"), false, page_healthz },
	{ STR_INIT("/readyz"), false, page_readyz },
	{ STR_INIT("/status"), false, page_status },
	{ STR_INIT("/status.json"), false, page_status_json },
	{ STR_INIT("/"), false, page_root },
	{ STR_INIT("/drain"), true, do_drain },
	{ STR_INIT("/ready"), true, do_ready },
	{ STR_INIT("/log-level"), true, do_log_level },
	{ STR_INIT("/reload"), true, do_reload },
};

/* --- pieces ------------------------------------------------------------- */

static void
say(struct site_answer *out, int status, struct str text)
{
	out->status = status;
	out->type = TEXT_PLAIN;
	metric_text(&out->body, text);
}

static void
put_fields(struct site_answer *out, const char *fmt, const char *value)
{
	size_t n = strlen(out->fields);

	snprintf(out->fields + n, sizeof out->fields - n, fmt, value);
}

/* The value of a field that has no id; empty if it isn't there. */
static struct str
find_field(const struct head *h, struct str name)
{
	for (unsigned i = 0; i < h->count; i++)
		if (str_equal_nocase(field_name(h, &h->fields[i]), name))
			return field_value(h, &h->fields[i]);
	return str_make(NULL, 0);
}

/* The value of name=value in the query; empty if it isn't there. */
static struct str
find_parameter(const struct asked *a, struct str name)
{
	struct str rest = a->query, piece;

	while (str_split(&rest, '&', &piece)) {
		size_t n = str_find(piece, '=');

		if (str_equal(str_head(piece, n), name))
			return str_skip(piece, n + 1);
	}
	return str_make(NULL, 0);
}

/* --- whom to answer ----------------------------------------------------- */

static const struct conf_admin *
conf_of(const struct site *s)
{
	return &s->opts.config(s->opts.arg)->admin;
}

bool
site_admits(const struct site *s, const struct addr *from)
{
	return from->family == ADDR_UNIX || addr_is_loopback(from) ||
	    access_ranges_have(&conf_of(s)->allow, from);
}

/* "*.example.com" fits what is below it. */
static bool
fits_host(struct str pattern, struct str host)
{
	if (str_equal(pattern, STR("*")))
		return true;
	if (str_starts(pattern, STR("*.")))
		return host.len >= pattern.len &&
		    str_ends_nocase(host, str_skip(pattern, 1));
	return str_equal_nocase(pattern, host);
}

/*
 * A name that an attacker has in the DNS can be made to point here, and then
 * a browser lets his pages read ours.  An address is no name, and localhost
 * is nobody's.
 */
static bool
is_our_host(const struct site *s, struct str host)
{
	const struct conf_words *hosts = &conf_of(s)->hosts;
	struct addr a;
	size_t colon = str_find_last(host, ':');

	if (str_ends(host, STR("]")))
		colon = host.len;
	host = str_head(host, colon);
	if (str_equal_nocase(host, STR("localhost")) ||
	    addr_parse_ip(&a, host.at, host.len, 0))
		return true;
	for (size_t i = 0; i < hosts->count; i++)
		if (fits_host(str_of(hosts->at[i]), host))
			return true;
	return false;
}

/* Browsers name the Host always; who names none is no browser. */
static bool
is_for_us(const struct asked *a)
{
	const struct field *host = head_first(a->head, FIELD_HOST);

	return a->is_local || host == NULL ||
	    is_our_host(a->site, field_value(a->head, host));
}

/* Browsers say with a POST which page made it. */
static bool
is_from_elsewhere(const struct asked *a)
{
	const struct field *host = head_first(a->head, FIELD_HOST);
	struct str origin = find_field(a->head, STR("origin"));

	if (str_is_empty(origin))
		return false;
	return host == NULL || !str_starts(origin, STR("http://")) ||
	    !str_equal_nocase(str_skip(origin, strlen("http://")),
	    field_value(a->head, host));
}

static bool
may_write(const struct asked *a)
{
	return !is_from_elsewhere(a) &&
	    (a->is_local || conf_of(a->site)->admin_writes);
}

/* --- what tools read ---------------------------------------------------- */

/* In thousandths, of "a/b; q=0.5"; 1000 if it says nothing. */
static unsigned
quality_of(struct str element)
{
	struct str rest = element, piece;
	unsigned q = 1000;

	while (str_split(&rest, ';', &piece)) {
		piece = str_trim(piece);
		if (!str_starts_nocase(piece, STR("q=")))
			continue;
		piece = str_skip(piece, 2);
		q = str_starts(piece, STR("1")) ? 1000 : 0;
		piece = str_skip(piece, 2);
		for (unsigned place = 100; place > 0 && piece.len > 0 &&
		    piece.at[0] >= '0' && piece.at[0] <= '9'; place /= 10) {
			q += place * (unsigned)(piece.at[0] - '0');
			piece = str_skip(piece, 1);
		}
	}
	return MIN(q, 1000u);
}

/* It is asked for by name, and nothing we have is liked better. */
static bool
wants_openmetrics(const struct head *h)
{
	struct str rest = find_field(h, STR("accept")), e;
	unsigned open = 0, plain = 0;

	while (list_next(&rest, &e)) {
		struct str type = str_trim(str_head(e, str_find(e, ';')));

		if (str_equal_nocase(type, STR(OPENMETRICS)))
			open = MAX(open, quality_of(e));
		else if (str_equal_nocase(type, STR("text/plain")))
			plain = MAX(plain, quality_of(e));
	}
	return open > 0 && open >= plain;
}

static void
page_metrics(const struct asked *a, struct site_answer *out)
{
	out->body.open = wants_openmetrics(a->head);
	out->type = out->body.open ?
	    OPENMETRICS "; version=1.0.0; charset=utf-8" : TEXT_METRICS;
	put_fields(out, "Vary: %s\r\n", "Accept");
	a->site->opts.metrics(a->site->opts.arg, &out->body);
	metrics_end(&out->body);
}

static void
page_healthz(const struct asked *a, struct site_answer *out)
{
	(void)a;
	say(out, 200, STR("ok\n"));
}

static void
page_readyz(const struct asked *a, struct site_answer *out)
{
	if (!a->site->held && a->site->opts.is_ready(a->site->opts.arg))
		say(out, 200, STR("ready\n"));
	else
		say(out, 503, STR("draining\n"));
}

static void
page_status_json(const struct asked *a, struct site_answer *out)
{
	struct status_ask ask = {
		.config = str_equal(find_parameter(a, STR("config")),
		    STR("1")),
		.held = a->site->held,
	};

	if (!str_number(find_parameter(a, STR("since")), &ask.since))
		ask.since = 0;
	out->type = "application/json";
	a->site->opts.status(a->site->opts.arg, &out->body, &ask);
}

/* --- what people read --------------------------------------------------- */

static void
page_root(const struct asked *a, struct site_answer *out)
{
	(void)a;
	say(out, 302, STR("See /status.\n"));
	put_fields(out, "Location: %s\r\n", "/status");
}

static void
make_nonce(char text[NONCE_TEXT + 1])
{
	unsigned char bytes[NONCE_BYTES];

	random_fill(bytes, sizeof bytes);
	for (size_t i = 0; i < sizeof bytes; i++) {
		text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	text[NONCE_TEXT] = '\0';
}

/* No script and no style runs but the page's own, not even one in our data. */
static void
put_policy(struct site_answer *out, const char *nonce)
{
	put_fields(out, "Content-Security-Policy: default-src 'none'; "
	    "connect-src 'self'; img-src data:; base-uri 'none'; "
	    "form-action 'none'; frame-ancestors 'none'; "
	    "script-src 'nonce-%s'; ", nonce);
	put_fields(out, "style-src 'nonce-%s'\r\n", nonce);
	put_fields(out, "X-Frame-Options: %s\r\n", "DENY");
	put_fields(out, "Referrer-Policy: %s\r\n", "no-referrer");
	put_fields(out, "Cross-Origin-Opener-Policy: %s\r\n", "same-origin");
}

static void
page_status(const struct asked *a, struct site_answer *out)
{
	struct str rest = str_make(status_page, status_page_size);
	struct str mark = STR(STATUS_PAGE_NONCE);
	char nonce[NONCE_TEXT + 1];
	size_t n = 0;

	(void)a;
	make_nonce(nonce);
	put_policy(out, nonce);
	out->type = "text/html; charset=utf-8";
	while (n < rest.len) {
		n += str_find(str_skip(rest, n), mark.at[0]);
		if (!str_starts(str_skip(rest, n), mark)) {
			n++;
			continue;
		}
		metric_text(&out->body, str_head(rest, n));
		metric_text(&out->body, str_of(nonce));
		rest = str_skip(rest, n + mark.len);
		n = 0;
	}
	metric_text(&out->body, rest);
}

size_t
site_page_size(void)
{
	/* A nonce is longer than its mark, which stands there a few times. */
	return status_page_size + 1024;
}

/* --- what changes something --------------------------------------------- */

static void
do_drain(const struct asked *a, struct site_answer *out)
{
	a->site->held = true;
	log_say(a->site->opts.log, SAY_NOTICE,
	    "admin: drain; /readyz is 503 until POST /ready");
	say(out, 200, STR("draining\n"));
}

static void
do_ready(const struct asked *a, struct site_answer *out)
{
	a->site->held = false;
	log_say(a->site->opts.log, SAY_NOTICE, "admin: ready");
	page_readyz(a, out);
}

static void
do_log_level(const struct asked *a, struct site_answer *out)
{
	struct str wanted = find_parameter(a, STR("level"));

	for (int i = 0; level_words[i] != NULL; i++) {
		if (!str_equal(wanted, str_of(level_words[i])))
			continue;
		log_set_level(a->site->opts.log, (enum log_level)i);
		log_say(a->site->opts.log, SAY_NOTICE, "admin: log level %s",
		    level_words[i]);
		say(out, 200, wanted);
		metric_text(&out->body, STR("\n"));
		return;
	}
	say(out, 400, STR("/log-level?level= error, warning, notice, info or "
	    "debug\n"));
}

/*
 * Nothing is done yet, only said; and not to all who may write: the messages
 * have pieces of the file.
 */
static void
do_reload(const struct asked *a, struct site_answer *out)
{
	const struct site_opts *o = &a->site->opts;
	char *text = NULL;
	size_t n;
	FILE *f;

	if (o->check == NULL || !str_equal(a->query, STR("check"))) {
		say(out, 400, STR("/reload?check tells what SIGHUP would "
		    "do.\n"));
		return;
	}
	if (!a->is_local) {
		say(out, 403, STR("Over a unix socket only.\n"));
		return;
	}
	f = open_memstream(&text, &n);
	if (f == NULL) {
		out->body.failed = true;
		return;
	}
	bool ok = o->check(o->arg, f);
	fclose(f);
	say(out, ok ? 200 : 422, ok ? STR("fine\n") : str_make(text, n));
	free(text);
}

/* --- all ---------------------------------------------------------------- */

static void
refuse_method(const struct page *p, struct site_answer *out)
{
	say(out, 405, p->writes ? STR("POST only.\n") :
	    STR("GET and HEAD only.\n"));
	put_fields(out, "Allow: %s\r\n", p->writes ? "POST" : "GET, HEAD");
}

static void
use_page(const struct page *p, const struct asked *a, struct site_answer *out)
{
	enum method m = a->head->method;

	if (p->writes ? m != METHOD_POST :
	    m != METHOD_GET && m != METHOD_HEAD)
		refuse_method(p, out);
	else if (p->writes && !may_write(a))
		say(out, 403, STR("Over a unix socket only, or with "
		    "admin_writes = on; and from no other site's page.\n"));
	else
		p->answer(a, out);
}

void
site_answer(struct site *s, const struct head *h, bool is_local,
    struct site_answer *out)
{
	struct str target = head_str(h, h->target);
	size_t n = str_find(target, '?');
	struct asked a = { s, h, str_head(target, n),
	    str_skip(target, n + 1), is_local };

	out->status = 200;
	out->type = TEXT_PLAIN;
	out->fields[0] = '\0';
	metrics_init(&out->body);
	if (!is_for_us(&a)) {
		say(out, 421, STR("This Host isn't in admin.hosts.\n"));
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (str_equal(a.path, pages[i].path)) {
			use_page(&pages[i], &a, out);
			return;
		}
	say(out, 404, STR("Here are /status, /status.json, /metrics, "
	    "/healthz and /readyz.\n"));
}
