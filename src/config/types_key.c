/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types_key.c - by what a limit counts apart: client_address, header:NAME, ...
 */
#include <string.h>

#include "base/limit.h"
#include "config/store.h"
#include "config/types.h"

#define HEADER	"header:"

/* A name of a field, RFC 9110, 5.1. */
static bool
is_field_name(const char *text)
{
	static const char others[] = "!#$%&'*+-.^_`|~";
	size_t n = strlen(text);

	if (n == 0 || n > LIMIT_HEADER_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = str_fold(text[i]);

		if ((c < 'a' || c > 'z') && (c < '0' || c > '9') &&
		    strchr(others, c) == NULL)
			return false;
	}
	return true;
}

static bool
parse_key(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	const char *name = text + strlen(HEADER);
	struct conf_key *key = value;

	if (strncmp(text, HEADER, strlen(HEADER)) == 0) {
		if (!is_field_name(name))
			return type_fail(r, "\"%s\" is no name of a header "
			    "of up to %d letters", name, LIMIT_HEADER_MAX);
		key->what = LIMIT_KEY_HEADER;
		key->header = type_lower(r->store, str_of(name));
		return true;
	}
	for (unsigned i = 0; i < LIMIT_KEY_HEADER; i++) {
		if (strcmp(limit_key_words[i], text) != 0)
			continue;
		key->what = (enum limit_key)i;
		key->header = "";
		return true;
	}
	return type_refuse(r, t, text);
}

static void
print_key(FILE *out, const struct config *c, const void *value, size_t i)
{
	const struct conf_key *key = value;

	(void)c, (void)i;
	fputs(limit_key_words[key->what], out);
	if (key->what == LIMIT_KEY_HEADER)
		fprintf(out, ":%s", key->header);
}

static void
clear_key(void *value)
{
	*(struct conf_key *)value = (struct conf_key){ .header = "" };
}

const struct conf_type type_KEY = { .name = "key",
    .hint = "none, client_address, user, host or header:NAME",
    .parse = parse_key, .print = print_key, .clear = clear_key };
