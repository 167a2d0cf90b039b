/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random.c - unguessable bytes; see random.h.
 */
#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/defs.h"

void
random_fill(void *to, size_t n)
{
	ssize_t got;

	/* Up to 256 bytes come whole or not at all; see getrandom(2). */
	ASSERT(n <= 256);
	do
		got = getrandom(to, n, 0);
	while (got == -1 && errno == EINTR);
	if (got != (ssize_t)n) {
		fputs("penstock: the kernel has no random bytes\n", stderr);
		exit(EXIT_FAILURE);
	}
}
