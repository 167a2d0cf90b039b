/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rewrite.c - field lines that pass one after another are copied as one.
 *
 * What is ours comes at the end, but for Host, which RFC 9110, 7.2 wants
 * first.  The received fields are filtered before any of ours is added, so
 * "Connection: host" takes away the client's and not ours.
 */
#include "http/rewrite.h"

#include <assert.h>

#include "http/chars.h"
#include "http/date.h"
#include "http/status.h"
#include "http/trailers.h"

enum goes { PASSES, HOP, FRAMING, OURS };

/* A set of field ids, one bit each. */
#define SET(id)		(UINT64_C(1) << (id))

static const uint64_t passing = SET(FIELD_OTHER)
#define FIELD(ID, name, goes)	| (goes == PASSES ? SET(FIELD_##ID) : 0)
#include "http/fields.def"
;

static const uint64_t ours = 0
#define FIELD(ID, name, goes)	| (goes == OURS ? SET(FIELD_##ID) : 0)
#include "http/fields.def"
;

static_assert(FIELD_IDS <= 64, "a set of fields has 64 bits");

/* --- fields that pass -------------------------------------------------- */

/* Room is looked for once, and a name that is a literal costs no call. */
static inline void
put_field(struct out *o, struct str name, struct str value)
{
	char *at = out_take(o, name.len + strlen(": ") + value.len +
	    strlen("\r\n"));

	if (UNLIKELY(at == NULL))
		return;
	at = str_copy(at, name);
	at = str_copy(at, STR(": "));
	at = str_copy(at, value);
	(void)str_copy(at, STR("\r\n"));
}

static HOT void
put_fields(struct out *o, const struct head *h, uint64_t passes)
{
	const struct field *f = h->fields, *end = f + h->count;
	uint32_t from = 0, to = 0;	/* lines not yet copied */

	for (; f < end; f++) {
		if (f->named || (passes >> f->id & 1) == 0)
			continue;
		if (f->name != to || !f->plain) {
			out_add(o, h->base + from, to - from);
			from = to = f->name;
		}
		if (f->plain)
			to = f->value + f->value_len + 2;
		else
			put_field(o, field_name(h, f), field_value(h, f));
	}
	out_add(o, h->base + from, to - from);
}

/* --- fields of ours ---------------------------------------------------- */

static inline void
put_via(struct out *o, const struct head *h, struct str line)
{
	char *at = out_take(o, line.len);

	if (UNLIKELY(at == NULL))
		return;
	memcpy(at, line.at, line.len);
	if (UNLIKELY(h->minor == 0))
		at[strlen("Via: 1.")] = '0';
}

static void
put_framing(struct out *o, const struct framing *f)
{
	if (f->kind == FRAMING_CHUNKED) {
		out_put(o, "Transfer-Encoding: chunked\r\n");
	} else if (f->kind == FRAMING_LENGTH || f->has_length) {
		out_put(o, "Content-Length: ");
		out_number(o, f->length);
		out_put(o, "\r\n");
	}
}

/* The protocols that may pass, as one line; false if there are none. */
static bool
put_upgrade(struct out *o, const struct head *h)
{
	const struct field *f = head_first(h, FIELD_UPGRADE);
	bool any = false;

	for (; f != NULL; f = head_next(h, f)) {
		struct str rest = field_value(h, f), protocol;
		while (upgrade_next(&rest, &protocol)) {
			out_put(o, any ? ", " : "Upgrade: ");
			out_str(o, protocol);
			any = true;
		}
	}
	if (any)
		out_put(o, "\r\n");
	return any;
}

/* One more option of Connection; `any` if there was one before. */
static bool
put_option(struct out *o, bool any, const char *option)
{
	out_put(o, any ? ", " : "Connection: ");
	out_put(o, option);
	return true;
}

/* All that the peers before us said, and then our client. */
static void
put_forwarded_for(struct out *o, const struct head *h,
    const struct forwarded *fwd)
{
	const struct field *f = head_first(h, FIELD_X_FORWARDED_FOR);

	out_put(o, "X-Forwarded-For: ");
	for (; f != NULL && fwd->trusted; f = head_next(h, f)) {
		out_str(o, field_value(h, f));
		if (f->value_len > 0)
			out_put(o, ", ");
	}
	out_str(o, fwd->client);
	out_put(o, "\r\n");
}

static void
put_forwarded(struct out *o, const struct head *h, const struct forwarded *fwd)
{
	if (fwd->client.len == 0)
		return;
	put_forwarded_for(o, h, fwd);
	if (!fwd->trusted || head_first(h, FIELD_X_FORWARDED_PROTO) == NULL)
		put_field(o, STR("X-Forwarded-Proto"), str_of(fwd->proto));
	if (fwd->host.len > 0 && (!fwd->trusted ||
	    head_first(h, FIELD_X_FORWARDED_HOST) == NULL))
		put_field(o, STR("X-Forwarded-Host"), fwd->host);
}

/* --- requests ---------------------------------------------------------- */

static bool
counts_forwards(const struct head *h)
{
	return h->method == METHOD_OPTIONS || h->method == METHOD_TRACE;
}

static uint64_t
fields_of_request(const struct head *h, const struct forwarded *fwd)
{
	uint64_t passes = passing;

	if (!counts_forwards(h))
		passes |= SET(FIELD_MAX_FORWARDS);
	/* RFC 9110, 10.1.1: HTTP/1.0 expects nothing. */
	if (h->minor == 0)
		passes &= ~SET(FIELD_EXPECT);
	if (fwd->client.len == 0)
		passes |= SET(FIELD_X_FORWARDED_FOR);
	if (fwd->client.len == 0 || fwd->trusted)
		passes |= SET(FIELD_FORWARDED) | SET(FIELD_X_FORWARDED_PROTO) |
		    SET(FIELD_X_FORWARDED_HOST);
	return passes;
}

