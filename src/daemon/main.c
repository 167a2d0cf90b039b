/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - which of the things it can do is wanted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "daemon/master.h"
#include "daemon/options.h"
#include "http/parse.h"

static const char default_file[] = SYSCONFDIR "/penstock/penstock.conf";

/*
 * The file that was named, or the default one, or none: the built-in
 * configuration.  A default file that is there but can't be read is an error.
 */
static const char *
file_to_read(const struct options *o)
{
	if (o->file != NULL)
		return o->file;
	return access(default_file, F_OK) == -1 && errno == ENOENT ? NULL :
	    default_file;
}

static void
print_version(void)
{
	printf("penstock %s (%s)\n", PACKAGE_VERSION, parse_library());
}

static int
run(const struct options *o)
{
	const char *file = file_to_read(o);
	struct config *config = file != NULL ? config_load(file, stderr) :
	    config_builtin();
	struct master_opts opts = { .config = config, .file = file };
	int status = EXIT_SUCCESS;

	if (config == NULL)
		return EXIT_FAILURE;
	if (o->what == DO_RUN)
		return master_run(&opts);
	if (o->what == DO_DUMP)
		config_dump(stdout, config);
	else
		status = master_test(&opts, stdout);
	config_free(&config);
	return status;
}

int
main(int argc, char **argv)
{
	struct options o;

	if (!options_read(&o, argc, argv)) {
		options_help(stderr);
		return EXIT_FAILURE;
	}
	switch (o.what) {
	case DO_HELP:
		options_help(stdout);
		return EXIT_SUCCESS;
	case DO_VERSION:
		print_version();
		return EXIT_SUCCESS;
	default:
		return run(&o);
	}
}
