/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metric.c - a writer of Prometheus text; see metric.h.
 */
#include "base/metric.h"

#include <math.h>
#include <stdlib.h>

#include "base/exemplar.h"
#include "base/hist.h"

static const char *const type_names[] = {
	[METRIC_COUNTER]	= "counter",
	[METRIC_GAUGE]		= "gauge",
	[METRIC_HISTOGRAM]	= "histogram",
	[METRIC_UNKNOWN]	= "unknown",
};

enum { FIRST_SIZE = 16384 };

void
metrics_init(struct metrics *m)
{
	*m = (struct metrics){ 0 };
}

void
metrics_fini(struct metrics *m)
{
	free(m->text);
	metrics_init(m);
}

bool
metrics_text(const struct metrics *m, struct str *text)
{
	*text = str_make(m->text, m->len);
	return !m->failed;
}

/* --- pieces ------------------------------------------------------------- */

static bool
make_room(struct metrics *m, size_t n)
{
	size_t size = MAX(m->size, FIRST_SIZE);

	while (size - m->len < n)
		size *= 2;
	if (size == m->size)
		return true;
	char *text = realloc(m->text, size);
	if (text == NULL)
		return false;
	m->text = text;
	m->size = size;
	return true;
}

static void
add(struct metrics *m, struct str s)
{
	if (m->failed || s.len == 0)
		return;
	if (!make_room(m, s.len)) {
		m->failed = true;
		return;
	}
	memcpy(m->text + m->len, s.at, s.len);
	m->len += s.len;
}

void
metric_text(struct metrics *m, struct str text)
{
	add(m, text);
}

void
metrics_end(struct metrics *m)
{
	if (m->open)
		add(m, STR("# EOF\n"));
}

static void
add_name(struct metrics *m, struct str name)
{
	if (!str_starts(name, STR("process_")))
		add(m, STR("penstock_"));
	add(m, name);
}

/*
 * In OpenMetrics "_total" belongs to a counter's samples, not to its name.
 * Where the gauge before it has that name already (sessions, sessions_total)
 * it is of no known type there, which has names as they are.
 */
static struct str
family_of(const struct metrics *m, const char *name, enum metric_type *type)
{
	struct str s = str_of(name), total = STR("_total");

	if (!m->open || *type != METRIC_COUNTER || !str_ends(s, total))
		return s;
	struct str family = str_head(s, s.len - total.len);
	if (!str_equal(family, str_of(m->before)))
		return family;
	*type = METRIC_UNKNOWN;
	return s;
}

/*
 * Escape what the format wants escaped.  A scrape with bytes that aren't UTF-8
 * would be refused whole, so those are written as \\xXX.
 */
static void
add_escaped(struct metrics *m, struct str s, bool quoted)
{
	char text[8];
	struct out o;
	uint32_t c;

	while (s.len > 0) {
		size_t n = str_utf8(s, &c);

		out_init(&o, text, sizeof text);
		if (n == 0) {
			out_put(&o, "\\\\x");
			out_hex(&o, (unsigned char)s.at[0]);
			n = 1;
		} else if (c == '\n') {
			out_put(&o, "\\n");
		} else if (c == '\\' || (c == '"' && quoted)) {
			out_char(&o, '\\');
			out_char(&o, (char)c);
		} else {
			out_add(&o, s.at, n);
		}
		add(m, out_text(&o));
		s = str_skip(s, n);
	}
}

static void
add_label(struct metrics *m, bool first, const char *name, const char *value)
{
	add(m, first ? STR("{") : STR(","));
	add(m, str_of(name));
	add(m, STR("=\""));
	add_escaped(m, str_of(value), true);
	add(m, STR("\""));
}

/* The labels, and `le` if it isn't NULL. */
static void
add_labels(struct metrics *m, const struct metric_label *labels,
    const char *le)
{
	const struct metric_label *l = labels;

	for (; l->name != NULL; l++)
		add_label(m, l == labels, l->name, l->value);
	if (le != NULL)
		add_label(m, l == labels, "le", le);
	if (le != NULL || l != labels)
		add(m, STR("}"));
}

/* Nanoseconds as seconds, without zeros that say nothing. */
static void
put_seconds(struct out *o, nsec_t value)
{
	out_decimal(o, value, 9);
	while (o->mem[o->len - 1] == '0')
		out_cut(o, o->len - 1);
	if (o->mem[o->len - 1] == '.')
		out_cut(o, o->len - 1);
}