/* Of the upstream, too? */
static bool
asks_for_trailers(const struct head *h)
{
	const struct field *f = head_first(h, FIELD_TE);

	return f != NULL && f->named && trailers_wanted(h);
}

/* What has an authority goes on without it, but for the authority form. */
static void
put_request_line(struct out *o, const struct head *h, const struct target *t)
{
	struct str method = method_name(h->method);
	struct str target = t->form == TARGET_AUTHORITY ? t->authority.text :
	    t->path;
	char *at = out_take(o, method.len + t->slash + target.len +
	    strlen("  HTTP/1.1\r\n"));

	if (UNLIKELY(at == NULL))
		return;
	at = str_copy(at, method);
	*at++ = ' ';
	if (t->slash)
		*at++ = '/';
	at = str_copy(at, target);
	(void)str_copy(at, STR(" HTTP/1.1\r\n"));
}

void
rewrite_request(struct out *o, const struct head *h,
    const struct request_rewrite *r)
{
	put_request_line(o, h, r->target);
	put_field(o, STR("Host"), r->host);
	put_fields(o, h, fields_of_request(h, &r->forwarded));
	put_via(o, h, r->via);
	put_forwarded(o, h, &r->forwarded);
	int64_t forwards = counts_forwards(h) ? max_forwards(h) : -1;
	if (forwards >= 0) {
		out_put(o, "Max-Forwards: ");
		out_number(o, (uint64_t)(forwards > 0 ? forwards - 1 : 0));
		out_put(o, "\r\n");
	}
	bool upgrade = r->upgrade && h->upgrade && put_upgrade(o, h);
	bool any = false;
	if (r->close)
		any = put_option(o, any, "close");
	if (upgrade)
		any = put_option(o, any, "Upgrade");
	if (asks_for_trailers(h)) {
		any = put_option(o, any, "TE");
		out_put(o, "\r\nTE: trailers");
	}
	if (any)
		out_put(o, "\r\n");
	put_framing(o, &r->framing);
	out_put(o, "\r\n");
}

/* --- responses --------------------------------------------------------- */

static void
put_status_line(struct out *o, const struct head *h)
{
	struct str reason = head_str(h, h->reason);

	if (reason.len > 0 && !chars_are(reason, CHAR_TEXT))
		reason = str_of(status_reason(h->status));
	char *at = out_take(o, strlen("HTTP/1.1 200 ") + reason.len +
	    strlen("\r\n"));

	if (UNLIKELY(at == NULL))
		return;
	at = str_copy(at, STR("HTTP/1.1 "));
	at = str_copy(at, str_make(h->base + HEAD_STATUS_AT, 3));
	*at++ = ' ';
	at = str_copy(at, reason);
	(void)str_copy(at, STR("\r\n"));
}

/* Is there a Date among the fields that pass? */
static bool
passes_date(const struct head *h)
{
	const struct field *f = head_first(h, FIELD_DATE);

	return f != NULL && !f->named;
}

HOT void
rewrite_response(struct out *o, const struct head *h,
    const struct response_rewrite *r)
{
	put_status_line(o, h);
	/* What is ours in requests means nothing in responses. */
	put_fields(o, h, passing | ours |
	    (r->trailers ? SET(FIELD_TRAILER) : 0));
	if (h->status >= 200 && !passes_date(h))
		put_field(o, STR("Date"), str_make(r->date, DATE_TEXT - 1));
	put_via(o, h, r->via);

	/* RFC 9110, 15.5.22: a 426 says to what. */
	bool upgrade = (r->upgrade || h->status == 426) && put_upgrade(o, h);
	bool any = false;
	if (r->close)
		any = put_option(o, any, "close");
	else if (r->keep_alive)
		any = put_option(o, any, "keep-alive");
	if (upgrade)
		any = put_option(o, any, "Upgrade");
	if (any)
		out_put(o, "\r\n");
	put_framing(o, &r->framing);
	out_put(o, "\r\n");
}

/* --- questions --------------------------------------------------------- */

/* Where an element of Via ends: at a comma outside of comments. */
static size_t
via_end(struct str s)
{
	unsigned depth = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];
		if (c == '\\' && depth > 0)
			i++;
		else if (c == '(')
			depth++;
		else if (c == ')' && depth > 0)
			depth--;
		else if (c == ',' && depth == 0)
			return i;
	}
	return s.len;
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* "1.1 name (comment)", "HTTP/1.1 name": is it that name? */
static bool
is_received_by(struct str element, struct str name)
{
	size_t at = 0;

	element = str_trim(element);
	while (at < element.len && !is_space(element.at[at]))
		at++;
	struct str by = str_trim(str_skip(element, at));
	return str_starts_nocase(by, name) && (by.len == name.len ||
	    is_space(by.at[name.len]) || by.at[name.len] == '(');
}

bool
via_has(const struct head *h, struct str pseudonym)
{
	const struct field *f = head_first(h, FIELD_VIA);

	for (; f != NULL; f = head_next(h, f)) {
		struct str rest = field_value(h, f);
		while (rest.len > 0) {
			size_t end = via_end(rest);
			if (is_received_by(str_head(rest, end), pseudonym))
				return true;
			rest = str_skip(rest, end + 1);
		}
	}
	return false;
}

int64_t
max_forwards(const struct head *h)
{
	const struct field *f = head_first(h, FIELD_MAX_FORWARDS);
	uint64_t value;

	if (f == NULL || head_next(h, f) != NULL ||
	    !str_number(field_value(h, f), &value) || value > INT64_MAX)
		return -1;
	return (int64_t)value;
}
