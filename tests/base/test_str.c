/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_str.c - src/base/str.c
 */
#include "harness.h"

#include <stdio.h>

#include "base/str.h"

/* ck_assert_str_eq() for slices. */
#define ck_assert_slice_eq(s, text) do {				\
	struct str is_ = (s), want_ = str_of(text);			\
	ck_assert_msg(str_equal(is_, want_), "\"%.*s\" is not \"%s\"",	\
	    STR_ARG(is_), text);					\
} while (0)

static char mem[256];
static struct out o;

static void
an_empty_builder(void)
{
	memset(mem, '#', sizeof mem);
	out_init(&o, mem, sizeof mem);
}

/* --- slices ------------------------------------------------------------- */

START_TEST(equal_slices_have_the_same_bytes)
{
	ck_assert(str_equal(STR("ab"), STR("ab")));
	ck_assert(!str_equal(STR("ab"), STR("aB")));
	ck_assert(!str_equal(STR("ab"), STR("abc")));
	ck_assert(str_equal(str_make(NULL, 0), STR("")));
	ck_assert(str_equal(STR("a\0b"), str_make("a\0b", 3)));
	ck_assert(!str_equal(STR("a\0b"), STR("a\0c")));
}
END_TEST

START_TEST(case_is_ignored_for_ascii_letters_only)
{
	ck_assert(str_equal_nocase(STR("Host-1"), STR("hOST-1")));
	ck_assert(!str_equal_nocase(STR("host"), STR("hos")));
	ck_assert(!str_equal_nocase(STR("@"), STR("`")));
	ck_assert(!str_equal_nocase(STR("["), STR("{")));
	ck_assert(!str_equal_nocase(STR("\xc4"), STR("\xe4")));
	ck_assert(str_starts_nocase(STR("HTTP://x"), STR("http:")));
	ck_assert(!str_starts_nocase(STR("htt"), STR("http:")));
	ck_assert(str_ends_nocase(STR("x.EXAMPLE"), STR(".example")));
}
END_TEST

START_TEST(slices_are_ordered_by_bytes_then_length)
{
	ck_assert_int_lt(str_compare(STR("a"), STR("b")), 0);
	ck_assert_int_lt(str_compare(STR("a"), STR("ab")), 0);
	ck_assert_int_gt(str_compare(STR("\xff"), STR("a")), 0);
	ck_assert_int_eq(str_compare(STR("ab"), STR("ab")), 0);
	ck_assert_int_lt(str_compare(str_make(NULL, 0), STR("a")), 0);
}
END_TEST

START_TEST(parts_are_found_where_they_are)
{
	ck_assert(str_starts(STR("abc"), STR("ab")));
	ck_assert(str_starts(STR("abc"), STR("")));
	ck_assert(!str_starts(STR("a"), STR("ab")));
	ck_assert(str_ends(STR("abc"), STR("bc")));
	ck_assert(!str_ends(STR("c"), STR("bc")));
	ck_assert_uint_eq(str_find(STR("a:b:c"), ':'), 1);
	ck_assert_uint_eq(str_find_last(STR("a:b:c"), ':'), 3);
	ck_assert_uint_eq(str_find(STR("abc"), ':'), 3);
	ck_assert_uint_eq(str_find_last(str_make(NULL, 0), ':'), 0);
	ck_assert_slice_eq(str_skip(STR("abc"), 1), "bc");
	ck_assert_slice_eq(str_skip(STR("abc"), 9), "");
	ck_assert_slice_eq(str_head(STR("abc"), 2), "ab");
	ck_assert_slice_eq(str_head(STR("abc"), 9), "abc");
}
END_TEST

START_TEST(only_spaces_and_tabs_are_trimmed)
{
	ck_assert_slice_eq(str_trim(STR(" \t a b\t ")), "a b");
	ck_assert_slice_eq(str_trim(STR("\v\ra\n")), "\v\ra\n");
	ck_assert_slice_eq(str_trim(STR(" \t ")), "");
	ck_assert_slice_eq(str_trim(str_make(NULL, 0)), "");
}
END_TEST

/* { text, its pieces joined with | } */
static const struct { const char *text, *pieces; } splits[] = {
	{ "a,b",	"a|b|" },
	{ "a,,b",	"a||b|" },
	{ "a,",		"a||" },
	{ ",",		"||" },
	{ "abc",	"abc|" },
	{ "",		"|" },
};

