/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * harness.h - the main() of a Check program, and how to add many tests.
 */
#ifndef PENSTOCK_TESTS_HARNESS_H
#define PENSTOCK_TESTS_HARNESS_H

#include <check.h>
#include <stdlib.h>

/* Run and free s; the exit status. */
static inline int
run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);

	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
