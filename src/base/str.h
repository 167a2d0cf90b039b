/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * str.h - slices of bytes, and a builder of text in memory of a fixed size.
 *
 * A struct str points at bytes that somebody else keeps; it has no NUL and
 * owns nothing.  A slice of length 0 may have any pointer, NULL too.
 *
 * A struct out writes text into the caller's memory:
 *
 *	mem                len                room = size
 *	 |------ text ------|------ free ------|
 *
 * What doesn't fit is left out whole, and so is everything after it: the text
 * may end early but has no holes.  Thus nobody checks each step; out_is_full()
 * at the end tells.
 *
 * Owner:    the caller, of the structs and of the memory.
 * Threads:  any; nothing is shared.
 * Errors:   never writes beyond `size`; out_is_full() afterwards.
 */
#ifndef PENSTOCK_BASE_STR_H
#define PENSTOCK_BASE_STR_H

#include <string.h>

#include "base/defs.h"

struct str {
	const char	*at;
	size_t		 len;
};

/* The slice of a literal, as a value and as an initialiser. */
#define STR(literal)		((struct str)STR_INIT(literal))
#define STR_INIT(literal)	{ "" literal, sizeof(literal) - 1 }

/* For printf: STR_FMT in the format, STR_ARG(s) as its argument. */
#define STR_FMT			"%.*s"
#define STR_ARG(s)		(int)(s).len, (s).at

static inline struct str
str_make(const void *at, size_t len)
{
	return (struct str){ at, len };
}

/* The slice of a text that ends with NUL; NULL gives an empty one. */
static inline struct str
str_of(const char *text)
{
	return str_make(text, text == NULL ? 0 : strlen(text));
}

static inline bool
str_is_empty(struct str s)
{
	return s.len == 0;
}

static inline bool
str_equal(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 ||
	    memcmp(a.at, b.at, a.len) == 0);
}

/* The byte, or its small letter if it is an ASCII capital; no locale. */
static inline char
str_fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Equal but for the case of ASCII letters. */
bool str_equal_nocase(struct str a, struct str b);

/* Less than, equal to or greater than 0, by bytes, the shorter first. */
int str_compare(struct str a, struct str b);

/* s begins (ends) with the bytes of `part`. */
bool str_starts(struct str s, struct str part);
bool str_ends(struct str s, struct str part);
bool str_starts_nocase(struct str s, struct str part);
bool str_ends_nocase(struct str s, struct str part);

/* Where the first (last) c is, or s.len if there is none. */
size_t str_find(struct str s, char c);
size_t str_find_last(struct str s, char c);

/* s without its first n bytes, or its first n only; n may exceed s.len. */
static inline struct str
str_skip(struct str s, size_t n)
{
	n = MIN(n, s.len);
	return n == 0 ? s : str_make(s.at + n, s.len - n);
}

static inline struct str
str_head(struct str s, size_t n)
{
	return str_make(s.at, MIN(n, s.len));
}

/* Copy s to `to`, where there is room; the end of the copy. */
static inline char *
str_copy(char *to, struct str s)
{
	if (s.len > 0)
		memcpy(to, s.at, s.len);
	return to + s.len;
}

/* s without the OWS of RFC 9110, 5.6.3, at both ends: SP and HTAB. */
struct str str_trim(struct str s);

/*
 * Cut the piece before the next `sep` off *rest.  The last piece is what no
 * `sep` follows; after it, and for a *rest with NULL in it, false.  So "a,,b"
 * has three pieces, "a," two and "" one.
 */
bool str_split(struct str *rest, char sep, struct str *piece);

/* Decimal digits only, at least one; false if not, or beyond 64 bits. */
bool str_number(struct str s, uint64_t *value) MUST_USE;

/* Hexadecimal digits of any case, at least one, without "0x". */
bool str_hex(struct str s, uint64_t *value) MUST_USE;

