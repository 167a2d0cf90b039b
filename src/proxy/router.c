/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * router.c - which route takes a request; see router.h.
 *
 * The paths of a host are sorted.  All prefixes of a request's path sort
 * before it, the longest last, so a binary search finds where the path would
 * stand, and from there each entry knows the next shorter one that is a
 * prefix of itself.
 */
#include "proxy/router.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/random.h"
#include "config/config.h"

struct entry {
	struct str		 path;
	const struct route	*route;
	const struct entry	*shorter;	/* its longest proper prefix */
};

/* The routes for one host, one suffix, or any. */
struct host {
	struct map_node		 node;
	struct entry		*entries;
	size_t			 count;
	char			*name;
};

struct router {
	struct map		 exact;		/* by name */
	struct map		 suffixes;	/* by what follows "*." */
	struct host		 any;
};

enum { HOST_TEXT = 256 };

struct router *
router_new(void)
{
	struct router *r = xcalloc(1, sizeof *r);
	uint8_t seed[MAP_SEED];

	random_fill(seed, sizeof seed);
	map_init(&r->exact, seed, 0);
	map_init(&r->suffixes, seed, 0);
	return r;
}

static void
free_hosts(struct map *m)
{
	MAP_FOR_EACH(n, m) {
		struct host *h = container_of(n, struct host, node);

		map_remove(m, n);
		free(h->entries);
		free(h->name);
		free(h);
	}
	map_fini(m);
}

void
router_free(struct router **router)
{
	struct router *r = *router;

	if (r == NULL)
		return;
	*router = NULL;
	free_hosts(&r->exact);
	free_hosts(&r->suffixes);
	free(r->any.entries);
	free(r);
}

/* --- making ------------------------------------------------------------ */

static struct host *
host_in(struct map *m, const char *name)
{
	struct map_node *n = map_find(m, str_of(name));
	struct host *h;

	if (n != NULL)
		return container_of(n, struct host, node);
	h = xcalloc(1, sizeof *h);
	h->name = xstrdup(name);
	map_add(m, &h->node, str_of(h->name));
	return h;
}

static struct host *
host_for(struct router *r, const char *pattern)
{
	if (strcmp(pattern, "*") == 0)
		return &r->any;
	if (strncmp(pattern, "*.", 2) == 0)
		return host_in(&r->suffixes, pattern + 2);
	return host_in(&r->exact, pattern);
}

static void
add_paths(struct host *h, const struct conf_words *paths,
    const struct route *route)
{
	h->entries = xrealloc(h->entries,
	    (h->count + paths->count) * sizeof *h->entries);
	for (size_t i = 0; i < paths->count; i++)
		h->entries[h->count++] = (struct entry){
			.path = str_of(paths->at[i]),
			.route = route,
		};
}

void
router_add(struct router *r, const struct conf_route *conf,
    const struct route *route)
{
	if (conf->host.count == 0)
		add_paths(&r->any, &conf->path, route);
	for (size_t i = 0; i < conf->host.count; i++)
		add_paths(host_for(r, conf->host.at[i]), &conf->path, route);
}

static int
by_path(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return str_compare(x->path, y->path);
}

static void
build_host(struct host *h)
{
	if (h->count > 0)
		qsort(h->entries, h->count, sizeof *h->entries, by_path);
	for (size_t i = 1; i < h->count; i++) {
		const struct entry *e = &h->entries[i - 1];

		while (e != NULL && !str_starts(h->entries[i].path, e->path))
			e = e->shorter;
		h->entries[i].shorter = e;
	}
}

void
router_build(struct router *r)
{
	build_host(&r->any);
	MAP_FOR_EACH(n, &r->exact)
		build_host(container_of(n, struct host, node));
	MAP_FOR_EACH(m, &r->suffixes)
		build_host(container_of(m, struct host, node));
}

/* --- finding ----------------------------------------------------------- */

static const struct route *
find_path(const struct host *h, struct str path)
{
	size_t low = 0, high = h->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (str_compare(h->entries[middle].path, path) <= 0)
			low = middle + 1;
		else
			high = middle;
	}

	const struct entry *e = low > 0 ? &h->entries[low - 1] : NULL;
	while (e != NULL && !str_starts(path, e->path))
		e = e->shorter;
	return e != NULL ? e->route : NULL;
}

static const struct route *
find_in(const struct map *m, struct str name, struct str path)
{
	struct map_node *n = map_find(m, name);

	return n == NULL ? NULL :
	    find_path(container_of(n, struct host, node), path);
}

static const struct route *
find_host(const struct router *r, struct str host, struct str path)
{
	const struct route *route = find_in(&r->exact, host, path);

	while (route == NULL && host.len > 0) {
		host = str_skip(host, str_find(host, '.') + 1);
		route = find_in(&r->suffixes, host, path);
	}
	return route;
}

const struct route *
router_find(const struct router *r, struct str host, struct str path)
{
	const struct route *route = NULL;
	char text[HOST_TEXT];

	if (host.len > 0 && host.len <= sizeof text) {
		for (size_t i = 0; i < host.len; i++)
			text[i] = str_fold(host.at[i]);
		host.at = text;
		if (host.at[host.len - 1] == '.')
			host.len--;
		route = find_host(r, host, path);
	}
	return route != NULL ? route : find_path(&r->any, path);
}
