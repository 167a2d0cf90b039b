/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expand.c - variables in values; see expand.h.
 */
#include "config/expand.h"

#include <stdlib.h>
#include <string.h>

static bool
is_variable_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = str_fold(s.at[i]);

		if (!(c >= 'a' && c <= 'z') && c != '_' &&
		    (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return s.len > 0 && s.len <= CONF_WORD_MAX;
}

/* Append what "NAME" or "NAME:-default" stands for. */
static bool
add_variable(struct conf_reading *r, struct str inside, struct out *o)
{
	char name[CONF_WORD_MAX + 1];
	size_t colon = str_find(inside, ':');
	struct str rest = str_skip(inside, colon);
	bool has_default = str_starts(rest, STR(":-"));
	struct str n = str_head(inside, colon);

	if (!is_variable_name(n) || (rest.len > 0 && !has_default))
		return type_fail(r, "\"${" STR_FMT "}\" is not ${NAME} or "
		    "${NAME:-default}", STR_ARG(inside));
	memcpy(name, n.at, n.len);
	name[n.len] = '\0';

	const char *value = getenv(name);
	if (value != NULL && (value[0] != '\0' || !has_default)) {
		out_put(o, value);
		return true;
	}
	if (!has_default)
		return type_fail(r, "the variable %s is not set", name);
	out_str(o, str_skip(rest, 2));
	return true;
}

/* Append `text` with its variables. */
static bool
add_all(struct conf_reading *r, struct str text, struct out *o)
{
	while (text.len > 0) {
		if (!str_starts(text, STR("${"))) {
			out_char(o, text.at[0]);
			text = str_skip(text, 1);
			continue;
		}
		size_t end = str_find(text, '}');
		if (end == text.len)
			return type_fail(r, "\"" STR_FMT "\" has no }",
			    STR_ARG(text));
		if (!add_variable(r, str_make(text.at + 2, end - 2), o))
			return false;
		text = str_skip(text, end + 1);
	}
	return true;
}

/*
 * Nothing that a line of the file could not have held, so that a dump can be
 * read again.
 */
static bool
is_one_value(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.at[i];
		char before = i > 0 ? s.at[i - 1] : ' ';

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
		if (c == ';' && (before == ' ' || before == '\t'))
			return false;
		if (c == '{' && before == '$')
			return false;
	}
	return true;
}

bool
expand(struct conf_reading *r, const char *text, char *out)
{
	struct out o;

	out_init(&o, out, EXPAND_SIZE - 1);
	if (!add_all(r, str_of(text), &o))
		return false;
	if (out_is_full(&o))
		return type_fail(r, "longer than %d bytes with its variables",
		    EXPAND_SIZE - 1);
	struct str s = str_trim(out_text(&o));
	if (!is_one_value(s))
		return type_fail(r, "a value can't have control bytes, ${ "
		    "from a variable, or a ; at its start or after a blank");
	if (s.len == 0)
		return type_fail(r, "needs a value");
	memmove(out, s.at, s.len);
	out[s.len] = '\0';
	return true;
}
