/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types_text.c - single values that stay texts: words, paths, authorities; see
 * types.h.
 */
#include <string.h>

#include "config/store.h"
#include "config/types.h"

static void
clear_text(void *value)
{
	*(const char **)value = "";
}

static bool
keep_text(struct conf_reading *r, const char *text, void *value)
{
	*(const char **)value = store_text(r->store, str_of(text));
	return true;
}

static void
print_text(FILE *out, const struct config *c, const void *value, size_t i)
{
	(void)c, (void)i;
	fputs(*(const char *const *)value, out);
}

static bool
parse_text(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	(void)t;
	return keep_text(r, text, value);
}

static bool
is_alpha(char c)
{
	c = str_fold(c);
	return c >= 'a' && c <= 'z';
}

/* A token of RFC 9110, 5.6.2, that is also one of RFC 8941, 3.3.4. */
static bool
parse_token(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	static const char others[] = "0123456789!#$%&'*+-.^_`|~";
	size_t n = strlen(text);

	if (n > CONF_NAME_MAX || !is_alpha(text[0]))
		return type_refuse(r, t, text);
	for (size_t i = 0; i < n; i++)
		if (!is_alpha(text[i]) && strchr(others, text[i]) == NULL)
			return type_refuse(r, t, text);
	return keep_text(r, text, value);
}

/* Absolute, so that a mistyped word is no file, wherever we were started. */
static bool
parse_pathname(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	if (text[0] != '/')
		return type_refuse(r, t, text);
	return keep_text(r, text, value);
}

static bool
parse_logfile(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	if (strcmp(text, "off") == 0 || strcmp(text, "stderr") == 0)
		return keep_text(r, text, value);
	return parse_pathname(r, t, text, value);
}

static bool
parse_errorfile(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	if (strcmp(text, "off") == 0)
		return type_refuse(r, t, text);
	return parse_logfile(r, t, text, value);
}

/* It goes into a field of a request, so nothing else may be in it. */
static bool
parse_authority(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	struct str s = str_of(text);
	size_t colon = s.len > 0 && s.at[s.len - 1] == ']' ? s.len :
	    str_find_last(s, ':');
	struct str host = str_head(s, colon);
	struct addr a;
	uint16_t port;

	if (colon < s.len && !addr_parse_port(&port, text + colon + 1,
	    s.len - colon - 1))
		return type_refuse(r, t, text);
	bool is_literal = addr_parse_ip(&a, host.at, host.len, 0) &&
	    (host.at[0] == '[') == (str_find(host, ':') < host.len);
	if (!is_literal && !type_is_host_name(host))
		return type_refuse(r, t, text);
	return keep_text(r, text, value);
}

const struct conf_type type_TEXT = { .name = "text",
    .hint = "a text", .parse = parse_text, .print = print_text,
    .clear = clear_text };
const struct conf_type type_TOKEN = { .name = "word",
    .hint = "a letter and up to 39 letters, digits, -, _ or .",
    .parse = parse_token, .print = print_text, .clear = clear_text };
const struct conf_type type_LOGFILE = { .name = "path, off or stderr",
    .hint = "off, stderr or a path that begins with /",
    .parse = parse_logfile, .print = print_text, .clear = clear_text };
const struct conf_type type_ERRORFILE = { .name = "path or stderr",
    .hint = "stderr or a path that begins with /",
    .parse = parse_errorfile, .print = print_text, .clear = clear_text };
const struct conf_type type_PATHNAME = { .name = "path",
    .hint = "a path that begins with /",
    .parse = parse_pathname, .print = print_text, .clear = clear_text };
const struct conf_type type_AUTHORITY = { .name = "host or host:port",
    .hint = "a host or host:port",
    .parse = parse_authority, .print = print_text, .clear = clear_text };
