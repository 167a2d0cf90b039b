/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.h - what the kernel says of this process.
 *
 * Threads:  any.
 */
#ifndef PENSTOCK_DAEMON_PROCESS_H
#define PENSTOCK_DAEMON_PROCESS_H

#include <stdint.h>

struct process_figures {
	uint64_t	descriptors;		/* open */
	uint64_t	descriptors_max;	/* that may be */
	uint64_t	resident;		/* bytes */
	double		cpu;			/* seconds, all threads */
};

/* What can't be found out is 0. */
void process_look(struct process_figures *out);

#endif
