/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trailers.c - few messages have any, so a walk through a list will do; see
 * trailers.h.
 */
#include "http/trailers.h"

/* What may not be one. */
static const struct str headers[] = {
#define FIELD(ID, name, ...)	STR_INIT(name),
#define HEADER(name)		STR_INIT(name),
#include "http/fields.def"
};

bool
trailers_wanted(const struct head *request)
{
	return request->minor >= 1 &&
	    head_has_token(request, FIELD_TE, "trailers");
}

static bool
is_header(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		if (str_equal_nocase(name, headers[i]))
			return true;
	}
	return false;
}

static bool
is_named(struct str named, struct str name)
{
	struct str option;

	while (str_split(&named, ',', &option)) {
		if (str_equal_nocase(str_trim(option), name))
			return true;
	}
	return false;
}

size_t
trailers_filter(char *lines, size_t n, struct str named)
{
	struct str rest = str_make(lines, n);
	size_t kept = 0;

	while (!str_starts(rest, STR("\r\n"))) {
		/* A CR ends a line: there is no other in what was scanned. */
		struct str line = str_head(rest, str_find(rest, '\r') + 2);
		struct str name = str_head(line, str_find(line, ':'));

		ASSERT(str_ends(line, STR("\r\n")));
		rest = str_skip(rest, line.len);
		if (is_header(name) || is_named(named, name))
			continue;
		memmove(lines + kept, line.at, line.len);
		kept += line.len;
	}
	memmove(lines + kept, rest.at, rest.len);
	return kept + rest.len;
}
