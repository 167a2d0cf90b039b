/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.c - the syntax of penstock.conf; see file.h.
 *
 * inih calls for a line, then hands over what is in it before it calls for
 * the next.  So what the reader remembers of its line, the handler may use.
 * A line that is in error or has nothing for inih goes to it as a blank one.
 */
#include "config/file.h"

#include <sys/stat.h>

#include <assert.h>
#include <errno.h>
#include <glob.h>
#include <ini.h>
#include <stdarg.h>
#include <string.h>

#include "config/expand.h"
#include "config/store.h"

/* A file that was opened, so that no file is read twice. */
struct file_seen {
	struct file_seen	*next;
	dev_t			 dev;
	ino_t			 ino;
};

/* One file, while it is read. */
struct reader {
	struct file_reading	*all;
	struct reader		*includer;	/* NULL for the first */
	FILE			*in;
	struct conf_origin	 at;
	void			*section;
	unsigned		 depth;
	size_t			 bytes;
	bool			 may_include;	/* the section allows it */
	bool			 has_key;	/* to continue */
	bool			 continues;	/* the line, what is above */
	char			 line[FILE_LINE_MAX + 1];
};

static void read_included(struct reader *r, const char *path);

static void __attribute__((format(printf, 2, 3)))
complain(struct reader *r, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	r->all->bad_lines++;
	problem(r->all->problems, &r->at, "%s", text);
}

/* --- lines -------------------------------------------------------------- */

enum line { LINE_END, LINE_BAD, LINE_GOOD };

/* What a line can't be read for, or NULL. */
static const char *
what_is_wrong(const char *line, size_t n, bool too_long)
{
	if (memchr(line, '\0', n) != NULL)
		return "a NUL byte";
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)line[i];

		if (c == '\r')
			return "a carriage return; lines end with a newline "
			    "alone";
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return "a control byte";
	}
	return too_long ? "the line is longer than 198 bytes" : NULL;
}

static_assert(FILE_LINE_MAX == 198, "as the message says");

/* One line of the file, whatever its length, to r->line. */
static enum line
take_line(struct reader *r)
{
	size_t n = 0;
	bool too_long = false;
	int c;

	while ((c = getc(r->in)) != EOF && c != '\n' &&
	    r->bytes < FILE_BYTES_MAX) {
		r->bytes++;
		if (n < FILE_LINE_MAX)
			r->line[n++] = (char)c;
		else
			too_long = true;
	}
	r->line[n] = '\0';
	if (c == EOF && n == 0)
		return LINE_END;
	r->bytes++;
	r->at.line++;
	const char *why = what_is_wrong(r->line, n, too_long);
	if (why != NULL)
		complain(r, "%s", why);
	return why != NULL ? LINE_BAD : LINE_GOOD;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The line without comment and without blanks at its ends. */
static struct str
bare(const char *line)
{
	struct str s = str_trim(str_of(line));

	if (s.len > 0 && s.at[0] == '#')
		return STR("");
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] == ';' && (i == 0 || is_blank(s.at[i - 1])))
			return str_trim(str_head(s, i));
	return s;
}

/* --- what a line can be ------------------------------------------------- */

static bool
is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = str_fold(s.at[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '_' && c != '.')
			return false;
	}
	return s.len > 0;
}

/* Check a name and copy it to `out`, of CONF_NAME_MAX + 1 bytes. */
static bool
take_name(struct reader *r, struct str s, char *out)
{
	if (!is_name(s)) {
		complain(r, "\"" STR_FMT "\" is no name: letters, digits, -, "
		    "_ and . make one", STR_ARG(s));
		return false;
	}
	if (s.len > CONF_NAME_MAX) {
		complain(r, "the name \"" STR_FMT "\" is longer than %d bytes",
		    STR_ARG(s), CONF_NAME_MAX);
		return false;
	}
	memcpy(out, s.at, s.len);
	out[s.len] = '\0';
	return true;
}

static void
open_section(struct reader *r, const char *kind, const char *name)
{
	r->has_key = false;
	r->may_include = strcmp(kind, "penstock") == 0;
	r->section = r->all->section(r->all->arg, &r->at, kind, name);
}

/*
 * "[kind]" or "[kind NAME]".  inih gets it too, to end what is above.  After
 * one that can't be read, what follows belongs to no section.
 */
