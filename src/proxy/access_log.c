/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access_log.c - one line for each exchange; see access_log.h.
 */
#include "proxy/access_log.h"

#include "proxy/admit.h"
#include "proxy/throttling.h"
#include "proxy/worker.h"

/* Texts that a line needs only while it is made. */
struct texts {
	char	client[ADDR_TEXT];
	char	server[ADDR_TEXT];
	char	id[16];
};

/* --- values ------------------------------------------------------------ */

static struct str
client_text(const struct exchange *x, struct texts *t)
{
	return str_of(addr_print(x->from, t->client, sizeof t->client));
}

static struct str
method_text(const struct exchange *x)
{
	return x->has_head ? method_name(x->request.method) : STR("");
}

static struct str
target_text(const struct exchange *x)
{
	return x->has_head ? head_str(&x->request, x->request.target) :
	    STR("");
}

static struct str
upstream_text(const struct exchange *x)
{
	return str_of(x->route->upstream != NULL ? x->route->upstream->name :
	    NULL);
}

static struct str
server_text(const struct exchange *x, struct texts *t)
{
	uint8_t family = x->upstream_addr.family;

	if (x->last_server != NULL &&
	    (family == ADDR_NONE || family == ADDR_UNIX))
		return str_of(x->last_server->text);
	if (family == ADDR_NONE)
		return STR("");
	return str_of(addr_print(&x->upstream_addr, t->server,
	    sizeof t->server));
}

static struct str
id_text(const struct exchange *x, struct texts *t)
{
	struct out o;

	/* All 16 digits, so that one is as long as another. */
	out_init(&o, t->id, sizeof t->id);
	out_hex_padded(&o, x->id, sizeof t->id);
	return out_text(&o);
}

static struct str
limit_text(const struct limit *l)
{
	return l == NULL ? STR("") : str_of(limit_spec(l)->name);
}

/* Why a limit in dry run would have refused it. */
static struct str
would_text(const struct exchange *x)
{
	const struct limit_pass *p = x->route->dry_run ?
	    admit_would_refuse(x) : NULL;

	return p == NULL ? STR("") : str_of(failure_row(p->would)->token);
}

static struct str
would_limit_text(const struct exchange *x)
{
	const struct limit_pass *p = x->route->dry_run ?
	    admit_would_refuse(x) : NULL;

	return limit_text(p == NULL ? NULL : p->limit);
}

static nsec_t
span(nsec_t from, nsec_t to)
{
	return from == 0 || to == 0 ? NSEC_NEVER : to - from;
}

/* What gets its line whatever the sample. */
static bool
is_telling(const struct exchange *x)
{
	return x->why != FAIL_NONE || x->status >= 400 ||
	    (x->cut && x->begun) ||
	    (x->route->dry_run && admit_would_refuse(x) != NULL);
}

static uint64_t
sample_of(const struct exchange *x)
{
	return is_telling(x) ? 1 : x->worker->setup->access_style.sample;
}

/* --- a line of names and values ---------------------------------------- */

/* `key` is a name with all that is around it; `write` is how texts look. */

typedef void write_fn(struct out *o, struct str s);

static inline void
add_TEXT(struct out *o, struct str key, struct str value, write_fn *write)
{
	if (str_is_empty(value))
		return;
	out_str(o, key);
	write(o, value);
}

static inline void
add_NUMBER(struct out *o, struct str key, uint64_t value, write_fn *write)
{
	(void)write;
	out_str(o, key);
	out_number(o, value);
}

static inline void
add_FACTOR(struct out *o, struct str key, uint64_t value, write_fn *write)
{
	if (value > 1)
		add_NUMBER(o, key, value, write);
}

static inline void
add_SPAN(struct out *o, struct str key, nsec_t value, write_fn *write)
{
	(void)write;
	if (value == NSEC_NEVER)
		return;
	out_str(o, key);
	out_decimal(o, value / 1000, 6);
}

static inline void
add_FLAG(struct out *o, struct str key, bool value, write_fn *write)
{
	(void)write;
	out_str(o, key);
	out_str(o, value ? STR("true") : STR("false"));
}

