/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types.c - single values: numbers, times, choices and references; see types.h.
 * Texts are in types_text.c, lists in types_list.c.
 */
#include "config/types.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "config/problem.h"
#include "config/store.h"
#include "config/table.h"

enum { SAMPLE_MAX = 1000000 };

struct unit {
	const char	*name;
	uint64_t	 worth;
};

/* Largest last. */
static const struct unit sizes[] = {
	{ "",	1 },
	{ "k",	UINT64_C(1) << 10 },
	{ "m",	UINT64_C(1) << 20 },
	{ "g",	UINT64_C(1) << 30 },
	{ "t",	UINT64_C(1) << 40 },
	{ NULL,	0 }
};
static const struct unit times[] = {
	{ "ms",	NSEC_PER_MSEC },
	{ "s",	NSEC_PER_SEC },
	{ "m",	60 * NSEC_PER_SEC },
	{ "h",	3600 * NSEC_PER_SEC },
	{ "d",	86400 * NSEC_PER_SEC },
	{ NULL,	0 }
};
static const struct unit spans[] = {
	{ "s",	NSEC_PER_SEC },
	{ "m",	60 * NSEC_PER_SEC },
	{ "h",	3600 * NSEC_PER_SEC },
	{ NULL,	0 }
};

/* --- helpers of all types ----------------------------------------------- */

bool
type_fail(struct conf_reading *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, sizeof r->why, fmt, ap);
	va_end(ap);
	return false;
}

bool
type_refuse(struct conf_reading *r, const struct conf_type *t,
    const char *text)
{
	return type_fail(r, "\"%s\" is not %s", text, t->hint);
}

/* Letters, digits, - and _, neither - at an end. */
static bool
is_label(struct str s, bool *all_digits)
{
	if (s.len == 0 || s.len > 63 || s.at[0] == '-' ||
	    s.at[s.len - 1] == '-')
		return false;
	*all_digits = true;
	for (size_t i = 0; i < s.len; i++) {
		char c = str_fold(s.at[i]);
		bool is_digit = c >= '0' && c <= '9';

		*all_digits = *all_digits && is_digit;
		if (!is_digit && !(c >= 'a' && c <= 'z') && c != '-' &&
		    c != '_')
			return false;
	}
	return true;
}

bool
type_is_host_name(struct str s)
{
	bool all_digits = true;
	struct str label;

	if (s.len == 0 || s.len > 253)
		return false;
	while (str_split(&s, '.', &label))
		if (!is_label(label, &all_digits))
			return false;
	return !all_digits;
}

const char *
type_lower(struct conf_store *store, struct str s)
{
	char *copy = store_take(store, s.len + 1);

	for (size_t i = 0; i < s.len; i++)
		copy[i] = str_fold(s.at[i]);
	return copy;
}

size_t
type_count(const struct conf_type *t, const void *value)
{
	/* All lists are a pointer and a count; types_list.c asserts it. */
	return t->shape == CONF_SCALAR ? 1 :
	    ((const struct conf_words *)value)->count;
}

static const struct unit *
find_unit(const struct unit *units, struct str name)
{
	for (; units->name != NULL; units++)
		if (str_equal(name, str_of(units->name)))
			return units;
	return NULL;
}

static size_t
count_digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* Read a number and a unit, "10ms"; false if it is none or too large. */
static bool
read_with_unit(const char *text, const struct unit *units, uint64_t *value)
{
	size_t n = count_digits(text);
	const struct unit *u = find_unit(units, str_of(text + n));
	uint64_t v;

	if (u == NULL || !str_number(str_make(text, n), &v) ||
	    __builtin_mul_overflow(v, u->worth, &v))
		return false;
	*value = v;
	return true;
}

/* Write in the largest unit that leaves no rest. */
static void
print_with_unit(FILE *out, const struct unit *units, uint64_t v)
{
	const struct unit *best = units;

	for (const struct unit *u = units; u->name != NULL; u++)
		if (v % u->worth == 0)
			best = u;
	fprintf(out, "%llu%s", (unsigned long long)(v / best->worth),
	    best->name);
}

static void
clear_time(void *value)
{
	*(nsec_t *)value = NSEC_NEVER;
}

static void
clear_ref(void *value)
{
	*(int *)value = CONF_NO_REF;
}

static int
compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* --- numbers, sizes, times, rates --------------------------------------- */

static bool
parse_flag(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	bool on = strcmp(text, "on") == 0;

	if (!on && strcmp(text, "off") != 0)
		return type_refuse(r, t, text);
	*(bool *)value = on;
	return true;
}