START_TEST(a_split_keeps_empty_pieces)
{
	struct str rest = str_of(splits[_i].text), piece;

	while (str_split(&rest, ',', &piece)) {
		out_str(&o, piece);
		out_char(&o, '|');
	}
	ck_assert_slice_eq(out_text(&o), splits[_i].pieces);
	ck_assert(!str_split(&rest, ',', &piece));
}
END_TEST

/* { text, is it one?, value } */
static const struct {
	const char	*text;
	bool		 ok;
	uint64_t	 value;
} numbers[] = {
	{ "0",				true,	0 },
	{ "007",			true,	7 },
	{ "18446744073709551615",	true,	UINT64_MAX },
	{ "18446744073709551616",	false,	0 },
	{ "18446744073709551620",	false,	0 },
	{ "99999999999999999999",	false,	0 },
	{ "",				false,	0 },
	{ "+1",				false,	0 },
	{ "-1",				false,	0 },
	{ " 1",				false,	0 },
	{ "1 ",				false,	0 },
	{ "1a",				false,	0 },
	{ "1,1",			false,	0 },
	{ "\xb9",			false,	0 },
}, hexes[] = {
	{ "0",				true,	0 },
	{ "fF",				true,	255 },
	{ "000000000000000000001",	true,	1 },
	{ "ffffffffffffffff",		true,	UINT64_MAX },
	{ "10000000000000000",		false,	0 },
	{ "",				false,	0 },
	{ "0x1",			false,	0 },
	{ "-1",				false,	0 },
	{ "g",				false,	0 },
	{ "@",				false,	0 },
	{ "1 ",				false,	0 },
};

START_TEST(numbers_are_digits_within_64_bits)
{
	uint64_t v = 0;
	bool ok = str_number(str_of(numbers[_i].text), &v);

	ck_assert_msg(ok == numbers[_i].ok, "\"%s\"", numbers[_i].text);
	ck_assert_uint_eq(v, numbers[_i].value);
}
END_TEST

START_TEST(hexadecimals_are_digits_within_64_bits)
{
	uint64_t v = 0;
	bool ok = str_hex(str_of(hexes[_i].text), &v);

	ck_assert_msg(ok == hexes[_i].ok, "\"%s\"", hexes[_i].text);
	ck_assert_uint_eq(v, hexes[_i].value);
}
END_TEST

/* --- the builder -------------------------------------------------------- */

START_TEST(text_is_built_piece_by_piece)
{
	out_put(&o, "a ");
	out_str(&o, STR("b "));
	out_add(&o, "c\0", 2);
	out_number(&o, 0);
	out_char(&o, ' ');
	out_number(&o, UINT64_MAX);
	out_char(&o, ' ');
	out_hex(&o, 0);
	out_char(&o, ' ');
	out_hex(&o, UINT64_C(0xfedcba9876543210));
	out_printf(&o, " %d", -5);
	out_str(&o, str_make(NULL, 0));
	ck_assert(str_equal(out_text(&o), STR(
	    "a b c\0" "0 18446744073709551615 0 fedcba9876543210 -5")));
	ck_assert(!out_is_full(&o));
}
END_TEST

/* Each number of digits, from both ends. */
START_TEST(numbers_have_their_digits)
{
	uint64_t value = 1;
	char expected[64];

	for (int digits = 1; digits <= 20; digits++, value *= 10) {
		snprintf(expected, sizeof expected, "%ju %ju %020ju",
		    (uintmax_t)value, (uintmax_t)value - 1, (uintmax_t)value);
		out_init(&o, mem, sizeof mem);
		out_number(&o, value);
		out_char(&o, ' ');
		out_number(&o, value - 1);
		out_char(&o, ' ');
		out_padded(&o, value, 20);
		ck_assert_slice_eq(out_text(&o), expected);
	}
}
END_TEST

