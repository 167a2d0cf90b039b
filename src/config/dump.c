/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dump.c - a configuration written as a file, and compared with another.
 *
 * Values are compared by what they are written as; then references are by
 * name, as the operator sees them, and no type needs to be compared.
 */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "config/file.h"
#include "config/table.h"
#include "config/types.h"

enum { ORIGIN_PATH_MAX = 80 };

/* --- values as text ----------------------------------------------------- */

/* Element i as text, to be freed. */
static char *
render(const struct config *c, const struct place *p, size_t i)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (out != NULL) {
		p->keyword->type->print(out, c, place_value(c, p), i);
		fclose(out);
	}
	return text != NULL ? text : xstrdup("");
}

static size_t
count_of(const struct config *c, const struct place *p)
{
	return type_count(p->keyword->type, place_value(c, p));
}

/* "file:line", with the file's end only if it is long; "default". */
static void
render_origin(const struct conf_origin *o, struct out *out)
{
	if (o->file == NULL) {
		out_put(out, "default");
		return;
	}
	struct str file = str_of(o->file);
	if (file.len > ORIGIN_PATH_MAX) {
		out_put(out, "...");
		file = str_skip(file, file.len - ORIGIN_PATH_MAX);
	}
	out_escaped(out, file);
	out_printf(out, ":%u", o->line);
}

/* --- the dump ----------------------------------------------------------- */

/*
 * The origin follows on the line, or goes before it if that gets too long.  A
 * fallback is a comment: given, it could be out of place (check.c).
 */
static void
dump_line(FILE *out, const struct place *p, const char *text,
    const struct conf_origin *origin)
{
	const char *prefix = keyword_prefix(p->section, p->keyword);
	char mem[4 * ORIGIN_PATH_MAX + 32];
	struct out from;

	out_init(&from, mem, sizeof mem);
	render_origin(origin, &from);
	struct str o = str_head(out_text(&from), FILE_LINE_MAX - 2);
	const char *comment = origin->file == NULL ? "; " : "";
	size_t length = strlen(comment) + strlen(prefix) +
	    strlen(p->keyword->name) + strlen(" = ") + strlen(text) +
	    strlen("\t; ") + o.len;
	bool fits = length <= FILE_LINE_MAX;

	if (!fits)
		fprintf(out, "; " STR_FMT "\n", STR_ARG(o));
	fprintf(out, "%s%s%s = %s", comment, prefix, p->keyword->name, text);
	if (fits)
		fprintf(out, "\t; " STR_FMT, STR_ARG(o));
	fputc('\n', out);
}

/* A list that was made empty was so with "off". */
static void
dump_value(FILE *out, const struct config *c, const struct place *p)
{
	const struct conf_origin *origin = place_origin(c, p);
	size_t n = count_of(c, p);
	bool is_empty = true;

	for (size_t i = 0; i < n; i++) {
		char *text = render(c, p, i);

		if (text[0] != '\0') {
			dump_line(out, p, text, origin);
			is_empty = false;
		}
		free(text);
	}
	if (is_empty && origin->file != NULL)
		dump_line(out, p, "off", origin);
	else if (is_empty && keyword_prefix(p->section, p->keyword)[0] == '\0')
		fprintf(out, "; %s is not given\n", p->keyword->name);
}

void
config_dump(FILE *out, const struct config *c)
{
	FOR_EACH_SECTION(s)
		for (size_t i = 0; i < section_count(c, s); i++) {
			const char *name = section_name(c, s, i);

			fprintf(out, "[%s%s%s]\n", s->name,
			    name[0] != '\0' ? " " : "", name);
			FOR_EACH_KEYWORD(k, s)
				dump_value(out, c, &(struct place){ s, i, k });
			fputc('\n', out);
		}
}

/* --- the same, for others to write -------------------------------------- */

