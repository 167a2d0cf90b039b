/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate_fields.c - what limits tell clients about their rates; see
 * rate_fields.h.
 */
#include "proxy/rate_fields.h"

#include <assert.h>

#include "config/table.h"
#include "proxy/worker.h"

static_assert(RATE_FIELDS_MAX >= ROUTE_LIMITS * 2 * (CONF_NAME_MAX + 64),
    "all limits with the longest names and numbers fit");

struct told {
	const char		*name;
	struct limit_quota	 quota;
};

static unsigned
gather(struct told told[ROUTE_LIMITS], const struct exchange *x,
    enum rate_headers least)
{
	nsec_t now = worker_now(x->worker);
	unsigned n = 0;

	for (unsigned i = 0; i < x->pass_count; i++) {
		const struct limit_pass *p = &x->passes[i];
		const struct limit_spec *s = limit_spec(p->limit);

		if (s->dry_run || s->rate_headers < least ||
		    !limit_quota(p, now, &told[n].quota))
			continue;
		told[n++].name = s->name;
	}
	return n;
}

static uint64_t
seconds(nsec_t t)
{
	return (t + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
}

/*
 * A structured string (RFC 9651, 3.3.3); names of sections have nothing that
 * would need to be escaped.
 */
static void
put_name(struct out *o, const char *name, bool first)
{
	out_put(o, first ? "\"" : ", \"");
	out_put(o, name);
	out_char(o, '"');
}

static void
put_number(struct out *o, const char *parameter, uint64_t value)
{
	out_put(o, parameter);
	out_number(o, value);
}

static void
put_policies(struct out *o, const struct told *told, unsigned n)
{
	out_put(o, "RateLimit-Policy: ");
	for (unsigned i = 0; i < n; i++) {
		put_name(o, told[i].name, i == 0);
		put_number(o, ";q=", told[i].quota.most);
		put_number(o, ";w=", seconds(told[i].quota.span));
	}
	out_put(o, "\r\n");
}

/*
 * Section 6 of the draft: Retry-After is not earlier than t.  Of a limit that
 * has something left, t is no reason to come later, and so isn't said.
 */
static void
put_states(struct out *o, const struct told *told, unsigned n,
    uint64_t retry_after)
{
	out_put(o, "RateLimit: ");
	for (unsigned i = 0; i < n; i++) {
		uint64_t t = seconds(told[i].quota.more);

		put_name(o, told[i].name, i == 0);
		put_number(o, ";r=", told[i].quota.left);
		if (t != 0 && (retry_after == 0 || t <= retry_after))
			put_number(o, ";t=", t);
	}
	out_put(o, "\r\n");
}

void
rate_fields_put(struct out *o, const struct exchange *x,
    enum rate_headers least, uint64_t *retry_after)
{
	struct told told[ROUTE_LIMITS];
	unsigned n = gather(told, x, least);

	if (n == 0)
		return;
	for (unsigned i = 0; i < n && *retry_after != 0; i++)
		if (told[i].quota.left == 0)
			*retry_after = MAX(*retry_after,
			    seconds(told[i].quota.more));
	put_policies(o, told, n);
	put_states(o, told, n, *retry_after);
}

/* The empty line that ends the head goes behind them. */
void
rate_fields_add(struct out *o, const struct exchange *x)
{
	uint64_t retry_after = 0;

	if (out_is_full(o))
		return;
	out_cut(o, out_len(o) - strlen("\r\n"));
	rate_fields_put(o, x, RATE_HEADERS_ALWAYS, &retry_after);
	out_put(o, "\r\n");
}
