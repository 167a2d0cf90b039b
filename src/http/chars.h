/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chars.h - which byte may stand where: RFC 9110 section 5, RFC 3986.
 *
 * Threads:  any; everything here is constant.
 */
#ifndef PENSTOCK_HTTP_CHARS_H
#define PENSTOCK_HTTP_CHARS_H

#include "base/defs.h"
#include "base/str.h"

enum {
	CHAR_TOKEN  = 1,	/* tchar: names of fields, methods, codings */
	CHAR_TEXT   = 2,	/* HTAB, SP, VCHAR, obs-text: in values */
	CHAR_TARGET = 4,	/* VCHAR but "#": in request targets */
	CHAR_HOST   = 8,	/* unreserved: in host names */
	CHAR_HEX    = 16,	/* HEXDIG of any case */
};

extern const uint8_t chars_table[256];

/* Is c of that class, or of one of those? */
static inline bool
char_is(char c, unsigned classes)
{
	return (chars_table[(uint8_t)c] & classes) != 0;
}

/* Is s not empty, and every byte of it of that class? */
static inline bool
chars_are(struct str s, unsigned classes)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!char_is(s.at[i], classes))
			return false;
	}
	return s.len > 0;
}

#endif
