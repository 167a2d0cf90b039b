/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trailers.h - the fields after a chunked body, and which of them go on.
 *
 * They go from a server to a client that asks for them, as trailers: never
 * into a head, since whoever reads one believes what it says.  What must be
 * known before the content may not come after it (RFC 9110 section 6.5.1):
 * that is every field of fields.def.  Whatever the sender's Connection names
 * was meant for us alone.
 *
 * Trailers of requests go no further: nothing says that a server takes them.
 *
 * Threads:  any; pure functions over the caller's memory.
 */
#ifndef PENSTOCK_HTTP_TRAILERS_H
#define PENSTOCK_HTTP_TRAILERS_H

#include "http/head.h"

/*
 * Does whoever sent this request take trailers in the response: TE: trailers,
 * without parameters, in HTTP/1.1?
 */
bool trailers_wanted(const struct head *request);

/*
 * Of n bytes of field lines, which scan.h found complete, with the empty line
 * at their end, take out the fields that may not go on, in place; the length
 * of what stays, the empty line included.  `named` has what the sender's
 * Connection listed, with commas between.
 */
size_t trailers_filter(char *lines, size_t n, struct str named);

#endif
