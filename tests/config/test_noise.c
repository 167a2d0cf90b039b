/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_noise.c - src/config/ fed with the example after it was damaged.
 */
#include "config/config.h"

#include "config/loading.h"
#include "harness.h"

enum { MUTATIONS = 100000 };

static uint64_t seed = 1;

/* xorshift64*: the same noise each time. */
static unsigned
noise(unsigned below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (unsigned)((seed * UINT64_C(2685821657736338717)) >> 33) %
	    below;
}

/* Change a few bytes, or take away, double or move a piece. */
static size_t
mutate(char *text, size_t n)
{
	static const char likely[] = "\n\n  =[];#${}:/.*0123456789akms-_";
	size_t at = noise((unsigned)n), len = noise(40);

	len = MIN(len, n - at);
	switch (noise(5)) {
	case 0:
		text[at] = (char)noise(256);
		return n;
	case 1:
		text[at] = likely[noise(sizeof likely - 1)];
		return n;
	case 2:
		memmove(text + at, text + at + len, n - at - len);
		return n - len;
	case 3:
		memmove(text + at + len, text + at, n - at);
		return n + len;
	default:
		memmove(text + at, text + noise((unsigned)(n - len)), len);
		return n;
	}
}

static bool
has_control_bytes(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < ' ' && c != '\t' && c != '\n') || c == 0x7f)
			return true;
	}
	return false;
}

START_TEST(noise_is_refused_with_a_reason_or_means_what_its_dump_says)
{
	size_t n;
	char *example = read_example(&n), *text = malloc(n + 1000);
	unsigned good = 0;

	for (unsigned i = 0; i < MUTATIONS; i++) {
		size_t size = n;

		memcpy(text, example, n);
		for (unsigned times = 1 + noise(4); times > 0; times--)
			size = mutate(text, size);
		/* An exact allocation, so that one byte too far is seen. */
		char *exact = malloc(size);
		memcpy(exact, text, size);
		struct loaded l = load_bytes(exact, size);
		ck_assert((l.config == NULL) == (l.errors[0] != '\0'));
		if (has_control_bytes(exact, size))
			ck_assert_ptr_null(l.config);
		if (l.config != NULL) {
			good++;
			if (good % 16 == 0)
				expect_round_trip(l.config);
		}
		unload(&l);
		free(exact);
	}
	/* Comments are half of the file, so many must be right. */
	ck_assert_uint_gt(good, MUTATIONS / 10);
	ck_assert_uint_lt(good, MUTATIONS / 10 * 9);
	free(text);
	free(example);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("noise");
	TCase *t = tcase_create("noise");

	tcase_add_test(t,
	    noise_is_refused_with_a_reason_or_means_what_its_dump_says);
	tcase_set_timeout(t, 600);
	suite_add_tcase(s, t);
	return run_suite(s);
}
