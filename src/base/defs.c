/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * defs.c - what the macros of defs.h call; see there.
 */
#include "base/defs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
assert_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "penstock: %s:%d: broken invariant: %s\n", file, line,
	    what);
	abort();
}

static void *
or_exit(void *p)
{
	if (p == NULL) {
		fputs("penstock: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	return p;
}

const char *
callback_name(const char *name)
{
	static const char top[] = "src/";
	const char *found, *rest = name;

	if (name == NULL)
		return "?";
	while ((found = strstr(rest, top)) != NULL)
		rest = found + sizeof top - 1;
	return rest;
}

void *
xcalloc(size_t n, size_t size)
{
	return or_exit(calloc(n != 0 ? n : 1, size));
}

void *
xrealloc(void *p, size_t size)
{
	return or_exit(realloc(p, size != 0 ? size : 1));
}

char *
xstrdup(const char *s)
{
	return or_exit(strdup(s));
}

void *
xcalloc_lines(size_t size)
{
	size_t whole = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

	return memset(or_exit(aligned_alloc(CACHE_LINE, whole)), 0, whole);
}
