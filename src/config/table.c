/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c - the tables of keywords; see table.h.
 */
#include "config/table.h"

#include <assert.h>
#include <string.h>

#include "config/store.h"
#include "config/types.h"

/* The words of the tables' columns. */
enum { LIVE = false, RESTART = true };
enum { ONE = false, NAMED = true };
#define NEVER	""
#define OFF	"no limit"
#define CLOSE	"connections are closed after one response"

static const struct keyword keywords[] = {
#define SECTION(s, ...)
#define KEYWORD(s, n, type, fallback, min, max, reload, zero, help)	\
	{ SECTION_##s, #n, &type_##type, offsetof(struct conf_##s, n),	\
	  fallback, min, max, reload, zero, help },
#define TIMEOUTS(s)
#define END_SECTION(s)
#include "config/keywords.def"
#define TIMEOUT(n, fallback, min, max, zero, help)			\
	{ -1, #n, &type_TIME, offsetof(struct timeouts, n),		\
	  fallback, min, max, LIVE, zero, help },
#include "config/timeouts.def"
};

static_assert(ARRAY_LEN(keywords) == CONF_KEYWORDS, "both tables, whole");

/* Where a section's struct has its timeouts; in [timeouts] it is them. */
static const struct { bool has; size_t at; } timeouts_of[CONF_SECTIONS] = {
	[SECTION_timeouts] = { true, 0 },
#define SECTION(s, ...)
#define KEYWORD(...)
#define TIMEOUTS(s) \
	[SECTION_##s] = { true, offsetof(struct conf_##s, timeouts) },
#define END_SECTION(s)
#include "config/keywords.def"
};

/* A named section has an array in struct config, and its count. */
#define AT_ONE(s)	offsetof(struct config, s), 0
#define AT_NAMED(s)	offsetof(struct config, s), \
			offsetof(struct config, s##_count)

const struct section conf_sections[CONF_SECTIONS] = {
#define SECTION(s, kind, help)						\
	{ #s, kind, help, sizeof(struct conf_##s), AT_##kind(s),	\
	  offsetof(struct conf_##s, origin) },
#define KEYWORD(...)
#define TIMEOUTS(s)
#define END_SECTION(s)
#include "config/keywords.def"
};

/* --- walking and finding ------------------------------------------------ */

static int
id_of(const struct section *s)
{
	return (int)(s - conf_sections);
}

const struct keyword *
keyword_next(const struct section *s, const struct keyword *k)
{
	k = k == NULL ? keywords : k + 1;
	for (; k < keywords + ARRAY_LEN(keywords); k++)
		if (k->section == id_of(s) ||
		    (k->section == -1 && timeouts_of[id_of(s)].has))
			return k;
	return NULL;
}

bool
section_borrows_timeouts(const struct section *s)
{
	return timeouts_of[id_of(s)].has && id_of(s) != SECTION_timeouts;
}

const char *
keyword_prefix(const struct section *s, const struct keyword *k)
{
	return k->section == -1 && section_borrows_timeouts(s) ?
	    "timeout_" : "";
}

const char *
keyword_fallback(const struct section *s, const struct keyword *k)
{
	return k->section == -1 && section_borrows_timeouts(s) ?
	    "" : k->fallback;
}

const struct section *
section_find(const char *name)
{
	FOR_EACH_SECTION(s)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

const struct keyword *
keyword_find(const struct section *s, const char *name)
{
	FOR_EACH_KEYWORD(k, s) {
		const char *prefix = keyword_prefix(s, k);
		size_t n = strlen(prefix);

		if (strncmp(name, prefix, n) == 0 &&
		    strcmp(name + n, k->name) == 0)
			return k;
	}
	return NULL;
}

/* --- from rows to values ------------------------------------------------ */

size_t
section_count(const struct config *c, const struct section *s)
{
	if (!s->is_named)
		return 1;
	return *(const size_t *)(const void *)((const char *)c + s->count_at);
}

void *
section_struct(const struct config *c, const struct section *s, size_t index)
{
	char *at = (char *)c + s->at;

	ASSERT(index < section_count(c, s));
	return s->is_named ? *(char **)(void *)at + index * s->size : at;
}

const char *
section_name(const struct config *c, const struct section *s, size_t index)
{
	if (!s->is_named)
		return "";
	/* The name is the first member of all of them. */
	return *(const char **)section_struct(c, s, index);
}

bool *
section_broken(const struct config *c, const struct section *s)
{
	return c->store->broken[id_of(s)];
}

void *
place_value(const struct config *c, const struct place *p)
{
	char *at = section_struct(c, p->section, p->index);

	if (p->keyword->section == -1)
		at += timeouts_of[id_of(p->section)].at;
	return at + p->keyword->offset;
}

struct conf_origin *
place_origin(const struct config *c, const struct place *p)
{
	return &c->store->origins[id_of(p->section)][p->index * CONF_KEYWORDS +
	    (size_t)(p->keyword - keywords)];
}
