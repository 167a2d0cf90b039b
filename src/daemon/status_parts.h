/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_parts.h - the parts of status.h that are about listeners, limits,
 * upstreams and workers.
 *
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_STATUS_PARTS_H
#define PENSTOCK_DAEMON_STATUS_PARTS_H

#include "base/json.h"
#include "daemon/status.h"

void status_listeners(struct json *j, const struct status_source *from);
void status_limits(struct json *j, const struct status_source *from);
void status_upstreams(struct json *j, const struct status_source *from);
void status_workers(struct json *j, const struct status_source *from);

#endif