/*
 * Read one character of UTF-8 (RFC 3629) in front of s, which isn't empty: how
 * many bytes it has, or 0 if it is none: cut short, longer than need be, a
 * surrogate, or too large.
 */
size_t str_utf8(struct str s, uint32_t *c) MUST_USE;

struct out {
	char	*mem;
	size_t	 len;		/* bytes written */
	size_t	 room;		/* bytes that may be: size, or len when full */
	size_t	 size;
	bool	 full;
};

static inline void
out_init(struct out *o, void *mem, size_t size)
{
	*o = (struct out){ mem, 0, size, size, false };
}

static inline size_t
out_len(const struct out *o)
{
	return o->len;
}

/* Something did not fit. */
static inline bool
out_is_full(const struct out *o)
{
	return o->full;
}

/* What was written; good until the next call that writes. */
static inline struct str
out_text(const struct out *o)
{
	return str_make(o->mem, o->len);
}

/* Go back to the first len bytes, len <= out_len(); no longer full. */
static inline void
out_cut(struct out *o, size_t len)
{
	ASSERT(len <= o->len);
	o->len = len;
	o->room = o->size;
	o->full = false;
}

/*
 * Room for n bytes that the caller writes at once, all of them; NULL and full
 * if there is none.
 */
static inline char *
out_take(struct out *o, size_t n)
{
	if (UNLIKELY(n > o->room - o->len)) {
		o->room = o->len;
		o->full = true;
		return NULL;
	}
	char *at = o->mem + o->len;
	o->len += n;
	return at;
}

static inline void
out_add(struct out *o, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	char *at = out_take(o, n);
	if (LIKELY(at != NULL))
		memcpy(at, bytes, n);
}

static inline void
out_str(struct out *o, struct str s)
{
	out_add(o, s.at, s.len);
}

/* A text that ends with NUL; for a literal its length costs nothing. */
static inline void
out_put(struct out *o, const char *text)
{
	out_add(o, text, strlen(text));
}

static inline void
out_char(struct out *o, char c)
{
	char *at = out_take(o, 1);
	if (LIKELY(at != NULL))
		*at = c;
}

/* In decimal. */
void out_number(struct out *o, uint64_t value);

/* In hexadecimal, small letters, without leading zeros. */
void out_hex(struct out *o, uint64_t value);

/* The last `digits` digits, at most 16, zeros in front included. */
void out_hex_padded(struct out *o, uint64_t value, unsigned digits);

/* Decimal with leading zeros to `digits` digits at least, at most 20. */
void out_padded(struct out *o, uint64_t value, unsigned digits);

/* value / 10^places in decimal, places <= 18: 1234 and 3 give "1.234". */
void out_decimal(struct out *o, uint64_t value, unsigned places);

/* As printf; a result that doesn't fit is left out whole.  Slow. */
void out_printf(struct out *o, const char *fmt, ...) PRINTF(2, 3);

/*
 * A JSON string, quotes included, ASCII and valid UTF-8 as they are.  Quotes,
 * backslashes, controls (U+0080 to U+009F too) and separators of lines are
 * escaped; of other bytes each is \u00XX, as if it were Latin-1.  So no byte
 * of a client ends the string or the line.  As much as fits is never cut: all
 * or nothing, like every other call.
 */
void out_json(struct out *o, struct str s);

/*
 * A value of logfmt: bare if it is of visible ASCII without ", = and \, and
 * not empty; else a JSON string.
 */
void out_logfmt(struct out *o, struct str s);

/*
 * What stands between quotes in the combined format: as out_escaped(), and a
 * quote is \", so that no byte of a client ends it.  Quotes aren't included.
 */
void out_quoted(struct out *o, struct str s);

/*
 * Bytes for people and terminals: printable ASCII as it is, a backslash
 * doubled, every other byte as \xXX.  One line stays one line.
 */
void out_escaped(struct out *o, struct str s);

#endif
