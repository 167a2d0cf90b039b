/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * word.h - eight bytes looked at together.
 *
 * A look gives marks: the highest bit of each byte that was looked for.  The
 * lowest mark is true; those above it may be there in vain, by borrowing, and
 * so it is with several marks or'ed.
 *
 * Source: S. E. Anderson, Bit Twiddling Hacks, "Determine if a word has a zero
 * byte", "... has a byte less than n".
 */
#ifndef PENSTOCK_BASE_WORD_H
#define PENSTOCK_BASE_WORD_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* A byte in each of the eight. */
#define WORD_EACH(byte)	(UINT64_C(0x0101010101010101) * (uint8_t)(byte))

/* The first of eight bytes is in the lowest bits. */
static inline uint64_t
word_load(const void *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof w);
	return le64toh(w);
}

/* Marks of one byte, which is below 0x80. */
static inline uint64_t
word_has(uint64_t w, char c)
{
	return ((w ^ WORD_EACH(c)) - WORD_EACH(1)) & ~w & WORD_EACH(0x80);
}

/* Marks of what is below 0x20, and of 0x7f. */
static inline uint64_t
word_has_control(uint64_t w)
{
	return ((w - WORD_EACH(0x20)) & ~w & WORD_EACH(0x80)) |
	    word_has(w, 0x7f);
}

/* Marks of what isn't ASCII; all of them are true. */
static inline uint64_t
word_has_high(uint64_t w)
{
	return w & WORD_EACH(0x80);
}

/* Which byte the lowest mark is at, 0 to 7; there is one. */
static inline unsigned
word_first(uint64_t marks)
{
	return (unsigned)__builtin_ctzll(marks) / 8;
}

#endif
