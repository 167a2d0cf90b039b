/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.c - what is known about names; see names.h.
 */
#include "net/names.h"

#include <string.h>

#include "base/addr.h"
#include "base/random.h"

#define TTL_MIN		UINT64_C(1)
#define TTL_MAX		UINT64_C(3600)
#define TTL_NONE	(5 * NSEC_PER_SEC)
#define TTL_FAILED	(1 * NSEC_PER_SEC)
#define GOOD_AFTER	(3600 * NSEC_PER_SEC)

static bool		ends_in_number(const char *name, size_t n);
static bool		all_digits(const char *s, size_t n);
static struct name	*make_room(struct names *t);

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_hex_digit(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool
is_name_byte(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

bool
resolver_is_name(const char *name, size_t n)
{
	size_t label = 0;

	if (n > 0 && name[n - 1] == '.')
		n--;
	if (n == 0 || n > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (name[i] == '.' && label == 0)
			return false;
		if (name[i] != '.' && !is_name_byte(name[i]))
			return false;
		label = name[i] == '.' ? 0 : label + 1;
		if (label > 63)
			return false;
	}
	return label > 0 && !ends_in_number(name, n);
}

/*
 * Some would read 2130706433, 127.1 or 0x7f.1 as an address (inet_aton), and
 * no top-level domain looks like that.
 */
static bool
ends_in_number(const char *name, size_t n)
{
	size_t at = n;

	while (at > 0 && name[at - 1] != '.')
		at--;
	name += at;
	n -= at;
	if (n < 2 || name[0] != '0' || (name[1] != 'x' && name[1] != 'X'))
		return all_digits(name, n);
	for (size_t i = 2; i < n; i++) {
		if (!is_hex_digit(name[i]))
			return false;
	}
	return true;
}

static bool
all_digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(s[i]))
			return false;
	}
	return true;
}

size_t
name_key(char *key, const char *name, size_t n)
{
	if (!resolver_is_name(name, n))
		return 0;
	if (name[n - 1] == '.')
		n--;
	for (size_t i = 0; i < n; i++) {
		bool upper = name[i] >= 'A' && name[i] <= 'Z';

		key[i] = (char)(upper ? name[i] - 'A' + 'a' : name[i]);
	}
	key[n] = '\0';
	return n;
}

bool
addr_set_add(struct addr_set *set, const struct addr *a)
{
	for (unsigned i = 0; i < set->count; i++) {
		if (addr_equal(&set->addrs[i], a))
			return true;
	}
	if (set->count == RESOLVER_ADDRS)
		return false;
	set->addrs[set->count++] = *a;
	return true;
}

void
names_init(struct names *t, size_t max)
{
	uint8_t seed[MAP_SEED];

	random_fill(seed, sizeof seed);
	map_init(&t->map, seed, max);
	list_init(&t->recent);
	SLAB_INIT(&t->slab, struct name, max);
}

uint64_t
names_memory(size_t max)
{
	return slab_memory(sizeof(struct name), max) + map_memory(max);
}

void
names_fini(struct names *t)
{
	MAP_FOR_EACH(node, &t->map) {
		struct name *name = container_of(node, struct name, node);

		map_remove(&t->map, node);
		list_remove(&name->recent);
		slab_give(&t->slab, name);
	}
	map_fini(&t->map);
	slab_fini(&t->slab);
}

struct name *
names_find(const struct names *t, const char *key, size_t n)
{
	struct map_node *node = map_find(&t->map, str_make(key, n));

	return node == NULL ? NULL : container_of(node, struct name, node);
}

struct name *
names_add(struct names *t, const char *key, size_t n)
{
	struct name *name;

	ASSERT(n >= 1 && n <= NAME_MAX_BYTES);
	name = slab_take(&t->slab);
	if (name == NULL)
		name = make_room(t);
	if (name == NULL)
		return NULL;

	name->flight = NULL;
	name->until = name->good_until = 0;
	name->good.count = 0;
	name->last = RESOLVE_FAILED;
	memcpy(name->text, key, n);
	name->text[n] = '\0';
	list_init(&name->recent);
	map_add(&t->map, &name->node, str_make(name->text, n));
	return name;
}

/* The name that nobody wanted for longest, taken out. */
static struct name *
make_room(struct names *t)
{
	struct list *l = list_pop_first(&t->recent);
	struct name *name;

	if (l == NULL)
		return NULL;
	name = container_of(l, struct name, recent);
	ASSERT(name->flight == NULL);
	map_remove(&t->map, &name->node);
	return name;
}

void
names_pin(struct name *name)
{
	list_remove(&name->recent);
}

void
names_unpin(struct names *t, struct name *name)
{
	list_remove(&name->recent);
	list_add_last(&t->recent, &name->recent);
}

void
name_set_known(struct name *name, const struct addr_set *set, unsigned ttl,
    nsec_t now)
{
	uint64_t seconds = MIN(MAX(ttl, TTL_MIN), TTL_MAX);

	ASSERT(set->count > 0);
	name->last = RESOLVE_KNOWN;
	name->good = *set;
	name->until = now + seconds * NSEC_PER_SEC;
	name->good_until = name->until + GOOD_AFTER;
}

void
name_set_none(struct name *name, nsec_t now)
{
	name->last = RESOLVE_NONE;
	name->until = now + TTL_NONE;
	name->good_until = 0;
}

void
name_set_failed(struct name *name, nsec_t now)
{
	name->last = RESOLVE_FAILED;
	name->until = now + TTL_FAILED;
}

void
name_set_late(struct name *name, nsec_t now)
{
	name->last = RESOLVE_LATE;
	name->until = now + TTL_FAILED;
}

bool
name_is_failing(const struct name *name)
{
	return name->last == RESOLVE_FAILED || name->last == RESOLVE_LATE;
}

enum resolve_result
name_answer(const struct name *name, nsec_t now, struct addr_set *out)
{
	if (now >= name->until)
		return RESOLVE_WAITS;
	return name_verdict(name, now, out);
}

enum resolve_result
name_verdict(const struct name *name, nsec_t now, struct addr_set *out)
{
	if (name->last == RESOLVE_NONE)
		return RESOLVE_NONE;
	if (name->last == RESOLVE_KNOWN) {
		*out = name->good;
		return RESOLVE_KNOWN;
	}
	return name_last_good(name, now, out) ? RESOLVE_KNOWN : name->last;
}

bool
name_last_good(const struct name *name, nsec_t now, struct addr_set *out)
{
	if (now >= name->good_until)
		return false;
	*out = name->good;
	return true;
}
