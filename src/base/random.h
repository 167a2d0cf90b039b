/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random.h - unguessable bytes, for seeds and names.
 *
 * Threads:  any.
 * Errors:   ends the process when the kernel has none, which happens only
 *           before it is ready; ask at start, not per connection.
 */
#ifndef PENSTOCK_BASE_RANDOM_H
#define PENSTOCK_BASE_RANDOM_H

#include <stddef.h>

/* Fill n bytes, n <= 256. */
void random_fill(void *to, size_t n);

#endif
