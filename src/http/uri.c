/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uri.c - which hosts are accepted is narrower than RFC 3986, 3.2.2: names
 * have letters, digits, "-", ".", "_" and "~".  Percent-encoding and
 * sub-delims ("a,b", "a;b") name no host that could be looked up, but are read
 * in different ways by those who come after us.  Nor are zones (RFC 6874) and
 * IPvFuture accepted in brackets.
 */
#include "http/uri.h"

#include <arpa/inet.h>

#include "http/chars.h"

/* A name of DNS has 253 bytes at most, and may have a dot after it. */
enum { HOST_LONGEST = 254, PORT_DIGITS = 5 };

/* At most five digits, so that no port wraps on its way through 16 bits. */
static bool
port_parse(struct str s, uint16_t *out)
{
	uint64_t port;

	*out = 0;
	if (s.len == 0)
		return true;
	if (s.len > PORT_DIGITS || !str_number(s, &port))
		return false;
	*out = (uint16_t)port;
	return port >= 1 && port <= UINT16_MAX;
}

/* inet_pton() would overlook what follows a NUL. */
static bool
is_ip6(struct str s)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (s.len >= sizeof text)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!char_is(s.at[i], CHAR_HEX) && s.at[i] != ':' &&
		    s.at[i] != '.')
			return false;
	}
	memcpy(text, s.at, s.len);
	text[s.len] = '\0';
	return inet_pton(AF_INET6, text, &address) == 1;
}

/* How many bytes of text are "[::1]"; 0 if that is no address. */
static APART size_t
literal_parse(struct str text, struct authority *out)
{
	size_t end = str_find(text, ']');

	if (end == text.len)
		return 0;
	out->host = str_head(str_skip(text, 1), end - 1);
	out->is_ip6 = true;
	return is_ip6(out->host) ? end + 1 : 0;
}

HOT bool
authority_parse(struct str text, struct authority *out)
{
	struct str rest;

	*out = (struct authority){ .text = text };
	if (text.len > 0 && text.at[0] == '[') {
		size_t n = literal_parse(text, out);
		if (n == 0)
			return false;
		rest = str_skip(text, n);
	} else {
		const char *p = text.at, *end = p + text.len;
		while (p < end && char_is(*p, CHAR_HOST))
			p++;
		out->host = str_make(text.at, (size_t)(p - text.at));
		rest = str_make(p, (size_t)(end - p));
		if (p == text.at || out->host.len > HOST_LONGEST)
			return false;
	}
	if (rest.len > 0 && rest.at[0] != ':')
		return false;
	return port_parse(str_skip(rest, 1), &out->port);
}

static enum failure
absolute_parse(const struct head *h, struct str text, struct target *out)
{
	struct str rest = str_skip(text, strlen("http://"));
	size_t end = str_find(rest, '/');

	end = str_find(str_head(rest, end), '?');
	out->form = TARGET_ABSOLUTE;
	out->path = str_skip(rest, end);
	if (!authority_parse(str_head(rest, end), &out->authority))
		return FAIL_BAD_REQUEST;
	if (out->path.len == 0 && h->method == METHOD_OPTIONS)
		out->path = STR("*");
	else
		out->slash = out->path.len == 0 || out->path.at[0] == '?';
	return FAIL_NONE;
}

enum failure
target_parse(const struct head *h, struct target *out)
{
	struct str text = head_str(h, h->target);

	*out = (struct target){ .form = TARGET_ORIGIN };
	if (h->method == METHOD_CONNECT) {
		out->form = TARGET_AUTHORITY;
		return authority_parse(text, &out->authority) &&
		    out->authority.port != 0 ? FAIL_NONE : FAIL_BAD_REQUEST;
	}
	if (str_starts(text, STR("/"))) {
		out->path = text;
		return FAIL_NONE;
	}
	if (str_equal(text, STR("*")) && h->method == METHOD_OPTIONS) {
		out->form = TARGET_ASTERISK;
		out->path = text;
		return FAIL_NONE;
	}
	if (str_starts(text, STR("http://")) ||
	    str_starts_nocase(text, STR("http://")))
		return absolute_parse(h, text, out);
	return FAIL_BAD_REQUEST;
}

/*
 * What authority_parse() made of a text that it has accepted: there is a port
 * if a colon stands before the last digits.
 */
static struct authority
split(struct str text)
{
	struct authority a = { .text = text, .host = text };
	size_t end = text.len;

	while (end > 1 && text.at[end - 1] >= '0' && text.at[end - 1] <= '9')
		end--;
	if (text.at[end - 1] == ':') {
		bool good = port_parse(str_skip(text, end), &a.port);
		ASSERT(good);
		a.host.len = end - 1;
	}
	if (text.at[0] == '[') {
		a.is_ip6 = true;
		a.host = str_make(a.host.at + 1, a.host.len - 2);
	}
	return a;
}

enum failure
host_parse(const struct head *h, struct authority *out)
{
	const struct field *f = head_first(h, FIELD_HOST);

	*out = (struct authority){ .port = 0 };
	if (f == NULL || f->value_len == 0)
		return FAIL_BAD_REQUEST;
	*out = split(field_value(h, f));
	return FAIL_NONE;
}
