/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock.h - the kernel's clocks.  The loop reads them once a turn; nobody else
 * asks what time it is.
 *
 * Threads:  any.
 */
#ifndef PENSTOCK_NET_CLOCK_H
#define PENSTOCK_NET_CLOCK_H

#include <time.h>

#include "base/defs.h"

/* That clock's time in nanoseconds; the clocks used here can't fail. */
static inline nsec_t
read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec;
}

#endif
