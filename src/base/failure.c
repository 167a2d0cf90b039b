/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failure.c - the rows of failures.def; see failure.h.
 */
#include "base/failure.h"

#include "base/defs.h"

static const struct failure_row rows[FAIL_COUNT] = {
	[FAIL_NONE] = { 0, "", "", "" },
#define FAILURE(NAME, status, token, error, text) \
	[FAIL_##NAME] = { status, token, error, text },
#include "base/failures.def"
};

const struct failure_row *
failure_row(enum failure why)
{
	ASSERT((unsigned)why < FAIL_COUNT);
	return &rows[why];
}
