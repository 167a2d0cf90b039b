/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.c - from the text of a file to a configuration; see config.h.
 *
 * References are kept by name until all is read, since they may point
 * forward.  Then come the rules between keywords, except in sections where a
 * value was refused already: a mistake is reported once, not with all that
 * follows from it.
 */
#include "config/config.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config/check.h"
#include "config/expand.h"
#include "config/file.h"
#include "config/problem.h"
#include "config/store.h"
#include "config/table.h"
#include "config/types.h"

enum {
	LIST_MAX = 4096,	/* elements of a list */
	SECTION_MAX = 10000	/* sections of one kind */
};

/* The name of a section that a keyword refers to. */
struct pending {
	struct place		 place;
	const char		*name;
	struct conf_origin	 at;
};

/* A section of the file. */
struct opened {
	const struct section	*section;	/* NULL: in error, skipped */
	size_t			 index;
};

struct loader {
	struct config		*config;
	struct problems		 problems;
	struct conf_reading	 reading;
	struct conf_origin	 seen[CONF_SECTIONS];	/* if not named */
	struct pending		*pending;
	size_t			 pending_count;
	struct place		 last;		/* keyword NULL: in error */
};

/* Report what is wrong with a value; other rules then spare its section. */
static void __attribute__((format(printf, 4, 5)))
wrong(struct loader *l, const struct place *p, const struct conf_origin *at,
    const char *fmt, ...)
{
	char text[600];
	va_list ap;

	section_broken(l->config, p->section)[p->index] = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	problem(&l->problems, at, "%s%s: %s",
	    keyword_prefix(p->section, p->keyword), p->keyword->name, text);
}

/* --- values ------------------------------------------------------------- */

static void
wait_for(struct loader *l, const struct place *p, const char *name,
    const struct conf_origin *at)
{
	l->pending = store_grow(l->config->store, l->pending,
	    l->pending_count, sizeof *l->pending);
	l->pending[l->pending_count++] = (struct pending){ *p,
	    store_text(l->config->store, str_of(name)), *at };
}

/* The table's own texts always parse; the unit tests see to it. */
static int
compare_with(struct loader *l, const struct keyword *k, const void *value,
    const char *text)
{
	union {
		uint64_t number;
		struct conf_rate rate;
		struct conf_concurrency concurrency;
	} bound;
	bool ok = k->type->parse(&l->reading, k->type, text, &bound);

	ASSERT(ok);
	return k->type->compare(value, &bound);
}

/*
 * 0 is outside the range of some, but means something of its own.  All values
 * with a range begin with the number that tells.
 */
static bool
is_in_range(struct loader *l, const struct keyword *k, const void *value,
    const char *text)
{
	bool has_zero = k->zero[0] != '\0' || k->type == &type_WORKERS;

	if (k->type->compare == NULL ||
	    (has_zero && *(const uint64_t *)value == 0))
		return true;
	return (compare_with(l, k, value, k->min) >= 0 &&
	    compare_with(l, k, value, k->max) <= 0) ||
	    type_fail(&l->reading, "%s is outside %s to %s", text, k->min,
	    k->max);
}

/* Read one scalar or element to where it belongs. */
static bool
set_one(struct loader *l, const struct place *p, const char *text,
    const struct conf_origin *at)
{
	const struct keyword *k = p->keyword;
	void *value = place_value(l->config, p);

	if (strlen(text) > CONF_WORD_MAX)
		return type_fail(&l->reading, "\"%.20s...\" is longer than %d "
		    "bytes", text, CONF_WORD_MAX);
	if (k->type->refers != NULL) {
		wait_for(l, p, text, at);
		return true;
	}
	if (k->type->shape != CONF_SCALAR &&
	    type_count(k->type, value) >= LIST_MAX)
		return type_fail(&l->reading, "more than %d of them",
		    LIST_MAX);
	return k->type->parse(&l->reading, k->type, text, value) &&
	    is_in_range(l, k, value, text);
}

/* Read all elements of a text, which is cut up. */
static bool
set_value(struct loader *l, const struct place *p, char *text,
    const struct conf_origin *at)
{
	char *rest = text;

	if (p->keyword->type->shape != CONF_WORDS)
		return set_one(l, p, text, at);
	while (*(rest += strspn(rest, " \t")) != '\0') {
		char *word = rest;

		rest += strcspn(rest, " \t");
		if (*rest != '\0')
			*rest++ = '\0';
		if (!set_one(l, p, word, at))
			return false;
	}
	return true;
}

