/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_limits.h - the limits with `connections`, that a session counts in.
 *
 * For most listeners there are none.
 *
 * Owner:    the session, which has the passes: one for each of its service.
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_SESSION_LIMITS_H
#define PENSTOCK_PROXY_SESSION_LIMITS_H

#include "base/defs.h"
#include "base/failure.h"

struct limit;
struct service;
struct session;

/* Be counted by all of its service, or by none: then why, and by which. */
enum failure session_limits_enter(struct session *s,
    const struct limit **refused_by);

void session_limits_leave(struct session *s);

/*
 * Be counted by those of another setup's service instead: by what is in both as
 * before, by what is new if there is room.  Nobody is thrown out.  False
 * without memory: then all is as it was.
 */
bool session_limits_move(struct session *s, const struct service *to);

#endif
