/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exemplar.c - a sample of a bucket; see exemplar.h.
 */
#include "base/exemplar.h"

#include "base/hist.h"

static uint64_t
get(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_acquire);
}

static void
set(_Atomic uint64_t *p, uint64_t value)
{
	atomic_store_explicit(p, value, memory_order_release);
}

/*
 * A seqlock: odd, the values, even.  Whoever sees one of the new values sees
 * the odd turn before it, too, when it looks at that again.
 */
static void
write_one(struct exemplar *e, const struct exemplar_copy *c)
{
	uint64_t turn = get(&e->turn);

	set(&e->turn, turn + 1);
	set(&e->id, c->id);
	set(&e->value, c->value);
	set(&e->at, c->at);
	set(&e->turn, turn + 2);
}

void
exemplar_note(struct exemplar *buckets, const struct exemplar_copy *c)
{
	write_one(&buckets[hist_bucket(c->value)], c);
}

bool
exemplar_read(const struct exemplar *e, struct exemplar_copy *out)
{
	uint64_t turn = get(&e->turn);

	*out = (struct exemplar_copy){ get(&e->id), get(&e->value),
	    get(&e->at) };
	return turn != 0 && turn % 2 == 0 && get(&e->turn) == turn;
}

void
exemplars_merge(struct exemplar *to, const struct exemplar *from)
{
	struct exemplar_copy is, was;

	for (size_t i = 0; i < HIST_BUCKETS; i++)
		if (exemplar_read(&from[i], &is) &&
		    (!exemplar_read(&to[i], &was) || was.at < is.at))
			write_one(&to[i], &is);
}
