/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parse.c - llhttp finds the spans, and this file believes none of them
 * before it has looked at the bytes around it; see parse.h.
 *
 * llhttp runs once over a complete head and is paused at its end, so that it
 * never sees a byte of a body: framing is ours (framing.h).  It must end where
 * the scan ended.
 */
#include "http/parse.h"

#include <assert.h>
#include <llhttp.h>
#include <stdlib.h>

#include "http/chars.h"
#include "http/uri.h"

#if LLHTTP_VERSION_MAJOR < 8
#error "llhttp 8 or 9 is needed"
#endif

/* Slots in the index of names; a power of two, sparse enough. */
enum { SLOTS = 256 };

struct parser {
	int			(*execute)(llhttp_t *llhttp, const char *at,
				    const char *end);
	llhttp_t		 llhttp;
	llhttp_settings_t	 settings;
	const char		*base;		/* of the head in work */
	struct head		*head;
	bool			 complete;
	uint8_t			 ids[SLOTS];	/* by hash of the name */
	struct field		 fields[HEAD_FIELDS_MAX];
};

static const struct str names[FIELD_IDS] = {
	[FIELD_OTHER] = STR_INIT(""),
#define FIELD(ID, name, ...)	[FIELD_##ID] = STR_INIT(name),
#include "http/fields.def"
};

typedef int piece_fn(llhttp_t *llhttp, const char *at, size_t n);
typedef int event_fn(llhttp_t *llhttp);

static piece_fn		on_target;
static piece_fn		on_name;
static event_fn		on_complete;

/* --- the parser -------------------------------------------------------- */

static inline unsigned
name_slot(const char *at, size_t n)
{
	unsigned first = (unsigned char)at[0] | 0x20;
	unsigned last = (unsigned char)at[n - 1] | 0x20;

	return (unsigned)n + first * 8 + last * 5;
}

static void
index_names(struct parser *p)
{
	for (unsigned id = FIELD_OTHER + 1; id < FIELD_IDS; id++) {
		unsigned slot = name_slot(names[id].at, names[id].len);
		while (p->ids[slot % SLOTS] != FIELD_OTHER)
			slot++;
		p->ids[slot % SLOTS] = (uint8_t)id;
	}
}

/*
 * llhttp_execute() does nothing but call this; of which there may be another,
 * made for processors that compare sixteen bytes at once.
 */
#ifdef LLHTTP_SSE42
int llhttp_sse42_execute(llhttp_t *llhttp, const char *at, const char *end);
#endif

static void
choose_execute(struct parser *p)
{
	p->execute = llhttp__internal_execute;
#ifdef LLHTTP_SSE42
	if (__builtin_cpu_supports("sse4.2"))
		p->execute = llhttp_sse42_execute;
#endif
}

struct parser *
parser_new(void)
{
	struct parser *p = xcalloc(1, sizeof *p);

	static_assert(FIELD_IDS <= SLOTS / 2, "the index would be too full");
	llhttp_settings_init(&p->settings);
	p->settings.on_url = on_target;
	p->settings.on_header_field = on_name;
	p->settings.on_headers_complete = on_complete;
	choose_execute(p);
	index_names(p);
	return p;
}

void
parser_free(struct parser **parser)
{
	free(*parser);
	*parser = NULL;
}

const char *
parse_library(void)
{
#define TEXT(x)		#x
#define VERSION(a, b, c) "llhttp " TEXT(a) "." TEXT(b) "." TEXT(c)
	return VERSION(LLHTTP_VERSION_MAJOR, LLHTTP_VERSION_MINOR,
	    LLHTTP_VERSION_PATCH);
#undef VERSION
#undef TEXT
}

/* --- what llhttp calls ------------------------------------------------- */

/*
 * A target comes in one piece or in several that touch.  Others would mean
 * that llhttp overlooked bytes in between: -1 ends the parsing.
 */
static HOT int
on_target(llhttp_t *llhttp, const char *at, size_t n)
{
	struct parser *p = llhttp->data;
	struct span *target = &p->head->target;
	uint32_t where = (uint32_t)(at - p->base);

	if (target->len == 0)
		target->at = where;
	else if (where != target->at + target->len)
		return -1;
	target->len += (uint32_t)n;
	return 0;
}

