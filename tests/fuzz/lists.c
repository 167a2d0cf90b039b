/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lists.c - fuzz target: the value of a field that is a list.
 *
 * Elements lie in the value, in their order, with nothing but commas and white
 * space between; written as a list, they are the same elements again.  Our own
 * name in Via is found wherever it stands, and a number is what it says.
 */
#include "fuzz/fuzz.h"

#include "http/chars.h"
#include "http/rewrite.h"

#define US	"us"

static char text[1 << 16];

/* A head of up to two fields of one kind, by hand. */
struct by_hand {
	struct head	h;
	struct field	fields[2];
};

static void
make_head(struct by_hand *b, enum field_id id, struct str value,
    struct str second)
{
	struct out o;

	out_init(&o, text, sizeof text);
	out_str(&o, value);
	out_str(&o, second);
	HOLDS(!out_is_full(&o));
	*b = (struct by_hand){
		.h = { .base = text, .length = (uint32_t)out_len(&o),
		    .count = second.at == NULL ? 1 : 2 },
		.fields = {
			{ .value_len = (uint16_t)value.len, .id = id },
			{ .value = (uint32_t)value.len,
			    .value_len = (uint16_t)second.len, .id = id },
		},
	};
	b->h.fields = b->fields;
	b->h.first[id] = 1;
	b->h.repeated = second.at == NULL ? 0 : UINT64_C(1) << id;
}

/* --- elements ---------------------------------------------------------- */

static bool
is_separator(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] != ',' && s.at[i] != ' ' && s.at[i] != '\t')
			return false;
	}
	return true;
}

/* An element has commas in quotes only, which a plain reading finds too. */
static void
check_element(struct str e)
{
	bool quoted = false;

	HOLDS(e.len > 0 && str_equal(str_trim(e), e));
	for (size_t i = 0; i < e.len; i++) {
		if (quoted && e.at[i] == '\\')
			i++;
		else if (e.at[i] == '"')
			quoted = !quoted;
		else
			HOLDS(quoted || e.at[i] != ',');
	}
}

static void
check_elements(struct str value)
{
	static char joined[1 << 16];
	struct str rest = value, again, e, same;
	const char *end = value.at;
	struct out o;

	out_init(&o, joined, sizeof joined);
	while (list_next(&rest, &e)) {
		check_element(e);
		HOLDS(e.at >= end && e.at + e.len <= value.at + value.len);
		HOLDS(is_separator(str_make(end, (size_t)(e.at - end))));
		end = e.at + e.len;
		out_str(&o, e);
		out_put(&o, ", ");
	}
	HOLDS(is_separator(str_skip(value, (size_t)(end - value.at))));
	HOLDS(!out_is_full(&o));

	rest = value;
	again = out_text(&o);
	while (list_next(&rest, &e)) {
		HOLDS(list_next(&again, &same));
		/* What never ends its quotes takes the last comma along. */
		HOLDS(rest.len == 0 ? str_starts(same, e) :
		    str_equal(e, same));
	}
	HOLDS(!list_next(&again, &same));
}

static void
check_tokens(struct str value)
{
	struct by_hand b;
	struct str rest = value, e;
	bool has = false;

	while (list_next(&rest, &e))
		has = has || str_equal_nocase(e, STR("close"));
	make_head(&b, FIELD_CONNECTION, value, (struct str){ NULL, 0 });
	HOLDS(head_has_token(&b.h, FIELD_CONNECTION, "close") == has);
	make_head(&b, FIELD_CONNECTION, value, STR("close"));
	HOLDS(head_has_token(&b.h, FIELD_CONNECTION, "CLOSE"));

	/* A server may split at any comma: none of that is h2c either. */
	rest = value;
	while (upgrade_next(&rest, &e)) {
		HOLDS(e.len > 0 && !str_starts_nocase(e, STR("h2c")));
		HOLDS(e.at >= value.at &&
		    e.at + e.len <= value.at + value.len);
		for (size_t i = 0; i < e.len; i++)
			HOLDS(e.at[i] == '/' || char_is(e.at[i], CHAR_TOKEN));
	}
}

/* --- Via --------------------------------------------------------------- */

static bool
has_via(struct str value, struct str second)
{
	struct by_hand b;

	make_head(&b, FIELD_VIA, value, second);
	return via_has(&b.h, STR(US));
}

static bool
mentions(struct str s, struct str word)
{
	for (; s.len > 0; s = str_skip(s, 1)) {
		if (str_starts_nocase(s, word))
			return true;
	}
	return false;
}

static void
check_via(struct str value)
{
	static char list[1 << 16];
	const struct str none = { NULL, 0 };
	struct out o;

	HOLDS(has_via(value, STR("1.1 " US)));
	HOLDS(has_via(STR("1.0 a (b, c), 1.1 " US " (d"), value));
	HOLDS(!has_via(value, none) || mentions(value, STR(US)));

	out_init(&o, list, sizeof list);
	out_put(&o, "HTTP/1.1\tUS,");
	out_str(&o, value);
	HOLDS(has_via(out_text(&o), none));
	/* In a comment, quoted byte by byte, it is not an element. */
	out_init(&o, list, sizeof list);
	out_put(&o, "1.0 a (");
	for (size_t i = 0; i < value.len; i++) {
		out_char(&o, '\\');
		out_char(&o, value.at[i]);
	}
	out_put(&o, ", 1.1 " US ")");
	HOLDS(!has_via(out_text(&o), none));
	out_put(&o, ", 1.1 " US);
	HOLDS(has_via(out_text(&o), none));

	/* A comment may be open at its end; without one, nothing is. */
	if (str_find(value, '(') < value.len)
		return;
	out_init(&o, list, sizeof list);
	out_str(&o, value);
	out_put(&o, " ,1.1 " US);
	HOLDS(!out_is_full(&o) && has_via(out_text(&o), none));
}

/* --- numbers ----------------------------------------------------------- */

static void
check_forwards(struct str value)
{
	struct by_hand b;
	uint64_t n = 0;
	bool good = value.len > 0;

	for (size_t i = 0; i < value.len && good; i++) {
		unsigned digit = (unsigned)(value.at[i] - '0');
		good = value.at[i] >= '0' && digit <= 9 &&
		    n <= ((uint64_t)INT64_MAX - digit) / 10;
		if (good)
			n = n * 10 + digit;
	}
	make_head(&b, FIELD_MAX_FORWARDS, value, (struct str){ NULL, 0 });
	HOLDS(max_forwards(&b.h) == (good ? (int64_t)n : -1));
	make_head(&b, FIELD_MAX_FORWARDS, value, STR("1"));
	HOLDS(max_forwards(&b.h) == -1);
}

void
fuzz_one(struct str in)
{
	if (!chars_are(in, CHAR_TEXT))
		return;
	check_elements(in);
	check_tokens(in);
	check_via(in);
	check_forwards(str_trim(in));
}
