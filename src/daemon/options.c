/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.c - the command line; see options.h.
 */
#include "daemon/options.h"

#include <unistd.h>

void
options_help(FILE *out)
{
	fputs("usage: penstock [-c FILE] [-t | -T | -V | -h]\n"
	    "  -c FILE  read this configuration\n"
	    "  -t       check it, say what a start would say, and exit\n"
	    "  -T       print it with the origin of every value, and exit\n"
	    "  -V       print the version and what it was built with\n"
	    "  -h       print this\n"
	    "Without -c it reads " SYSCONFDIR "/penstock/penstock.conf; "
	    "if there is no such file,\nit runs a built-in configuration: "
	    "a forward proxy for this machine.\n", out);
}

bool
options_read(struct options *o, int argc, char **argv)
{
	int c;

	*o = (struct options){ .what = DO_RUN, .argv = argv };
	while ((c = getopt(argc, argv, "c:tTVh")) != -1)
		switch (c) {
		case 'c':
			o->file = optarg;
			break;
		case 't':
			o->what = DO_TEST;
			break;
		case 'T':
			o->what = DO_DUMP;
			break;
		case 'V':
			o->what = DO_VERSION;
			break;
		case 'h':
			o->what = DO_HELP;
			break;
		default:
			return false;	/* getopt has said why */
		}
	if (optind < argc) {
		fprintf(stderr, "penstock: what is \"%s\"?\n", argv[optind]);
		return false;
	}
	return true;
}
