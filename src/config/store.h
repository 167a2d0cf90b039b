/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h - the memory of one configuration, and where its values came from.
 *
 * Everything a configuration points to is taken from its store and lives as
 * long as that; nothing is released singly.
 *
 * Owner:    store_new() gives a handle; store_free() ends it and all of it.
 * Threads:  one while the configuration is made; any afterwards, as it is
 *           only read.
 */
#ifndef PENSTOCK_CONFIG_STORE_H
#define PENSTOCK_CONFIG_STORE_H

#include "base/defs.h"
#include "base/str.h"
#include "config/table.h"

struct store_chunk;

struct conf_store {
	struct store_chunk	*chunks;

	/* Rows of CONF_KEYWORDS origins, one for each section there is. */
	struct conf_origin	*origins[CONF_SECTIONS];

	/* For each section there is: it has a value that was refused. */
	bool			*broken[CONF_SECTIONS];
};

struct conf_store *store_new(void) MUST_USE;
void store_free(struct conf_store **s);

/* n bytes of zeros. */
void *store_take(struct conf_store *s, size_t n) MUST_USE;

/* A copy with a NUL at its end. */
const char *store_text(struct conf_store *s, struct str text) MUST_USE;

/*
 * Room for one more in an array of `count` members, all of which came about
 * this way: the array, perhaps at a new place, with a zeroed member at its
 * end.
 */
void *store_grow(struct conf_store *s, void *at, size_t count, size_t size)
    MUST_USE;

#endif
