/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * history.h - the last ten minutes, and what went wrong in them.
 *
 * Every HISTORY_STEP main looks at what workers count and keeps what has
 * changed, so that a page that is opened now shows what was before.  Nothing
 * is asked of the workers for it.  Where there is so much to look at that it
 * takes more than 1/200 of main's time, it looks less often.
 *
 * Owner:    history_start() gives a handle.
 * Threads:  main's.
 * Limits:   HISTORY_SAMPLES samples and HISTORY_TROUBLES kinds of trouble;
 *           kinds beyond that are not told of.
 */
#ifndef PENSTOCK_DAEMON_HISTORY_H
#define PENSTOCK_DAEMON_HISTORY_H

#include "base/failure.h"
#include "daemon/metrics.h"
#include "net/loop.h"

enum {
	HISTORY_SAMPLES = 300,
	HISTORY_TROUBLES = 256,
	HISTORY_MINUTES = 10,
	HISTORY_NAME = 40,		/* bytes of a section's name */
};

#define HISTORY_STEP	(2 * NSEC_PER_SEC)

/* What happened in one step; rates are a second's. */
struct history_sample {
	uint64_t	number;		/* the first is 1 */
	double		at;		/* its end, in seconds since 1970 */
	double		requests;	/* answered, of any status */
	double		refused;	/* TROUBLE_REFUSED */
	double		failed;		/* TROUBLE_FAILED, and servers' 5xx */
	double		received;	/* bytes from clients */
	double		sent;		/* bytes to clients */
	double		busy;		/* of all workers' time, 0 to 1 */
	nsec_t		median;		/* of durations; 0 without requests */
	nsec_t		slow;		/* the 99th percentile of them */
	nsec_t		lag;		/* the same of loops' lags */
	uint64_t	sessions;	/* at its end, as all that follow */
	uint64_t	exchanges;
	uint64_t	waiting;
};

/*
 * What a reason is to who operates us: refused, by what limits what comes;
 * failed, here or behind us; or the client's own doing.
 */
enum trouble_kind { TROUBLE_REFUSED, TROUBLE_FAILED, TROUBLE_CLIENT };
enum trouble_kind trouble_kind(enum failure why);

/* One reason for which one listener failed requests, or one limit refused. */
struct history_trouble {
	bool		of_limit;	/* else of a listener */
	char		name[HISTORY_NAME + 1];
	enum failure	why;
	uint64_t	total;		/* since the start */
	double		last;		/* seen, in seconds since 1970 */
	uint64_t	minutes[HISTORY_MINUTES];	/* a ring */
	uint64_t	minute;		/* of the one written last */
	uint64_t	look;		/* the last at which it was there */
};

struct history;

struct history_opts {
	struct loop	*loop;
	/* What is to be looked at, now. */
	void		(*source)(void *arg, struct metrics_source *out);
	void		*arg;
};

/* Bytes that it takes. */
size_t history_memory(void);

struct history *history_start(const struct history_opts *opts);
void history_stop(struct history **h);

/*
 * The oldest sample that is kept and has a higher number; NULL if there is
 * none.
 */
const struct history_sample *history_after(const struct history *h,
    uint64_t number);

/* Kind i of trouble, from 0; NULL beyond the last. */
const struct history_trouble *history_trouble(const struct history *h,
    size_t i);

/* How often it was seen in so many minutes that began last. */
uint64_t history_trouble_in(const struct history_trouble *t, double now,
    unsigned minutes);

/* Look now; for history_start() and tests. */
void history_look(struct history *h);

#endif