static bool
take_section(struct reader *r, struct str s)
{
	char kind[CONF_NAME_MAX + 1], name[CONF_NAME_MAX + 1] = "";
	size_t gap = 0;

	if (str_find(s, ']') != s.len - 1) {
		complain(r, "a section is [kind] or [kind NAME], alone on its "
		    "line");
		open_section(r, "", "");
		return false;
	}
	s = str_trim(str_make(s.at + 1, s.len - 2));
	while (gap < s.len && !is_blank(s.at[gap]))
		gap++;
	struct str second = str_trim(str_skip(s, gap));
	bool good = take_name(r, str_head(s, gap), kind) &&
	    (second.len == 0 || take_name(r, second, name));
	open_section(r, good ? kind : "", good ? name : "");
	return good;
}

/* Where the = of "word = value" is, or s.len if it's nothing of the kind. */
static size_t
find_equals(struct str s)
{
	size_t i = 0;

	while (i < s.len && !is_blank(s.at[i]) && s.at[i] != '=')
		i++;
	while (i < s.len && is_blank(s.at[i]))
		i++;
	return i < s.len && s.at[i] == '=' ? i : s.len;
}

/* Check the key of "key = value". */
static bool
take_key(struct reader *r, struct str s, size_t equals)
{
	char name[CONF_NAME_MAX + 1];

	r->has_key = take_name(r, str_trim(str_head(s, equals)), name);
	if (r->has_key && str_trim(str_skip(s, equals + 1)).len == 0) {
		complain(r, "%s: needs a value", name);
		return false;
	}
	return r->has_key;
}

/* Decide what the line is; false if inih must not see it. */
static bool
take_bare(struct reader *r, struct str s, bool is_indented)
{
	size_t equals = find_equals(s);

	if (!is_indented && s.at[0] == '[')
		return take_section(r, s);
	if (equals < s.len)
		return take_key(r, s, equals);
	if (!is_indented)
		complain(r, "expected keyword = value or [section]");
	else if (!r->has_key)
		complain(r, "this continues a list, but there is none above");
	else
		r->continues = true;
	return r->continues;
}

/*
 * ini_reader: the next line for inih, or NULL at the end.  To continue a
 * value, inih wants a blank in front; nothing else may have one.
 */
static char *
next_line(char *out, int size, void *stream)
{
	static const struct str bom = STR_INIT("\xef\xbb\xbf");
	struct reader *r = stream;
	enum line got = take_line(r);

	if (got == LINE_END || problems_are_many(r->all->problems))
		return NULL;
	if (r->bytes >= FILE_BYTES_MAX) {
		complain(r, "the file is larger than 4 MiB");
		return NULL;
	}
	bool is_bom = r->at.line == 1 && str_starts(str_of(r->line), bom);
	const char *line = r->line + (is_bom ? bom.len : 0);
	struct str s = bare(line);
	r->continues = false;

	bool good = got == LINE_GOOD && s.len > 0 &&
	    take_bare(r, s, is_blank(line[0]));
	if (good && s.len + 3 > (size_t)size) {
		complain(r, "the line is longer than %d bytes", size - 3);
		good = false;
	}
	if (!good)
		s.len = 0;
	snprintf(out, (size_t)size, "%s" STR_FMT "\n",
	    r->continues && good ? " " : "", STR_ARG(s));
	return out;
}

static_assert(FILE_BYTES_MAX == 4 << 20, "as the message says");

/* ini_handler: a key and a value of the line that was read last. */
static int
on_value(void *user, const char *section, const char *name, const char *value)
{
	struct reader *r = user;
	struct file_value v = { r->at, r->section, name, value, r->continues };

	(void)section;
	if (strcmp(name, "include") != 0)
		r->all->value(r->all->arg, &v);
	else if (r->continues)
		complain(r, "include: has one value; it may be repeated");
	else if (!r->may_include)
		complain(r, "include: may stand only before the first section "
		    "or in [penstock]");
	else
		read_included(r, value);
	return 1;
}

/* --- files -------------------------------------------------------------- */