static void
print_flag(FILE *out, const struct config *c, const void *value, size_t i)
{
	(void)c, (void)i;
	fputs(*(const bool *)value ? "on" : "off", out);
}

static bool
parse_count(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	return str_number(str_of(text), value) || type_refuse(r, t, text);
}

static void
print_count(FILE *out, const struct config *c, const void *value, size_t i)
{
	(void)c, (void)i;
	fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)value);
}

/* "1/100", or "1" for all. */
static bool
parse_sample(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	struct str s = str_of(text);
	uint64_t of = 1;

	if (strcmp(text, "1") != 0 && (!str_starts(s, STR("1/")) ||
	    !str_number(str_skip(s, 2), &of) || of < 1 || of > SAMPLE_MAX))
		return type_refuse(r, t, text);
	*(uint64_t *)value = of;
	return true;
}

static void
print_sample(FILE *out, const struct config *c, const void *value, size_t i)
{
	uint64_t of = *(const uint64_t *)value;

	(void)c, (void)i;
	fputs("1", out);
	if (of > 1)
		fprintf(out, "/%llu", (unsigned long long)of);
}

static bool
parse_bytes(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	return read_with_unit(text, sizes, value) || type_refuse(r, t, text);
}

static void
print_bytes(FILE *out, const struct config *c, const void *value, size_t i)
{
	uint64_t v = *(const uint64_t *)value;

	(void)c, (void)i;
	if (v == 0)
		fputc('0', out);
	else
		print_with_unit(out, sizes, v);
}

static bool
parse_workers(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	uint64_t v = 0;

	if (strcmp(text, "auto") != 0 && (!str_number(str_of(text), &v) ||
	    v == 0))
		return type_refuse(r, t, text);
	*(uint64_t *)value = v;
	return true;
}

static void
print_workers(FILE *out, const struct config *c, const void *value, size_t i)
{
	if (*(const uint64_t *)value == 0)
		fputs("auto", out);
	else
		print_count(out, c, value, i);
}

static bool
parse_time(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	if (strcmp(text, "0") == 0) {
		*(nsec_t *)value = 0;
		return true;
	}
	return read_with_unit(text, times, value) || type_refuse(r, t, text);
}

/* What a listener or an upstream does not set prints nothing. */
static void
print_time(FILE *out, const struct config *c, const void *value, size_t i)
{
	nsec_t v = *(const nsec_t *)value;

	(void)c, (void)i;
	if (v == 0)
		fputc('0', out);
	else if (v != NSEC_NEVER)
		print_with_unit(out, times, v);
}

static bool
parse_rate(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	size_t n = count_digits(text);
	bool has_span = text[n] == '/';
	const struct unit *u = has_span ?
	    find_unit(spans, str_of(text + n + 1)) : spans;
	struct conf_rate v;

	if (u == NULL || !str_number(str_make(text, n), &v.count) ||
	    (!has_span && (text[n] != '\0' || v.count != 0)))
		return type_refuse(r, t, text);
	v.span = u->worth;
	*(struct conf_rate *)value = v;
	return true;
}

static void
print_rate(FILE *out, const struct config *c, const void *value, size_t i)
{
	const struct conf_rate *v = value;
	const struct unit *u = spans;

	(void)c, (void)i;
	if (v->count == 0) {
		fputc('0', out);
		return;
	}
	while (u->worth != v->span)
		u++;
	fprintf(out, "%llu/%s", (unsigned long long)v->count, u->name);
}

static int
compare_rates(const void *a, const void *b)
{
	const struct conf_rate *x = a, *y = b;
	unsigned __int128 left = (unsigned __int128)x->count * y->span;
	unsigned __int128 right = (unsigned __int128)y->count * x->span;

	return left < right ? -1 : left > right;
}

static bool
parse_concurrency(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	struct conf_concurrency v = {
		.adaptive = strcmp(text, "adaptive") == 0,
	};

	if (!v.adaptive && !str_number(str_of(text), &v.count))
		return type_refuse(r, t, text);
	*(struct conf_concurrency *)value = v;
	return true;
}

static void
print_concurrency(FILE *out, const struct config *c, const void *value,
    size_t i)
{
	const struct conf_concurrency *v = value;

	if (v->adaptive)
		fputs("adaptive", out);
	else
		print_count(out, c, &v->count, i);
}

/* --- choices and references --------------------------------------------- */

#define CHOICES(list)		const char *const list##_words[] = {
#define CHOICE(LIST, NAME, word)	word,
#define END_CHOICES(list)	NULL };
#include "base/choices.def"

