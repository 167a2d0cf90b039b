/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failure.h - why an exchange failed: a row of failures.def.
 *
 * The same token is in the status body, in Proxy-Status, in the access log
 * and in the metric, so that a reason seen in one place is found in all.
 *
 * Threads:  any; everything here is constant.
 */
#ifndef PENSTOCK_BASE_FAILURE_H
#define PENSTOCK_BASE_FAILURE_H

enum failure {
	FAIL_NONE,
#define FAILURE(NAME, status, token, error, text)	FAIL_##NAME,
#include "base/failures.def"
	FAIL_COUNT
};

struct failure_row {
	int		 status;	/* 0: nobody is left to tell */
	const char	*token;
	const char	*error;		/* of RFC 9209; "" for none */
	const char	*text;
};

/* The row of `why`; for FAIL_NONE, one with status 0 and empty texts. */
const struct failure_row *failure_row(enum failure why);

#endif