/* What a value is before anybody sets it. */
static void
set_fallback(struct loader *l, const struct place *p)
{
	static const struct conf_origin nowhere = { NULL, 0 };
	const struct keyword *k = p->keyword;
	char text[CONF_WORD_MAX + 1];

	if (k->type->clear != NULL)
		k->type->clear(place_value(l->config, p));
	/* A copy, as set_value() cuts it up. */
	snprintf(text, sizeof text, "%s", keyword_fallback(p->section, k));
	if (text[0] != '\0') {
		bool ok = set_value(l, p, text, &nowhere);
		ASSERT(ok);
	}
}

/* --- sections ----------------------------------------------------------- */

/* One more of *s, with its fallbacks; its index. */
static size_t
add_struct(struct loader *l, const struct section *s, const char *name,
    const struct conf_origin *at)
{
	struct config *c = l->config;
	struct conf_origin **origins = &c->store->origins[s - conf_sections];
	bool **broken = &c->store->broken[s - conf_sections];
	size_t index = s->is_named ? section_count(c, s) : 0;

	*origins = store_grow(c->store, *origins, index,
	    CONF_KEYWORDS * sizeof **origins);
	*broken = store_grow(c->store, *broken, index, sizeof **broken);
	if (s->is_named) {
		char *base = (char *)c;
		void **array = (void **)(void *)(base + s->at);

		*array = store_grow(c->store, *array, index, s->size);
		*(size_t *)(void *)(base + s->count_at) = index + 1;
		char *mine = section_struct(c, s, index);
		*(const char **)(void *)mine = store_text(c->store,
		    str_of(name));
		*(struct conf_origin *)(void *)(mine + s->origin_at) = *at;
	}
	FOR_EACH_KEYWORD(k, s)
		set_fallback(l, &(struct place){ s, index, k });
	return index;
}

static void
unknown_section(struct loader *l, const struct conf_origin *at,
    const char *kind)
{
	char hint[NEAREST_HINT];
	struct nearest near;

	nearest_init(&near, kind);
	FOR_EACH_SECTION(s)
		nearest_add(&near, s->name);
	problem(&l->problems, at, "unknown section [%s]%s", kind,
	    nearest_hint(&near, hint, sizeof hint));
}

/* Where that section was written before; file NULL: nowhere. */
static struct conf_origin
find_seen(struct loader *l, const struct section *s, const char *name)
{
	if (!s->is_named)
		return l->seen[s - conf_sections];
	for (size_t i = 0; i < section_count(l->config, s); i++)
		if (strcmp(section_name(l->config, s, i), name) == 0) {
			char *mine = section_struct(l->config, s, i);

			return *(struct conf_origin *)(void *)(mine +
			    s->origin_at);
		}
	return (struct conf_origin){ NULL, 0 };
}

/* Is [s name] right where it stands?  Says what is wrong. */
static bool
may_open(struct loader *l, const struct section *s,
    const struct conf_origin *at, const char *name)
{
	struct conf_origin seen = find_seen(l, s, name);
	const char *gap = name[0] != '\0' ? " " : "";

	if (s->is_named && name[0] == '\0')
		problem(&l->problems, at, "[%s] needs a name: [%s NAME]",
		    s->name, s->name);
	else if (!s->is_named && name[0] != '\0')
		problem(&l->problems, at, "[%s %s]: [%s] has no name", s->name,
		    name, s->name);
	else if (seen.file != NULL)
		problem(&l->problems, at, "[%s%s%s] again; it is at %s:%u",
		    s->name, gap, name, seen.file, seen.line);
	else if (s->is_named && section_count(l->config, s) == SECTION_MAX)
		problem(&l->problems, at, "more than %d [%s] sections",
		    SECTION_MAX, s->name);
	else
		return true;
	return false;
}

