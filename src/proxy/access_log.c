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

/* --- the line ---------------------------------------------------------- */

/* `key` is a name with all that is around it. */

static inline void
add_TEXT(struct out *o, struct str key, struct str value)
{
	if (str_is_empty(value))
		return;
	out_str(o, key);
	out_json(o, value);
}

static inline void
add_NUMBER(struct out *o, struct str key, uint64_t value)
{
	out_str(o, key);
	out_number(o, value);
}

static inline void
add_SPAN(struct out *o, struct str key, nsec_t value)
{
	if (value == NSEC_NEVER)
		return;
	out_str(o, key);
	out_decimal(o, value / 1000, 6);
}

static inline void
add_FLAG(struct out *o, struct str key, bool value)
{
	out_str(o, key);
	out_str(o, value ? STR("true") : STR("false"));
}

static void
build(struct out *o, const struct exchange *x)
{
	struct timespec wall = loop_wall(x->worker->loop);
	struct texts t;

	out_init(o, loop_scratch_out(x->worker->loop), LOG_LINE_MAX);
	out_put(o, "{\"time\":");
	out_decimal(o, (uint64_t)wall.tv_sec * 1000000 +
	    (uint64_t)wall.tv_nsec / 1000, 6);
#define LOG_FIELD(name, TYPE, value, help) \
	add_##TYPE(o, STR(",\"" #name "\":"), value);
#include "proxy/log_fields.def"
	out_char(o, '}');
}

void
access_log(struct exchange *x)
{
	struct worker *w = x->worker;
	struct out o;

	if (w->access_log == NULL)
		return;
	build(&o, x);
	if (out_is_full(&o)) {
		/* Only a target can be that long: the line goes without. */
		x->request.target.len = 0;
		build(&o, x);
	}
	log_put(w->access_log, o.mem, out_len(&o));
}