START_TEST(numbers_can_be_padded_and_pointed)
{
	out_padded(&o, 7, 3);
	out_char(&o, ' ');
	out_padded(&o, 1234, 3);
	out_char(&o, ' ');
	out_decimal(&o, 1234, 3);
	out_char(&o, ' ');
	out_decimal(&o, 7, 9);
	out_char(&o, ' ');
	out_decimal(&o, 7, 0);
	out_char(&o, ' ');
	out_decimal(&o, UINT64_MAX, 9);
	out_char(&o, ' ');
	out_decimal(&o, UINT64_MAX, 1);
	out_char(&o, ' ');
	out_decimal(&o, 90, 2);
	out_char(&o, ' ');
	out_decimal(&o, 0, 18);
	ck_assert_slice_eq(out_text(&o), "007 1234 1.234 0.000000007 7 "
	    "18446744073.709551615 1844674407370955161.5 0.90 "
	    "0.000000000000000000");
}
END_TEST

START_TEST(a_piece_fits_exactly_or_not_at_all)
{
	out_init(&o, mem, 4);
	out_put(&o, "ab");
	out_put(&o, "cd");
	ck_assert(!out_is_full(&o));
	out_char(&o, 'e');
	ck_assert(out_is_full(&o));
	ck_assert_slice_eq(out_text(&o), "abcd");
	ck_assert_int_eq(mem[4], '#');
}
END_TEST

START_TEST(nothing_follows_what_did_not_fit)
{
	out_init(&o, mem, 4);
	out_put(&o, "ab");
	out_put(&o, "cde");
	ck_assert(out_is_full(&o));
	out_char(&o, 'x');
	out_number(&o, 1);
	out_json(&o, STR(""));
	out_printf(&o, "%s", "y");
	ck_assert_slice_eq(out_text(&o), "ab");
	ck_assert_int_eq(mem[2], '#');
	out_cut(&o, 1);
	ck_assert(!out_is_full(&o));
	out_put(&o, "xyz");
	ck_assert_slice_eq(out_text(&o), "axyz");
}
END_TEST

START_TEST(a_builder_of_no_bytes_is_full_at_once)
{
	out_init(&o, NULL, 0);
	out_put(&o, "");
	out_printf(&o, "%s", "");
	ck_assert(!out_is_full(&o));
	out_char(&o, 'x');
	ck_assert(out_is_full(&o));
	ck_assert_uint_eq(out_len(&o), 0);
}
END_TEST

START_TEST(room_can_be_taken_and_filled_later)
{
	char *at = out_take(&o, 3);

	ck_assert_ptr_nonnull(at);
	memcpy(at, "xyz", 3);
	out_char(&o, '.');
	ck_assert_slice_eq(out_text(&o), "xyz.");
	ck_assert_ptr_null(out_take(&o, SIZE_MAX));
}
END_TEST

/* --- escaping ----------------------------------------------------------- */

/* { bytes, as JSON without the quotes } */
static const struct { const char *bytes, *json; } jsons[] = {
	{ "",				"" },
	{ "plain /text",		"plain /text" },
	{ "\"",				"\\\"" },
	{ "\\",				"\\\\" },
	{ "a\r\nb",			"a\\u000d\\u000ab" },
	{ "\x01\x1f\x7f",		"\\u0001\\u001f\\u007f" },
	{ "\",\"status\":200",		"\\\",\\\"status\\\":200" },
	{ "\xc3\xa4",			"\xc3\xa4" },
	{ "\xe2\x82\xac",		"\xe2\x82\xac" },
	{ "\xf0\x9f\x98\x80",		"\xf0\x9f\x98\x80" },
	{ "\xf4\x8f\xbf\xbf",		"\xf4\x8f\xbf\xbf" },
	{ "\xc2\x85",			"\\u0085" },	/* NEL */
	{ "\xe2\x80\xa8\xe2\x80\xa9",	"\\u2028\\u2029" },
	{ "\xe4",			"\\u00e4" },	/* Latin-1 */
	{ "\x80",			"\\u0080" },	/* a tail alone */
	{ "\xc3",			"\\u00c3" },	/* cut short */
	{ "\xc3\"",			"\\u00c3\\\"" },
	{ "\xe2\x82",			"\\u00e2\\u0082" },
	{ "\xc0\xa2",			"\\u00c0\\u00a2" },	/* overlong */
	{ "\xe0\x80\xa2",		"\\u00e0\\u0080\\u00a2" },
	{ "\xf0\x80\x80\xa2",		"\\u00f0\\u0080\\u0080\\u00a2" },
	{ "\xed\xa0\x80",		"\\u00ed\\u00a0\\u0080" },
	{ "\xf4\x90\x80\x80",		"\\u00f4\\u0090\\u0080\\u0080" },
	{ "\xf8\x88\x80\x80\x80",
	    "\\u00f8\\u0088\\u0080\\u0080\\u0080" },
	{ "\xff",			"\\u00ff" },
};

