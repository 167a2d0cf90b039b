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
		/* Behind the value, or on a line of its own before it. */
		if (strncmp(from, "\t; ", 3) == 0)
			from += strcspn(from, "\n");
		else if (strncmp(from, "\n; ...", 6) == 0)
			from += 1 + strcspn(from + 1, "\n");
		*to++ = *from;
	}
	*to = '\0';
	return text;
}

/* The example; srcdir says where, or it is here. */
static inline char *
read_example(size_t *n)
{
	const char *srcdir = getenv("srcdir");
	char path[512];

	snprintf(path, sizeof path, "%s/conf/penstock.conf",
	    srcdir != NULL ? srcdir : ".");
	FILE *in = fopen(path, "r");
	ck_assert_msg(in != NULL, "%s", path);
	char *text = calloc(1, 65536);
	*n = fread(text, 1, 65535, in);
	ck_assert_uint_lt(*n, 65535);
	fclose(in);
	return text;
}

/* A dump is read again as the same configuration. */
static inline void
expect_round_trip(const struct config *c)
{
	char *with = dump(c, true), *without = dump(c, false);
	struct loaded again = load_bytes(with, strlen(with));

	ck_assert_msg(again.config != NULL, "%.2000s\n%.2000s", again.errors,
	    with);
	char *without_again = dump(again.config, false);
	if (strcmp(without, without_again) != 0)
		ck_abort_msg("%.2000s\n---\n%.2000s", without, without_again);
	free(without_again);
	unload(&again);
	free(without);
	free(with);
}

#endif
