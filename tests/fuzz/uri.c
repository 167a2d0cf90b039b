/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uri.c - fuzz target: an authority, or a request's target.
 *
 * What is accepted, put together from its parts, is what it was read from;
 * and nobody could read it as another host.
 */
#include "fuzz/fuzz.h"

#include <ctype.h>

#include "base/addr.h"
#include "http/chars.h"
#include "http/uri.h"

static char text[1 << 14];

/* --- authorities ------------------------------------------------------- */

/* "host:port", as it would be written. */
static struct str
put_authority(struct out *o, const struct authority *a)
{
	out_put(o, a->is_ip6 ? "[" : "");
	out_str(o, a->host);
	out_put(o, a->is_ip6 ? "]" : "");
	if (a->port != 0) {
		out_char(o, ':');
		out_number(o, a->port);
	}
	HOLDS(!out_is_full(o));
	return out_text(o);
}

/* The text but for an empty port, and zeros before one. */
static void
check_text(const struct authority *a, struct str is)
{
	struct str must = a->text;
	size_t colon = str_find_last(must, ':');

	if (a->port == 0) {
		fuzz_same(is, str_ends(must, STR(":")) && !a->is_ip6 ?
		    str_head(must, must.len - 1) :
		    str_ends(must, STR("]:")) ?
		    str_head(must, must.len - 1) : must);
		return;
	}
	HOLDS(colon < must.len && must.len - colon <= sizeof ":65535" - 1);
	struct str digits = str_skip(must, colon + 1);
	while (str_starts(digits, STR("0")))
		digits = str_skip(digits, 1);
	HOLDS(str_starts(is, str_head(must, colon + 1)));
	fuzz_same(str_skip(is, colon + 1), digits);
}

static void
check_host(const struct authority *a)
{
	struct addr addr;

	HOLDS(a->host.len > 0);
	HOLDS(a->host.at >= a->text.at && a->host.at + a->host.len <=
	    a->text.at + a->text.len);
	if (a->is_ip6) {
		HOLDS(addr_parse_ip(&addr, a->host.at, a->host.len, 1));
		return;
	}
	for (size_t i = 0; i < a->host.len; i++) {
		unsigned char c = (unsigned char)a->host.at[i];
		HOLDS(c < 0x80 && (isalnum(c) || strchr("-._~", c) != NULL));
	}
}

static bool
check_authority(struct str in)
{
	struct authority a, again;
	struct out o;

	if (!authority_parse(in, &a))
		return false;
	HOLDS(str_equal(a.text, in));
	check_host(&a);
	out_init(&o, text, sizeof text);
	struct str is = put_authority(&o, &a);
	check_text(&a, is);
	HOLDS(authority_parse(is, &again));
	HOLDS(str_equal(a.host, again.host) && a.port == again.port &&
	    a.is_ip6 == again.is_ip6);
	return true;
}

/* --- targets ----------------------------------------------------------- */

static void
check_absolute(struct str in, const struct target *t, enum method m)
{
	struct str rest = str_skip(in, strlen("http://"));

	HOLDS(str_starts_nocase(in, STR("http://")));
	HOLDS(str_starts(rest, t->authority.text));
	HOLDS(check_authority(t->authority.text));
	rest = str_skip(rest, t->authority.text.len);
	HOLDS(rest.len == 0 || rest.at[0] == '/' || rest.at[0] == '?');
	HOLDS(t->slash == (!str_starts(rest, STR("/")) &&
	    !str_equal(t->path, STR("*"))));
	if (rest.len == 0 && m == METHOD_OPTIONS)
		fuzz_same(t->path, STR("*"));
	else
		fuzz_same(t->path, rest);
}

/* Whatever begins with a good authority must be accepted. */
static bool
is_absolute(struct str in, enum method m)
{
	struct authority a;
	struct str rest = str_skip(in, strlen("http://"));
	size_t end = MIN(str_find(rest, '/'), str_find(rest, '?'));

	return m != METHOD_CONNECT &&
	    str_starts_nocase(in, STR("http://")) &&
	    authority_parse(str_head(rest, end), &a);
}

static void
check_target(struct str in, enum method m)
{
	struct head h = { .base = in.at, .length = (uint32_t)in.len,
	    .method = m, .target = { 0, (uint32_t)in.len } };
	struct target t;

	if (target_parse(&h, &t) != FAIL_NONE) {
		HOLDS(!is_absolute(in, m));
		HOLDS(m == METHOD_CONNECT || !str_starts(in, STR("/")));
		return;
	}
	HOLDS((m == METHOD_CONNECT) == (t.form == TARGET_AUTHORITY));
	switch (t.form) {
	case TARGET_ORIGIN:
		HOLDS(str_starts(in, STR("/")) && !t.slash);
		fuzz_same(t.path, in);
		break;
	case TARGET_ABSOLUTE:
		check_absolute(in, &t, m);
		break;
	case TARGET_AUTHORITY:
		HOLDS(check_authority(in) && t.authority.port != 0);
		HOLDS(t.path.len == 0 && !t.slash);
		fuzz_same(t.authority.text, in);
		break;
	case TARGET_ASTERISK:
		HOLDS(m == METHOD_OPTIONS && !t.slash);
		fuzz_same(t.path, in);
		fuzz_same(in, STR("*"));
		break;
	}
}

void
fuzz_one(struct str in)
{
	check_authority(in);
	if (!chars_are(in, CHAR_TARGET))
		return;
	check_target(in, METHOD_GET);
	check_target(in, METHOD_OPTIONS);
	check_target(in, METHOD_CONNECT);
}
