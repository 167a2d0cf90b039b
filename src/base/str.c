/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * str.c - slices and the builder of text; see str.h.
 */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/word.h"

/* --- slices ------------------------------------------------------------- */

bool
str_equal_nocase(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (str_fold(a.at[i]) != str_fold(b.at[i]))
			return false;
	return true;
}

int
str_compare(struct str a, struct str b)
{
	size_t n = MIN(a.len, b.len);
	int order = n == 0 ? 0 : memcmp(a.at, b.at, n);

	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

bool
str_starts(struct str s, struct str part)
{
	return s.len >= part.len && str_equal(str_head(s, part.len), part);
}

bool
str_ends(struct str s, struct str part)
{
	return s.len >= part.len &&
	    str_equal(str_skip(s, s.len - part.len), part);
}

bool
str_starts_nocase(struct str s, struct str part)
{
	return s.len >= part.len &&
	    str_equal_nocase(str_head(s, part.len), part);
}

bool
str_ends_nocase(struct str s, struct str part)
{
	return s.len >= part.len &&
	    str_equal_nocase(str_skip(s, s.len - part.len), part);
}

size_t
str_find(struct str s, char c)
{
	const char *p = s.len == 0 ? NULL : memchr(s.at, c, s.len);

	return p == NULL ? s.len : (size_t)(p - s.at);
}

size_t
str_find_last(struct str s, char c)
{
	const char *p = s.len == 0 ? NULL : memrchr(s.at, c, s.len);

	return p == NULL ? s.len : (size_t)(p - s.at);
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t';
}

struct str
str_trim(struct str s)
{
	while (s.len > 0 && is_space(s.at[s.len - 1]))
		s.len--;
	while (s.len > 0 && is_space(s.at[0]))
		s = str_skip(s, 1);
	return s;
}

bool
str_split(struct str *rest, char sep, struct str *piece)
{
	if (rest->at == NULL)
		return false;

	size_t n = str_find(*rest, sep);
	*piece = str_make(rest->at, n);
	*rest = n == rest->len ? str_make(NULL, 0) : str_skip(*rest, n + 1);
	return true;
}

/* So many digits are always below 2^64. */
enum { SAFE_DIGITS = 19 };

bool
str_number(struct str s, uint64_t *value)
{
	size_t safe = MIN(s.len, SAFE_DIGITS);
	uint64_t v = 0;

	if (s.len == 0)
		return false;
	for (const char *p = s.at; p < s.at + safe; p++) {
		unsigned digit = (unsigned char)*p - (unsigned)'0';

		if (digit > 9)
			return false;
		v = v * 10 + digit;
	}
	for (size_t i = safe; i < s.len; i++) {
		unsigned digit = (unsigned char)s.at[i] - (unsigned)'0';

		if (digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, digit, &v))
			return false;
	}
	*value = v;
	return true;
}

/* The value of a hexadecimal digit, or 16. */
static unsigned
hex_digit(char c)
{
	c = str_fold(c);
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

bool
str_hex(struct str s, uint64_t *value)
{
	uint64_t v = 0;

	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		unsigned digit = hex_digit(s.at[i]);

		if (digit > 15 || v >> 60 != 0)
			return false;
		v = v << 4 | digit;
	}
	*value = v;
	return true;
}

size_t
str_utf8(struct str s, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char lead = (unsigned char)s.at[0];
	size_t n = lead >= 0xf8 ? 0 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 :
	    lead >= 0xc0 ? 2 : 0;

	*c = lead;
	if (lead < 0x80)
		return 1;
	if (n == 0 || n > s.len)
		return 0;
	*c = lead & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		unsigned char next = (unsigned char)s.at[i];

		if ((next & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (next & 0x3f);
	}
	if (*c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff))
		return 0;
	return n;
}

/* --- the builder -------------------------------------------------------- */

static const char hex_digits[] = "0123456789abcdef";

enum { NUMBER_MAX = 20 };		/* digits of 2^64 - 1 */

static const char digit_pairs[] =
    "0001020304050607080910111213141516171819"
    "2021222324252627282930313233343536373839"
    "4041424344454647484950515253545556575859"
    "6061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

static const uint64_t powers_of_ten[NUMBER_MAX] = {
	UINT64_C(1), UINT64_C(10), UINT64_C(100), UINT64_C(1000),
	UINT64_C(10000), UINT64_C(100000), UINT64_C(1000000),
	UINT64_C(10000000), UINT64_C(100000000), UINT64_C(1000000000),
	UINT64_C(10000000000), UINT64_C(100000000000),
	UINT64_C(1000000000000), UINT64_C(10000000000000),
	UINT64_C(100000000000000), UINT64_C(1000000000000000),
	UINT64_C(10000000000000000), UINT64_C(100000000000000000),
	UINT64_C(1000000000000000000), UINT64_C(10000000000000000000),
};

/* How many digits v has, or `least` if those are more. */
static inline unsigned
count_digits(uint64_t v, unsigned least)
{
	/* 1233 / 4096 is a little over log10(2). */
	unsigned n = (64 - (unsigned)__builtin_clzll(v | 1)) * 1233 >> 12;

	n += (v | 1) >= powers_of_ten[n];
	return MAX(n, least);
}

/* The n digits of v, with zeros in front. */
static inline void
put_digits(char *at, unsigned n, uint64_t v)
{
	for (; n >= 2; n -= 2, v /= 100)
		memcpy(at + n - 2, digit_pairs + v % 100 * 2, 2);
	if (n == 1)
		*at = (char)('0' + v);
}

