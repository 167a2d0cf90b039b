/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_check.c - are permits and their holders as many?  See limit.h.
 *
 * The two accounts are kept by different code: a gate's in its words, a
 * holder's where its pass gets inside and where it leaves.  They are read one
 * after the other while both move, so what holders did meanwhile may be in the
 * gate's account or not, and only what is beyond that is sure.
 */
#include "base/limit_own.h"

enum { READINGS = 4 };

static struct limit_account
read_account(const struct limit *l)
{
	struct limit_account a = { 0, 0 };

	for (unsigned i = 0; i < l->workers; i++) {
		a.entered += atomic_load_explicit(&l->sides[i].entered,
		    memory_order_acquire);
		a.left += atomic_load_explicit(&l->sides[i].left,
		    memory_order_acquire);
	}
	return a;
}

uint64_t
limit_holders(const struct limit *l)
{
	struct limit_account a = read_account(l);

	return a.entered - MIN(a.left, a.entered);
}

static uint64_t
given_out(const struct limit *l)
{
	if (l->keygate != NULL)
		return keygate_count(l->keygate);
	return l->gate != NULL ? gate_count(l->gate) : 0;
}

bool
limit_is_sure(const struct limit_account *before, uint64_t given,
    const struct limit_account *after, int64_t *out)
{
	/* Whoever held one at any time of it, and who did all the time. */
	int64_t least = (int64_t)(given - (after->entered - before->left));
	int64_t most = (int64_t)(given - (before->entered - after->left));

	*out = least > 0 ? least : MIN(most, 0);
	return *out != 0 || least == most;
}

bool
limit_unaccounted(const struct limit *l, int64_t *out)
{
	for (int i = 0; i < READINGS; i++) {
		struct limit_account before = read_account(l);
		uint64_t given = given_out(l);
		struct limit_account after = read_account(l);

		if (limit_is_sure(&before, given, &after, out))
			return true;
	}
	return false;
}
