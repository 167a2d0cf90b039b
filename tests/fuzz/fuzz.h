/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz.h - what the fuzz targets share.
 *
 * A target is one file with a fuzz_one(), which takes bytes from nowhere and
 * ends the process if something doesn't hold that must hold for any bytes.
 * libFuzzer calls it (`make fuzz'), and so does seeds.c with the seeds alone
 * (`make check').
 *
 * Beside the sources, a target has a reading of its own: as plain as can be,
 * on complete bytes, with names and not with ids.  The two must agree.
 */
#ifndef PENSTOCK_TESTS_FUZZ_FUZZ_H
#define PENSTOCK_TESTS_FUZZ_FUZZ_H

#include "http/body.h"
#include "http/parse.h"

/* Each target's own. */
void fuzz_one(struct str in);

/* libFuzzer's: calls fuzz_one(). */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Stays on whatever the build. */
#define HOLDS(x)	ASSERT(x)

/* The two texts are equal; if not, both are shown. */
void fuzz_same(struct str is, struct str must);

/* --- bytes that arrive ------------------------------------------------- */

enum fuzz_delivery { FUZZ_WHOLE, FUZZ_BYTES, FUZZ_PIECES, FUZZ_DELIVERIES };

/* A sequence that depends on nothing but the input: runs repeat exactly. */
struct fuzz_arrival {
	enum fuzz_delivery	how;
	uint64_t		random;
};

void fuzz_arrival_init(struct fuzz_arrival *a, enum fuzz_delivery how,
    struct str in);

/* How many of the next `left` bytes arrive together; at least one. */
size_t fuzz_arrives(struct fuzz_arrival *a, size_t left);

/* An allocation of exactly these bytes, so that one too far is seen. */
void *fuzz_copy(struct str s);

/* --- heads ------------------------------------------------------------- */

/* A head with memory of its own. */
struct fuzz_head {
	struct head	 h;
	void		*mem;
	size_t		 used;		/* bytes of the input, before too */
};

/*
 * Read the head that `in` begins with.  All deliveries give the same, and what
 * is accepted has the fields that a plain reading finds.  False: it is not
 * complete, or refused.
 */
bool fuzz_head_read(struct fuzz_head *f, struct str in, enum scan_kind kind);

void fuzz_head_free(struct fuzz_head *f);

/* The fields as lines "name: value", in their order. */
void fuzz_put_fields(struct out *o, const struct head *h);

/* One such line. */
void fuzz_put(struct out *o, const char *name, struct str value);

/* Does any Connection name it? */
bool fuzz_is_named(const struct head *h, struct str name);

/*
 * Is it about more than this connection?  By name: the fields of hops and
 * framing, and what any Connection names, are not.
 */
bool fuzz_goes_on(const struct head *h, const struct field *f);

/* Has it that name?  How many have? */
bool fuzz_is(const struct head *h, const struct field *f, const char *name);

unsigned fuzz_count(const struct head *h, const char *name);

/* What may go on of all Upgrade fields, as one list; h2c may not. */
void fuzz_put_upgrade(struct out *o, const struct head *h);

/*
 * RFC 9112 section 6.3 to the letter, for a response to `to`, or a request if
 * that is METHOD_NONE: what anybody who is given the head will think.
 */
struct framing fuzz_framing(const struct head *h, enum method to);

/* --- bodies ------------------------------------------------------------ */

struct fuzz_body {
	enum body_result	 result;
	struct str		 content;
	struct str		 trailers;	/* with the empty line */
	char			*mem;	/* of the two */
	size_t			 used;
	bool			 ends_at_close;
};

/* Decode the body that `in` begins with. */
void fuzz_body_read(struct fuzz_body *b, const struct framing *f,
    struct str in, enum fuzz_delivery how);

void fuzz_body_free(struct fuzz_body *b);

/* Frame content anew, in pieces that depend on it, and end it if `last`. */
void fuzz_put_body(struct out *o, enum framing_kind kind, struct str content,
    bool last);

#endif
