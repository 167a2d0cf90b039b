/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_own.h - what check.c and check_limits.c share.
 *
 * Threads:  one.
 */
#ifndef PENSTOCK_CONFIG_CHECK_OWN_H
#define PENSTOCK_CONFIG_CHECK_OWN_H

#include "config/config.h"
#include "config/problem.h"
#include "config/table.h"

struct checking {
	const struct config	*config;
	const char		*file;
	struct problems		*problems;
	const struct section	*section;	/* the one looked at, */
	size_t			 index;		/* and which of them */
};

/* What is said from now on is said of this section. */
void check_look_at(struct checking *k, enum conf_section_id id,
    size_t index);

/* A value in it was refused, so that nothing can be said of it. */
bool check_is_broken(const struct checking *k, enum conf_section_id id,
    size_t index);

/* Stands the keyword in the section looked at? */
bool check_is_given(const struct checking *k, const char *keyword);

/*
 * Report with the line of the keyword, or of the section if the keyword is
 * not given or NULL.
 */
void check_wrong(struct checking *k, const char *keyword,
    const char *fmt, ...) PRINTF(3, 4);

/* The keyword has no effect unless the other does its part. */
void check_needs(struct checking *k, const char *keyword,
    bool other_is_there, const char *other);

/* The rules of limits, and of who passes them. */
void check_limit(struct checking *k, const struct conf_limit *l);
void check_limits_passed(struct checking *k);

#endif
