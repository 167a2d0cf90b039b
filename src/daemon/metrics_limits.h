/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_limits.h - the part of metrics.h that is about limits.
 *
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_METRICS_LIMITS_H
#define PENSTOCK_DAEMON_METRICS_LIMITS_H

#include "daemon/metrics.h"

void metrics_gather_limits(struct metrics *m,
    const struct metrics_source *from);

#endif
