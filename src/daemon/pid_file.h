/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pid_file.h - a file with the number of the process.
 *
 * It is opened before privileges are dropped and written through that
 * descriptor, so that it stays its first owner's: who takes over the daemon
 * can't have something else killed.  A successor inherits the descriptor.
 *
 * Owner:    the caller's struct.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_PID_FILE_H
#define PENSTOCK_DAEMON_PID_FILE_H

#include "base/defs.h"

struct pid_file {
	int		 fd;		/* -1: there is none */
	const char	*path;		/* the configuration's */
};

/*
 * Open it, or go on with `inherited` (-1: none) if that is the same file.  With
 * "" there is none.  0 or -errno.
 */
int pid_file_open(struct pid_file *p, const char *path, int inherited)
    MUST_USE;

/* Have it say our number; 0 or -errno. */
int pid_file_write(const struct pid_file *p);

/*
 * Close it; and unless it is a successor's now, remove it, or if that isn't
 * allowed any more have it say nothing.
 */
void pid_file_close(struct pid_file *p, bool succeeded);

#endif
