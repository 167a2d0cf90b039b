/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watchdog.h - a thread that tells of loops which don't get on.
 *
 * Ten times a second it looks when each loop's present turn began.  One that
 * has lasted for WATCHDOG_STUCK is said in the log, once, with what it is in
 * and what its thread does; and when it is over, how long it was.  It tells,
 * and does nothing else: a worker that is stuck comes free, or does not.
 *
 * When the watchdog itself was late, as all are if the process was stopped, it
 * waits for the next time.
 *
 * Owner:    watchdog_start() gives a handle; watchdog_stop() before what it
 *           watches is freed.
 * Threads:  one of its own; the functions are main's.
 */
#ifndef PENSTOCK_DAEMON_WATCHDOG_H
#define PENSTOCK_DAEMON_WATCHDOG_H

#include "base/log.h"

struct crew;
struct watchdog;

#define WATCHDOG_STUCK	(250 * NSEC_PER_MSEC)

/* Watch the workers of a crew that runs; NULL without a thread for it. */
struct watchdog *watchdog_start(const struct crew *crew, unsigned workers,
    struct log *log);
void watchdog_stop(struct watchdog **w);

/* How often worker i was stuck, so far. */
uint64_t watchdog_times(const struct watchdog *w, unsigned i);

/* Workers that are stuck now. */
unsigned watchdog_stuck(const struct watchdog *w);

#endif
