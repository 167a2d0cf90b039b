/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body.c - the decoder is a state for each place in a chunked body; see
 * body.h.
 *
 * The line before a chunk is walked through a table, a byte at a time; the
 * content in it is not looked at.  Trailers go through scan.h, as heads do.
 */
#include "http/body.h"

#include "http/chars.h"

/* Pieces shorter than this are moved behind the one before. */
enum { SHORT_PIECE = 512 };

/* 64 bits; of them INT64_MAX at most is accepted. */
enum { SIZE_DIGITS = 16 };

enum state {
	IS_BAD,
	IN_SIZE,		/* digits of a chunk's size */
	AFTER_SIZE,		/* white space that must end in ";" */
	AT_NAME,		/* of an extension */
	IN_NAME,
	AFTER_NAME,
	AT_VALUE,
	IN_VALUE,
	IN_QUOTES,
	IN_PAIR,		/* after a backslash in quotes */
	AFTER_QUOTES,
	AFTER_VALUE,
	AT_SIZE_LF,
	IN_CHUNK,
	AT_CHUNK_CR,
	AT_CHUNK_LF,
	IN_TRAILERS,
	IN_LENGTH,
	IN_REST,		/* until the connection ends */
	IS_DONE,
};

enum kind {
	OTHER, TOKEN, SPACE, SEMICOLON, EQUALS, QUOTE, BACKSLASH, CR, TEXT,
	KINDS
};

/*
 * chunk-ext = *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
 * What is not here is IS_BAD; so is white space at the end of the line.
 */
static const uint8_t moves[AT_SIZE_LF][KINDS] = {
	[IN_SIZE] = { [SPACE] = AFTER_SIZE, [SEMICOLON] = AT_NAME,
	    [CR] = AT_SIZE_LF },
	[AFTER_SIZE] = { [SPACE] = AFTER_SIZE, [SEMICOLON] = AT_NAME },
	[AT_NAME] = { [SPACE] = AT_NAME, [TOKEN] = IN_NAME },
	[IN_NAME] = { [TOKEN] = IN_NAME, [SPACE] = AFTER_NAME,
	    [EQUALS] = AT_VALUE, [SEMICOLON] = AT_NAME, [CR] = AT_SIZE_LF },
	[AFTER_NAME] = { [SPACE] = AFTER_NAME, [EQUALS] = AT_VALUE,
	    [SEMICOLON] = AT_NAME },
	[AT_VALUE] = { [SPACE] = AT_VALUE, [TOKEN] = IN_VALUE,
	    [QUOTE] = IN_QUOTES },
	[IN_VALUE] = { [TOKEN] = IN_VALUE, [SPACE] = AFTER_VALUE,
	    [SEMICOLON] = AT_NAME, [CR] = AT_SIZE_LF },
	[IN_QUOTES] = { [TOKEN] = IN_QUOTES, [SPACE] = IN_QUOTES,
	    [SEMICOLON] = IN_QUOTES, [EQUALS] = IN_QUOTES,
	    [TEXT] = IN_QUOTES, [BACKSLASH] = IN_PAIR,
	    [QUOTE] = AFTER_QUOTES },
	[IN_PAIR] = { [TOKEN] = IN_QUOTES, [SPACE] = IN_QUOTES,
	    [SEMICOLON] = IN_QUOTES, [EQUALS] = IN_QUOTES,
	    [TEXT] = IN_QUOTES, [BACKSLASH] = IN_QUOTES,
	    [QUOTE] = IN_QUOTES },
	[AFTER_QUOTES] = { [SPACE] = AFTER_VALUE, [SEMICOLON] = AT_NAME,
	    [CR] = AT_SIZE_LF },
	[AFTER_VALUE] = { [SPACE] = AFTER_VALUE, [SEMICOLON] = AT_NAME },
};

/* What one call gives back. */
void
body_init(struct body *b, const struct framing *f)
{
	*b = (struct body){ .framing = *f, .left = f->length };
	switch (f->kind) {
	case FRAMING_NONE:
		b->state = IS_DONE;
		break;
	case FRAMING_LENGTH:
		b->state = f->length > 0 ? IN_LENGTH : IS_DONE;
		break;
	case FRAMING_CHUNKED:
		b->left = 0;
		b->state = IN_SIZE;
		break;
	case FRAMING_CLOSE:
	case FRAMING_TUNNEL:
		b->left = UINT64_MAX;
		b->state = IN_REST;
		break;
	}
}

static enum kind
kind_of(char c)
{
	switch (c) {
	case ' ':
	case '\t':
		return SPACE;
	case ';':
		return SEMICOLON;
	case '=':
		return EQUALS;
	case '"':
		return QUOTE;
	case '\\':
		return BACKSLASH;
	case '\r':
		return CR;
	default:
		return char_is(c, CHAR_TOKEN) ? TOKEN :
		    char_is(c, CHAR_TEXT) ? TEXT : OTHER;
	}
}

