/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h - a writer of JSON (RFC 8259), into the text of a struct metrics.
 *
 * Commas are its business.  Every value has a name, for a member of an object,
 * or NULL, for an element of an array.  What is opened is closed by the caller,
 * who knows what it was.
 *
 * Owner:    the caller, of both structs.
 * Threads:  one.
 * Errors:   those of the struct metrics.
 */
#ifndef PENSTOCK_BASE_JSON_H
#define PENSTOCK_BASE_JSON_H

#include "base/metric.h"

struct json {
	struct metrics	*to;
	bool		 comma;		/* before whatever comes next */
};

void json_init(struct json *j, struct metrics *to);

void json_open_object(struct json *j, const char *name);
void json_close_object(struct json *j);
void json_open_array(struct json *j, const char *name);
void json_close_array(struct json *j);

/* Any bytes; what isn't UTF-8 is written as out_json() does. */
void json_text(struct json *j, const char *name, struct str value);
void json_number(struct json *j, const char *name, uint64_t value);
void json_flag(struct json *j, const char *name, bool value);
void json_null(struct json *j, const char *name);

/* A span of time in seconds; a real number, or null if it is none. */
void json_seconds(struct json *j, const char *name, nsec_t value);
void json_real(struct json *j, const char *name, double value);

#endif
