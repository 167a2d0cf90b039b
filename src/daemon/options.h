/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h - the command line.
 *
 * Threads:  main's, at start.
 */
#ifndef PENSTOCK_DAEMON_OPTIONS_H
#define PENSTOCK_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

enum options_do {
	DO_RUN,
	DO_TEST,		/* -t: say what a start would say */
	DO_DUMP,		/* -T: print the effective configuration */
	DO_VERSION,		/* -V */
	DO_HELP,		/* -h */
};

struct options {
	enum options_do	 what;
	const char	*file;	/* -c; NULL if not given */
	char *const	*argv;	/* all of them */
};

/* False when they can't be understood; said on stderr. */
bool options_read(struct options *o, int argc, char **argv);

void options_help(FILE *out);

#endif
