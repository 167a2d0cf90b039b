/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handover.c - connections for the loop that has fewer; see handover.h.
 *
 * Whether a member takes any, and how many are on their way, is one word: a
 * giver counts in only if the member is not closed, so that one which has
 * closed and found nothing on its way can end for good.
 */
#include "net/handover.h"

#include <stdlib.h>
#include <unistd.h>

#include "net/loop.h"

/* Of `coming`: a flag, and the count above it. */
enum { CLOSED = 1, ONE = 2 };

struct parcel {
	struct mail		 mail;
	struct member		*to;
	struct handover_item	 item;
	atomic_bool		 sent;		/* until its content is read */
};

struct member {
	/* Read by who thinks of giving it something. */
	_Alignas(CACHE_LINE) _Atomic uint64_t coming;
	struct handover_opts	 opts;
	/* Its own, for giving. */
	_Alignas(CACHE_LINE) struct parcel *parcels;
	unsigned		 next;		/* parcel */
	unsigned		 turn;		/* whom it looked at last */
	unsigned		 lightest;	/* of those it looked at */
	counter_t		 given;
	counter_t		 taken;
};

struct handover {
	unsigned		 count;
	struct member		 members[];
};

static mail_fn	on_arrival;

/* --- making ------------------------------------------------------------ */

struct handover *
handover_new(unsigned members)
{
	struct handover *h = xcalloc_lines(sizeof *h +
	    members * sizeof h->members[0]);

	h->count = members;
	for (unsigned i = 0; i < members; i++)
		atomic_init(&h->members[i].coming, CLOSED);
	return h;
}

void
handover_join(struct handover *h, unsigned member,
    const struct handover_opts *opts)
{
	struct member *m = &h->members[member];

	m->opts = *opts;
	m->turn = m->lightest = member;
	if (h->count == 1)
		return;
	m->parcels = xcalloc(HANDOVER_PARCELS, sizeof *m->parcels);
	atomic_store(&m->coming, 0);
}

static void
free_parcels(struct member *m)
{
	if (m->parcels == NULL)
		return;
	for (unsigned i = 0; i < HANDOVER_PARCELS; i++)
		if (atomic_load(&m->parcels[i].sent))
			close(m->parcels[i].item.fd);
	free(m->parcels);
}

void
handover_free(struct handover **h)
{
	if (*h == NULL)
		return;
	for (unsigned i = 0; i < (*h)->count; i++)
		free_parcels(&(*h)->members[i]);
	free(*h);
	*h = NULL;
}

/* --- giving ------------------------------------------------------------ */

/* Of one that has closed as well: then all do, and keep what they have. */
static uint64_t
load_of(const struct member *m)
{
	return stat_read(m->opts.open) + atomic_load_explicit(&m->coming,
	    memory_order_relaxed) / ONE;
}

/* The other that seems to have the fewest; what it has. */
static struct member *
look_for_lighter(struct handover *h, unsigned member, uint64_t *load)
{
	struct member *m = &h->members[member];

	m->turn = (m->turn + 1) % h->count;
	if (m->turn == member)
		m->turn = (m->turn + 1) % h->count;
	if (m->lightest == member)
		m->lightest = m->turn;		/* the first time */

	struct member *lightest = &h->members[m->lightest];

	*load = load_of(lightest);
	if (m->turn == m->lightest)
		return lightest;

	uint64_t other = load_of(&h->members[m->turn]);

	if (other >= *load)
		return lightest;
	*load = other;
	m->lightest = m->turn;
	return &h->members[m->turn];
}

/* Is it worth a wake-up of another thread? */
static bool
is_worth_it(uint64_t mine, uint64_t theirs)
{
	return mine > theirs + HANDOVER_SLACK && mine > theirs + theirs / 4;
}

/* Count one more as coming, unless it takes none. */
static bool
count_in(struct member *to)
{
	uint64_t coming = atomic_load_explicit(&to->coming,
	    memory_order_relaxed);

	do {
		if ((coming & CLOSED) || coming / ONE >= HANDOVER_COMING)
			return false;
	} while (!atomic_compare_exchange_weak(&to->coming, &coming,
	    coming + ONE));
	return true;
}

bool
handover_give(struct handover *h, unsigned member,
    const struct handover_item *item)
{
	struct member *m = &h->members[member];
	uint64_t theirs;

	if (h->count == 1)
		return false;

	struct member *to = look_for_lighter(h, member, &theirs);

	if (!is_worth_it(load_of(m), theirs))
		return false;

	/* If this one is still on its way, the next time another is tried. */
	struct parcel *p = &m->parcels[m->next];
	m->next = (m->next + 1) % HANDOVER_PARCELS;
	if (atomic_load_explicit(&p->sent, memory_order_acquire) ||
	    !count_in(to))
		return false;
	mail_init(&p->mail, on_arrival);
	p->to = to;
	p->item = *item;
	atomic_store_explicit(&p->sent, true, memory_order_relaxed);
	stat_increment(&m->given);
	loop_post(to->opts.loop, &p->mail);
	return true;
}

/* --- taking ------------------------------------------------------------ */

static void
on_arrival(struct mail *mail)
{
	struct parcel *p = container_of(mail, struct parcel, mail);
	struct member *m = p->to;
	struct handover_item item = p->item;

	/* The giver may use it again from here on. */
	atomic_store_explicit(&p->sent, false, memory_order_release);
	atomic_fetch_sub(&m->coming, ONE);
	stat_increment(&m->taken);
	m->opts.taken(m->opts.arg, &item);
}

void
handover_close(struct handover *h, unsigned member)
{
	atomic_fetch_or(&h->members[member].coming, CLOSED);
}

bool
handover_is_quiet(const struct handover *h, unsigned member)
{
	return atomic_load(&h->members[member].coming) == CLOSED;
}

/* --- figures ----------------------------------------------------------- */

uint64_t
handover_given(const struct handover *h, unsigned member)
{
	return stat_read(&h->members[member].given);
}

uint64_t
handover_taken(const struct handover *h, unsigned member)
{
	return stat_read(&h->members[member].taken);
}