START_TEST(no_bytes_leave_a_json_string)
{
	out_json(&o, str_of(jsons[_i].bytes));
	ck_assert_uint_ge(out_len(&o), 2);
	ck_assert_int_eq(mem[0], '"');
	ck_assert_int_eq(mem[out_len(&o) - 1], '"');
	ck_assert_slice_eq(str_make(mem + 1, out_len(&o) - 2),
	    jsons[_i].json);
}
END_TEST

START_TEST(a_nul_is_escaped_too)
{
	out_json(&o, STR("a\0b"));
	ck_assert_slice_eq(out_text(&o), "\"a\\u0000b\"");
}
END_TEST

START_TEST(a_character_does_not_go_on_after_the_slice)
{
	uint32_t c;

	out_json(&o, str_make("\xc3\xa4", 1));
	ck_assert_slice_eq(out_text(&o), "\"\\u00c3\"");
	ck_assert_uint_eq(str_utf8(STR("\xc3\xa4z"), &c), 2);
	ck_assert_uint_eq(c, 0xe4);
	ck_assert_uint_eq(str_utf8(STR("z"), &c), 1);
	ck_assert_uint_eq(c, 'z');
}
END_TEST

/* Wherever in a word of eight bytes it stands, and after however many. */
START_TEST(a_byte_is_escaped_wherever_it_is)
{
	static const struct { char byte; const char *json; } odd[] = {
		{ '"', "\\\"" }, { '\\', "\\\\" }, { 0x1f, "\\u001f" },
		{ 0x7f, "\\u007f" }, { '\xff', "\\u00ff" },
	};
	char text[24], expected[32];

	for (size_t k = 0; k < ARRAY_LEN(odd); k++) {
		memset(text, '!', sizeof text);
		text[_i] = odd[k].byte;
		snprintf(expected, sizeof expected, "\"%.*s%s%.*s\"", _i, text,
		    odd[k].json, (int)sizeof text - _i - 1, text + _i + 1);
		out_init(&o, mem, sizeof mem);
		out_json(&o, str_make(text, sizeof text));
		ck_assert_slice_eq(out_text(&o), expected);
	}
}
END_TEST

START_TEST(a_json_string_is_whole_or_absent)
{
	for (size_t size = 0; size < 10; size++) {
		out_init(&o, mem, size);
		if (size > 0)
			out_char(&o, '[');
		out_json(&o, STR("a\n"));	/* needs 9 */
		ck_assert(out_is_full(&o));
		ck_assert_uint_eq(out_len(&o), MIN(size, 1));
	}
	out_init(&o, mem, 10);
	out_char(&o, '[');
	out_json(&o, STR("a\n"));
	ck_assert(!out_is_full(&o));
}
END_TEST

static const struct { const char *bytes, *logfmt, *quoted; } values[] = {
	{ "",		"\"\"",			"" },
	{ "a",		"a",			"a" },
	{ "/a?b&c;%22",	"/a?b&c;%22",		"/a?b&c;%22" },
	{ "a b",	"\"a b\"",		"a b" },
	{ "a=b",	"\"a=b\"",		"a=b" },
	{ "\"",		"\"\\\"\"",		"\\\"" },
	{ "\\",		"\"\\\\\"",		"\\\\" },
	{ "\\\"",	"\"\\\\\\\"\"",		"\\\\\\\"" },
	{ "a\nb=\"c",	"\"a\\u000ab=\\\"c\"",	"a\\x0ab=\\\"c" },
	{ "\r\t",	"\"\\u000d\\u0009\"",	"\\x0d\\x09" },
	{ "\x1b[0m",	"\"\\u001b[0m\"",	"\\x1b[0m" },
	{ "\x7f",	"\"\\u007f\"",		"\\x7f" },
	{ "\xff",	"\"\\u00ff\"",		"\\xff" },
	{ "\xc3\xa4",	"\"\xc3\xa4\"",		"\\xc3\\xa4" },
	{ "\xe2\x80\xa8", "\"\\u2028\"",	"\\xe2\\x80\\xa8" },
	{ "12345678\" x=1", "\"12345678\\\" x=1\"", "12345678\\\" x=1" },
};

