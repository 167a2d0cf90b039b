/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * framing.c - one Content-Length or one Transfer-Encoding: chunked, and no
 * second opinion; see framing.h.
 *
 * Whatever two readers could read in two ways is refused: lists of lengths
 * even if equal, both fields at once, any of the field lines twice.
 */
#include "http/framing.h"

#include "http/chars.h"

static bool
is_chunked(struct str s)
{
	return str_equal_nocase(s, STR("chunked"));
}

static bool
is_twice(const struct head *h, const struct field *f)
{
	return head_next(h, f) != NULL;
}

/* "gzip, chunked" is well-formed, but not for us; "chunked, gzip" is not. */
static bool
is_chunked_at_last(struct str codings)
{
	struct str coding;
	bool last = false;

	while (str_split(&codings, ',', &coding)) {
		coding = str_trim(coding);
		if (last || !chars_are(coding, CHAR_TOKEN))
			return false;
		last = is_chunked(coding);
	}
	return last;
}

static enum failure
request_coding(const struct head *h, const struct field *te,
    struct framing *out)
{
	struct str value = field_value(h, te);

	if (h->minor == 0 || is_twice(h, te))
		return FAIL_BAD_REQUEST;
	if (is_chunked(value)) {
		out->kind = FRAMING_CHUNKED;
		return FAIL_NONE;
	}
	return is_chunked_at_last(value) ?
	    FAIL_METHOD_UNSUPPORTED : FAIL_BAD_REQUEST;
}

static enum failure
length_parse(const struct head *h, const struct field *cl, uint64_t *length)
{
	if (is_twice(h, cl) || !str_number(field_value(h, cl), length))
		return FAIL_BAD_REQUEST;
	return *length > INT64_MAX ? FAIL_BODY_TOO_LARGE : FAIL_NONE;
}

enum failure
framing_of_request(const struct head *h, struct framing *out)
{
	const struct field *cl = head_first(h, FIELD_CONTENT_LENGTH);
	const struct field *te = head_first(h, FIELD_TRANSFER_ENCODING);
	enum failure why;

	*out = (struct framing){ .kind = FRAMING_NONE };
	if (cl == NULL && te == NULL)
		return FAIL_NONE;
	if (cl != NULL && te != NULL)
		return FAIL_BAD_REQUEST;

	/* Bytes after a CONNECT are the tunnel's, whatever its fields say. */
	if (h->method == METHOD_CONNECT)
		return FAIL_BAD_REQUEST;
	if (te != NULL) {
		why = request_coding(h, te, out);
	} else {
		why = length_parse(h, cl, &out->length);
		out->kind = FRAMING_LENGTH;
	}

	/* RFC 9110, 9.3.8: a TRACE has no content. */
	if (why == FAIL_NONE && h->method == METHOD_TRACE &&
	    (te != NULL || out->length > 0))
		why = FAIL_BAD_REQUEST;
	return why;
}

enum failure
framing_of_response(const struct head *h, enum method to, struct framing *out)
{
	const struct field *cl = head_first(h, FIELD_CONTENT_LENGTH);
	const struct field *te = head_first(h, FIELD_TRANSFER_ENCODING);

	*out = (struct framing){ .kind = FRAMING_NONE };
	if (h->status == 101) {
		out->kind = FRAMING_TUNNEL;
		/* RFC 9110, 15.2.2: to what, if it doesn't say? */
		return head_first(h, FIELD_UPGRADE) != NULL ?
		    FAIL_NONE : FAIL_RESPONSE_INVALID;
	}
	if (h->status / 100 == 2 && to == METHOD_CONNECT) {
		out->kind = FRAMING_TUNNEL;
		return FAIL_NONE;
	}
	/* RFC 9112, 6.3: no body here, whatever the fields say. */
	if (h->status / 100 == 1 || h->status == 204)
		return FAIL_NONE;
	if (te != NULL && (cl != NULL || h->minor == 0 || is_twice(h, te) ||
	    !is_chunked(field_value(h, te))))
		return FAIL_RESPONSE_INVALID;
	if (cl != NULL && length_parse(h, cl, &out->length) != FAIL_NONE)
		return FAIL_RESPONSE_INVALID;
	if (h->status == 304 || to == METHOD_HEAD)
		out->has_length = cl != NULL;
	else if (te != NULL || cl != NULL)
		out->kind = te != NULL ? FRAMING_CHUNKED : FRAMING_LENGTH;
	else if (h->status == 205)	/* RFC 9110, 15.3.6: it has none, */
		out->has_length = true;	/* which a client must be told */
	else
		out->kind = FRAMING_CLOSE;
	return FAIL_NONE;
}
