/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.h - penstock.conf: one table makes the struct, the parser, the
 * checks, the dump, the manual and the rules of a reload.
 *
 * config_load() reads a whole file with its includes, reports every mistake
 * it finds with file and line, and gives either a complete, checked
 * configuration or none.  Nothing here opens a socket or looks at the
 * machine.
 *
 * Owner:    config_load() and config_builtin() give a handle; config_free().
 *           All text and lists in it are its own.
 * Threads:  any, once made: it never changes.
 */
#ifndef PENSTOCK_CONFIG_CONFIG_H
#define PENSTOCK_CONFIG_CONFIG_H

#include <stdio.h>

#include "base/addr.h"
#include "base/choice.h"
#include "base/defs.h"

/* --- what values are --- */

struct conf_rate {
	uint64_t	count;
	nsec_t		span;		/* 1 s, 1 min or 1 h */
};

struct conf_concurrency {
	uint64_t	count;
	bool		adaptive;	/* count is 0 */
};

/* By what is counted apart. */
struct conf_key {
	enum limit_key	 what;
	const char	*header;	/* its name, in small letters, or "" */
};

struct conf_words {
	const char	**at;
	size_t		  count;
};

struct conf_addrs {
	struct addr	*at;
	size_t		 count;
};

/*
 * A rule of an access list.  The words loopback, link-local, private and all
 * were replaced by the ranges they stand for; `public` is what
 * addr_is_public() says, and less specific than any range but those of /0.
 */
struct conf_rule {
	enum { RULE_RANGE, RULE_PUBLIC, RULE_NAME, RULE_SUFFIX } kind;
	struct addr_range	 range;
	const char		*name;	/* in small letters, without "*." */
	uint16_t		 port;	/* 0: any; in lists of clients always */
};

struct conf_rules {
	struct conf_rule	*at;
	size_t			 count;
};

struct conf_ports {
	struct { uint16_t first, last; } *at;
	size_t		 count;
};

struct conf_server {
	const char	*text;		/* host:port, for logs and labels */
	const char	*host;		/* a name to resolve; or NULL, and: */
	struct addr	 addr;		/* a literal address */
	uint16_t	 port;		/* 0 for a unix socket */
	unsigned	 weight;
	bool		 backup;
};

struct conf_servers {
	struct conf_server	*at;
	size_t			 count;
};

/* References are indexes into the arrays of struct config. */
struct conf_refs {
	uint32_t	*at;
	size_t		 count;
};

enum { CONF_NO_REF = -1 };

/* Most limits that one exchange passes; check_config() sees to it. */
enum { CONF_LIMITS_PASSED = 8 };

/* The least bandwidth_burst. */
enum { CONF_BANDWIDTH_BURST = 64 * 1024 };

/*
 * Where a value or section was written; NULL file: nowhere, it is a fallback.
 */
struct conf_origin {
	const char	*file;
	unsigned	 line;
};

/* --- the configuration, from the tables --- */

struct timeouts {
#define TIMEOUT(name, ...)	nsec_t name;
#include "config/timeouts.def"
};

/*
 * Texts are never NULL; "" is not given.  A LOGFILE is "off", "stderr" or a
 * path that begins with "/", an ERRORFILE one of the latter two.
 */
typedef bool			conf_FLAG;
typedef uint64_t		conf_COUNT, conf_BYTES;
typedef uint64_t		conf_WORKERS;	/* 0: auto */
typedef nsec_t			conf_TIME;
typedef struct conf_rate	conf_RATE;
typedef struct conf_concurrency	conf_CONCURRENCY;
typedef uint64_t		conf_SAMPLE;	/* one of so many */
typedef const char		*conf_TEXT, *conf_TOKEN, *conf_LOGFILE;
typedef const char		*conf_ERRORFILE, *conf_PATHNAME;
typedef const char		*conf_AUTHORITY;
typedef struct conf_addrs	conf_ADDRS, conf_BINDS;
typedef struct conf_rules	conf_RANGES, conf_DESTINATIONS;
typedef struct conf_ports	conf_PORTS;
typedef struct conf_servers	conf_SERVERS;
typedef struct conf_words	conf_HOSTS, conf_PATHS;
typedef int			conf_REF_ACCESS, conf_REF_UPSTREAM;
typedef struct conf_refs	conf_REF_LIMITS, conf_REF_LISTENERS;
typedef enum mode		conf_MODE;
typedef struct conf_key		conf_KEY;
typedef enum queue_order	conf_QUEUE_ORDER;
typedef enum priority		conf_PRIORITY;
typedef enum table_full		conf_TABLE_FULL;
typedef enum rate_headers	conf_RATE_HEADERS;
typedef enum balance		conf_BALANCE;
typedef enum if_it_pays		conf_IF_IT_PAYS;
typedef enum log_format		conf_LOG_FORMAT;
typedef enum level		conf_LEVEL;

