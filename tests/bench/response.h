/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * response.h - an answer as it comes: its status, and where it ends.
 *
 * One that has no Content-Length is none that a benchmark gets.
 */
#ifndef PENSTOCK_BENCH_RESPONSE_H
#define PENSTOCK_BENCH_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct response {
	unsigned	status;		/* 0: the head isn't whole */
	bool		is_whole;
	bool		closes;		/* the connection ends with it */
	uint64_t	missing;	/* of the body */
	size_t		head_bytes;
	char		head[2048];
};

static inline void
response_begin(struct response *r)
{
	r->status = 0;
	r->is_whole = false;
	r->head_bytes = 0;
}

static inline bool
response_read_head(struct response *r)
{
	const char *length;

	r->head[r->head_bytes] = '\0';
	if (strncmp(r->head, "HTTP/1.", 7) != 0 || r->head_bytes < 12)
		return false;
	length = strcasestr(r->head, "\r\ncontent-length:");
	if (length == NULL)
		return false;
	r->status = (unsigned)strtoul(r->head + 8, NULL, 10);
	r->missing = strtoull(length + 17, NULL, 10);
	r->closes = strcasestr(r->head, "\r\nconnection: close") != NULL;
	return r->status != 0;
}

/* Bytes of the head, up to its end; how many were used, or -1. */
static inline ssize_t
response_add_to_head(struct response *r, const char *bytes, size_t n)
{
	size_t before = r->head_bytes;
	size_t room = sizeof r->head - 1 - before;
	size_t add = n < room ? n : room;

	memcpy(r->head + before, bytes, add);
	r->head_bytes += add;

	char *end = memmem(r->head, r->head_bytes, "\r\n\r\n", 4);
	if (end == NULL)
		return add == n ? (ssize_t)n : -1;
	r->head_bytes = (size_t)(end - r->head) + 4;
	return response_read_head(r) ? (ssize_t)(r->head_bytes - before) : -1;
}

/* More of it; false if it is bad, or followed by something. */
static inline bool
response_add(struct response *r, const char *bytes, size_t n)
{
	if (r->status == 0) {
		ssize_t used = response_add_to_head(r, bytes, n);

		if (used == -1)
			return false;
		n -= (size_t)used;
		if (r->status == 0)
			return true;
	}
	if (r->is_whole || n > r->missing)
		return false;
	r->missing -= n;
	r->is_whole = r->missing == 0;
	return true;
}

#endif
