/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log_writer.h - a thread that writes log lines, so that no one else waits
 * for a disk.
 *
 * Each producer has a ring of its own; log_put() copies a finished line into
 * it and goes on.  The writer's thread wakes every `interval`, or when a ring
 * gets half full, and writes whole lines to the file.  A full ring drops the
 * line and counts it; so does the writer with lines that the file refuses.
 * A pipe that nobody reads makes the writer's thread wait, and no other.
 * Several may write to stderr: they take turns, a ring of lines each.
 *
 *	ring:	 tail                head
 *		  |-- line\nline\n ----|          free         |
 *
 * Owner:    the handle's; the rings are the writer's.
 * Threads:  one producer a ring; everything else, the one that started it,
 *           except log_writer_reopen(), log_writer_move() and
 *           log_writer_dropped(): any.
 * Limits:   LOG_LINE_MAX bytes a line; `ring_size` bytes a ring.
 */
#ifndef PENSTOCK_BASE_LOG_WRITER_H
#define PENSTOCK_BASE_LOG_WRITER_H

#include <sys/types.h>

#include "base/defs.h"

enum { LOG_LINE_MAX = 16384 };		/* without its newline */

struct log_ring;
struct log_writer;

/*
 * On the writer's thread: writing (opening, if `opening`) `path` has failed
 * with this errno.  Called once for a row of failures.
 */
typedef void log_failed_fn(void *arg, const char *path, bool opening,
    int err);

/* On the writer's thread, each time it wakes, before it writes. */
typedef void log_tick_fn(void *arg);

struct log_writer_opts {
	const char	*path;		/* copied; NULL: stderr */
	unsigned	 rings;		/* producers; at least 1 */
	size_t		 ring_size;	/* a power of 2, >= 2 * LOG_LINE_MAX */
	nsec_t		 interval;	/* 0: LOG_INTERVAL */
	nsec_t		 patience;	/* at stop, for a pipe nobody reads */
	log_failed_fn	*failed;	/* NULL: nobody to tell */
	log_tick_fn	*tick;		/* NULL: none */
	void		*arg;		/* for both, untouched */
};

#define LOG_INTERVAL	(100 * NSEC_PER_MSEC)
#define LOG_PATIENCE	(1000 * NSEC_PER_MSEC)	/* when patience is 0 */

/*
 * Open the file and start the thread: 0 and a handle in *out, or -errno and
 * NULL.  A file is appended to, made with mode 0640 if need be; a named pipe
 * is opened whether it has a reader or not.
 */
int log_writer_start(struct log_writer **out,
    const struct log_writer_opts *opts) MUST_USE;

/*
 * Open a file as a writer does, to see whether that can be done and for
 * log_writer_move(): 0 and the descriptor in *fd, or -errno.  NULL is stderr,
 * whose descriptor nobody may close.
 */
int log_writer_open(const char *path, int *fd) MUST_USE;

/*
 * Write what is in the rings, end the thread, free everything and clear *w.
 * No producer may put lines any more.  A pipe nobody reads is waited for no
 * longer than `patience`.  NULL in *w is fine.
 */
void log_writer_stop(struct log_writer **w);

/* The ring of producer i < rings; as long as the writer lives. */
struct log_ring *log_writer_ring(struct log_writer *w, unsigned i);

/*
 * Put a line of n bytes, which hold no newline; one is added.  False if it
 * was dropped, and counted, because the ring is full or the line too long.
 */
bool log_put(struct log_ring *r, const char *line, size_t n);

/* Wake the writer now, for a line that should not wait. */
void log_writer_wake(struct log_writer *w);

/*
 * Have the writer open its path again, since the file there was moved away.
 * If that fails it goes on with the old one.  Nothing happens for stderr.
 */
void log_writer_reopen(struct log_writer *w);

/*
 * Have the writer go on with another file, opened by log_writer_open(); the
 * descriptor is its own from now on.  Lines put until now go to the old one,
 * unless that is a pipe, which may take them or not.
 */
void log_writer_move(struct log_writer *w, const char *path, int fd);

/*
 * Let the file, if it is one of root's own, be that user's, who is about to
 * write it and may have to open it again.  Before the writer is told to reopen
 * or move.
 */
void log_writer_give(struct log_writer *w, uid_t uid);

/* Lines lost so far, for whatever reason. */
uint64_t log_writer_dropped(const struct log_writer *w);

#endif
