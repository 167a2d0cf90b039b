/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mail.h - a mailbox: calls that other threads ask one thread to make.
 *
 * A struct mail is embedded in whatever it is about, so putting it can't
 * fail.  Putting mail that is in a box already does nothing: it says "look
 * at this", not how often.  The owner of the box empties it with
 * mailbox_run(), which calls each mail once, oldest first; mail that is put
 * while it runs stays for the next time.
 *
 * Owner:    the box: its one reading thread.  A mail must outlive its call.
 * Threads:  mailbox_put() any; mailbox_run() the owner's only.
 * Promise:  whatever was written before mailbox_put() is seen by the call.
 */
#ifndef PENSTOCK_BASE_MAIL_H
#define PENSTOCK_BASE_MAIL_H

#include <stdatomic.h>

#include "base/defs.h"

struct mail;

typedef void mail_fn(struct mail *m);

/* What many have in common. */
struct mail_kind {
	mail_fn		*fn;
	const char	*name;		/* of fn; see CALLBACK_NAME() */
};

struct mail {
	struct mail	*next;
	const struct mail_kind *kind;
	atomic_bool	 put;		/* is in a box */
};

struct mailbox {
	_Atomic(struct mail *) last;	/* newest first, turned when read */
};

/* Not put; `kind` must last. */
static inline void
mail_init_kind(struct mail *m, const struct mail_kind *kind)
{
	m->next = NULL;
	m->kind = kind;
	atomic_init(&m->put, false);
}

/* The same for a function that is named here. */
#define mail_init(m, function) do {					\
	static const struct mail_kind kind_ = { function,		\
	    CALLBACK_NAME(function) };					\
	mail_init_kind(m, &kind_);					\
} while (0)

static inline void
mailbox_init(struct mailbox *box)
{
	atomic_init(&box->last, NULL);
}

/* True if the box was empty before, so that its owner needs waking. */
bool mailbox_put(struct mailbox *box, struct mail *m);

/*
 * Take all mail out, oldest first, linked by `next`.  It counts as put until
 * mail_call().
 */
struct mail *mailbox_take(struct mailbox *box);

/* Call one that was taken; it may be put again from then on. */
static inline void
mail_call(struct mail *m)
{
	/* Cleared first: what is put during the call comes again. */
	atomic_exchange(&m->put, false);
	m->kind->fn(m);
}

/* Make the calls; the number made. */
size_t mailbox_run(struct mailbox *box);

#endif
