/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notify.h - tell the service manager, by the protocol of sd_notify(3): lines
 * NAME=VALUE, a datagram for those that belong together.
 *
 * Nothing waits: whoever listens may be slow, or gone.  What must be known is
 * kept and offered again by notify_retry(), in its order; what will be old by
 * then isn't.
 *
 * Owner:    notify_new() gives a handle.
 * Threads:  main's.
 * Limits:   NOTIFY_TEXT bytes a datagram; NOTIFY_KEPT of them are kept, and
 *           then the oldest is dropped.
 */
#ifndef PENSTOCK_DAEMON_NOTIFY_H
#define PENSTOCK_DAEMON_NOTIFY_H

#include "base/defs.h"

enum { NOTIFY_TEXT = 256, NOTIFY_KEPT = 8 };

struct notify;

/*
 * `to` is what NOTIFY_SOCKET says: a path, or @ and a name in the abstract
 * namespace.  0 and a handle in *out, or -errno and NULL.
 */
int notify_new(struct notify **out, const char *to) MUST_USE;

/* Clears *n; NULL in it is fine. */
void notify_free(struct notify **n);

/* Send now, or keep: for states.  A NULL n hears nothing, as below. */
void notify_state(struct notify *n, const char *fmt, ...) PRINTF(2, 3);

/* Send now or never: for what is said again and again. */
void notify_news(struct notify *n, const char *fmt, ...) PRINTF(2, 3);

/* Send what is kept, as far as it goes. */
void notify_retry(struct notify *n);

/* How many are kept. */
unsigned notify_kept(const struct notify *n);

#endif
