/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * privs.h - what the process may do: descriptors, and whom it runs as.
 *
 * Threads:  main's, before any other is started.
 */
#ifndef PENSTOCK_DAEMON_PRIVS_H
#define PENSTOCK_DAEMON_PRIVS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Raise the limit on descriptors as far as it goes; what it is then. */
uint64_t privs_raise_descriptors(void);

/*
 * Could privs_drop() find that user?  False, said on `errors`, if not.
 */
bool privs_check(const char *user, FILE *errors);

/* Whom privs_drop() makes of us; ours if nobody else. */
uid_t privs_uid(const char *user);

/*
 * Become `user`, for good, if started as root; nothing if it is "" or the
 * process isn't root's.  False, said on `errors`, if that can't be.
 */
bool privs_drop(const char *user, FILE *errors);

#endif
