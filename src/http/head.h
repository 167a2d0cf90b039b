/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * head.h - the head of a message: start line and fields, as spans of bytes.
 *
 * A head says where things are; the bytes stay where they were received.  All
 * spans are offsets from `base`, so a head is moved by copying bytes and
 * fields and setting two pointers: head_copy().
 *
 * Fields keep their order.  Those that an intermediary must know have an id
 * (a row of fields.def) and are found without a search; the others are
 * FIELD_OTHER and are only ever passed on.
 *
 * Owner:    the caller owns base and fields; a head fresh from parse.h points
 *           into the receive buffer and the parser, and dies with either.
 * Threads:  one.
 */
#ifndef PENSTOCK_HTTP_HEAD_H
#define PENSTOCK_HTTP_HEAD_H

#include "base/defs.h"
#include "base/failure.h"
#include "base/str.h"

enum field_id {
	FIELD_OTHER,
#define FIELD(ID, name, ...)	FIELD_##ID,
#include "http/fields.def"
	FIELD_IDS
};

enum method {
	METHOD_NONE,
#define METHOD(NAME, ...)	METHOD_##NAME,
#include "http/methods.def"
	METHOD_COUNT
};

struct span {
	uint32_t	at;
	uint32_t	len;
};

struct field {
	uint32_t	name;
	uint32_t	value;		/* without white space around it */
	uint16_t	value_len;
	uint16_t	name_len;
	uint8_t		id;		/* enum field_id */
	bool		named;		/* in Connection: hop-by-hop here */
	bool		plain;		/* one SP before the value, no more */
};

struct head {
	const char	*base;
	struct field	*fields;
	uint32_t	 length;	/* bytes, with the empty line */
	uint16_t	 count;		/* fields */
	uint16_t	 first[FIELD_IDS]; /* 1 + index of the first; 0: none */
	uint64_t	 repeated;	/* set of the ids of several fields */
	uint8_t		 minor;		/* of the version: 1.minor */
	bool		 close;		/* Connection: close */
	bool		 keep_alive;	/* Connection: keep-alive */
	/* HTTP/1.1, Connection: upgrade, and Upgrade to more than h2c. */
	bool		 upgrade;
	enum method	 method;	/* requests */
	struct span	 target;
	int		 status;	/* responses; see HEAD_STATUS_AT */
	struct span	 reason;
};

/* Bounds of what is accepted; keywords of the same names. */
struct head_limits {
	uint32_t	size;		/* bytes of the whole head */
	uint32_t	line;		/* bytes of the start line */
	uint16_t	fields;		/* number of fields */
};

/* Where the three digits of a status stand: behind "HTTP/1.1 ". */
enum { HEAD_STATUS_AT = 9 };

enum { HEAD_FIELDS_MAX = 1000, HEAD_SIZE_MAX = 65536 };

static inline struct str
head_str(const struct head *h, struct span s)
{
	return (struct str){ h->base + s.at, s.len };
}

static inline struct str
field_name(const struct head *h, const struct field *f)
{
	return (struct str){ h->base + f->name, f->name_len };
}

static inline struct str
field_value(const struct head *h, const struct field *f)
{
	return (struct str){ h->base + f->value, f->value_len };
}

/* The first field with that id, or NULL. */
static inline const struct field *
head_first(const struct head *h, enum field_id id)
{
	return h->first[id] != 0 ? &h->fields[h->first[id] - 1] : NULL;
}

/* What head_next() does when there may be one. */
const struct field *head_find_next(const struct head *h,
    const struct field *f);

/* The next field with the same id, or NULL. */
static inline const struct field *
head_next(const struct head *h, const struct field *f)
{
	return (h->repeated >> f->id & 1) != 0 ? head_find_next(h, f) : NULL;
}

/* Bytes that head_copy() needs, at any alignment of 8. */
size_t head_copy_size(const struct head *h);

/* Move bytes and fields to `to`, and *h with them. */
void head_copy(struct head *h, void *to);

/* Does a list field of that id have that token (case-insensitive)? */
bool head_has_token(const struct head *h, enum field_id id,
    const char *token);

/*
 * The next element of a comma-separated list: trimmed, never empty, quoted
 * strings kept whole (RFC 9110 section 5.6).  False at the end.
 */
bool list_next(struct str *rest, struct str *element);

/*
 * The next protocol of an Upgrade field; never h2c, which is never passed on
 * (RFC 9113 dropped it, and behind it requests pass unseen), nor what is no
 * protocol, and could hide it from us.  False at the end.
 */
bool upgrade_next(struct str *rest, struct str *protocol);

/*
 * Does it speak of NTLM or Negotiate (RFC 4559)?  Those authenticate the
 * connection, so that whoever uses it next would pass for the same user.
 */
bool head_binds_connection(const struct head *h);

/* As it stands in a request line. */
struct str method_name(enum method m);

/* May be sent twice (RFC 9110 section 9.2.2). */
bool method_is_idempotent(enum method m);

#endif
