/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * siphash.h - SipHash-2-4: a hash that can't be steered without its key.
 *
 * For tables whose keys a client chooses.  With a key drawn at start, nobody
 * outside can tell which entries share a line or a bucket.
 *
 * Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
 *
 * Threads:  any; there is no state.
 */
#ifndef PENSTOCK_BASE_SIPHASH_H
#define PENSTOCK_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

enum { SIPHASH_KEY = 16 };		/* bytes */

/* The hash of n bytes under `key`; the same on every machine. */
uint64_t siphash(const uint8_t key[SIPHASH_KEY], const void *data, size_t n);

#endif
