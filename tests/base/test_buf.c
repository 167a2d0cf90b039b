/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_buf.c - src/base/buf.c
 */
#include "harness.h"

#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "rng.h"

static struct block_budget budget;
static struct blocks blocks;
static struct buf buf;

static void
an_empty_buf(void)
{
	block_budget_init(&budget, 1 << 20);
	blocks_init(&blocks, &budget);
	buf_init(&buf, &blocks);
}

static void
give_back_all(void)
{
	buf_clear(&buf);
	ck_assert_ptr_null(buf.first);
	ck_assert_ptr_null(buf.last);
	ck_assert_uint_eq(buf.length, 0);
	ck_assert_uint_eq(budget.used, 0);
	blocks_fini(&blocks);
}

/* --- the oracle: the same bytes in one array --- */

enum { FLAT = 1 << 20 };

static unsigned char flat[FLAT];
static size_t flat_length;

static unsigned char input[200000];

static void
assert_same(void)
{
	struct iovec iov[64];
	int n = buf_peek(&buf, iov, (int)ARRAY_LEN(iov));
	size_t at = 0;

	ck_assert_uint_eq(buf.length, flat_length);
	for (int i = 0; i < n; i++) {
		ck_assert_uint_gt(iov[i].iov_len, 0);
		ck_assert_uint_le(at + iov[i].iov_len, flat_length);
		ck_assert_mem_eq(flat + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	if (n < (int)ARRAY_LEN(iov))
		ck_assert_uint_eq(at, flat_length);
	ck_assert((buf.first == NULL) == (flat_length == 0));
}

static void
append_random(uint64_t *rng)
{
	struct iovec iov[5];
	int n = (int)rng_below(rng, ARRAY_LEN(iov) + 1);
	size_t max = rng_below(rng, 20) == 0 ? 40000 : 700;
	size_t bytes = 0;

	for (int i = 0; i < n; i++) {
		iov[i].iov_len = rng_below(rng, 3) ? rng_below(rng, max) : 0;
		iov[i].iov_base = input + rng_below(rng,
		    sizeof input - iov[i].iov_len);
		bytes += iov[i].iov_len;
	}

	size_t skip = rng_below(rng, 2) ? rng_below(rng, bytes + 1) : 0;
	uint64_t used = budget.used;

	if (!buf_append(&buf, iov, n, skip, BLOCK_BODY)) {
		ck_assert_uint_eq(budget.used, used);
		return;
	}
	for (int i = 0; i < n; i++) {
		size_t part = MIN(skip, iov[i].iov_len);

		skip -= part;
		memcpy(flat + flat_length,
		    (unsigned char *)iov[i].iov_base + part,
		    iov[i].iov_len - part);
		flat_length += iov[i].iov_len - part;
	}
}

START_TEST(random_use_equals_a_flat_array)
{
	uint64_t rng = 42 + (uint64_t)_i;

	/* Small enough that appending fails now and then. */
	atomic_store(&budget.limit, 300000);
	for (size_t i = 0; i < sizeof input; i++)
		input[i] = (unsigned char)rng_next(&rng);
	for (int n = 0; n < 4000; n++) {
		if (rng_below(&rng, 2) == 0) {
			append_random(&rng);
		} else {
			size_t part = rng_below(&rng, MIN(flat_length, 3000)
			    + 1);
			if (rng_below(&rng, 50) == 0)
				part = flat_length;
			buf_consume(&buf, part);
			flat_length -= part;
			memmove(flat, flat + part, flat_length);
		}
		assert_same();
	}
	ck_assert_uint_gt(blocks.refused, 0);
}
END_TEST

START_TEST(appending_nothing_takes_no_block)
{
	struct iovec none = { .iov_base = NULL, .iov_len = 0 };
	struct iovec some = { .iov_base = input, .iov_len = 10 };

	ck_assert(buf_append(&buf, &none, 0, 0, BLOCK_HEAD));
	ck_assert(buf_append(&buf, &none, 1, 0, BLOCK_HEAD));
	ck_assert(buf_append(&buf, &some, 1, 10, BLOCK_HEAD));
	ck_assert_uint_eq(buf.length, 0);
	ck_assert_uint_eq(budget.used, 0);
	ck_assert_int_eq(buf_peek(&buf, &some, 1), 0);
}
END_TEST

START_TEST(without_memory_nothing_is_appended)
{
	struct iovec some = { .iov_base = input, .iov_len = 900 };
	struct iovec much = { .iov_base = input, .iov_len = 150000 };

	atomic_store(&budget.limit, 147456 + 2000);
	ck_assert(buf_append(&buf, &some, 1, 0, BLOCK_PERMIT));
	ck_assert(!buf_append(&buf, &much, 1, 0, BLOCK_PERMIT));
	ck_assert_uint_eq(buf.length, 900);
	ck_assert_uint_eq(budget.used, 1024);
	ck_assert_ptr_null(buf.last->next);

	/* What fits into the last block needs no memory. */
	some.iov_len = 100;
	atomic_store(&budget.limit, 0);
	ck_assert(buf_append(&buf, &some, 1, 0, BLOCK_HEAD));
	ck_assert_uint_eq(buf.length, 1000);
	ck_assert(!buf_append(&buf, &some, 1, 99, BLOCK_HEAD));
}
END_TEST

START_TEST(the_use_decides_how_deep_it_dips)
{
	struct iovec some = { .iov_base = input, .iov_len = 1000 };

	atomic_store(&budget.limit, 1500);
	ck_assert(!buf_append(&buf, &some, 1, 0, BLOCK_HEAD));
	ck_assert(buf_append(&buf, &some, 1, 0, BLOCK_BODY));
}
END_TEST

START_TEST(peeking_uses_no_more_pieces_than_given)
{
	struct iovec much = { .iov_base = input, .iov_len = 150000 };
	struct iovec out[2];

	ck_assert(buf_append(&buf, &much, 1, 0, BLOCK_PERMIT));
	ck_assert_int_eq(buf_peek(&buf, out, 0), 0);
	ck_assert_int_eq(buf_peek(&buf, out, 1), 1);
	ck_assert_uint_eq(out[0].iov_len, 147432);
	ck_assert_int_eq(buf_peek(&buf, out, 2), 2);
	ck_assert_uint_eq(out[1].iov_len, 150000 - 147432);
}
END_TEST

START_TEST(consuming_more_than_there_is_is_a_broken_invariant)
{
	buf_consume(&buf, 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("buf");
	TCase *t = tcase_create("buf");

	tcase_set_timeout(t, 240);
	tcase_add_checked_fixture(t, an_empty_buf, give_back_all);
	tcase_add_loop_test(t, random_use_equals_a_flat_array, 0, 3);
	tcase_add_test(t, appending_nothing_takes_no_block);
	tcase_add_test(t, without_memory_nothing_is_appended);
	tcase_add_test(t, the_use_decides_how_deep_it_dips);
	tcase_add_test(t, peeking_uses_no_more_pieces_than_given);
	tcase_add_test_raise_signal(t,
	    consuming_more_than_there_is_is_a_broken_invariant, SIGABRT);
	suite_add_tcase(s, t);
	return run_suite(s);
}
