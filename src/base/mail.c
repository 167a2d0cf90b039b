/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mail.c - mailbox; see mail.h.
 *
 * A lock-free stack that is taken whole and turned over: no node is ever
 * popped singly, so there is no ABA problem.
 */
#include "base/mail.h"

bool
mailbox_put(struct mailbox *box, struct mail *m)
{
	/*
	 * Sequentially consistent: a caller that wrote something and finds the
	 * mail put already must know that the call, still to come, sees it.
	 */
	if (atomic_exchange(&m->put, true))
		return false;

	struct mail *last = atomic_load_explicit(&box->last,
	    memory_order_relaxed);
	do
		m->next = last;
	while (!atomic_compare_exchange_weak_explicit(&box->last, &last, m,
	    memory_order_release, memory_order_relaxed));
	return last == NULL;
}

struct mail *
mailbox_take(struct mailbox *box)
{
	struct mail *m = atomic_exchange_explicit(&box->last, NULL,
	    memory_order_acquire);
	struct mail *oldest = NULL;

	while (m != NULL) {
		struct mail *next = m->next;

		m->next = oldest;
		oldest = m;
		m = next;
	}
	return oldest;
}

size_t
mailbox_run(struct mailbox *box)
{
	struct mail *m = mailbox_take(box);
	size_t n = 0;

	while (m != NULL) {
		struct mail *next = m->next;

		mail_call(m);
		m = next;
		n++;
	}
	return n;
}
