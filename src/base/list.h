/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.h - doubly linked list whose links are embedded in the members.
 *
 * A struct list is the head and a link alike: a ring in which the head stands
 * between last and first.  A link that is on no list points to itself, so
 * list_remove() is harmless twice.
 *
 * Owner:    the caller, who embeds heads and links; nothing is allocated.
 * Threads:  one at a time.
 */
#ifndef PENSTOCK_BASE_LIST_H
#define PENSTOCK_BASE_LIST_H

#include "base/defs.h"

struct list {
	struct list	*next;
	struct list	*prev;
};

/* Make an empty head, or a link that is on no list. */
static inline void
list_init(struct list *l)
{
	l->next = l->prev = l;
}

/* For a head: has no members.  For a link: is on no list. */
static inline bool
list_is_empty(const struct list *l)
{
	return l->next == l;
}

/* Put link before `at`: with the head, at the end. */
static inline void
list_add_before(struct list *at, struct list *link)
{
	link->next = at;
	link->prev = at->prev;
	at->prev->next = link;
	at->prev = link;
}

static inline void
list_add_last(struct list *head, struct list *link)
{
	list_add_before(head, link);
}

static inline void
list_add_first(struct list *head, struct list *link)
{
	list_add_before(head->next, link);
}

/* Take link off its list, if it is on one. */
static inline void
list_remove(struct list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	list_init(link);
}

/* The first link, taken off; or NULL. */
static inline struct list *
list_pop_first(struct list *head)
{
	struct list *l = head->next;

	if (l == head)
		return NULL;
	list_remove(l);
	return l;
}

/* Move all members of `from` to the empty head `to`. */
static inline void
list_move_all(struct list *to, struct list *from)
{
	list_init(to);
	if (list_is_empty(from))
		return;
	*to = *from;
	to->next->prev = to->prev->next = to;
	list_init(from);
}

/* Walk; the body may remove `l` itself, and nothing else. */
#define LIST_FOR_EACH(l, head)						\
	for (struct list *l = (head)->next, *l##_next = l->next;	\
	    l != (head); l = l##_next, l##_next = l->next)

#endif
