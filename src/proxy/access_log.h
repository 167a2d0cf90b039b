/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access_log.h - one line for each exchange and tunnel, when it is over.
 *
 * The fields are the rows of log_fields.def.  Whatever a client sent is
 * escaped, so that a line stays one line with the fields we gave it.
 *
 * Threads:  the worker's; the line goes to its ring of the log's writer.
 */
#ifndef PENSTOCK_PROXY_ACCESS_LOG_H
#define PENSTOCK_PROXY_ACCESS_LOG_H

struct exchange;

/* Write the line of x; nothing when the access log is off. */
void access_log(struct exchange *x);

#endif
