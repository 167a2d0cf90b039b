/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_numbers.c - other numbers for a limit; see limit_own.h.
 *
 * Workers go on meanwhile, and one may take a token by numbers that it has read
 * just before they were replaced.  So what could go wrong then is put right by
 * limit_settle(), when all of them are known to have come to the end of that.
 */
#include <stdlib.h>

#include "base/limit_own.h"

static void
publish_paces(struct limit *l, struct limit_numbers *n, nsec_t now)
{
	for (int way = 0; way < LIMIT_WAYS; way++) {
		const struct limit_spec *spec = &n->spec;

		if (spec->bandwidth[way] != 0)
			pace_spec_init(&n->pace[way], spec->bandwidth[way],
			    spec->bandwidth_burst[way]);
		n->pace[way].dry = spec->dry_run && spec->bandwidth[way] != 0;
		pace_set(&l->pace[way], &n->pace[way], now);
	}
}

/* A change of rates: where there was none, all is full in the end. */
struct rate_change {
	struct bucket_spec	from;
	struct bucket_spec	to;
	nsec_t			most;	/* that may be owed by the new ones */
};

/* In nanoseconds, or units of the keys' buckets. */
static struct bucket_spec
rate_of(const struct limit_numbers *n)
{
	return limit_is_keyed(&n->spec) ? (struct bucket_spec){
		.gap = n->keybucket.gap,
		.depth = n->keybucket.depth,
	} : n->bucket;
}

static nsec_t
longest_of(const struct limit_numbers *n)
{
	return limit_is_keyed(&n->spec) ?
	    n->keybucket.depth + n->keybucket.wait :
	    n->bucket.depth + n->spec.wait;
}

static struct rate_change
change_between(const struct limit_numbers *was, const struct limit_numbers *n)
{
	bool fill = was->spec.rate == 0;
	struct rate_change c = {
		.from = rate_of(fill ? n : was),
		.to = rate_of(n),
	};

	/* Those who wait for a token are still owed it. */
	if (!fill)
		c.most = MAX(longest_of(n), bucket_owed(
		    (int64_t)longest_of(was), &c.from, &c.to));
	return c;
}

static void
change_rate(struct limit *l, bool keyed, const struct rate_change *c,
    nsec_t now)
{
	if (keyed)
		keybuckets_change(l->keybuckets, &c->from, &c->to, c->most,
		    now);
	else
		bucket_change(&l->bucket, &c->from, &c->to, c->most, now);
}

/*
 * Workers go on meanwhile.  What they take by the faster numbers of the two,
 * and is then counted as if by the others, must cost too much, not too little;
 * what that is too much for the new numbers is cut in the end.  Who has read
 * the old numbers and takes by them after that is dealt with in limit_settle():
 * of old numbers that are faster, he took a token for too little, which is one
 * for each worker; of slower ones, for what may be hours by the new.
 */
static void
replace(struct limit *l, const struct limit_numbers *was,
    struct limit_numbers *n, nsec_t now)
{
	bool keyed = limit_is_keyed(&n->spec);
	struct rate_change c = change_between(was, n);
	bool slower = c.to.gap > c.from.gap;

	n->most_owed = MAX(c.most, longest_of(n));

	if (!slower)
		change_rate(l, keyed, &c, now);
	atomic_store_explicit(&l->numbers, n, memory_order_release);
	if (slower)
		change_rate(l, keyed, &c, now);
	c.from = c.to;
	change_rate(l, keyed, &c, now);
}

void
limit_publish(struct limit *l, const struct limit_spec *spec, nsec_t now)
{
	struct limit_numbers *n = xcalloc(1, sizeof *n);
	struct limit_numbers *was = l->numbers;

	n->spec = *spec;
	n->spec.name = l->name;
	if (spec->rate != 0 && !limit_is_keyed(spec))
		bucket_spec_init(&n->bucket, spec->rate, spec->rate_span,
		    spec->burst);
	else if (spec->rate != 0)
		keybucket_spec_init(&n->keybucket, spec->rate,
		    spec->rate_span, spec->burst, spec->wait);
	publish_paces(l, n, now);
	n->before = was;
	if (was == NULL || spec->rate == 0 ||
	    limit_is_same_rate(&was->spec, spec))
		atomic_store_explicit(&l->numbers, n, memory_order_release);
	else
		replace(l, was, n, now);
}


void
limit_settle(struct limit *l, nsec_t now)
{
	struct limit_numbers *n = l->numbers;
	struct limit_numbers *old = n->before;

	if (n->most_owed != 0) {
		struct rate_change cut = { rate_of(n), rate_of(n),
		    n->most_owed };

		change_rate(l, limit_is_keyed(&n->spec), &cut, now);
		n->most_owed = 0;
	}
	n->before = NULL;
	while (old != NULL) {
		struct limit_numbers *before = old->before;

		free(old);
		old = before;
	}
}