static void
end_line(struct metrics *m, struct out *value)
{
	add(m, STR(" "));
	add(m, out_text(value));
	add(m, STR("\n"));
}

/* --- lines -------------------------------------------------------------- */

void
metric_head(struct metrics *m, const char *name, enum metric_type type,
    const char *help)
{
	struct str family = family_of(m, name, &type);

	m->before = name;
	add(m, STR("# HELP "));
	add_name(m, family);
	add(m, STR(" "));
	add_escaped(m, str_of(help), m->open);
	add(m, STR("\n# TYPE "));
	add_name(m, family);
	add(m, STR(" "));
	add(m, str_of(type_names[type]));
	add(m, STR("\n"));
}

void
metric_line(struct metrics *m, const char *name,
    const struct metric_label *labels, uint64_t value)
{
	char text[32];
	struct out o;

	out_init(&o, text, sizeof text);
	out_number(&o, value);
	add_name(m, str_of(name));
	add_labels(m, labels, NULL);
	end_line(m, &o);
}

void
metric_seconds(struct metrics *m, const char *name,
    const struct metric_label *labels, nsec_t value)
{
	char text[32];
	struct out o;

	out_init(&o, text, sizeof text);
	put_seconds(&o, value);
	add_name(m, str_of(name));
	add_labels(m, labels, NULL);
	end_line(m, &o);
}

void
metric_real(struct metrics *m, const char *name,
    const struct metric_label *labels, double value)
{
	char text[32];
	struct out o;

	out_init(&o, text, sizeof text);
	if (isnan(value))
		out_put(&o, "NaN");
	else if (isinf(value))
		out_put(&o, value > 0 ? "+Inf" : "-Inf");
	else
		out_printf(&o, "%.15g", value);
	add_name(m, str_of(name));
	add_labels(m, labels, NULL);
	end_line(m, &o);
}

/* A line of a histogram: its name has `suffix`, its labels may have `le`. */
static void
begin_part(struct metrics *m, const char *name, const char *suffix,
    const struct metric_label *labels, const char *le)
{
	add_name(m, str_of(name));
	add(m, str_of(suffix));
	add_labels(m, labels, le);
}

/* The bound of bucket i, as the value of `le`; in OpenMetrics a real number. */
static void
put_bound(const struct metrics *m, struct out *o, size_t i)
{
	if (hist_bounds[i] == NSEC_NEVER)
		out_put(o, "+Inf");
	else
		put_seconds(o, hist_bounds[i]);
	if (m->open && hist_bounds[i] % NSEC_PER_SEC == 0 &&
	    hist_bounds[i] != NSEC_NEVER)
		out_put(o, ".0");
	out_char(o, '\0');
}

static void
put_exemplar(const struct metrics *m, struct out *o, const struct exemplar *e)
{
	struct exemplar_copy c;

	if (!m->open || e == NULL || !exemplar_read(e, &c))
		return;
	out_put(o, " # {id=\"");
	out_hex_padded(o, c.id, 16);
	out_put(o, "\"} ");
	put_seconds(o, c.value);
	out_char(o, ' ');
	out_decimal(o, c.at / 1000000, 3);
}

void
metric_hist(struct metrics *m, const char *name,
    const struct metric_label *labels, const struct hist *h)
{
	metric_hist_exemplars(m, name, labels, h, NULL);
}

/*
 * The count is what the buckets add up to, also while a worker adds: readers
 * refuse a histogram whose parts disagree.
 */
void
metric_hist_exemplars(struct metrics *m, const char *name,
    const struct metric_label *labels, const struct hist *h,
    const struct exemplar *exemplars)
{
	char bound[32], number[128];
	struct out le, value;
	uint64_t total = 0;

	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		total += atomic_load_explicit(&h->count[i],
		    memory_order_relaxed);
		out_init(&le, bound, sizeof bound);
		put_bound(m, &le, i);
		out_init(&value, number, sizeof number);
		out_number(&value, total);
		put_exemplar(m, &value,
		    exemplars == NULL ? NULL : &exemplars[i]);
		begin_part(m, name, "_bucket", labels, bound);
		end_line(m, &value);
	}
	out_init(&value, number, sizeof number);
	put_seconds(&value, atomic_load_explicit(&h->sum,
	    memory_order_relaxed));
	begin_part(m, name, "_sum", labels, NULL);
	end_line(m, &value);
	out_init(&value, number, sizeof number);
	out_number(&value, total);
	begin_part(m, name, "_count", labels, NULL);
	end_line(m, &value);
}
