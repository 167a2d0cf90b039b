/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chunked.c - fuzz target: a chunked body.
 *
 * In whatever pieces it arrives, the content, the end and the verdict are the
 * same, and those of a plain reading of RFC 9112 section 7.1; and what is
 * chunked anew has the same content.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "http/chars.h"

/* Content that may be chunked anew: a chunk for every few bytes. */
static char again[1 << 20];

/* --- a plain reading --------------------------------------------------- */

struct plain {
	struct str	 in;
	size_t		 at;
	char		*content;
	size_t		 count;
};

/* MORE: the bytes end here. */
enum verdict { GOOD, MORE, BAD };

static enum verdict
take(struct plain *p, char c)
{
	if (p->at == p->in.len)
		return MORE;
	return p->in.at[p->at++] == c ? GOOD : BAD;
}

static enum verdict
take_crlf(struct plain *p)
{
	enum verdict v = take(p, '\r');

	return v == GOOD ? take(p, '\n') : v;
}

static bool
next_is(const struct plain *p, unsigned class)
{
	return p->at < p->in.len && char_is(p->in.at[p->at], class);
}

static bool
next_is_char(const struct plain *p, char c)
{
	return p->at < p->in.len && p->in.at[p->at] == c;
}

static bool
skip_space(struct plain *p)
{
	size_t was = p->at;

	while (next_is_char(p, ' ') || next_is_char(p, '\t'))
		p->at++;
	return p->at > was;
}

static enum verdict
take_token(struct plain *p)
{
	size_t was = p->at;

	while (next_is(p, CHAR_TOKEN))
		p->at++;
	if (p->at > was)
		return GOOD;
	return p->at == p->in.len ? MORE : BAD;
}

static enum verdict
take_quoted(struct plain *p)
{
	p->at++;
	while (next_is(p, CHAR_TEXT) && !next_is_char(p, '"')) {
		if (next_is_char(p, '\\')) {
			p->at++;
			if (!next_is(p, CHAR_TEXT))
				break;
		}
		p->at++;
	}
	return take(p, '"');
}

/* ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] */
static enum verdict
take_extension(struct plain *p)
{
	enum verdict v = take(p, ';');

	if (v != GOOD)
		return v;
	skip_space(p);
	v = take_token(p);
	if (v != GOOD)
		return v;
	size_t was = p->at;
	skip_space(p);
	if (!next_is_char(p, '=')) {
		if (p->at < p->in.len)
			p->at = was;
		return GOOD;
	}
	p->at++;
	skip_space(p);
	return next_is_char(p, '"') ? take_quoted(p) : take_token(p);
}

static enum verdict
take_size(struct plain *p, uint64_t *size)
{
	size_t was = p->at;
	enum verdict v;

	while (next_is(p, CHAR_HEX))
		p->at++;
	struct str digits = str_head(str_skip(p->in, was), p->at - was);
	if (digits.len > 16)
		return BAD;
	if (digits.len == 0)
		return p->at == p->in.len ? MORE : BAD;
	HOLDS(str_hex(digits, size));
	while (!next_is_char(p, '\r')) {
		bool spaced = skip_space(p);
		if (p->at == p->in.len)
			return MORE;
		if (spaced && !next_is_char(p, ';'))
			return BAD;
		v = take_extension(p);
		if (v != GOOD)
			return v;
	}
	v = take_crlf(p);
	return v == GOOD && *size > INT64_MAX ? BAD : v;
}

static enum verdict
take_trailers(struct plain *p)
{
	enum verdict v = GOOD;

	for (unsigned n = 0; !next_is_char(p, '\r') && v == GOOD; n++) {
		if (n == BODY_TRAILER_FIELDS && p->at < p->in.len)
			return BAD;
		v = take_token(p);
		if (v == GOOD)
			v = take(p, ':');
		while (v == GOOD && next_is(p, CHAR_TEXT))
			p->at++;
		if (v == GOOD)
			v = take_crlf(p);
	}
	return v == GOOD ? take_crlf(p) : v;
}

static enum verdict
read_plainly(struct plain *p)
{
	enum verdict v;
	uint64_t size;

	for (;;) {
		v = take_size(p, &size);
		if (v != GOOD || size == 0)
			break;
		struct str data = str_head(str_skip(p->in, p->at),
		    (size_t)MIN(size, SIZE_MAX));
		if (data.len > 0)
			memcpy(p->content + p->count, data.at, data.len);
		p->count += data.len;
		p->at += data.len;
		if (data.len < size)
			return MORE;
		v = take_crlf(p);
		if (v != GOOD)
			break;
	}
	return v == GOOD ? take_trailers(p) : v;
}

/* --- the same of the decoder ------------------------------------------- */

static const struct framing chunked = { .kind = FRAMING_CHUNKED };

static void
check_plainly(const struct fuzz_body *b, struct str in)
{
	struct plain p = { .in = in, .content = malloc(in.len + 1) };

	HOLDS(p.content != NULL);
	enum verdict v = read_plainly(&p);
	HOLDS(b->result == (v == GOOD ? BODY_DONE : v == MORE ? BODY_MORE :
	    BODY_BAD));
	HOLDS(v == BAD || b->used == p.at);
	HOLDS(v != GOOD || str_equal(b->trailers, str_make(in.at +
	    p.at - b->trailers.len, b->trailers.len)));
	fuzz_same(b->content, str_make(p.content, p.count));
	free(p.content);
}

static void
check_deliveries(const struct fuzz_body *whole, struct str in)
{
	for (int how = FUZZ_BYTES; how < FUZZ_DELIVERIES; how++) {
		struct fuzz_body b;

		fuzz_body_read(&b, &chunked, in, how);
		HOLDS(b.result == whole->result && b.used == whole->used);
		fuzz_same(b.content, whole->content);
		fuzz_same(b.trailers, whole->trailers);
		fuzz_body_free(&b);
	}
}

static void
check_again(struct str content)
{
	struct fuzz_body b;
	struct out o;

	out_init(&o, again, sizeof again);
	fuzz_put_body(&o, FRAMING_CHUNKED, content, true);
	HOLDS(!out_is_full(&o));
	fuzz_body_read(&b, &chunked, out_text(&o), FUZZ_PIECES);
	HOLDS(b.result == BODY_DONE && b.used == out_len(&o));
	fuzz_same(b.content, content);
	fuzz_body_free(&b);
}

void
fuzz_one(struct str in)
{
	struct fuzz_body b;

	fuzz_body_read(&b, &chunked, in, FUZZ_WHOLE);
	check_plainly(&b, in);
	check_deliveries(&b, in);
	check_again(b.content);
	fuzz_body_free(&b);
}
