/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status.c - the rows of status.def; see status.h.
 */
#include "http/status.h"

const char *
status_reason(int status)
{
	switch (status) {
#define STATUS(code, reason)	case code: return reason;
#include "http/status.def"
	default:
		return "";
	}
}
