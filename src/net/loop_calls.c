/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_calls.c - calls that a loop makes later, once or in every turn; see
 * loop.h.
 */
#include "net/loop_own.h"

/* The loop that this thread is in, for loop_post(). */
static _Thread_local struct loop *running;

void
loop_set_running(struct loop *loop)
{
	running = loop;
}

static void
append(struct loop *loop, struct mail *m)
{
	m->next = NULL;
	*loop->later_end = m;
	loop->later_end = &m->next;
}

/* To the `later` list, so that it can be cancelled there. */
void
loop_take_mail(struct loop *loop)
{
	if (atomic_load_explicit(&loop->box.last, memory_order_relaxed) ==
	    NULL)
		return;

	struct mail *m = mailbox_take(&loop->box);

	while (m != NULL) {
		struct mail *next = m->next;

		append(loop, m);
		m = next;
	}
}

void
loop_again(struct loop *loop, struct loop_again *a)
{
	if (list_is_empty(&a->link))
		list_add_last(&loop->again, &a->link);
}

void
loop_later(struct loop *loop, struct mail *m)
{
	if (!atomic_exchange(&m->put, true))
		append(loop, m);
}

HOT void
loop_later_cancel(struct loop *loop, struct mail *m)
{
	if (!atomic_load(&m->put))
		return;
	loop_take_mail(loop);
	for (struct mail **p = &loop->later; *p != NULL; p = &(*p)->next) {
		if (*p != m)
			continue;
		*p = m->next;
		if (loop->later_end == &m->next)
			loop->later_end = p;
		atomic_store(&m->put, false);
		return;
	}
}

void
loop_post(struct loop *loop, struct mail *m)
{
	if (running == loop)
		loop_later(loop, m);
	else if (mailbox_put(&loop->box, m))
		ev_async_send(loop->ev, &loop->async);
}

/* Moved aside first, so that each is called once, new ones not at all. */
void
loop_run_again(struct loop *loop)
{
	struct list now;
	struct list *l;

	list_move_all(&now, &loop->again);
	while ((l = list_pop_first(&now)) != NULL) {
		struct loop_again *a = container_of(l, struct loop_again,
		    link);

		list_add_last(&loop->again, l);
		spent_mark(&loop->spent, a->name);
		a->fn(a);
	}
}

void
loop_run_later(struct loop *loop)
{
	for (int i = 0; loop->later != NULL && i < LOOP_CALLS; i++) {
		struct mail *m = loop->later;

		loop->later = m->next;
		if (loop->later == NULL)
			loop->later_end = &loop->later;
		spent_mark(&loop->spent, m->kind->name);
		mail_call(m);
	}
}