/* The keywords of a section that is wrong are skipped. */
static void *
on_section(void *arg, const struct conf_origin *at, const char *kind,
    const char *name)
{
	struct loader *l = arg;
	struct opened *o = store_take(l->config->store, sizeof *o);
	const struct section *s = section_find(kind);

	if (s == NULL && kind[0] != '\0')
		unknown_section(l, at, kind);
	if (s == NULL || !may_open(l, s, at, name))
		return o;
	o->section = s;
	if (s->is_named)
		o->index = add_struct(l, s, name, at);
	else
		l->seen[s - conf_sections] = *at;
	return o;
}

/* --- keywords ----------------------------------------------------------- */

/* "[listener web]" in messages. */
static void
print_section(struct loader *l, const struct opened *o, char *out, size_t size)
{
	const char *name = section_name(l->config, o->section, o->index);

	snprintf(out, size, "[%s%s%s]", o->section->name,
	    name[0] != '\0' ? " " : "", name);
}

/* "; did you mean ...", or the section that has such a keyword. */
static void
hint_at_keyword(struct loader *l, const struct file_value *v, char *out,
    size_t size)
{
	const struct opened *o = v->section;
	struct nearest near;

	FOR_EACH_SECTION(s)
		if (keyword_find(s, v->key) != NULL) {
			snprintf(out, size, "; it belongs to [%s%s]", s->name,
			    s->is_named ? " NAME" : "");
			return;
		}
	nearest_init(&near, v->key);
	FOR_EACH_KEYWORD(k, o->section) {
		char full[CONF_NAME_MAX + 1];

		snprintf(full, sizeof full, "%s%s",
		    keyword_prefix(o->section, k), k->name);
		nearest_add(&near, store_text(l->config->store,
		    str_of(full)));
	}
	nearest_hint(&near, out, size);
}

static void
unknown_keyword(struct loader *l, const struct file_value *v)
{
	const struct opened *o = v->section;
	char where[2 * CONF_NAME_MAX + 4], hint[NEAREST_HINT];

	section_broken(l->config, o->section)[o->index] = true;
	print_section(l, o, where, sizeof where);
	hint_at_keyword(l, v, hint, sizeof hint);
	problem(&l->problems, &v->at, "unknown keyword \"%s\" in %s%s", v->key,
	    where, hint);
}

/* Find where a value belongs; keyword NULL, and said why, if nowhere. */
static struct place
find_place(struct loader *l, const struct file_value *v)
{
	const struct opened *o = v->section;
	struct place p = { .keyword = NULL };

	if (o == NULL)
		problem(&l->problems, &v->at, "\"%s\" stands before the first "
		    "[section]", v->key);
	if (o == NULL || o->section == NULL)
		return p;
	p = (struct place){ o->section, o->index,
	    keyword_find(o->section, v->key) };
	if (p.keyword == NULL)
		unknown_keyword(l, v);
	return p;
}

/* May it be given here?  A list may be repeated, a scalar not. */
static bool
may_give(struct loader *l, const struct place *p, const struct file_value *v)
{
	const struct conf_origin *was = place_origin(l->config, p);

	if (p->keyword->type->shape != CONF_SCALAR || was->file == NULL)
		return true;
	if (v->continues)
		wrong(l, p, &v->at, "has one value, which ends with its line");
	else
		wrong(l, p, &v->at, "given again; it is at %s:%u", was->file,
		    was->line);
	return false;
}

/* What is given first replaces the fallback; the rest adds to it. */
static void
on_value(void *arg, const struct file_value *v)
{
	struct loader *l = arg;
	char text[EXPAND_SIZE];

	if (!v->continues)
		l->last = find_place(l, v);
	struct place p = l->last;
	if (p.keyword == NULL || !may_give(l, &p, v))
		return;

	struct conf_origin *origin = place_origin(l->config, &p);
	if (origin->file == NULL) {
		*origin = v->at;
		if (p.keyword->type->shape != CONF_SCALAR)
			memset(place_value(l->config, &p), 0,
			    sizeof(struct conf_words));
	}
	if (!expand(&l->reading, v->text, text) ||
	    !set_value(l, &p, text, &v->at))
		wrong(l, &p, &v->at, "%s", l->reading.why);
}

/* --- references --------------------------------------------------------- */

