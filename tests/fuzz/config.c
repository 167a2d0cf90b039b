/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.c - fuzz target: penstock.conf.
 *
 * A text is refused with a reason, or its dump means the same.  Nothing is
 * included: the target reads no files.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"

/* A configuration, or messages; never both. */
static struct config *
load(struct str in)
{
	char *errors;
	size_t n;
	FILE *to = open_memstream(&errors, &n);

	HOLDS(to != NULL);
	struct config *c = config_parse("x.conf", in.at, in.len, to);
	fclose(to);
	HOLDS((c == NULL) == (n > 0));
	HOLDS(c != NULL || errors[n - 1] == '\n');
	free(errors);
	return c;
}

static char *
dump(const struct config *c, size_t *n)
{
	char *text;
	FILE *to = open_memstream(&text, n);

	HOLDS(to != NULL);
	config_dump(to, c);
	fclose(to);
	return text;
}

/* A dump without what it says about files and lines. */
static struct str
without_origins(char *text)
{
	char *to = text;

	for (char *from = text; *from != '\0'; from++) {
		if (strncmp(from, "\t; ", 3) == 0)
			from += strcspn(from, "\n");
		else if (strncmp(from, "\n; ...", 6) == 0)
			from += 1 + strcspn(from + 1, "\n");
		*to++ = *from;
	}
	return str_make(text, (size_t)(to - text));
}

static bool
includes(struct str in)
{
	for (; in.len > 0; in = str_skip(in, 1)) {
		if (str_starts_nocase(in, STR("include")))
			return true;
	}
	return false;
}

void
fuzz_one(struct str in)
{
	size_t n, m;

	if (includes(in))
		return;
	struct config *c = load(in);
	if (c == NULL)
		return;
	char *first = dump(c, &n);
	config_free(&c);
	c = load(str_make(first, n));
	HOLDS(c != NULL);
	char *second = dump(c, &m);
	fuzz_same(without_origins(second), without_origins(first));
	config_free(&c);
	free(first);
	free(second);
}
