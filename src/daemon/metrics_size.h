/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_size.h - how long /metrics gets, before anything is counted.
 *
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_METRICS_SIZE_H
#define PENSTOCK_DAEMON_METRICS_SIZE_H

#include "config/config.h"

/* Bytes that the page has at most, with every counter as high as can be. */
size_t metrics_size(const struct config *c, unsigned workers);

#endif