static void
missing(struct loader *l, const struct pending *w, const struct section *to)
{
	char hint[NEAREST_HINT];
	struct nearest near;

	nearest_init(&near, w->name);
	for (size_t i = 0; i < section_count(l->config, to); i++)
		nearest_add(&near, section_name(l->config, to, i));
	wrong(l, &w->place, &w->at, "there is no [%s %s]%s", to->name,
	    w->name, nearest_hint(&near, hint, sizeof hint));
}

static void
add_ref(struct loader *l, const struct pending *w, size_t index)
{
	struct conf_refs *refs = place_value(l->config, &w->place);

	for (size_t i = 0; i < refs->count; i++)
		if (refs->at[i] == index) {
			wrong(l, &w->place, &w->at, "\"%s\" is listed twice",
			    w->name);
			return;
		}
	refs->at = store_grow(l->config->store, refs->at, refs->count,
	    sizeof *refs->at);
	refs->at[refs->count++] = (uint32_t)index;
}

static void
resolve(struct loader *l, const struct pending *w)
{
	const struct keyword *k = w->place.keyword;
	const struct section *to = section_find(k->type->refers);
	size_t count = section_count(l->config, to);
	size_t i = 0;

	while (i < count && strcmp(section_name(l->config, to, i),
	    w->name) != 0)
		i++;
	if (i == count)
		missing(l, w, to);
	else if (k->type->shape == CONF_SCALAR)
		*(int *)place_value(l->config, &w->place) = (int)i;
	else
		add_ref(l, w, i);
}

/* --- the public functions ----------------------------------------------- */

static void
start(struct loader *l, FILE *errors)
{
	struct config *c = xcalloc(1, sizeof *c);

	*l = (struct loader){ .config = c, .problems = { errors, 0 } };
	c->store = store_new();
	l->reading.store = c->store;
	c->penstock.name_ = c->log.name_ = c->admin.name_ = "";
	FOR_EACH_SECTION(s)
		if (!s->is_named)
			add_struct(l, s, "", NULL);
}

static struct file_reading
reading_for(struct loader *l)
{
	return (struct file_reading){ .problems = &l->problems,
	    .store = l->config->store, .section = on_section,
	    .value = on_value, .arg = l };
}

/* The configuration, if nothing is wrong with it. */
static struct config *
finish(struct loader *l, const struct file_reading *f, const char *name)
{
	struct config *c = l->config;

	c->penstock.origin = l->seen[SECTION_penstock];
	c->log.origin = l->seen[SECTION_log];
	c->admin.origin = l->seen[SECTION_admin];
	for (size_t i = 0; i < l->pending_count; i++)
		resolve(l, &l->pending[i]);
	if (f->bad_lines == 0)
		check_config(c, name, &l->problems);
	if (l->problems.count > 0)
		config_free(&c);
	return c;
}

struct config *
config_load(const char *path, FILE *errors)
{
	struct loader l;

	start(&l, errors);
	struct file_reading f = reading_for(&l);
	file_read(&f, path);
	return finish(&l, &f, path);
}

struct config *
config_parse(const char *name, const char *text, size_t n, FILE *errors)
{
	struct loader l;

	start(&l, errors);
	struct file_reading f = reading_for(&l);
	file_read_text(&f, text, n, name);
	return finish(&l, &f, name);
}

struct config *
config_builtin(void)
{
	static const char text[] =
	    "[log]\n"
	    "access = stderr\n"
	    "[listener proxy]\n"
	    "mode = forward\n"
	    "bind = 127.0.0.1:8080\n";
	struct config *c = config_parse("built-in", text, sizeof text - 1,
	    stderr);

	ASSERT(c != NULL);
	return c;
}

void
config_free(struct config **c)
{
	if (*c == NULL)
		return;
	store_free(&(*c)->store);
	free(*c);
	*c = NULL;
}

static void
overlay(struct timeouts *out, const struct timeouts *over)
{
#define TIMEOUT(name, ...)						\
	if (over->name != NSEC_NEVER)					\
		out->name = over->name;
#include "config/timeouts.def"
}

void
config_timeouts(struct timeouts *out, const struct config *c,
    const struct conf_listener *listener, const struct conf_upstream *upstream)
{
	*out = c->timeouts;
	if (listener != NULL)
		overlay(out, &listener->timeouts);
	if (upstream != NULL)
		overlay(out, &upstream->timeouts);
}
