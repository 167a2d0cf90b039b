/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * defs.h - the few macros and types that every file may use.
 *
 * Nothing here allocates, fails or keeps state, except that ASSERT() ends the
 * process: it guards our own invariants, in production too.  Nothing that a
 * client, a server, a file or the kernel does may trip one.
 */
#ifndef PENSTOCK_BASE_DEFS_H
#define PENSTOCK_BASE_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))
#define BIT(n)		(1u << (n))
#define MIN(a, b)	((a) < (b) ? (a) : (b))
#define MAX(a, b)	((a) > (b) ? (a) : (b))

#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#define MUST_USE	__attribute__((warn_unused_result))
#define PRINTF(f, a)	__attribute__((format(printf, f, a)))
#define NORETURN	__attribute__((noreturn))
#define MAY_ALIAS	__attribute__((may_alias))
/*
 * Kept out of line: seldom called by a function that often is, which then need
 * not save registers for it.
 */
#define APART		__attribute__((noinline))
/*
 * On the road of every request: those lie side by side, so that few pages of
 * code are in use.  Where a system call empties the TLB, each page costs.
 */
#define HOT		__attribute__((hot))
#define LIKELY(x)	__builtin_expect(!!(x), 1)
#define UNLIKELY(x)	__builtin_expect(!!(x), 0)

#define CACHE_LINE	64

/* Times and spans: monotonic nanoseconds since some fixed moment. */
typedef uint64_t nsec_t;

#define NSEC_PER_MSEC	UINT64_C(1000000)
#define NSEC_PER_SEC	UINT64_C(1000000000)
#define NSEC_NEVER	UINT64_MAX

/*
 * What a function is called where people read it: where it stands, too, as
 * many are called on_late().  callback_name() cuts off where that was built.
 */
#define CALLBACK_NAME(fn)	__FILE__ ":" #fn

/* "net/stream.c:on_ready"; NULL is "?". */
const char *callback_name(const char *name);

/* Report a broken invariant on stderr and abort. */
void assert_failed(const char *what, const char *file, int line) NORETURN;

#define ASSERT(x) \
	((void)(LIKELY(x) || (assert_failed(#x, __FILE__, __LINE__), 0)))

/*
 * Allocate at start-up or in a reload of the configuration, where there is
 * nobody to refuse: never returns NULL, ends the process instead.  xcalloc()
 * zeroes.  What is allocated per connection comes from a slab.
 */
void *xcalloc(size_t n, size_t size) MUST_USE;
void *xrealloc(void *p, size_t size) MUST_USE;
char *xstrdup(const char *s) MUST_USE;

/* The same as xcalloc(1, size), at the start of a cache line. */
void *xcalloc_lines(size_t size) MUST_USE;

#endif
