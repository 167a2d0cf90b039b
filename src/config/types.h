/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types.h - how the values of each type are read, compared and written.
 *
 * A type is a row: type_COUNT, type_TIME, ...  Each reads one text into the
 * value, and each writes what it would read as the same value again.  A list
 * reads one element at a time and adds it to the value; in a file its
 * elements are the words of a value or, for a list of lines, whole values.
 * Types that refer to a section are resolved elsewhere; they have no parse.
 *
 * Threads:  any; the rows are constant.
 */
#ifndef PENSTOCK_CONFIG_TYPES_H
#define PENSTOCK_CONFIG_TYPES_H

#include "base/str.h"
#include "config/config.h"

struct conf_store;
struct conf_type;

enum {
	CONF_WORD_MAX = 150	/* bytes of a scalar or an element of a list */
};

/* What reading takes: memory that lasts, and room to say why not. */
struct conf_reading {
	struct conf_store	*store;
	char			 why[320];
};

/* False, with r->why, if `text` is not of the type; then *value is as was. */
typedef bool conf_parse_fn(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value);

/* Write the value; of a list, element i. */
typedef void conf_print_fn(FILE *out, const struct config *c, const void *value,
    size_t i);

/* Make the value one that is not given. */
typedef void conf_clear_fn(void *value);

/* Less than, equal to or greater than 0. */
typedef int conf_compare_fn(const void *a, const void *b);

enum conf_shape { CONF_SCALAR, CONF_WORDS, CONF_LINES };

struct conf_type {
	const char	*name;		/* for the manual: "number" */
	const char	*hint;		/* for messages: what is expected */
	enum conf_shape	 shape;
	conf_parse_fn	*parse;
	conf_print_fn	*print;
	conf_clear_fn	*clear;		/* NULL: all zeros */
	conf_compare_fn	*compare;	/* NULL: has no range */
	const char *const *words;	/* to choose from, ending with NULL */
	const char	*refers;	/* the kind of section it names */
};

extern const struct conf_type
    type_FLAG, type_COUNT, type_BYTES, type_WORKERS, type_TIME, type_RATE,
    type_CONCURRENCY, type_SAMPLE, type_TEXT, type_TOKEN, type_LOGFILE,
    type_ERRORFILE, type_PATHNAME, type_AUTHORITY, type_ADDRS, type_BINDS,
    type_RANGES, type_DESTINATIONS, type_PORTS, type_SERVERS, type_HOSTS,
    type_PATHS,
    type_REF_ACCESS, type_REF_UPSTREAM, type_REF_LIMITS, type_REF_LISTENERS,
    type_MODE, type_KEY, type_QUEUE_ORDER, type_PRIORITY,
    type_TABLE_FULL, type_RATE_HEADERS, type_BALANCE, type_IF_IT_PAYS,
    type_LOG_FORMAT, type_LEVEL;

/* How many elements a value has: 1 for what isn't a list. */
size_t type_count(const struct conf_type *t, const void *value);

/* Say in r->why that `text` is none of this type; false, to be returned. */
bool type_refuse(struct conf_reading *r, const struct conf_type *t,
    const char *text);

/* The same in the caller's words. */
bool type_fail(struct conf_reading *r, const char *fmt, ...) PRINTF(2, 3);

/* A host name: labels of letters, digits, - and _; not all digits at last. */
bool type_is_host_name(struct str s);

/* A copy in small letters. */
const char *type_lower(struct conf_store *store, struct str s);

/* The words of CHOICES(list), which enum list numbers. */
#define CHOICES(list)			extern const char *const list##_words[];
#define CHOICE(...)
#define END_CHOICES(list)
#include "base/choices.def"

#endif
