/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h - rules between keywords: what must be given, what goes together,
 * and what means nothing where it stands.
 *
 * Threads:  one.
 * Errors:   all that is found is written to the problems.
 */
#ifndef PENSTOCK_CONFIG_CHECK_H
#define PENSTOCK_CONFIG_CHECK_H

#include "config/config.h"
#include "config/problem.h"

/*
 * Check *c, whose references are resolved; `file` is where it is from.
 * Sections with a value that was refused are passed over.
 */
void check_config(const struct config *c, const char *file,
    struct problems *p);

#endif
