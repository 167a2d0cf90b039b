/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_own.h - what a loop consists of; for loop.c and loop_calls.c alone.
 *
 * Threads:  the loop's, but for what is marked.
 */
#ifndef PENSTOCK_NET_LOOP_OWN_H
#define PENSTOCK_NET_LOOP_OWN_H

#include <ev.h>
#include <stdatomic.h>

#include "net/loop.h"
#include "net/spent.h"

struct loop {
	struct ev_loop		*ev;
	struct wheels		*wheels;
	nsec_t			 now;
	nsec_t			 polled;	/* when this turn began */
	nsec_t			 slept;		/* when poll was entered */
	nsec_t			 late;		/* this turn, for its timers */
	nsec_t			 planned;	/* poll's end, at the latest */
	nsec_t			 worst;		/* lag in this second */
	nsec_t			 max_lag;	/* more is late */
	nsec_t			 late_until;	/* for the last that was more */
	nsec_t			 timer_due;	/* what `timer` waits for */
	nsec_t			 wall_offset;	/* time of day - now */
	nsec_t			 wall_due;	/* when to look again */
	uint64_t		 ready_then;	/* stats.ready, a turn ago */
	uint64_t		 ready_last;	/* in the last turn */
	struct list		 again;
	struct mail		*later;
	struct mail		**later_end;
	struct blocks		*blocks;
	struct loop_turn	*turn;
	uint8_t			*scratch;
	ev_timer		 timer;
	ev_prepare		 prepare;
	ev_idle			 idle;
	struct loop_stats	 stats;
	struct spent		 spent;
	uint8_t			 pad[CACHE_LINE];
	/* What other threads write. */
	struct mailbox		 box;
	ev_async		 async;
	atomic_bool		 stop;
	bool			 blind;		/* timers were passed over */
};

/* The thread that calls this is the loop's from now on; or, NULL, nobody's. */
void loop_set_running(struct loop *loop);

/* Take the mail that others sent; call the `again` list; the `later` list. */
void loop_take_mail(struct loop *loop);
void loop_run_again(struct loop *loop);
void loop_run_later(struct loop *loop);

#endif