void
out_number(struct out *o, uint64_t value)
{
	out_padded(o, value, 1);
}

HOT void
out_padded(struct out *o, uint64_t value, unsigned digits)
{
	ASSERT(digits <= NUMBER_MAX);
	unsigned n = count_digits(value, digits);
	char *at = out_take(o, n);
	if (LIKELY(at != NULL))
		put_digits(at, n, value);
}

void
out_hex(struct out *o, uint64_t value)
{
	char text[16];
	unsigned n = 0;

	do {
		text[sizeof text - ++n] = hex_digits[value & 15];
		value >>= 4;
	} while (value != 0);
	out_add(o, text + sizeof text - n, n);
}

void
out_hex_padded(struct out *o, uint64_t value, unsigned digits)
{
	char text[16];

	ASSERT(digits <= sizeof text);
	for (unsigned i = 0; i < sizeof text; i++)
		text[i] = hex_digits[value >> (60 - 4 * i) & 15];
	out_add(o, text + sizeof text - digits, digits);
}

void
out_decimal(struct out *o, uint64_t value, unsigned places)
{
	ASSERT(places <= 18);
	if (places == 0) {
		out_number(o, value);
		return;
	}
	unsigned n = count_digits(value, places + 1);
	char *at = out_take(o, n + 1);
	if (UNLIKELY(at == NULL))
		return;
	put_digits(at + 1, n, value);
	memmove(at, at + 1, n - places);
	at[n - places] = '.';
}

void
out_printf(struct out *o, const char *fmt, ...)
{
	size_t room = o->room - o->len;
	va_list ap;

	/* vsnprintf() writes a NUL as well, so an exact fit is no fit. */
	va_start(ap, fmt);
	int n = vsnprintf(room == 0 ? NULL : o->mem + o->len, room, fmt, ap);
	va_end(ap);
	bool fits = n >= 0 && (size_t)n < room;
	if (n != 0)
		(void)out_take(o, fits ? (size_t)n : SIZE_MAX);
}

/* --- escaping ----------------------------------------------------------- */

static void
add_unicode(struct out *o, uint32_t c)
{
	char text[6] = { '\\', 'u', hex_digits[c >> 12 & 15],
	    hex_digits[c >> 8 & 15], hex_digits[c >> 4 & 15],
	    hex_digits[c & 15] };

	out_add(o, text, sizeof text);
}

/* Escape the character in front of s; how many bytes it took. */
static size_t
add_json_char(struct out *o, struct str s)
{
	uint32_t c;
	size_t n = str_utf8(s, &c);

	if (n == 0) {
		add_unicode(o, (unsigned char)s.at[0]);
		return 1;
	}
	if (c == '"' || c == '\\') {
		out_char(o, '\\');
		out_char(o, (char)c);
	} else if (c < 0xa0 || c == 0x2028 || c == 0x2029) {
		/* C1 controls and separators are line ends to some readers. */
		add_unicode(o, c);
	} else {
		out_add(o, s.at, n);
	}
	return n;
}

static bool
is_plain(char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* How many of the eight bytes need no escape. */
static inline unsigned
plain_in_word(const char *p)
{
	uint64_t w = word_load(p);
	uint64_t marks = word_has_control(w) | word_has_high(w) |
	    word_has(w, '"') | word_has(w, '\\');

	return marks == 0 ? 8 : word_first(marks);
}

/* How many bytes in front of s need no escape. */
static size_t
plain_length(struct str s)
{
	size_t n = 0;

	while (s.len - n >= 8) {
		unsigned plain = plain_in_word(s.at + n);

		n += plain;
		if (plain < 8)
			return n;
	}
	while (n < s.len && is_plain(s.at[n]))
		n++;
	return n;
}

void
out_json(struct out *o, struct str s)
{
	size_t mark = o->len;

	out_char(o, '"');
	while (s.len > 0) {
		size_t n = plain_length(s);

		out_add(o, s.at, n);
		s = str_skip(s, n);
		if (s.len > 0)
			s = str_skip(s, add_json_char(o, s));
	}
	out_char(o, '"');
	if (out_is_full(o))
		o->room = o->len = mark;
}

static bool
is_bare(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_plain(s.at[i]) || s.at[i] == ' ' || s.at[i] == '=')
			return false;
	return s.len > 0;
}

void
out_logfmt(struct out *o, struct str s)
{
	if (is_bare(s))
		out_str(o, s);
	else
		out_json(o, s);
}

/* A byte that isn't plain, but for a quote. */
static void
add_escape(struct out *o, char c)
{
	unsigned char u = (unsigned char)c;

	if (c == '\\')
		out_add(o, "\\\\", 2);
	else
		out_add(o, (char []){ '\\', 'x', hex_digits[u >> 4],
		    hex_digits[u & 15] }, 4);
}

void
out_quoted(struct out *o, struct str s)
{
	while (s.len > 0) {
		size_t n = plain_length(s);

		out_add(o, s.at, n);
		s = str_skip(s, n);
		if (s.len == 0)
			return;
		if (s.at[0] == '"')
			out_add(o, "\\\"", 2);
		else
			add_escape(o, s.at[0]);
		s = str_skip(s, 1);
	}
}

void
out_escaped(struct out *o, struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (is_plain(s.at[i]) || s.at[i] == '"')
			out_char(o, s.at[i]);
		else
			add_escape(o, s.at[i]);
}
