/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reading.h - the next request, out of what a client sends.
 *
 * Bytes are read into the loop's scratch area, and a head that lies complete
 * in it is parsed where it lies.  Only what must wait is kept, in the one
 * block of the session: a head that has come in part, and what follows a
 * head.  What the client sends ahead of its turn is kept up to 4 KiB, then it
 * stays in the kernel; a turn of the loop takes one request of that, so that
 * other sessions get theirs.
 *
 * What comes of it is the session's: an exchange, or the end.
 *
 * Threads:  the worker's.
 */
#ifndef PENSTOCK_PROXY_READING_H
#define PENSTOCK_PROXY_READING_H

#include "base/defs.h"

struct session;

/* A request begins now, with what is read or without: state HEAD. */
void reading_begin(struct session *s);

/* Bytes, an end or an error are there, in IDLE or HEAD.  May end *s. */
void reading_receive(struct session *s);

/*
 * The client speaks, or leaves, while its exchange runs.  Once it has sent a
 * block ahead of its turn it isn't read until then, but found gone (leaving.h).
 */
void reading_ahead(struct session *s);

/*
 * The exchange is over, its session IDLE: wait for the next request, or take
 * it from what was read ahead.  May end *s.
 */
void reading_next(struct session *s);

/* It is the turn of what was read ahead: worker_go_on_later(). */
void reading_go_on(struct session *s);

/* Keep bytes that belong to what comes next; false without memory. */
bool reading_keep(struct session *s, const uint8_t *bytes, size_t n);

#endif
