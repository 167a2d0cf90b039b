/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keys.h - for whom an exchange is counted: the key of a limit.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_KEYS_H
#define PENSTOCK_PROXY_KEYS_H

#include "proxy/exchange.h"

/*
 * The key of *x by what *by says; 0 for nothing.  Those without a user, a
 * host or the header are one, whose key no text has.
 */
uint64_t key_of_exchange(const struct exchange *x, const struct limit_by *by);

#endif
