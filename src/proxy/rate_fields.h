/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate_fields.h - RateLimit-Policy and RateLimit, by which limits tell clients
 * about their rates: draft-ietf-httpapi-ratelimit-headers-10.
 *
 * Only rates are told: how many may be inside at once says more about what
 * the upstream can bear than about what a client may do (section 8.2 of the
 * draft), and in the draft two policies of one name would be one.
 *
 * The state is that of the moment when the fields are written; what this
 * exchange took is gone from it.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_RATE_FIELDS_H
#define PENSTOCK_PROXY_RATE_FIELDS_H

#include "proxy/exchange.h"

/* Bytes that the fields of an exchange take at most. */
enum { RATE_FIELDS_MAX = 2048 };

/*
 * The lines of those limits that x has come to and that say `least` or more;
 * none if there are none.  *retry_after, in seconds, is what the response says
 * or 0; it is raised to what no limit named here contradicts.
 */
void rate_fields_put(struct out *o, const struct exchange *x,
    enum rate_headers least, uint64_t *retry_after);

/* The same for those that always say it, to the whole head that o has. */
void rate_fields_add(struct out *o, const struct exchange *x);

#endif
