/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * siphash.c - SipHash-2-4; see siphash.h.
 */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

struct sip {
	uint64_t	v0, v1, v2, v3;
};

static inline uint64_t
rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void
rounds(struct sip *s, unsigned n)
{
	while (n-- > 0) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotate(s->v1, 13) ^ s->v0;
		s->v3 = rotate(s->v3, 16) ^ s->v2;
		s->v0 = rotate(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = rotate(s->v1, 17) ^ s->v2;
		s->v3 = rotate(s->v3, 21) ^ s->v0;
		s->v2 = rotate(s->v2, 32);
	}
}

/* Eight bytes, little-endian. */
static uint64_t
word_at(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof word);
	return le64toh(word);
}

/* The same of less than eight. */
static uint64_t
rest_at(const uint8_t *p, size_t n)
{
	uint64_t word = 0;

	for (size_t i = 0; i < n; i++)
		word |= (uint64_t)p[i] << (8 * i);
	return word;
}

static void
add_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	rounds(s, 2);
	s->v0 ^= word;
}

uint64_t
siphash(const uint8_t key[SIPHASH_KEY], const void *data, size_t n)
{
	uint64_t k0 = word_at(key);
	uint64_t k1 = word_at(key + 8);
	struct sip s = {
		.v0 = k0 ^ UINT64_C(0x736f6d6570736575),
		.v1 = k1 ^ UINT64_C(0x646f72616e646f6d),
		.v2 = k0 ^ UINT64_C(0x6c7967656e657261),
		.v3 = k1 ^ UINT64_C(0x7465646279746573),
	};
	const uint8_t *p = data;
	size_t left = n;

	for (; left >= 8; left -= 8, p += 8)
		add_word(&s, word_at(p));
	add_word(&s, rest_at(p, left) | (uint64_t)n << 56);
	s.v2 ^= 0xff;
	rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
