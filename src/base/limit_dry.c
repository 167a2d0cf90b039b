/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_dry.c - what a limit in dry run would have done; see limit.h.
 *
 * Nothing here is reached by one whom the limit would have let in at once.
 */
#include "base/limit_own.h"

static void
count(_Atomic uint64_t *n)
{
	atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

void
limit_dry_refuse(struct limit_pass *p, enum failure why)
{
	count(&p->limit->would_refuse[why]);
	p->would = why;
}

void
limit_dry_rate(struct limit_pass *p)
{
	if (p->charged)
		count(&p->limit->would_wait);
	else
		limit_dry_refuse(p, FAIL_RATE_LIMITED);
}

/* Whoever would have been refused would have had its token back. */
bool
limit_dry_enter(struct limit_pass *p, const struct keygate_call *call,
    enum failure why)
{
	struct limit *l = p->limit;
	struct gate *g = l->gate;
	struct keygate *kg = l->keygate;

	if (g != NULL ? !gate_is_dry(g) : !keygate_is_dry(kg))
		return false;
	p->inside = g != NULL ? gate_take_dry(g) :
	    keygate_take_dry(kg, call, &p->keyed.row);
	if (p->inside) {
		count(&l->would_wait);
	} else {
		limit_dry_refuse(p, why);
		limit_rate_undo(p);
	}
	return true;
}
