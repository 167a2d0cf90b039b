/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * problem.c - what is wrong with a configuration; see problem.h.
 */
#include "config/problem.h"

#include <stdarg.h>
#include <string.h>

#include "base/str.h"

/* Longer words than any valid one are compared by their beginning. */
enum { WORD_MAX = 48 };

void
problem(struct problems *p, const struct conf_origin *at, const char *fmt, ...)
{
	va_list ap;

	p->count++;
	if (p->count == PROBLEMS_SHOWN + 1)
		fputs("and more\n", p->out);
	if (p->count > PROBLEMS_SHOWN)
		return;
	fputs(at->file, p->out);
	if (at->line > 0)
		fprintf(p->out, ":%u", at->line);
	fputs(": ", p->out);
	va_start(ap, fmt);
	vfprintf(p->out, fmt, ap);
	va_end(ap);
	fputc('\n', p->out);
}

bool
problems_are_many(const struct problems *p)
{
	return p->count > PROBLEMS_SHOWN;
}

/* How many letters to insert, leave out or replace (Levenshtein). */
static unsigned
distance(struct str a, struct str b)
{
	unsigned row[WORD_MAX + 1];

	a = str_head(a, WORD_MAX);
	b = str_head(b, WORD_MAX);
	for (unsigned j = 0; j <= b.len; j++)
		row[j] = j;
	for (unsigned i = 1; i <= a.len; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= b.len; j++) {
			bool same = str_fold(a.at[i - 1]) ==
			    str_fold(b.at[j - 1]);
			unsigned replaced = diagonal + (same ? 0 : 1);

			diagonal = row[j];
			row[j] = MIN(replaced, MIN(row[j], row[j - 1]) + 1);
		}
	}
	return row[b.len];
}

void
nearest_add(struct nearest *n, const char *word)
{
	unsigned d = distance(str_of(n->wanted), str_of(word));

	if (n->word == NULL || d < n->distance) {
		n->word = word;
		n->distance = d;
	}
}

char *
nearest_hint(const struct nearest *n, char *out, size_t size)
{
	out[0] = '\0';
	if (n->word == NULL)
		return out;
	if (n->distance <= 1 + strlen(n->word) / 3)
		snprintf(out, size, "; did you mean \"%s\"?", n->word);
	else
		snprintf(out, size, "; the nearest is \"%s\"", n->word);
	return out;
}
