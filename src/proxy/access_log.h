/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access_log.h - one line for each exchange and tunnel, when it is over.
 *
 * The fields are the rows of log_fields.def, in the format that the setup
 * says, or those of the combined format.  Whatever a client sent is escaped, so
 * that a line stays one line with the fields we gave it.  Of exchanges that
 * went well only a sample may have a line.
 *
 * Threads:  the worker's; the line goes to its ring of the log's writer.
 */
#ifndef PENSTOCK_PROXY_ACCESS_LOG_H
#define PENSTOCK_PROXY_ACCESS_LOG_H

struct exchange;

/*
 * Write the line of x, which is over; nothing when the access log is off, or x
 * is not in the sample.
 */
void access_log(struct exchange *x);

#endif
