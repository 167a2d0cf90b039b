/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expand.h - ${NAME} and ${NAME:-default} in values.
 *
 * It happens after the line was taken apart, so what a variable holds is a
 * part of one value and can add neither keywords nor comments.  A default is
 * used when the variable is not set or is empty; to be not set and have no
 * default is an error.  A $ that no { follows is itself.
 *
 * Threads:  any, as long as nobody changes the environment.
 */
#ifndef PENSTOCK_CONFIG_EXPAND_H
#define PENSTOCK_CONFIG_EXPAND_H

#include "config/types.h"

/*
 * Write what `text` stands for to *out, which must have room for
 * EXPAND_SIZE, without blanks at its ends and with a NUL.  On false, r->why.
 */
bool expand(struct conf_reading *r, const char *text, char *out) MUST_USE;

enum { EXPAND_SIZE = 4096 };

#endif
