/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.h - what all workers share: gates, memory, names, the log.
 *
 * Owner:    main, from before the first worker starts until after the last
 *           has ended.
 * Threads:  any; whatever changes is atomic or has its own rules.
 */
#ifndef PENSTOCK_PROXY_SHARED_H
#define PENSTOCK_PROXY_SHARED_H

#include <stdatomic.h>

#include "base/block.h"
#include "base/gate.h"
#include "base/limit.h"
#include "base/log.h"

struct handover;
struct loop;

struct shared {
	unsigned		 workers;	/* main is number `workers` */
	struct loop		*loops[GATE_WORKERS];
	/* In Via and Proxy-Status; a NUL follows it. */
	struct str		 name;
	struct str		 via;		/* its line: rewrite.h */
	struct gate		*sessions;	/* permits of max_connections */
	struct handover		*handover;	/* of connections */
	struct limits		*limits;
	struct block_budget	 budget;
	struct log		*log;
	uint64_t		 descriptors;	/* how many there may be */
};

/* For gates: run m on that worker; `arg` is the struct shared. */
gate_wake_fn	shared_wake;

#endif
