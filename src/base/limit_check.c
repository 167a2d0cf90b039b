/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_check.c - are permits and their holders as many?  See limit.h.
 *
 * The two accounts are kept by different code: a gate's in its words, a
 * holder's where its pass gets inside and where it leaves.  They are read one
 * after the other while both move; so a reading counts only if no holder came
 * or went during it.
 */
#include "base/limit_own.h"

enum { READINGS = 4 };

struct account {
	uint64_t	entered;
	uint64_t	left;
};

static struct account
read_account(const struct limit *l)
{
	struct account a = { 0, 0 };

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
	struct account a = read_account(l);

	return a.entered - MIN(a.left, a.entered);
}

static uint64_t
given_out(const struct limit *l)
{
	if (l->keygate != NULL)
		return keygate_count(l->keygate);
	return l->gate != NULL ? gate_count(l->gate) : 0;
}

int64_t
limit_unaccounted(const struct limit *l)
{
	for (int i = 0; i < READINGS; i++) {
		struct account before = read_account(l);
		uint64_t given = given_out(l);
		struct account after = read_account(l);

		if (before.entered == after.entered &&
		    before.left == after.left)
			return (int64_t)(given - (after.entered - after.left));
	}
	return 0;			/* there is too much coming and going */
}
