/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * problem.h - what is wrong with a configuration: all of it, not the first.
 *
 * Owner:    the caller, who embeds the struct and keeps the stream.
 * Threads:  one.
 * Limits:   PROBLEMS_SHOWN are written, then that there are more.
 */
#ifndef PENSTOCK_CONFIG_PROBLEM_H
#define PENSTOCK_CONFIG_PROBLEM_H

#include "config/config.h"

enum { PROBLEMS_SHOWN = 100 };

struct problems {
	FILE		*out;
	unsigned	 count;
};

/*
 * Write one line: "file:line: ...", with "file: ..." for line 0.
 */
void problem(struct problems *p, const struct conf_origin *at,
    const char *fmt, ...) PRINTF(3, 4);

/* There were so many that reading on is of no use. */
bool problems_are_many(const struct problems *p);

/* Candidates for a word that nobody knows, fed one by one. */
struct nearest {
	const char	*wanted;
	const char	*word;		/* the best so far; NULL: none */
	unsigned	 distance;
};

static inline void
nearest_init(struct nearest *n, const char *wanted)
{
	*n = (struct nearest){ wanted, NULL, 0 };
}

void nearest_add(struct nearest *n, const char *word);

/*
 * "; did you mean "x"?" or, if it is far away, "; the nearest is "x"", or ""
 * if there was no candidate.  The text is in `out`, which is returned.
 */
char *nearest_hint(const struct nearest *n, char *out, size_t size);

enum { NEAREST_HINT = 80 };	/* for `out` */

#endif
