/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_quota.c - what is left of a rate; see limit.h.
 */
#include "base/limit_own.h"

/* A bucket, whatever it is counted in: see bucket.h. */
struct filling {
	nsec_t	gap;
	nsec_t	depth;
	nsec_t	gone;			/* time until it is full */
};

static struct filling
filling_of(const struct limit_pass *p, const struct limit_numbers *n,
    nsec_t now)
{
	struct limit *l = p->limit;
	nsec_t full_at;

	if (limit_is_keyed(&n->spec))
		return (struct filling){
			.gap = n->keybucket.gap * KEYBUCKET_UNIT,
			.depth = n->keybucket.depth * KEYBUCKET_UNIT,
			.gone = keybucket_gone(l->keybuckets, p->key, now),
		};
	full_at = atomic_load_explicit(&l->bucket.full_at,
	    memory_order_relaxed);
	return (struct filling){
		.gap = n->bucket.gap,
		.depth = n->bucket.depth,
		.gone = MAX(full_at, now) - now,
	};
}

bool
limit_quota(const struct limit_pass *p, nsec_t now, struct limit_quota *out)
{
	const struct limit_numbers *n = limit_numbers(p->limit);

	if (n->spec.rate == 0)
		return false;

	struct filling v = filling_of(p, n, now);
	nsec_t held = v.depth - MIN(v.gone, v.depth);

	*out = (struct limit_quota){
		.most = v.depth / v.gap,
		.span = v.depth,
		.left = held / v.gap,
	};
	/* When so much is gone that one token more than is left is there. */
	if (out->left < out->most)
		out->more = v.gone - (v.depth - (out->left + 1) * v.gap);
	return true;
}