/* Remember the open file; false if it was read before, or is a directory. */
static bool
is_readable_once(struct reader *r, const char *path)
{
	struct file_reading *f = r->all;
	struct reader *from = r->includer != NULL ? r->includer : r;
	struct stat st;

	if (fstat(fileno(r->in), &st) == -1) {
		complain(from, "cannot read %s: %s", path, strerror(errno));
		return false;
	}
	if (S_ISDIR(st.st_mode)) {
		complain(from, "cannot read %s: it is a directory", path);
		return false;
	}
	for (struct file_seen *s = f->seen; s != NULL; s = s->next)
		if (s->dev == st.st_dev && s->ino == st.st_ino) {
			complain(from, "%s was read already", path);
			return false;
		}
	struct file_seen *s = store_take(f->store, sizeof *s);
	*s = (struct file_seen){ f->seen, st.st_dev, st.st_ino };
	f->seen = s;
	return true;
}

static void
read_lines(struct reader *r)
{
	unsigned before = r->all->problems->count;
	int bad = ini_parse_stream(next_line, r, on_value, r);

	if (ferror(r->in)) {
		r->at.line++;
		complain(r, "cannot read on: %s", strerror(errno));
	} else if (bad != 0 && r->all->problems->count == before) {
		/* Our reader is stricter than inih; this is to be sure. */
		r->at.line = bad > 0 ? (unsigned)bad : 0;
		complain(r, "cannot be understood");
	}
}

/* Read one file; `includer` is NULL for the first. */
static void
read_path(struct file_reading *f, struct reader *includer, const char *path)
{
	struct reader r = { .all = f, .includer = includer,
	    .may_include = true };

	r.at.file = store_text(f->store, str_of(path));
	r.depth = includer == NULL ? 0 : includer->depth + 1;
	r.in = fopen(path, "re");
	if (r.in == NULL) {
		complain(includer != NULL ? includer : &r,
		    "cannot read %s: %s", path, strerror(errno));
		return;
	}
	if (is_readable_once(&r, path))
		read_lines(&r);
	fclose(r.in);
}

void
file_read(struct file_reading *f, const char *path)
{
	read_path(f, NULL, path);
}

void
file_read_text(struct file_reading *f, const char *text, size_t n,
    const char *name)
{
	struct reader r = { .all = f, .may_include = true };

	r.at.file = store_text(f->store, str_of(name));
	/* A stream that is only read never writes to its memory. */
	r.in = fmemopen((void *)(uintptr_t)text, n, "r");
	if (r.in == NULL) {
		complain(&r, "cannot be read: %s", strerror(errno));
		return;
	}
	read_lines(&r);
	fclose(r.in);
}

/* --- include ------------------------------------------------------------ */

/*
 * The path of an include: a relative one begins in the folder of the file
 * that includes it.  For glob() that folder is escaped, as it is no pattern.
 */
static bool
make_path(const struct reader *r, const char *path, bool escape,
    struct out *o)
{
	struct str file = str_of(r->at.file);
	size_t slash = str_find_last(file, '/');

	for (size_t i = 0; path[0] != '/' && slash < file.len && i <= slash;
	    i++) {
		if (escape && strchr("*?[\\", file.at[i]) != NULL)
			out_char(o, '\\');
		out_char(o, file.at[i]);
	}
	out_put(o, path);
	out_char(o, '\0');
	return !out_is_full(o);
}

/* A folder that can't be read is an error; one without a match is none. */
static void
read_matches(struct reader *r, const char *pattern)
{
	glob_t found = { .gl_pathc = 0 };
	int err = glob(pattern, GLOB_ERR, NULL, &found);

	if (err != 0 && err != GLOB_NOMATCH)
		complain(r, "include: cannot look for %s: %s", pattern,
		    strerror(err == GLOB_NOSPACE ? ENOMEM : errno));
	for (size_t i = 0; err == 0 && i < found.gl_pathc; i++)
		read_path(r->all, r, found.gl_pathv[i]);
	globfree(&found);
}

static void
read_included(struct reader *r, const char *value)
{
	struct conf_reading reading = { .store = r->all->store };
	char path[EXPAND_SIZE], full[3 * EXPAND_SIZE];
	struct out o;

	if (!expand(&reading, value, path)) {
		complain(r, "include: %s", reading.why);
		return;
	}
	bool is_pattern = strpbrk(path, "*?[") != NULL;
	out_init(&o, full, sizeof full);
	if (r->depth + 1 >= FILE_DEPTH_MAX)
		complain(r, "include: more than %d files deep",
		    FILE_DEPTH_MAX);
	else if (!make_path(r, path, is_pattern, &o))
		complain(r, "include: the path is too long");
	else if (is_pattern)
		read_matches(r, full);
	else
		read_path(r->all, r, full);
}