/* A byte of the line before a chunk; the new state. */
static enum state
in_line(struct body *b, char c)
{
	if (b->state == IN_SIZE && char_is(c, CHAR_HEX)) {
		unsigned digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
		b->left = b->left << 4 | digit;
		return ++b->digits <= SIZE_DIGITS ? IN_SIZE : IS_BAD;
	}
	if (b->digits == 0)
		return IS_BAD;
	enum kind kind = kind_of(c);
	if (kind != CR &&
	    ++b->extension > BODY_EXTENSION + b->content / 16)
		return IS_BAD;
	return moves[b->state][kind];
}

/* The line before a chunk is complete; the new state. */
static enum state
begin_chunk(struct body *b)
{
	b->digits = 0;
	if (b->left > INT64_MAX)
		return IS_BAD;
	if (b->left > 0)
		return IN_CHUNK;
	scan_init(&b->scan, SCAN_TRAILERS);
	return IN_TRAILERS;
}

/* One byte outside of content and trailers; the new state. */
static enum state
in_frame(struct body *b, char c)
{
	switch (b->state) {
	case AT_SIZE_LF:
		return c == '\n' ? begin_chunk(b) : IS_BAD;
	case AT_CHUNK_CR:
		return c == '\r' ? AT_CHUNK_LF : IS_BAD;
	case AT_CHUNK_LF:
		return c == '\n' ? IN_SIZE : IS_BAD;
	default:
		return in_line(b, c);
	}
}

/*
 * Between pieces of a buffer there are only bytes that were used, so a piece
 * may move down over them.  False: there is no place for one more.
 */
static bool
add_piece(struct body_content *to, uint8_t *at, size_t n)
{
	if (to->count > 0 && n < SHORT_PIECE) {
		struct iovec *last = &to->iov[to->count - 1];
		memmove((uint8_t *)last->iov_base + last->iov_len, at, n);
		last->iov_len += n;
		return true;
	}
	if (to->count == BODY_SPANS)
		return false;
	to->iov[to->count++] = (struct iovec){ at, n };
	return true;
}

/* Content: how much of n was taken, 0 if there is no place. */
static size_t
take_content(struct body *b, uint8_t *at, size_t n, struct body_content *to)
{
	if (n > b->left)
		n = (size_t)b->left;
	if (!add_piece(to, at, n))
		return 0;
	b->left -= n;
	b->content += n;
	if (b->left == 0)
		b->state = b->state == IN_CHUNK ? AT_CHUNK_CR : IS_DONE;
	return n;
}

static size_t
take_trailers(struct body *b, const uint8_t *at, size_t n,
    struct body_content *to)
{
	static const struct head_limits limits = {
		.size = BODY_TRAILER,
		.fields = BODY_TRAILER_FIELDS,
	};
	enum failure why;
	uint32_t was = b->scan.at;

	switch (scan_feed(&b->scan, (const char *)at, n, &limits, &why)) {
	case SCAN_MORE:
		break;
	case SCAN_DONE:
		b->state = IS_DONE;
		break;
	case SCAN_BAD:
		b->state = IS_BAD;
		break;
	}
	to->trailers = b->scan.at - was;
	return to->trailers;
}

HOT enum body_result
body_decode(struct body *b, uint8_t *bytes, size_t n, struct body_content *to)
{
	size_t at = 0, took = 1;

	to->count = 0;
	to->trailers = 0;
	while (at < n && took > 0 && b->state != IS_DONE &&
	    b->state != IS_BAD) {
		switch (b->state) {
		case IN_CHUNK:
		case IN_LENGTH:
		case IN_REST:
			took = take_content(b, bytes + at, n - at, to);
			at += took;
			break;
		case IN_TRAILERS:
			at += take_trailers(b, bytes + at, n - at, to);
			break;
		default:
			b->state = (uint8_t)in_frame(b, (char)bytes[at]);
			at++;
		}
	}
	to->used = at;
	if (b->state == IS_BAD)
		return BODY_BAD;
	if (b->state == IS_DONE)
		return BODY_DONE;
	return at < n ? BODY_SPANS_FULL : BODY_MORE;
}

bool
body_ends_at_close(const struct body *b)
{
	return b->state == IS_DONE || b->state == IN_REST;
}

bool
body_is_done(const struct body *b)
{
	return b->state == IS_DONE;
}

uint64_t
body_plain(const struct body *b)
{
	return b->state == IN_LENGTH || b->state == IN_REST ? b->left : 0;
}

void
body_pass(struct body *b, uint64_t n)
{
	ASSERT(n <= body_plain(b));
	b->left -= n;
	b->content += n;
	if (b->left == 0)
		b->state = IS_DONE;
}

size_t
body_chunk_line(char out[BODY_CHUNK_LINE], uint64_t n)
{
	struct out o;

	ASSERT(n > 0);
	out_init(&o, out, BODY_CHUNK_LINE);
	out_hex(&o, n);
	out_put(&o, "\r\n");
	return out_len(&o);
}