static void
add_time(struct out *o, const struct exchange *x)
{
	struct timespec wall = loop_wall(x->worker->loop);

	out_decimal(o, (uint64_t)wall.tv_sec * 1000000 +
	    (uint64_t)wall.tv_nsec / 1000, 6);
}

static void
build_json(struct out *o, const struct exchange *x)
{
	struct texts t;

	out_put(o, "{\"time\":");
	add_time(o, x);
#define LOG_FIELD(name, TYPE, value, help) \
	add_##TYPE(o, STR(",\"" #name "\":"), value, out_json);
#include "proxy/log_fields.def"
	out_char(o, '}');
}

static void
build_logfmt(struct out *o, const struct exchange *x)
{
	struct texts t;

	out_put(o, "time=");
	add_time(o, x);
#define LOG_FIELD(name, TYPE, value, help) \
	add_##TYPE(o, STR(" " #name "="), value, out_logfmt);
#include "proxy/log_fields.def"
}

/* --- combined ----------------------------------------------------------- */

/* In UTC, made of what a Date field has: "Sun, 06 Nov 1994 08:49:37 GMT". */
static void
add_combined_time(struct out *o, const struct exchange *x)
{
	const char *date = worker_date(x->worker);

	out_char(o, '[');
	out_add(o, date + 5, 2);
	out_char(o, '/');
	out_add(o, date + 8, 3);
	out_char(o, '/');
	out_add(o, date + 12, 4);
	out_char(o, ':');
	out_add(o, date + 17, 8);
	out_put(o, " +0000]");
}

static void
add_quoted(struct out *o, struct str s)
{
	out_char(o, '"');
	out_quoted(o, str_is_empty(s) ? STR("-") : s);
	out_char(o, '"');
}

static void
add_field(struct out *o, const struct exchange *x, enum field_id id)
{
	const struct field *f = x->has_head ? head_first(&x->request, id) :
	    NULL;

	out_char(o, ' ');
	add_quoted(o, f == NULL ? STR("") : field_value(&x->request, f));
}

/* A target that was too long for a line is gone: the line goes without. */
static void
add_request_line(struct out *o, const struct exchange *x)
{
	struct str target = target_text(x);

	if (!x->has_head) {
		out_put(o, "\"-\"");
		return;
	}
	out_char(o, '"');
	out_quoted(o, method_text(x));
	out_char(o, ' ');
	out_quoted(o, str_is_empty(target) ? STR("-") : target);
	out_put(o, x->request.minor == 0 ? " HTTP/1.0\"" : " HTTP/1.1\"");
}

static void
build_combined(struct out *o, const struct exchange *x)
{
	addr_put_ip(o, x->from);
	out_put(o, " - - ");
	add_combined_time(o, x);
	out_char(o, ' ');
	add_request_line(o, x);
	out_char(o, ' ');
	out_padded(o, (uint64_t)x->status, 3);
	out_char(o, ' ');
	out_number(o, x->bytes_out);
	add_field(o, x, FIELD_REFERER);
	add_field(o, x, FIELD_USER_AGENT);
}

/* --- the line ---------------------------------------------------------- */

static void
build(struct out *o, const struct exchange *x, const struct access_style *style)
{
	static void (*const builders[])(struct out *,
	    const struct exchange *) = {
		[LOG_FORMAT_JSON] = build_json,
		[LOG_FORMAT_LOGFMT] = build_logfmt,
		[LOG_FORMAT_COMBINED] = build_combined,
	};

	out_init(o, loop_scratch_out(x->worker->loop), LOG_LINE_MAX);
	if (style->to_journal)
		out_put(o, "<6>");	/* sd-daemon(3): info */
	builders[style->format](o, x);
}

void
access_log(struct exchange *x)
{
	struct worker *w = x->worker;
	const struct access_style *style = &w->setup->access_style;
	struct out o;

	if (!style->on || (style->sample > 1 && !is_telling(x) &&
	    x->id % style->sample != 0))
		return;
	build(&o, x, style);
	if (out_is_full(&o)) {
		/* Only these can be that long: the line goes without them. */
		x->request.target.len = 0;
		x->request.first[FIELD_REFERER] = 0;
		x->request.first[FIELD_USER_AGENT] = 0;
		build(&o, x, style);
	}
	log_put(w->access_log, o.mem, out_len(&o));
}