static void
each_element(const struct config *c, const struct place *p,
    config_value_fn *fn, void *arg)
{
	const struct conf_origin *origin = place_origin(c, p);
	size_t n = count_of(c, p);
	char name[CONF_NAME_MAX + 1], mem[4 * ORIGIN_PATH_MAX + 32];
	struct out from;
	bool is_empty = true;

	out_init(&from, mem, sizeof mem - 1);
	render_origin(origin, &from);
	mem[out_len(&from)] = '\0';
	snprintf(name, sizeof name, "%s%s",
	    keyword_prefix(p->section, p->keyword), p->keyword->name);
	struct config_value v = {
		.section = p->section->name,
		.name = section_name(c, p->section, p->index),
		.keyword = name,
		.origin = mem,
	};
	for (size_t i = 0; i < n; i++) {
		char *text = render(c, p, i);

		v.text = text;
		if (text[0] != '\0') {
			fn(arg, &v);
			is_empty = false;
		}
		free(text);
	}
	v.text = "off";
	if (is_empty && origin->file != NULL)
		fn(arg, &v);
}

void
config_each(const struct config *c, config_value_fn *fn, void *arg)
{
	FOR_EACH_SECTION(s)
		for (size_t i = 0; i < section_count(c, s); i++)
			FOR_EACH_KEYWORD(k, s)
				each_element(c, &(struct place){ s, i, k },
				    fn, arg);
}

/* --- what a reload may not change --------------------------------------- */

static bool
is_same_value(const struct config *a, const struct place *in_a,
    const struct config *b, const struct place *in_b)
{
	size_t n = count_of(a, in_a);
	bool same = n == count_of(b, in_b);

	for (size_t i = 0; i < n && same; i++) {
		char *x = render(a, in_a, i), *y = render(b, in_b, i);

		same = strcmp(x, y) == 0;
		free(x);
		free(y);
	}
	return same;
}

static void
say_conflict(FILE *out, const struct conf_origin *at,
    const struct section *section, const char *name, const char *what)
{
	if (at->file != NULL)
		fprintf(out, "%s:%u: ", at->file, at->line);
	fprintf(out, "[%s%s%s] %s needs a restart\n", section->name,
	    name[0] != '\0' ? " " : "", name, what);
}

/*
 * The section is in both; compare what only a restart may change.  Those that
 * come and go are none of its business.
 */
static unsigned
compare_sections(FILE *out, const struct config *running, size_t i,
    const struct config *wanted, const struct place *in_wanted)
{
	const struct section *s = in_wanted->section;
	unsigned count = 0;

	FOR_EACH_KEYWORD(k, s) {
		struct place was = { s, i, k };
		struct place is = { s, in_wanted->index, k };
		char what[CONF_NAME_MAX + 16];

		if (!k->needs_restart ||
		    is_same_value(running, &was, wanted, &is))
			continue;
		snprintf(what, sizeof what, "%s: a change", k->name);
		say_conflict(out, place_origin(wanted, &is), s,
		    section_name(wanted, s, is.index), what);
		count++;
	}
	return count;
}

/* The index of the section of that name, or the count if there is none. */
static size_t
find_name(const struct config *c, const struct section *s, const char *name)
{
	size_t i = 0;

	while (i < section_count(c, s) &&
	    strcmp(section_name(c, s, i), name) != 0)
		i++;
	return i;
}

static bool
any_needs_restart(const struct section *s)
{
	FOR_EACH_KEYWORD(k, s)
		if (k->needs_restart)
			return true;
	return false;
}

unsigned
config_reload_conflicts(FILE *out, const struct config *running,
    const struct config *wanted)
{
	unsigned count = 0;

	FOR_EACH_SECTION(s)
		for (size_t i = 0; any_needs_restart(s) &&
		    i < section_count(wanted, s); i++) {
			struct place p = { s, i, NULL };
			size_t was = find_name(running, s,
			    section_name(wanted, s, i));

			if (was < section_count(running, s))
				count += compare_sections(out, running, was,
				    wanted, &p);
		}
	return count;
}
