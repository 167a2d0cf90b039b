/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admit.h - walk an exchange through its limits.
 *
 * First the buckets, all of them, since a token is cheap to give back; then
 * the gates, lowest rank first, waiting at each while holding only lower
 * ones, so that no two exchanges can wait for each other.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_ADMIT_H
#define PENSTOCK_PROXY_ADMIT_H

#include "proxy/exchange.h"

/* The state ADMIT. */
enum exchange_state admit_enter(struct exchange *x);

/* The time of its wait is over: go on (a token is due), or fail. */
enum exchange_state admit_on_late(struct exchange *x);

/* Give back the permits of the upstream's own limits. */
void admit_leave_upstream(struct exchange *x);

/* Give back all permits, and tokens if it was not admitted. */
void admit_leave(struct exchange *x);

/*
 * Of a limit in dry run that would have refused it, or its connection, the
 * first pass, whose `would` says why; NULL if none would have.
 */
const struct limit_pass *admit_would_refuse(const struct exchange *x);

#endif
