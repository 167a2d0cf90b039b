/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print_manual.c - print the KEYWORDS part of penstock.conf(5); with "dump"
 * and a file, what config_dump() makes of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int
main(int argc, char **argv)
{
	if (argc == 1) {
		config_manual(stdout);
		return EXIT_SUCCESS;
	}
	if (argc != 3 || strcmp(argv[1], "dump") != 0) {
		fputs("usage: print_manual [dump FILE]\n", stderr);
		return EXIT_FAILURE;
	}
	struct config *c = config_load(argv[2], stderr);
	if (c == NULL)
		return EXIT_FAILURE;
	config_dump(stdout, c);
	config_free(&c);
	return EXIT_SUCCESS;
}