static bool
parse_choice(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	char hint[NEAREST_HINT];
	struct nearest near;

	nearest_init(&near, text);
	for (unsigned i = 0; t->words[i] != NULL; i++) {
		if (strcmp(t->words[i], text) == 0) {
			/* All enumerations of choices.def are unsigned int. */
			*(unsigned *)value = i;
			return true;
		}
		nearest_add(&near, t->words[i]);
	}
	return type_fail(r, "\"%s\" is no choice%s", text,
	    nearest_hint(&near, hint, sizeof hint));
}

static void
print_ref(FILE *out, const struct config *c, const char *kind, int index)
{
	if (index != CONF_NO_REF)
		fputs(section_name(c, section_find(kind), (size_t)index), out);
}

static void
print_access(FILE *out, const struct config *c, const void *value, size_t i)
{
	(void)i;
	print_ref(out, c, "access", *(const int *)value);
}

static void
print_upstream(FILE *out, const struct config *c, const void *value, size_t i)
{
	(void)i;
	print_ref(out, c, "upstream", *(const int *)value);
}

static void
print_limits(FILE *out, const struct config *c, const void *value, size_t i)
{
	const struct conf_refs *refs = value;

	print_ref(out, c, "limit", (int)refs->at[i]);
}

static void
print_listeners(FILE *out, const struct config *c, const void *value, size_t i)
{
	const struct conf_refs *refs = value;

	print_ref(out, c, "listener", (int)refs->at[i]);
}

/* --- the rows ----------------------------------------------------------- */

const struct conf_type type_FLAG = { .name = "choice of on and off",
    .hint = "on or off", .parse = parse_flag, .print = print_flag };
const struct conf_type type_COUNT = { .name = "number",
    .hint = "a number", .parse = parse_count, .print = print_count,
    .compare = compare_numbers };
const struct conf_type type_BYTES = { .name = "size",
    .hint = "a size: a number, and k, m, g or t",
    .parse = parse_bytes, .print = print_bytes, .compare = compare_numbers };
const struct conf_type type_WORKERS = { .name = "number",
    .hint = "a number from 1, or auto",
    .parse = parse_workers, .print = print_workers,
    .compare = compare_numbers };
const struct conf_type type_TIME = { .name = "time",
    .hint = "a time: a number and ms, s, m, h or d",
    .parse = parse_time, .print = print_time, .clear = clear_time,
    .compare = compare_numbers };
const struct conf_type type_RATE = { .name = "rate",
    .hint = "a rate: a number and /s, /m or /h",
    .parse = parse_rate, .print = print_rate, .compare = compare_rates };
const struct conf_type type_CONCURRENCY = { .name = "number, or adaptive,",
    .hint = "a number, or adaptive",
    .parse = parse_concurrency, .print = print_concurrency,
    .compare = compare_numbers };
const struct conf_type type_SAMPLE = { .name = "share",
    .hint = "1, or a share: 1/ and a number to 1000000",
    .parse = parse_sample, .print = print_sample };

const struct conf_type type_REF_ACCESS = { .name = "name of an access section",
    .print = print_access, .clear = clear_ref, .refers = "access" };
const struct conf_type type_REF_UPSTREAM = { .name = "name of an upstream",
    .print = print_upstream, .clear = clear_ref, .refers = "upstream" };
const struct conf_type type_REF_LIMITS = { .name = "list of names of limits",
    .shape = CONF_WORDS, .print = print_limits, .refers = "limit" };
const struct conf_type type_REF_LISTENERS = {
    .name = "list of names of listeners",
    .shape = CONF_WORDS, .print = print_listeners, .refers = "listener" };

/* The printers of choices differ in their words only. */
#define CHOICE_TYPE(LIST, list)						\
	static_assert(sizeof(enum list) == sizeof(unsigned), "a choice"); \
	static void							\
	print_##list(FILE *out, const struct config *c, const void *v,	\
	    size_t i)							\
	{								\
		(void)c, (void)i;					\
		fputs(list##_words[*(const enum list *)v], out);	\
	}								\
	const struct conf_type type_##LIST = { .name = "choice",	\
	    .hint = "a choice", .parse = parse_choice,			\
	    .print = print_##list, .words = list##_words };

CHOICE_TYPE(MODE, mode)
CHOICE_TYPE(QUEUE_ORDER, queue_order)
CHOICE_TYPE(PRIORITY, priority)
CHOICE_TYPE(TABLE_FULL, table_full)
CHOICE_TYPE(RATE_HEADERS, rate_headers)
CHOICE_TYPE(BALANCE, balance)
CHOICE_TYPE(IF_IT_PAYS, if_it_pays)
CHOICE_TYPE(LOG_FORMAT, log_format)
CHOICE_TYPE(LEVEL, level)
