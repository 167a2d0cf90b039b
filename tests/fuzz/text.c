/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.c - fuzz target: bytes of a peer on their way to a log, and numbers.
 *
 * Whatever they are, what is written is one line of printable ASCII or valid
 * UTF-8, in which they can be found again.
 */
#include "fuzz/fuzz.h"

static char text[1 << 16], read_back[1 << 16], points[1 << 16];

/* --- JSON -------------------------------------------------------------- */

/* The bytes that RFC 3629 has for c are those that c was read from. */
static void
check_utf8(struct str is, uint32_t c)
{
	char must[4];
	struct out o;
	unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const unsigned char first[] = { 0, 0xc0, 0xe0, 0xf0 };

	HOLDS(c <= 0x10ffff && (c < 0xd800 || c > 0xdfff));
	out_init(&o, must, sizeof must);
	out_char(&o, (char)(first[more] | c >> 6 * more));
	while (more-- > 0)
		out_char(&o, (char)(0x80 | (c >> 6 * more & 0x3f)));
	fuzz_same(is, out_text(&o));
}

static void
put_point(struct out *o, uint32_t c)
{
	out_add(o, &c, sizeof c);
}

/* One character of a JSON string at *rest, as out_json() writes it. */
static void
take_json(struct str *rest, struct out *o)
{
	static const char short_ones[] = "b\bt\tn\nf\fr\r\"\"\\\\";
	uint32_t c;
	uint64_t value;
	size_t n = str_utf8(*rest, &c);

	HOLDS(n > 0 && c >= 0x20 && (c < 0x7f || c >= 0xa0) && c != '"');
	if (c != '\\') {
		put_point(o, c);
		*rest = str_skip(*rest, n);
		return;
	}
	HOLDS(rest->len >= 2);
	if (rest->at[1] == 'u') {
		HOLDS(str_hex(str_head(str_skip(*rest, 2), 4), &value));
		put_point(o, (uint32_t)value);
		*rest = str_skip(*rest, 6);
		return;
	}
	for (unsigned i = 0; short_ones[i] != '\0'; i += 2) {
		if (short_ones[i] != rest->at[1])
			continue;
		put_point(o, (uint32_t)short_ones[i + 1]);
		*rest = str_skip(*rest, 2);
		return;
	}
	HOLDS(!"JSON has such an escape");
}

/* Characters of UTF-8; bytes that are none as if they were Latin-1. */
static void
put_points(struct out *o, struct str in)
{
	while (in.len > 0) {
		uint32_t c;
		size_t n = str_utf8(in, &c);

		if (n > 0)
			check_utf8(str_head(in, n), c);
		put_point(o, n > 0 ? c : (unsigned char)in.at[0]);
		in = str_skip(in, MAX(n, (size_t)1));
	}
}

static void
check_json(struct str in)
{
	struct out o, back, must;

	out_init(&o, text, sizeof text);
	out_json(&o, in);
	HOLDS(!out_is_full(&o));
	struct str rest = out_text(&o);
	HOLDS(str_starts(rest, STR("\"")) && str_ends(rest, STR("\"")));
	rest = str_head(str_skip(rest, 1), rest.len - 2);
	out_init(&back, read_back, sizeof read_back);
	while (rest.len > 0)
		take_json(&rest, &back);
	out_init(&must, points, sizeof points);
	put_points(&must, in);
	fuzz_same(out_text(&back), out_text(&must));

	/* All or nothing. */
	size_t n = out_len(&o);
	out_init(&o, text, n - 1);
	out_json(&o, in);
	HOLDS(out_is_full(&o) && out_len(&o) == 0);
}

/* --- for people -------------------------------------------------------- */

static void
check_escaped(struct str in)
{
	struct out o, back;
	uint64_t value;

	out_init(&o, text, sizeof text);
	out_escaped(&o, in);
	HOLDS(!out_is_full(&o));
	struct str rest = out_text(&o);
	out_init(&back, read_back, sizeof read_back);
	while (rest.len > 0) {
		char c = rest.at[0];
		HOLDS(c >= 0x20 && c < 0x7f);
		if (c != '\\') {
			out_char(&back, c);
			rest = str_skip(rest, 1);
		} else if (str_starts(rest, STR("\\\\"))) {
			out_char(&back, c);
			rest = str_skip(rest, 2);
		} else {
			HOLDS(str_starts(rest, STR("\\x")) && rest.len >= 4);
			HOLDS(str_hex(str_head(str_skip(rest, 2), 2), &value));
			out_char(&back, (char)value);
			rest = str_skip(rest, 4);
		}
	}
	fuzz_same(out_text(&back), in);
}

/* --- numbers ----------------------------------------------------------- */

static struct str
without_zeros(struct str s)
{
	while (s.len > 1 && s.at[0] == '0')
		s = str_skip(s, 1);
	return s;
}

static void
check_numbers(struct str in)
{
	uint64_t value;
	struct out o;

	out_init(&o, text, sizeof text);
	if (str_number(in, &value)) {
		out_number(&o, value);
		fuzz_same(out_text(&o), without_zeros(in));
	}
	out_cut(&o, 0);
	if (str_hex(in, &value)) {
		out_hex(&o, value);
		HOLDS(str_equal_nocase(out_text(&o), without_zeros(in)));
	}
}

void
fuzz_one(struct str in)
{
	check_json(in);
	check_escaped(in);
	check_numbers(in);
}
