/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loading.h - configurations from texts, for tests.
 */
#ifndef PENSTOCK_TESTS_CONFIG_LOADING_H
#define PENSTOCK_TESTS_CONFIG_LOADING_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

/* What a load gave: a configuration or messages. */
struct loaded {
	struct config	*config;
	char		*errors;
};

/* Enough for any of the other sections to be right. */
#define TCP_LISTENER \
	"[listener t]\nmode = tcp\nbind = 127.0.0.1:1\nupstream = u\n" \
	"[upstream u]\nserver = 127.0.0.1:2\n"

static inline struct loaded
load_bytes(const char *text, size_t n)
{
	struct loaded l = { NULL, NULL };
	size_t size;
	FILE *errors = open_memstream(&l.errors, &size);

	l.config = config_parse("x.conf", text, n, errors);
	fclose(errors);
	return l;
}

static inline struct loaded
load_path(const char *path)
{
	struct loaded l = { NULL, NULL };
	size_t size;
	FILE *errors = open_memstream(&l.errors, &size);

	l.config = config_load(path, errors);
	fclose(errors);
	return l;
}

static inline void
unload(struct loaded *l)
{
	config_free(&l->config);
	free(l->errors);
	l->errors = NULL;
}

/* The configuration of a text that must be right. */
static inline struct config *
load_right(const char *text)
{
	struct loaded l = load_bytes(text, strlen(text));

	ck_assert_str_eq(l.errors, "");
	ck_assert_ptr_nonnull(l.config);
	free(l.errors);
	return l.config;
}

/* The text must give exactly this, which is all lines of the messages. */
static inline void
expect_errors(const char *text, const char *errors)
{
	struct loaded l = load_bytes(text, strlen(text));

	ck_assert_str_eq(l.errors, errors);
	ck_assert_ptr_null(l.config);
	unload(&l);
}

/* One of the lines must be this. */
static inline void
expect_error(const char *text, size_t n, const char *error)
{
	struct loaded l = load_bytes(text, n);
	char line[700];

	snprintf(line, sizeof line, "%s\n", error);
	ck_assert_msg(strstr(l.errors, line) != NULL,
	    "\"%s\" is not in:\n%s", error, l.errors);
	ck_assert_ptr_null(l.config);
	unload(&l);
}

/* What config_dump() writes, to be freed; without origins if asked. */
static inline char *
dump(const struct config *c, bool with_origins)
{
	char *text, *to;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	config_dump(out, c);
	fclose(out);
	if (with_origins)
		return text;
	to = text;
	for (char *from = text; *from != '\0'; from++) {
		if (*from == '\t' && from[1] == ';')
			from += strcspn(from, "\n");
		*to++ = *from;
	}
	*to = '\0';
	return text;
}

#endif
