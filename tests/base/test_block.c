/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_block.c - src/base/block.c
 */
#include "harness.h"

#include <pthread.h>
#include <string.h>

#include "base/block.h"
#include "rng.h"

#define LIMIT	(UINT64_C(64) * 1024)

static struct block_budget budget;
static struct blocks blocks;

static void
a_budget_of_64_blocks_of_1_kib(void)
{
	block_budget_init(&budget, LIMIT);
	blocks_init(&blocks, &budget);
}

/* Take blocks of 1 KiB for `use` until refused, on top of those there. */
static unsigned
take_all(struct block **first, enum block_use use)
{
	unsigned n = 0;
	struct block *b;

	while ((b = block_take(&blocks, 1, use)) != NULL) {
		b->next = *first;
		*first = b;
		n++;
	}
	return n;
}

static void
give_all(struct block **first)
{
	while (*first != NULL) {
		struct block *next = (*first)->next;

		block_give(&blocks, first);
		ck_assert_ptr_null(*first);
		*first = next;
	}
}

START_TEST(each_use_dips_as_deep_as_it_may)
{
	struct block *all = NULL;

	ck_assert_uint_eq(take_all(&all, BLOCK_HEAD), 32);
	ck_assert(blocks_are_short(&blocks, BLOCK_HEAD));
	ck_assert(!blocks_are_short(&blocks, BLOCK_BODY));
	ck_assert_uint_eq(take_all(&all, BLOCK_BODY), 24);
	ck_assert(blocks_are_short(&blocks, BLOCK_BODY));
	ck_assert(!blocks_are_short(&blocks, BLOCK_PERMIT));
	ck_assert_uint_eq(take_all(&all, BLOCK_PERMIT), 8);
	ck_assert(blocks_are_short(&blocks, BLOCK_PERMIT));
	ck_assert_uint_eq(budget.used, LIMIT);
	ck_assert_uint_eq(blocks.used, LIMIT);
	ck_assert_uint_eq(blocks.refused, 3);

	give_all(&all);
	ck_assert_uint_eq(budget.used, 0);
	ck_assert_uint_eq(blocks.used, 0);
	ck_assert(!blocks_are_short(&blocks, BLOCK_HEAD));
	blocks_fini(&blocks);
}
END_TEST

/* { bytes wanted, size of the block } */
static const struct { size_t want; size_t size; } fits[] = {
	{ 0,		1024 },
	{ 1000,		1024 },
	{ 1001,		4096 },
	{ 4072,		4096 },
	{ 4073,		16384 },
	{ 16360,	16384 },
	{ 16361,	66560 },
	{ 66536,	66560 },
	{ 66537,	147456 },
	{ 147432,	147456 },
	{ 1000000,	147456 },
};

START_TEST(the_smallest_block_that_fits_is_taken)
{
	size_t room = fits[_i].size - sizeof(struct block);

	atomic_store(&budget.limit, 1 << 20);
	struct block *b = block_take(&blocks, fits[_i].want, BLOCK_HEAD);
	ck_assert_ptr_nonnull(b);
	ck_assert_uint_eq(b->size, room);
	ck_assert_uint_eq(b->start, 0);
	ck_assert_uint_eq(b->end, 0);
	ck_assert_ptr_null(b->next);
	ck_assert_uint_eq(budget.used, fits[_i].size);
	memset(b->data, 0xff, b->size);
	block_give(&blocks, &b);
	ck_assert_uint_eq(budget.used, 0);
	blocks_fini(&blocks);
}
END_TEST

START_TEST(a_lowered_limit_refuses_until_enough_came_back)
{
	struct block *all = NULL, *more = NULL;

	take_all(&all, BLOCK_PERMIT);
	atomic_store(&budget.limit, LIMIT / 2);
	ck_assert(blocks_are_short(&blocks, BLOCK_PERMIT));
	ck_assert_uint_eq(take_all(&more, BLOCK_PERMIT), 0);
	give_all(&all);
	ck_assert_uint_eq(take_all(&all, BLOCK_PERMIT), 32);
	give_all(&all);
	blocks_fini(&blocks);
}
END_TEST

START_TEST(a_limit_below_one_block_refuses_all)
{
	atomic_store(&budget.limit, 1023);
	ck_assert_ptr_null(block_take(&blocks, 1, BLOCK_PERMIT));
	atomic_store(&budget.limit, 0);
	ck_assert_ptr_null(block_take(&blocks, 1, BLOCK_PERMIT));
	ck_assert(blocks_are_short(&blocks, BLOCK_PERMIT));
	ck_assert_uint_eq(budget.used, 0);
	blocks_fini(&blocks);
}
END_TEST

START_TEST(nothing_can_be_given_back)
{
	struct block *none = NULL;

	block_give(&blocks, &none);
	ck_assert_ptr_null(none);
	blocks_fini(&blocks);
}
END_TEST

