/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.c - a writer of JSON; see json.h.
 */
#include "base/json.h"

#include <math.h>

/* Bytes of a text that are written at once: six for each, and quotes. */
enum { PIECE = 128 };

void
json_init(struct json *j, struct metrics *to)
{
	*j = (struct json){ .to = to };
}

/* --- pieces ------------------------------------------------------------- */

/* Cut short only between characters, or what is no UTF-8 would appear. */
static struct str
next_piece(struct str s)
{
	size_t n = MIN(s.len, (size_t)PIECE);

	for (int back = 0; back < 3 && n < s.len &&
	    ((unsigned char)s.at[n] & 0xc0) == 0x80; back++)
		n--;
	return str_head(s, n);
}

static void
add_string(struct json *j, struct str s)
{
	char mem[6 * PIECE + 2];
	struct out o;

	metric_text(j->to, STR("\""));
	while (s.len > 0) {
		struct str piece = next_piece(s);

		out_init(&o, mem, sizeof mem);
		out_json(&o, piece);
		ASSERT(!out_is_full(&o));
		/* Without its quotes: pieces are one string. */
		metric_text(j->to, str_make(mem + 1, out_len(&o) - 2));
		s = str_skip(s, piece.len);
	}
	metric_text(j->to, STR("\""));
}

/* What stands before a value. */
static void
begin(struct json *j, const char *name)
{
	if (j->comma)
		metric_text(j->to, STR(","));
	j->comma = true;
	if (name == NULL)
		return;
	add_string(j, str_of(name));
	metric_text(j->to, STR(":"));
}

static void
open_with(struct json *j, const char *name, struct str bracket)
{
	begin(j, name);
	metric_text(j->to, bracket);
	j->comma = false;
}

static void
close_with(struct json *j, struct str bracket)
{
	metric_text(j->to, bracket);
	j->comma = true;
}

/* --- values ------------------------------------------------------------- */

void
json_open_object(struct json *j, const char *name)
{
	open_with(j, name, STR("{"));
}

void
json_close_object(struct json *j)
{
	close_with(j, STR("}"));
}

void
json_open_array(struct json *j, const char *name)
{
	open_with(j, name, STR("["));
}

void
json_close_array(struct json *j)
{
	close_with(j, STR("]"));
}

void
json_text(struct json *j, const char *name, struct str value)
{
	begin(j, name);
	add_string(j, value);
}

void
json_number(struct json *j, const char *name, uint64_t value)
{
	char text[32];
	struct out o;

	begin(j, name);
	out_init(&o, text, sizeof text);
	out_number(&o, value);
	metric_text(j->to, out_text(&o));
}

void
json_flag(struct json *j, const char *name, bool value)
{
	begin(j, name);
	metric_text(j->to, value ? STR("true") : STR("false"));
}

void
json_null(struct json *j, const char *name)
{
	begin(j, name);
	metric_text(j->to, STR("null"));
}

void
json_seconds(struct json *j, const char *name, nsec_t value)
{
	char text[32];
	struct out o;

	begin(j, name);
	out_init(&o, text, sizeof text);
	out_decimal(&o, value, 9);
	metric_text(j->to, out_text(&o));
}

void
json_real(struct json *j, const char *name, double value)
{
	char text[32];
	struct out o;

	if (!isfinite(value)) {
		json_null(j, name);
		return;
	}
	begin(j, name);
	out_init(&o, text, sizeof text);
	out_printf(&o, "%.15g", value);
	metric_text(j->to, out_text(&o));
}
