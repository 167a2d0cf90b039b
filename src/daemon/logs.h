/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * logs.h - the two logs: messages for operators, and a line for each exchange.
 *
 * Each has a thread that writes; see base/log_writer.h.  The access log has
 * one even if it is off, so that a reload can turn it on.
 *
 * A reload goes in two steps, so that nothing has changed if a file can't be
 * opened:
 *
 *	logs_prepare() --> logs_commit(), or logs_abandon()
 *
 * Owner:    the caller, who embeds the struct; all zero is none.
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_LOGS_H
#define PENSTOCK_DAEMON_LOGS_H

#include <stdio.h>

#include "base/log.h"
#include "base/log_writer.h"
#include "config/config.h"

struct logs {
	struct log		*error;
	struct log_writer	*access;	/* a ring for each worker */
};

/* Files that are open already, for a configuration to come. */
struct logs_change {
	const struct conf_log	*conf;
	int			 error;		/* -1: stays where it is */
	int			 access;	/* the same */
};

/* Bytes of all rings of the access log; none if it is off. */
uint64_t logs_memory(const struct conf_log *conf, unsigned workers);

/*
 * Open what `conf` says, the one for errors first; false, said on `errors`, if
 * a file can't be opened.
 */
bool logs_open_error(struct logs *l, const struct conf_log *conf,
    FILE *errors);
bool logs_open_access(struct logs *l, const struct conf_log *conf,
    unsigned workers, FILE *errors);

/* Let files of root's be this user's, whom the process is about to become. */
void logs_give(struct logs *l, uid_t uid);

/*
 * Would these files open?  If not, it is said on `errors`.  Makes none: of one
 * that isn't there, the folder is looked at.
 */
bool logs_check(const struct conf_log *conf, FILE *errors);

/* The access log first: whoever still has something to say has the other. */
void logs_close(struct logs *l);

/* Open both files again, if they are files; one that can't be opened stays. */
void logs_reopen(struct logs *l);

/*
 * Open the files of `to` that `from`, which is in effect, doesn't name; false,
 * said on `errors`, if one can't be opened: then none is open.
 */
bool logs_prepare(struct logs_change *change, const struct conf_log *from,
    const struct conf_log *to, FILE *errors);

/* Go on with them, and with the level. */
void logs_commit(struct logs *l, const struct logs_change *change);
void logs_abandon(struct logs_change *change);

/* Lines lost so far. */
uint64_t logs_dropped_errors(const struct logs *l);
uint64_t logs_dropped_access(const struct logs *l);

#endif