START_TEST(what_is_kept_stays_in_one_piece)
{
	static unsigned char flat[160000];
	struct block *kept = NULL;
	size_t length = 0;
	uint64_t rng = 3;

	atomic_store(&budget.limit, 1 << 20);
	for (size_t i = 0; i < sizeof flat; i++)
		flat[i] = (unsigned char)rng_next(&rng);
	for (;;) {
		size_t n = rng_below(&rng, 3000);

		if (!block_keep(&blocks, &kept, flat + length, n, BLOCK_BODY))
			break;
		length += n;
		ck_assert_uint_eq(kept->end - kept->start, length);
		ck_assert_mem_eq(kept->data + kept->start, flat, length);
	}
	/* The largest was full; what was in it still is. */
	ck_assert_uint_eq(kept->size, 147456 - sizeof *kept);
	ck_assert_uint_gt(length, kept->size - 3000);
	ck_assert_mem_eq(kept->data + kept->start, flat, length);
	ck_assert_uint_eq(budget.used, 147456);
	block_give(&blocks, &kept);
	blocks_fini(&blocks);
}
END_TEST

START_TEST(keeping_reuses_the_room_of_what_was_used_up)
{
	static unsigned char bytes[1000];
	struct block *kept = NULL;

	bytes[950] = 9;
	ck_assert(block_keep(&blocks, &kept, bytes, 1000, BLOCK_BODY));
	kept->start = 900;
	bytes[0] = 7;
	ck_assert(block_keep(&blocks, &kept, bytes, 900, BLOCK_BODY));
	ck_assert_uint_eq(kept->size, 1000);
	ck_assert_uint_eq(kept->start, 0);
	ck_assert_uint_eq(kept->end, 1000);
	ck_assert_uint_eq(kept->data[50], 9);
	ck_assert_uint_eq(kept->data[100], 7);
	block_give(&blocks, &kept);
	blocks_fini(&blocks);
}
END_TEST

START_TEST(keeping_without_memory_changes_nothing)
{
	static unsigned char bytes[1000];
	struct block *kept = NULL;

	atomic_store(&budget.limit, 2048);
	ck_assert(block_keep(&blocks, &kept, bytes, 800, BLOCK_PERMIT));
	ck_assert(!block_keep(&blocks, &kept, bytes, 800, BLOCK_PERMIT));
	ck_assert_uint_eq(kept->end, 800);
	ck_assert_uint_eq(budget.used, 1024);
	block_give(&blocks, &kept);
	blocks_fini(&blocks);
}
END_TEST

/* --- what is held --- */

enum { WORKERS = 2 };

#define LARGE	(UINT64_C(16) * 1024 * 1024)

static struct blocks workers[WORKERS];

static void
a_large_budget_of_two_workers(void)
{
	block_budget_init(&budget, LARGE);
	for (int i = 0; i < WORKERS; i++)
		blocks_init(&workers[i], &budget);
}

static void
no_workers(void)
{
	for (int i = 0; i < WORKERS; i++)
		blocks_fini(&workers[i]);
	ck_assert_uint_eq(budget.held, 0);
}

static uint64_t
mapped(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i < WORKERS; i++)
		for (int j = 0; j < BLOCK_CLASSES; j++) {
			const struct slab *s = &workers[i].slabs[j];
			size_t each = (64 * 1024 - 32) / s->size;

			each = MAX(each, 1);
			bytes += s->total / each * slab_next_piece(s);
		}
	return bytes;
}

/* Take all there is in blocks for `want` bytes; the number. */
static size_t
take_most(struct blocks *b, size_t want, struct block **first)
{
	struct block *block;
	size_t n = 0;

	while ((block = block_take(b, want, BLOCK_PERMIT)) != NULL) {
		block->next = *first;
		*first = block;
		n++;
		if (mapped() > block_memory(LARGE, WORKERS))
			ck_abort_msg("too much is held");
	}
	return n;
}

/* Give back all but each nth. */
static struct block *
give_most(struct blocks *b, struct block *first, unsigned nth)
{
	struct block *kept = NULL;

	for (unsigned i = 0; first != NULL; i++) {
		struct block *block = first;

		first = first->next;
		if (nth != 0 && i % nth == 0) {
			block->next = kept;
			kept = block;
			continue;
		}
		block_give(b, &block);
	}
	return kept;
}

static const size_t wants[] = { 900, 4000, 16000, 66000, 140000 };
static const size_t block_bytes[] = BLOCK_SIZES;

START_TEST(all_of_the_budget_is_to_be_had_in_any_size_after_any_other)
{
	for (size_t i = 0; i < 4 * ARRAY_LEN(wants); i++) {
		struct blocks *b = &workers[i % 3 % WORKERS];
		size_t class = i * 3 % ARRAY_LEN(wants);
		struct block *all = NULL;

		ck_assert_uint_eq(take_most(b, wants[class], &all),
		    LARGE / block_bytes[class]);
		give_most(b, all, 0);
		ck_assert_uint_le(b->held, LARGE / 2 / WORKERS);
	}
}
END_TEST

