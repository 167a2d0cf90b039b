/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status.h - the reason phrases of status codes: rows of status.def.
 *
 * Threads:  any; everything here is constant.
 */
#ifndef PENSTOCK_HTTP_STATUS_H
#define PENSTOCK_HTTP_STATUS_H

/* The phrase for a code; "" for one that has no row. */
const char *status_reason(int status);

#endif
