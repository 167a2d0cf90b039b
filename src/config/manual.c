/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * manual.c - the KEYWORDS part of penstock.conf(5), from the tables.
 */
#include "config/config.h"

#include <string.h>

#include "base/str.h"
#include "config/table.h"
#include "config/types.h"

enum { MANUAL_WIDTH = 76 };

/*
 * Text for mdoc: a line ends with its sentence, and before MANUAL_WIDTH
 * otherwise.
 */
static void
write_text(FILE *out, const char *text)
{
	size_t column = 0;

	while (*(text += strspn(text, " ")) != '\0') {
		size_t n = strcspn(text, " ");
		bool ends = text[n - 1] == '.' && text[n] == ' ' &&
		    text[n + 1] == ' ';

		if (column > 0 && column + 1 + n > MANUAL_WIDTH) {
			fputc('\n', out);
			column = 0;
		}
		fprintf(out, "%s%.*s", column > 0 ? " " : "", (int)n, text);
		column += n + (column > 0 ? 1 : 0);
		text += n;
		if (ends) {
			fputc('\n', out);
			column = 0;
		}
	}
	fputc('\n', out);
}

/* "One of a, b or c". */
static void
put_choice(struct out *o, const char *const *words)
{
	out_put(o, words[1] == NULL ? "Only " : "One of ");
	out_put(o, words[0]);
	for (size_t i = 1; words[i] != NULL; i++) {
		out_put(o, words[i + 1] == NULL ? " or " : ", ");
		out_put(o, words[i]);
	}
}

/* What it can be, and what it is if nobody says. */
static void
put_values(struct out *o, const struct keyword *k)
{
	if (k->type->words != NULL)
		put_choice(o, k->type->words);
	else
		out_printf(o, "A %s", k->type->name);
	if (k->min[0] != '\0')
		out_printf(o, " from %s to %s", k->min, k->max);
	if (k->fallback[0] != '\0')
		out_printf(o, "; %s if not given", k->fallback);
	out_put(o, ".");
	if (k->zero[0] != '\0')
		out_printf(o, "  0: %s.", k->zero);
	if (k->type->shape == CONF_LINES)
		out_put(o, "  For several, repeat the keyword or continue on "
		    "indented lines, one on each.");
	if (k->needs_restart)
		out_put(o, "  A change needs a restart.");
}

static void
write_keyword(FILE *out, const struct keyword *k)
{
	char mem[400];
	struct out o;

	fprintf(out, ".It Ic %s\n", k->name);
	write_text(out, k->help);
	out_init(&o, mem, sizeof mem);
	put_values(&o, k);
	out_char(&o, '\0');
	ASSERT(!out_is_full(&o));
	write_text(out, mem);
}

void
config_manual(FILE *out)
{
	FOR_EACH_SECTION(s) {
		bool borrows = section_borrows_timeouts(s);

		fprintf(out, ".Ss [%s%s]\n", s->name,
		    s->is_named ? " NAME" : "");
		write_text(out, s->help);
		fputs(".Bl -tag -width Ds\n", out);
		FOR_EACH_KEYWORD(k, s)
			if (!borrows || keyword_prefix(s, k)[0] == '\0')
				write_keyword(out, k);
		if (borrows)
			fprintf(out, ".It Ic timeout_NAME\nThe time NAME of "
			    "[timeouts], for this %s alone.\n", s->name);
		fputs(".El\n", out);
	}
}
