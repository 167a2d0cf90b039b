/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply.c - see reply.h.  The texts are rows of failures.def.
 */
#include "http/reply.h"

#include "http/chars.h"
#include "http/status.h"

static void
put_line(struct out *o, const char *name, const char *value)
{
	out_put(o, name);
	out_put(o, ": ");
	out_put(o, value);
	out_put(o, "\r\n");
}

static void
put_number(struct out *o, const char *name, uint64_t value)
{
	out_put(o, name);
	out_put(o, ": ");
	out_number(o, value);
	out_put(o, "\r\n");
}

static void
put_status_line(struct out *o, int status)
{
	out_put(o, "HTTP/1.1 ");
	out_number(o, (uint64_t)status);
	out_char(o, ' ');
	out_put(o, status_reason(status));
	out_put(o, "\r\n");
}

static void
put_connection(struct out *o, const struct reply *r)
{
	if (r->close)
		put_line(o, "Connection", "close");
	else if (r->keep_alive)
		put_line(o, "Connection", "keep-alive");
}

/* A token of RFC 8941, 3.3.4: narrower in front than HTTP's. */
static bool
is_structured_token(const char *s)
{
	if (*s != '*' && !(str_fold(*s) >= 'a' && str_fold(*s) <= 'z'))
		return false;
	while (char_is(*s, CHAR_TOKEN) || *s == ':' || *s == '/')
		s++;
	return *s == '\0';
}

/* A string of RFC 8941, 3.3.3, which has printable ASCII only. */
static void
put_structured_string(struct out *o, const char *s)
{
	out_char(o, '"');
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			out_char(o, '\\');
		out_char(o, *s >= ' ' && *s <= '~' ? *s : '?');
	}
	out_char(o, '"');
}

static void
put_proxy_status(struct out *o, const struct reply *r)
{
	const struct failure_row *row = failure_row(r->why);

	out_put(o, "Proxy-Status: ");
	if (is_structured_token(r->via))
		out_put(o, r->via);
	else
		put_structured_string(o, r->via);
	if (row->error[0] != '\0') {
		out_put(o, "; error=");
		out_put(o, row->error);
	}
	out_put(o, "; details=");
	put_structured_string(o, row->token);
	out_put(o, "\r\n");
}

/* "503 Service Unavailable", an empty line, "queue_full: ..." */
static void
put_text(struct out *o, const struct failure_row *row)
{
	out_number(o, (uint64_t)row->status);
	out_char(o, ' ');
	out_put(o, status_reason(row->status));
	out_put(o, "\n\n");
	out_put(o, row->token);
	out_put(o, ": ");
	out_put(o, row->text);
	out_char(o, '\n');
}

static size_t
text_length(const struct failure_row *row)
{
	return strlen("503 \n\n: \n") + strlen(status_reason(row->status)) +
	    strlen(row->token) + strlen(row->text);
}

size_t
reply_failure(struct out *o, const struct reply *r)
{
	const struct failure_row *row = failure_row(r->why);

	ASSERT(row->status != 0);
	put_status_line(o, row->status);
	put_line(o, "Date", r->date);
	put_proxy_status(o, r);
	put_line(o, "Cache-Control", "no-store");
	put_line(o, "Content-Type", "text/plain; charset=utf-8");
	put_number(o, "Content-Length", text_length(row));
	if (r->retry_after != 0)
		put_number(o, "Retry-After", r->retry_after);
	if (r->allow != NULL)
		put_line(o, "Allow", r->allow);
	out_str(o, r->fields);
	put_connection(o, r);
	out_put(o, "\r\n");
	if (r->head)
		return 0;
	put_text(o, row);
	return text_length(row);
}

void
reply_connected(struct out *o, const char *via, const char *date)
{
	put_status_line(o, 200);
	put_line(o, "Date", date);
	out_put(o, "Via: 1.1 ");
	out_put(o, via);
	out_put(o, "\r\n\r\n");
}

void
reply_options(struct out *o, const struct reply *r)
{
	put_status_line(o, 200);
	put_line(o, "Date", r->date);
	if (r->allow != NULL)
		put_line(o, "Allow", r->allow);
	put_number(o, "Content-Length", 0);
	put_connection(o, r);
	out_put(o, "\r\n");
}