/*
 * struct conf_penstock, conf_log, conf_admin, conf_timeouts, conf_access,
 * conf_listener, conf_route, conf_upstream, conf_limit.  Each has a name
 * ("" where sections have none) and an origin.  In listeners and upstreams,
 * `timeouts` holds what they set themselves; NSEC_NEVER is not set.
 */
#define SECTION(s, kind, help) \
	struct conf_##s { const char *name_; struct conf_origin origin;
#define KEYWORD(s, name, type, ...)	conf_##type name;
#define TIMEOUTS(s)			struct timeouts timeouts;
#define END_SECTION(s)			};
#include "config/keywords.def"

struct config {
	struct conf_penstock	 penstock;
	struct conf_log		 log;
	struct conf_admin	 admin;
	struct timeouts		 timeouts;
	struct conf_access	*access;
	size_t			 access_count;
	struct conf_listener	*listener;
	size_t			 listener_count;
	struct conf_route	*route;
	size_t			 route_count;
	struct conf_upstream	*upstream;
	size_t			 upstream_count;
	struct conf_limit	*limit;
	size_t			 limit_count;
	struct conf_store	*store;		/* texts, lists, origins */
};

/* Is the section of that index among them? */
static inline bool
conf_refs_have(const struct conf_refs *refs, size_t index)
{
	for (size_t i = 0; i < refs->count; i++)
		if (refs->at[i] == index)
			return true;
	return false;
}

/* --- making one --- */

/*
 * Read `path` and what it includes.  NULL if there is any mistake; each is
 * written to `errors` as "file:line: what is wrong", one a line.
 */
struct config *config_load(const char *path, FILE *errors) MUST_USE;

/*
 * The same for a text of n bytes that is called `name` in messages; what it
 * includes is looked for beside that name.
 */
struct config *config_parse(const char *name, const char *text, size_t n,
    FILE *errors) MUST_USE;

/* The built-in configuration, used when there is no file at all. */
struct config *config_builtin(void) MUST_USE;

void config_free(struct config **c);

/*
 * The times of an exchange: upstream over listener over [timeouts].  Either
 * may be NULL.
 */
void config_timeouts(struct timeouts *out, const struct config *c,
    const struct conf_listener *listener, const struct conf_upstream *upstream);

/*
 * Write *c as a file that would produce it, with each value's origin.  What
 * nobody gave is there too, as a comment.
 */
void config_dump(FILE *out, const struct config *c);

/* One value of a configuration, as config_dump() writes it. */
struct config_value {
	const char	*section;	/* its kind */
	const char	*name;		/* its name, or "" */
	const char	*keyword;
	const char	*text;
	const char	*origin;	/* "default", or file:line */
};
typedef void config_value_fn(void *arg, const struct config_value *v);

/*
 * Call fn for each value in effect, in the order of the dump: of a list once
 * for each element.  The texts are gone when it returns.
 */
void config_each(const struct config *c, config_value_fn *fn, void *arg);

/* Write the KEYWORDS part of penstock.conf(5), in mdoc. */
void config_manual(FILE *out);

/*
 * Write what a reload may not change but would, a line each as "file:line:
 * what"; the number of them.
 */
unsigned config_reload_conflicts(FILE *out, const struct config *running,
    const struct config *wanted);

#endif
