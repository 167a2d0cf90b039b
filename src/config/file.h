/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.h - the syntax of penstock.conf: files to sections, keys and values.
 *
 *	; a comment, as is what follows a blank and a ; on any line
 *	[section NAME]
 *	keyword = value
 *	    more of the value above, if that is a list
 *	    keyword = value	(indented: a keyword all the same)
 *	include = conf.d/...	(before any section, or in [penstock])
 *
 * The lines go through inih, which takes key and value apart.  Our reader
 * hands it only lines that it can't misread: it cuts what is over its line
 * limit, takes NUL for an end and lets directories pass as empty files.
 *
 * Owner:    the caller, who keeps everything that is given.
 * Threads:  one.
 * Errors:   written to `problems`, with file and line; reading goes on.
 * Limits:   lines of FILE_LINE_MAX bytes, files of FILE_BYTES_MAX, includes
 *           FILE_DEPTH_MAX deep; each file is read once.
 */
#ifndef PENSTOCK_CONFIG_FILE_H
#define PENSTOCK_CONFIG_FILE_H

#include <stdio.h>

#include "config/problem.h"

struct conf_store;

enum {
	FILE_LINE_MAX = 198,	/* what inih 55 can take */
	FILE_BYTES_MAX = 4 << 20,
	FILE_DEPTH_MAX = 8
};

/*
 * [kind] or [kind NAME]; `name` is "" for the first, and both are for one that
 * can't be read.  What it returns comes with the values of the section.
 */
typedef void *file_section_fn(void *arg, const struct conf_origin *at,
    const char *kind, const char *name);

struct file_value {
	struct conf_origin	 at;
	void			*section;	/* NULL before the first */
	const char		*key;
	const char		*text;		/* variables not expanded yet */
	bool			 continues;	/* more for the key before */
};

typedef void file_value_fn(void *arg, const struct file_value *v);

struct file_reading {
	struct problems		*problems;
	struct conf_store	*store;		/* for the names of files */
	file_section_fn		*section;
	file_value_fn		*value;
	void			*arg;
	struct file_seen	*seen;		/* ours; NULL at first */
	unsigned		 bad_lines;	/* and files */
};

/* Read a file and all it includes. */
void file_read(struct file_reading *f, const char *path);

/* The same from n bytes, called `name`. */
void file_read_text(struct file_reading *f, const char *text, size_t n,
    const char *name);

#endif