/* The worst: of each piece one block stays in use. */
START_TEST(what_is_held_has_a_bound_though_pieces_are_stuck)
{
	struct block *stuck[ARRAY_LEN(wants)] = { NULL };
	struct blocks *b = &workers[0];
	struct block *all = NULL;

	for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
		(void)take_most(b, wants[i], &stuck[i]);
		stuck[i] = give_most(b, stuck[i], 63);
	}
	ck_assert_uint_gt(b->refused, 0);
	for (size_t i = 0; i < ARRAY_LEN(wants); i++)
		give_most(b, stuck[i], 0);
	/* It comes all back. */
	ck_assert_uint_eq(take_most(&workers[1], wants[2], &all),
	    LARGE / block_bytes[2]);
	give_most(&workers[1], all, 0);
}
END_TEST

/*
 * While pieces are stuck, each look for one that isn't is at all that is
 * unused.  So it takes many gives to pay for one, however few are in use.
 */
START_TEST(stuck_pieces_are_not_looked_at_for_every_few_gives)
{
	struct blocks *b = &workers[0];
	const struct slab *s = &b->slabs[0];
	struct block *stuck = NULL, *block;
	unsigned looks = 0, gives = 0;

	(void)take_most(b, wants[0], &stuck);
	stuck = give_most(b, stuck, 61);
	ck_assert_uint_gt(b->held, LARGE / 2);
	for (; gives < 2 * s->total; gives++) {
		uint64_t rest = b->rest;

		block = block_take(b, wants[0], BLOCK_PERMIT);
		ck_assert_ptr_nonnull(block);
		block_give(b, &block);
		looks += b->rest > rest;
	}
	ck_assert_uint_ge(looks, 1);
	ck_assert_uint_le(looks, 5);
	give_most(b, stuck, 0);
	ck_assert_uint_le(b->held, LARGE / 2 / WORKERS);
}
END_TEST

/* --- two workers, one budget --- */

static atomic_bool exceeded;

static void *
take_and_give(void *arg)
{
	struct block *held[64] = { NULL };
	struct blocks own;
	uint64_t rng = (uintptr_t)arg;

	blocks_init(&own, &budget);
	for (int i = 0; i < 50000; i++) {
		struct block **b = &held[rng_below(&rng, ARRAY_LEN(held))];

		if (*b != NULL)
			block_give(&own, b);
		else
			*b = block_take(&own, rng_below(&rng, 8000),
			    (enum block_use)rng_below(&rng, BLOCK_USES));
		if (atomic_load(&budget.used) > LIMIT)
			atomic_store(&exceeded, true);
	}
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		block_give(&own, &held[i]);
	if (own.used != 0)
		atomic_store(&exceeded, true);
	blocks_fini(&own);
	return NULL;
}

START_TEST(workers_together_keep_within_the_budget)
{
	pthread_t thread[2];

	for (size_t i = 0; i < ARRAY_LEN(thread); i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL,
		    take_and_give, (void *)(i + 1)), 0);
	for (size_t i = 0; i < ARRAY_LEN(thread); i++)
		pthread_join(thread[i], NULL);
	ck_assert(!exceeded);
	ck_assert_uint_eq(budget.used, 0);
	blocks_fini(&blocks);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("block");
	TCase *t = tcase_create("block");

	tcase_set_timeout(t, 240);
	tcase_add_checked_fixture(t, a_budget_of_64_blocks_of_1_kib, NULL);
	tcase_add_test(t, each_use_dips_as_deep_as_it_may);
	tcase_add_loop_test(t, the_smallest_block_that_fits_is_taken, 0,
	    (int)ARRAY_LEN(fits));
	tcase_add_test(t, a_lowered_limit_refuses_until_enough_came_back);
	tcase_add_test(t, a_limit_below_one_block_refuses_all);
	tcase_add_test(t, nothing_can_be_given_back);
	tcase_add_test(t, what_is_kept_stays_in_one_piece);
	tcase_add_test(t, keeping_reuses_the_room_of_what_was_used_up);
	tcase_add_test(t, keeping_without_memory_changes_nothing);
	tcase_add_test(t, workers_together_keep_within_the_budget);
	suite_add_tcase(s, t);
	t = tcase_create("held");
	tcase_set_timeout(t, 240);
	tcase_add_checked_fixture(t, a_large_budget_of_two_workers,
	    no_workers);
	tcase_add_test(t,
	    all_of_the_budget_is_to_be_had_in_any_size_after_any_other);
	tcase_add_test(t, what_is_held_has_a_bound_though_pieces_are_stuck);
	tcase_add_test(t, stuck_pieces_are_not_looked_at_for_every_few_gives);
	suite_add_tcase(s, t);
	return run_suite(s);
}
