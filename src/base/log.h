/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h - what the daemon tells its operator: one line a message.
 *
 * Lines go through a ring to a writer's thread (log_writer.h), so whoever
 * says something never waits for the file.  Of one format LOG_BURST lines a
 * second are written; the others are counted, and summed up in a line of their
 * own when the second is over.  Debug lines are not held back.
 *
 * Bytes that aren't printable ASCII are written as \xXX, so that a line stays
 * a line whatever a peer has sent.  With JOURNAL_STREAM naming our stderr,
 * lines have journald's priority prefix and no time.
 *
 * Owner:    log_new() gives the caller a handle.
 * Threads:  any; log_free() when nobody else uses it any more.
 * Limits:   LOG_TEXT_MAX bytes a message, the rest is cut off.
 */
#ifndef PENSTOCK_BASE_LOG_H
#define PENSTOCK_BASE_LOG_H

#include "base/defs.h"

enum log_level { SAY_ERROR, SAY_WARNING, SAY_NOTICE, SAY_INFO, SAY_DEBUG };

enum { LOG_BURST = 10, LOG_TEXT_MAX = 1000 };

struct log;

/* Monotonic time. */
typedef nsec_t log_clock_fn(void);

struct log_opts {
	const char	*path;		/* NULL: stderr */
	enum log_level	 level;		/* what is said; lower ones are not */
	log_clock_fn	*clock;		/* NULL: the system's; for tests */
};

/* 0 and a handle in *out, or -errno and NULL. */
int log_new(struct log **out, const struct log_opts *opts) MUST_USE;

/* Write what was said and clear *l; NULL in it is fine. */
void log_free(struct log **l);

/*
 * Say something, without a newline.  `fmt` tells what kind of message it is,
 * so it must be a literal.  A NULL log hears nothing.
 */
void log_say(struct log *l, enum log_level level, const char *fmt, ...)
    PRINTF(3, 4);

/* Say each line of a text, none of which is held back. */
void log_lines(struct log *l, enum log_level level, const char *text);

/* Would it be written?  Ask before work that is only for a debug line. */
bool log_hears(const struct log *l, enum log_level level);

/* Change the level; from a reload. */
void log_set_level(struct log *l, enum log_level level);

/* Open the file again, if it is one. */
void log_reopen(struct log *l);

/* Lines lost so far; those held back and summed up are not lost. */
uint64_t log_dropped(const struct log *l);

#endif