START_TEST(no_bytes_leave_a_value_of_a_log)
{
	out_logfmt(&o, str_of(values[_i].bytes));
	ck_assert_slice_eq(out_text(&o), values[_i].logfmt);
	out_cut(&o, 0);
	out_quoted(&o, str_of(values[_i].bytes));
	ck_assert_slice_eq(out_text(&o), values[_i].quoted);
}
END_TEST

/* Whatever byte it is, and wherever: no end of a line, value or quote. */
START_TEST(any_byte_is_kept_inside)
{
	for (int at = 0; at < 12; at++) {
		char text[12];
		bool escaped = false;

		memset(text, 'a', sizeof text);
		text[at] = (char)_i;
		out_cut(&o, 0);
		out_logfmt(&o, str_make(text, sizeof text));
		bool bare = mem[0] != '"';
		ck_assert(!bare || (_i > ' ' && _i < 0x7f && _i != '='));
		out_cut(&o, 0);
		out_quoted(&o, str_make(text, sizeof text));
		for (size_t i = 0; i < out_len(&o); i++) {
			ck_assert(mem[i] >= ' ' && mem[i] <= '~');
			ck_assert(mem[i] != '"' || escaped);
			escaped = mem[i] == '\\' && !escaped;
		}
		ck_assert(!escaped);
	}
}
END_TEST

START_TEST(escaped_text_is_one_line_of_ascii)
{
	out_escaped(&o, STR("a b\\\n\x1b[0m\xff"));
	ck_assert_slice_eq(out_text(&o), "a b\\\\\\x0a\\x1b[0m\\xff");
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("str");
	TCase *t = tcase_create("slices");

	tcase_add_checked_fixture(t, an_empty_builder, NULL);
	tcase_add_test(t, equal_slices_have_the_same_bytes);
	tcase_add_test(t, case_is_ignored_for_ascii_letters_only);
	tcase_add_test(t, slices_are_ordered_by_bytes_then_length);
	tcase_add_test(t, parts_are_found_where_they_are);
	tcase_add_test(t, only_spaces_and_tabs_are_trimmed);
	tcase_add_loop_test(t, a_split_keeps_empty_pieces, 0,
	    (int)ARRAY_LEN(splits));
	tcase_add_loop_test(t, numbers_are_digits_within_64_bits, 0,
	    (int)ARRAY_LEN(numbers));
	tcase_add_loop_test(t, hexadecimals_are_digits_within_64_bits, 0,
	    (int)ARRAY_LEN(hexes));
	suite_add_tcase(s, t);

	t = tcase_create("builder");
	tcase_add_checked_fixture(t, an_empty_builder, NULL);
	tcase_add_test(t, text_is_built_piece_by_piece);
	tcase_add_test(t, numbers_have_their_digits);
	tcase_add_test(t, numbers_can_be_padded_and_pointed);
	tcase_add_test(t, a_piece_fits_exactly_or_not_at_all);
	tcase_add_test(t, nothing_follows_what_did_not_fit);
	tcase_add_test(t, a_builder_of_no_bytes_is_full_at_once);
	tcase_add_test(t, room_can_be_taken_and_filled_later);
	tcase_add_loop_test(t, no_bytes_leave_a_json_string, 0,
	    (int)ARRAY_LEN(jsons));
	tcase_add_test(t, a_nul_is_escaped_too);
	tcase_add_test(t, a_character_does_not_go_on_after_the_slice);
	tcase_add_loop_test(t, a_byte_is_escaped_wherever_it_is, 0, 24);
	tcase_add_test(t, a_json_string_is_whole_or_absent);
	tcase_add_loop_test(t, no_bytes_leave_a_value_of_a_log, 0,
	    (int)ARRAY_LEN(values));
	tcase_add_loop_test(t, any_byte_is_kept_inside, 0, 256);
	tcase_add_test(t, escaped_text_is_one_line_of_ascii);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	return run_suite(suite());
}