/* A name begins a line; of one in pieces, the second would not. */
static HOT int
on_name(llhttp_t *llhttp, const char *at, size_t n)
{
	struct parser *p = llhttp->data;
	struct head *h = p->head;

	if (h->count == HEAD_FIELDS_MAX ||
	    memcmp(at - 2, "\r\n", 2) != 0)
		return -1;
	struct field *f = &p->fields[h->count++];
	f->name = (uint32_t)(at - p->base);
	f->name_len = (uint16_t)n;
	return 0;
}

static HOT int
on_complete(llhttp_t *llhttp)
{
	struct parser *p = llhttp->data;

	p->complete = true;
	return HPE_PAUSED;
}

/*
 * False unless llhttp accepts the head, ends it where the scan did, and has
 * found as many fields: a line it overlooked would be part of a value.
 */
static bool
run(struct parser *p, llhttp_type_t type, struct str bytes, unsigned fields,
    struct head *out)
{
	const char *end = bytes.at + bytes.len;

	*out = (struct head){
		.base = bytes.at,
		.fields = p->fields,
		.length = (uint32_t)bytes.len,
	};
	if (bytes.len > HEAD_SIZE_MAX)
		return false;
	p->base = bytes.at;
	p->head = out;
	p->complete = false;
	llhttp_init(&p->llhttp, type, &p->settings);
	p->llhttp.data = p;
	return p->execute(&p->llhttp, bytes.at, end) == HPE_PAUSED &&
	    p->complete && llhttp_get_error_pos(&p->llhttp) == end &&
	    out->count == fields;
}

/* --- fields ------------------------------------------------------------ */

static inline bool
is_like4(const char *at, const char *lower)
{
	uint32_t a, b;

	memcpy(&a, at, sizeof a);
	memcpy(&b, lower, sizeof b);
	return (a | UINT32_C(0x20202020)) == b;
}

static inline bool
is_like8(const char *at, const char *lower)
{
	uint64_t a, b;

	memcpy(&a, at, sizeof a);
	memcpy(&b, lower, sizeof b);
	return (a | UINT64_C(0x2020202020202020)) == b;
}

/*
 * `lower` has small letters, digits and hyphens only, `at` token characters:
 * among those, setting bit 5 makes no two of different letters equal.
 */
static inline bool
is_name(const char *at, const char *lower, size_t n)
{
	size_t i = 0;

	if (n < 4) {
		for (; i < n && (at[i] | 0x20) == lower[i]; i++)
			;
		return i == n;
	}
	/* The last of them overlap, unless n is a multiple of eight. */
	for (; n - i >= 8; i += 8)
		if (!is_like8(at + i, lower + i))
			return false;
	if (n >= 8)
		return is_like8(at + n - 8, lower + n - 8);
	return is_like4(at, lower) && is_like4(at + n - 4, lower + n - 4);
}

static inline enum field_id
find_id(const struct parser *p, const char *at, size_t n)
{
	unsigned slot = name_slot(at, n);
	unsigned id;

	while ((id = p->ids[slot % SLOTS]) != FIELD_OTHER) {
		if (names[id].len == n && is_name(at, names[id].at, n))
			break;
		slot++;
	}
	return id;
}

/*
 * llhttp says where the names are.  What is between two of them is a colon, a
 * value and one CRLF: the scan has seen that no line goes on in the next, and
 * that nothing below SP but HTAB is in it.
 */
static HOT void
index_fields(struct parser *p, struct head *h)
{
	const char *base = h->base, *line_end = base + h->length - 4;
	struct field *fields = h->fields, *f = fields + h->count;
	uint64_t repeated = 0;

	while (f > fields) {
		f--;
		const char *name = base + f->name;
		const char *at = name + f->name_len + 1, *end = line_end;
		enum field_id id = find_id(p, name, f->name_len);
		bool plain = *at == ' ';

		at += plain;
		if (at < end &&
		    ((uint8_t)*at <= ' ' || (uint8_t)end[-1] <= ' ')) {
			struct str value = str_trim(str_make(at,
			    (size_t)(end - at)));
			at = value.at;
			end = at + value.len;
			plain = false;
		}
		f->value = (uint32_t)(at - base);
		f->value_len = (uint16_t)(end - at);
		f->id = (uint8_t)id;
		f->plain = plain;
		f->named = false;
		if (h->first[id] != 0)
			repeated |= UINT64_C(1) << id;
		h->first[id] = (uint16_t)(f - fields + 1);
		line_end = name - 2;
	}
	h->repeated = repeated;
}

