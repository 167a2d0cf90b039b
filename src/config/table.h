/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - keywords.def and timeouts.def as data, and the way from a row to
 * its value in a struct config.
 *
 * The keywords of a section are its own and then, where it has TIMEOUTS, one
 * for each row of timeouts.def, with the section's prefix before its name.
 *
 * Threads:  any; the tables are constant.
 */
#ifndef PENSTOCK_CONFIG_TABLE_H
#define PENSTOCK_CONFIG_TABLE_H

#include "config/config.h"

enum conf_section_id {
#define SECTION(s, ...)		SECTION_##s,
#define KEYWORD(...)
#define TIMEOUTS(s)
#define END_SECTION(s)
#include "config/keywords.def"
	CONF_SECTIONS
};

enum {
	/* Rows of both tables together. */
	CONF_KEYWORDS = 0
#define SECTION(s, ...)
#define KEYWORD(...)		+ 1
#define TIMEOUTS(s)
#define END_SECTION(s)
#include "config/keywords.def"
#define TIMEOUT(...)		+ 1
#include "config/timeouts.def"
	,
	CONF_NAME_MAX = 40	/* bytes in the name of a keyword or section */
};

struct conf_type;

struct keyword {
	int			 section;	/* -1: a row of timeouts.def */
	const char		*name;		/* without the prefix */
	const struct conf_type	*type;
	size_t			 offset;	/* in the section's struct */
	const char		*fallback, *min, *max;
	bool			 needs_restart;
	const char		*zero;
	const char		*help;
};

struct section {
	const char	*name;
	bool		 is_named;
	const char	*help;
	size_t		 size;		/* of one struct */
	size_t		 at;		/* in struct config: it, or the array */
	size_t		 count_at;	/* in struct config, if named */
	size_t		 origin_at;	/* in the struct, if named */
};

extern const struct section conf_sections[CONF_SECTIONS];

/* A keyword in one section of one configuration. */
struct place {
	const struct section	*section;
	size_t			 index;		/* 0 if not named */
	const struct keyword	*keyword;
};

#define FOR_EACH_SECTION(s)						\
	for (const struct section *s = conf_sections;			\
	    s < conf_sections + CONF_SECTIONS; s++)

#define FOR_EACH_KEYWORD(k, s)						\
	for (const struct keyword *k = keyword_next(s, NULL);		\
	    k != NULL; k = keyword_next(s, k))

/* The keyword of *s after k, or its first if k is NULL; NULL at the end. */
const struct keyword *keyword_next(const struct section *s,
    const struct keyword *k);

/* Its timeouts, if any, are those of [timeouts] unless given. */
bool section_borrows_timeouts(const struct section *s);

/* What stands before k's name in *s: "timeout_" or "". */
const char *keyword_prefix(const struct section *s, const struct keyword *k);

/* Fallback of k in *s: a timeout has one only in [timeouts]. */
const char *keyword_fallback(const struct section *s, const struct keyword *k);

/* Find by name, with its prefix; NULL if there is none. */
const struct section *section_find(const char *name);
const struct keyword *keyword_find(const struct section *s, const char *name);

/* How many of *s there are; 1 if it isn't named. */
size_t section_count(const struct config *c, const struct section *s);

/* The struct of the index-th *s, and the name it has, or "". */
void *section_struct(const struct config *c, const struct section *s,
    size_t index);
const char *section_name(const struct config *c, const struct section *s,
    size_t index);

/* For each of *s, whether one of its values was refused. */
bool *section_broken(const struct config *c, const struct section *s);

/* Where the value is, of the type that its keyword says. */
void *place_value(const struct config *c, const struct place *p);

/* Where it was written; may be changed while the configuration is made. */
struct conf_origin *place_origin(const struct config *c,
    const struct place *p);

#endif
