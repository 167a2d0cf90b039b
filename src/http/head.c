/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * head.c - what is asked of a head once it stands; see head.h.
 */
#include "http/head.h"

#include <assert.h>

#include "http/chars.h"

static const struct {
	struct str	text;
	bool		idempotent;
} methods[METHOD_COUNT] = {
	[METHOD_NONE] = { STR_INIT(""), false },
#define METHOD(NAME, text, idempotent)	[METHOD_##NAME] = { STR_INIT(text), \
	    idempotent },
#include "http/methods.def"
};

static_assert(FIELD_IDS <= 64, "a set of fields has 64 bits");

const struct field *
head_find_next(const struct head *h, const struct field *f)
{
	const struct field *end = h->fields + h->count;

	for (const struct field *next = f + 1; next < end; next++) {
		if (next->id == f->id)
			return next;
	}
	return NULL;
}

size_t
head_copy_size(const struct head *h)
{
	return h->count * sizeof *h->fields + h->length;
}

/* Fields first: they are what needs an alignment. */
void
head_copy(struct head *h, void *to)
{
	size_t fields = h->count * sizeof *h->fields;

	if (fields > 0)
		memcpy(to, h->fields, fields);
	memcpy((char *)to + fields, h->base, h->length);
	h->fields = to;
	h->base = (char *)to + fields;
}

bool
head_has_token(const struct head *h, enum field_id id, const char *token)
{
	const struct field *f = head_first(h, id);

	for (; f != NULL; f = head_next(h, f)) {
		struct str rest = field_value(h, f), element;
		while (list_next(&rest, &element)) {
			if (str_equal_nocase(element, str_of(token)))
				return true;
		}
	}
	return false;
}

/* Where the element ends that begins s: at a comma outside of quotes. */
static size_t
element_end(struct str s)
{
	bool quoted = false;

	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] == '"')
			quoted = !quoted;
		else if (quoted && s.at[i] == '\\')
			i++;
		else if (!quoted && s.at[i] == ',')
			return i;
	}
	return s.len;
}

bool
list_next(struct str *rest, struct str *element)
{
	while (rest->len > 0) {
		size_t end = element_end(*rest);
		*element = str_trim(str_head(*rest, end));
		*rest = str_skip(*rest, end + 1);
		if (element->len > 0)
			return true;
	}
	return false;
}

/* "name" or "name/version": RFC 9110 section 7.8. */
static bool
is_protocol(struct str s)
{
	size_t slash = str_find(s, '/');

	return chars_are(str_head(s, slash), CHAR_TOKEN) &&
	    (slash == s.len || chars_are(str_skip(s, slash + 1), CHAR_TOKEN));
}

bool
upgrade_next(struct str *rest, struct str *protocol)
{
	while (list_next(rest, protocol)) {
		if (is_protocol(*protocol) &&
		    !str_starts_nocase(*protocol, STR("h2c")))
			return true;
	}
	return false;
}

/* What a credential or challenge begins with: RFC 9110 section 11.3, 11.4. */
static struct str
scheme_of(struct str s)
{
	size_t n = 0;

	while (n < s.len && char_is(s.at[n], CHAR_TOKEN))
		n++;
	return str_head(s, n);
}

static bool
names_binding_scheme(const struct head *h, const struct field *f)
{
	struct str rest, element;

	for (; f != NULL; f = head_next(h, f)) {
		rest = field_value(h, f);
		while (list_next(&rest, &element)) {
			struct str scheme = scheme_of(element);
			if (str_equal_nocase(scheme, STR("ntlm")) ||
			    str_equal_nocase(scheme, STR("negotiate")))
				return true;
		}
	}
	return false;
}

bool
head_binds_connection(const struct head *h)
{
	const struct field *given = head_first(h, FIELD_AUTHORIZATION);
	const struct field *asked = head_first(h, FIELD_WWW_AUTHENTICATE);

	/* Most have neither. */
	return (given != NULL && names_binding_scheme(h, given)) ||
	    (asked != NULL && names_binding_scheme(h, asked));
}

struct str
method_name(enum method m)
{
	ASSERT((unsigned)m < METHOD_COUNT);
	return methods[m].text;
}

bool
method_is_idempotent(enum method m)
{
	ASSERT((unsigned)m < METHOD_COUNT);
	return methods[m].idempotent;
}