/* --- Connection -------------------------------------------------------- */

/* May a client have this field taken away?  See parse.h. */
static bool
may_be_named(struct str name, enum field_id id)
{
	switch (id) {
	case FIELD_AUTHORIZATION:
	case FIELD_CONTENT_LENGTH:
	case FIELD_COOKIE:
	case FIELD_FORWARDED:
	case FIELD_TRANSFER_ENCODING:
		return false;
	default:
		return !str_starts_nocase(name, STR("x-forwarded-"));
	}
}

static void
mark_named(struct head *h, struct str name, enum field_id id)
{
	for (unsigned i = h->first[id]; i != 0 && i <= h->count; i++) {
		struct field *f = &h->fields[i - 1];
		if (f->id == id && (id != FIELD_OTHER ||
		    str_equal_nocase(field_name(h, f), name)))
			f->named = true;
	}
}

/* One option of Connection; false if it must not be there. */
static bool
take_option(struct parser *p, struct head *h, struct str option,
    unsigned *named)
{
	if (str_equal_nocase(option, STR("close"))) {
		/* A field of that name is reserved, but would be named. */
		if (!h->close)
			mark_named(h, option, FIELD_OTHER);
		h->close = true;
	} else if (str_equal_nocase(option, STR("keep-alive"))) {
		h->keep_alive = true;
	} else if (str_equal_nocase(option, STR("upgrade"))) {
		h->upgrade = true;
	} else if (chars_are(option, CHAR_TOKEN)) {
		enum field_id id = find_id(p, option.at, option.len);
		if (++*named > PARSE_NAMED)
			return false;
		if (h->method != METHOD_NONE && !may_be_named(option, id))
			return false;
		if (id != FIELD_HOST || h->method == METHOD_NONE)
			mark_named(h, option, id);
	}
	return true;
}

static bool
has_protocol(const struct head *h)
{
	const struct field *f = head_first(h, FIELD_UPGRADE);

	for (; f != NULL; f = head_next(h, f)) {
		struct str rest = field_value(h, f), protocol;
		if (upgrade_next(&rest, &protocol))
			return true;
	}
	return false;
}

/* Many have none. */
static inline bool
has_connection(const struct head *h)
{
	return h->first[FIELD_CONNECTION] != 0;
}

static bool
read_connection(struct parser *p, struct head *h)
{
	const struct field *f = head_first(h, FIELD_CONNECTION);
	unsigned named = 0;

	for (; f != NULL; f = head_next(h, f)) {
		struct str rest = field_value(h, f), option;
		while (str_split(&rest, ',', &option)) {
			if (!take_option(p, h, str_trim(option), &named))
				return false;
		}
	}
	h->upgrade = h->upgrade && h->minor == 1 && has_protocol(h);
	return true;
}

/* --- requests ---------------------------------------------------------- */

static const uint8_t methods[] = {
#define METHOD(NAME, ...)	[HTTP_##NAME] = METHOD_##NAME,
#include "http/methods.def"
};

/* "HTTP/1.0" or "HTTP/1.1"; false for all else. */
static bool
read_minor(struct str version, struct head *h)
{
	if (version.len != strlen("HTTP/1.x") ||
	    memcmp(version.at, "HTTP/1.", strlen("HTTP/1.")) != 0)
		return false;
	h->minor = version.at[version.len - 1] == '1';
	return h->minor == 1 || version.at[version.len - 1] == '0';
}

/*
 * The bytes of the request line are those that were found in it, with one
 * space between, and nothing else: llhttp overlooks several spaces.
 */
static bool
read_request_line(struct head *h)
{
	struct str method = method_name(h->method);
	struct str target = head_str(h, h->target);
	const char *rest = target.at + target.len;
	size_t left = (size_t)(h->base + h->length - rest);

	return method.len > 0 && h->target.at == method.len + 1 &&
	    memcmp(h->base, method.at, method.len) == 0 &&
	    h->base[method.len] == ' ' && chars_are(target, CHAR_TARGET) &&
	    left >= strlen(" HTTP/1.x\r\n") && rest[0] == ' ' &&
	    memcmp(rest + strlen(" HTTP/1.x"), "\r\n", 2) == 0 &&
	    read_minor(str_make(rest + 1, strlen("HTTP/1.x")), h);
}

