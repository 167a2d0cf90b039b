/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * amounts.h - how much there will be of what, by a configuration.
 *
 * Threads:  main's.
 */
#ifndef PENSTOCK_DAEMON_AMOUNTS_H
#define PENSTOCK_DAEMON_AMOUNTS_H

#include "base/gate.h"
#include "config/config.h"

struct shared;

unsigned amounts_workers(const struct config *c);

/* Bytes of the largest page of the admin listener, at most. */
size_t amounts_page(const struct config *c);

uint64_t amounts_sessions(const struct config *c, uint64_t descriptors);

/* The gate of max_connections; warns if there are too few descriptors. */
struct gate_spec amounts_gate(const struct config *c,
    const struct shared *shared);

#endif
