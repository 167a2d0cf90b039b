/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uri.h - request targets and authorities: RFC 9112 section 3.2, RFC 3986.
 *
 * Nothing is repaired or normalised: what is accepted is passed on to the
 * byte, and what isn't is refused.
 *
 * Threads:  any; pure functions.
 */
#ifndef PENSTOCK_HTTP_URI_H
#define PENSTOCK_HTTP_URI_H

#include "http/head.h"

/* A host and port, as in Host, CONNECT, or an absolute target. */
struct authority {
	struct str	text;		/* the whole */
	struct str	host;		/* without brackets */
	uint16_t	port;		/* 0: none was given */
	bool		is_ip6;		/* host was in brackets */
};

enum target_form {
	TARGET_ORIGIN,		/* /path?query */
	TARGET_ABSOLUTE,	/* http://authority/path?query */
	TARGET_AUTHORITY,	/* host:port, only of CONNECT */
	TARGET_ASTERISK,	/* *, only of OPTIONS */
};

struct target {
	enum target_form form;
	struct authority authority;	/* absolute and authority form */
	/*
	 * What goes upstream: path and query; "*" for OPTIONS without a path;
	 * empty for CONNECT.  When `slash` is set, "/" comes before it, since
	 * the absolute form had none ("http://a?x").
	 */
	struct str	 path;
	bool		 slash;
};

/*
 * A host (RFC 3986: name, IPv4, bracketed IPv6) with an optional port; no
 * userinfo, no empty host.  An empty port ("a:") counts as none.  False: no
 * such thing.
 */
bool authority_parse(struct str text, struct authority *out) MUST_USE;

/* FAIL_NONE, or FAIL_BAD_REQUEST; other schemes than http are bad. */
enum failure target_parse(const struct head *h, struct target *out) MUST_USE;

/* The Host of a head that parse.h accepts; FAIL_BAD_REQUEST: none, or empty. */
enum failure host_parse(const struct head *h, struct authority *out) MUST_USE;

#endif