static bool
is_method(struct str text)
{
	for (unsigned m = METHOD_NONE + 1; m < METHOD_COUNT; m++) {
		if (str_equal(text, method_name(m)))
			return true;
	}
	return false;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Of a request that was refused: what is wrong with its first line. */
static enum failure
request_line_failure(struct str head)
{
	struct str version = str_head(head, str_find(head, '\r'));
	struct str method, target;
	struct head h;

	if (!str_split(&version, ' ', &method) ||
	    !chars_are(method, CHAR_TOKEN) ||
	    !str_split(&version, ' ', &target) ||
	    !chars_are(target, CHAR_TARGET))
		return FAIL_BAD_REQUEST;
	if (version.len != strlen("HTTP/x.y") ||
	    !str_starts(version, STR("HTTP/")) || version.at[6] != '.' ||
	    !is_digit(version.at[5]) || !is_digit(version.at[7]))
		return FAIL_BAD_REQUEST;
	if (!read_minor(version, &h))
		return FAIL_VERSION_UNSUPPORTED;
	return is_method(method) ? FAIL_BAD_REQUEST : FAIL_METHOD_UNSUPPORTED;
}

/* One Host, which HTTP/1.0 may leave out; an empty one is well-formed. */
static bool
has_good_host(const struct head *h)
{
	const struct field *f = head_first(h, FIELD_HOST);
	struct authority host;

	if (f == NULL)
		return h->minor == 0;
	return head_next(h, f) == NULL && (f->value_len == 0 ||
	    authority_parse(field_value(h, f), &host));
}

static bool
has_good_max_forwards(const struct head *h)
{
	const struct field *f = head_first(h, FIELD_MAX_FORWARDS);
	uint64_t value;

	if (f == NULL ||
	    (h->method != METHOD_OPTIONS && h->method != METHOD_TRACE))
		return true;
	return head_next(h, f) == NULL &&
	    str_number(field_value(h, f), &value) && value <= INT64_MAX;
}

HOT enum failure
parse_request(struct parser *p, struct str bytes, unsigned fields,
    struct head *out)
{
	if (!run(p, HTTP_REQUEST, bytes, fields, out))
		return request_line_failure(bytes);
	if (p->llhttp.method < ARRAY_LEN(methods))
		out->method = methods[p->llhttp.method];
	if (!read_request_line(out))
		return request_line_failure(bytes);
	index_fields(p, out);
	return has_good_host(out) && has_good_max_forwards(out) &&
	    (!has_connection(out) || read_connection(p, out)) ? FAIL_NONE :
	    FAIL_BAD_REQUEST;
}

bool
parse_is_to_head(const char *bytes, size_t n)
{
	return str_starts(str_make(bytes, n), STR("HEAD "));
}

/* --- responses --------------------------------------------------------- */

/* "HTTP/1.1 200", and then " reason" or nothing (RFC 9112, 4). */
static bool
read_status_line(struct head *h)
{
	uint32_t next = h->count > 0 ? h->fields[0].name : h->length - 2;
	struct str line = str_make(h->base, next - strlen("\r\n"));

	if (line.len < strlen("HTTP/1.1 200") || line.at[8] != ' ' ||
	    !read_minor(str_head(line, 8), h) || !is_digit(line.at[9]) ||
	    !is_digit(line.at[10]) || !is_digit(line.at[11]))
		return false;
	h->status = (line.at[9] - '0') * 100 + (line.at[10] - '0') * 10 +
	    line.at[11] - '0';
	if (h->status < 100 || h->status > 599)
		return false;
	if (line.len == strlen("HTTP/1.1 200"))
		return true;
	h->reason.at = strlen("HTTP/1.1 200 ");
	h->reason.len = (uint32_t)line.len - h->reason.at;
	return line.at[12] == ' ';
}

enum failure
parse_response(struct parser *p, struct str bytes, unsigned fields,
    struct head *out)
{
	if (!run(p, HTTP_RESPONSE, bytes, fields, out) ||
	    !read_status_line(out) ||
	    p->llhttp.status_code != out->status)
		return FAIL_RESPONSE_INVALID;
	index_fields(p, out);
	return !has_connection(out) || read_connection(p, out) ? FAIL_NONE :
	    FAIL_RESPONSE_INVALID;
}
