/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.c - connections to servers; see pool.h.
 *
 * A connection is one object from dial to close, so that taking and giving
 * back only moves it between lists.  Its timer is never taken off the wheel
 * for that: going busy stores "never", going idle a new time.
 */
#include "upstream/pool.h"

#include <stdlib.h>

#include "base/random.h"
#include "base/slab.h"
#include "net/stream.h"

/* A listener's name, one of 253 bytes, brackets, a port, and a number. */
enum { DESTINATION_NAME = 320 };

struct conn {
	struct list		 in_group;	/* idle: in its group */
	struct list		 by_age;	/* idle: oldest first */
	struct pool		*pool;
	struct pool_group	*group;
	struct stream		*stream;	/* NULL: detached */
	struct addr		 to;
	struct wheel_timer	 expiry;
	nsec_t			 idle_since;
	bool			 idle;
};

/* A group that is the pool's own. */
struct destination {
	struct pool_group	 group;
	struct map_node		 node;
	unsigned		 held;		/* by pool_destination() */
	char			 name[DESTINATION_NAME];
};

struct pool {
	struct loop		*loop;
	struct worker_stats	*stats;
	struct list		 by_age;
	struct slab		 conns;
	struct slab		 groups;
	struct map		 destinations;
	struct destination	*last;		/* found or made; NULL: none */
};

static wheel_fn		on_expiry;
static stream_read_fn	on_idle_event;

struct pool *
pool_new(struct loop *loop, size_t max, struct worker_stats *stats)
{
	struct pool *p = xcalloc(1, sizeof *p);
	uint8_t seed[MAP_SEED];

	p->loop = loop;
	p->stats = stats;
	list_init(&p->by_age);
	SLAB_INIT(&p->conns, struct conn, max);
	SLAB_INIT(&p->groups, struct destination, POOL_GROUPS);
	random_fill(seed, sizeof seed);
	map_init(&p->destinations, seed, POOL_GROUPS);
	return p;
}

uint64_t
pool_memory(uint64_t max)
{
	return sizeof(struct pool) + slab_memory(sizeof(struct conn), max) +
	    slab_memory(sizeof(struct destination), POOL_GROUPS) +
	    map_memory(POOL_GROUPS);
}

void
pool_free(struct pool **pool)
{
	struct pool *p = *pool;

	if (p == NULL)
		return;
	*pool = NULL;
	pool_clear(p);
	map_fini(&p->destinations);
	slab_fini(&p->groups);
	slab_fini(&p->conns);
	free(p);
}

/* --- groups ------------------------------------------------------------ */

void
pool_group_init(struct pool_group *g, unsigned max, nsec_t keep,
    struct upstream_stats *stats)
{
	*g = (struct pool_group){ .max = max, .keep = keep, .stats = stats };
	list_init(&g->idle);
}

bool
pool_group_is_empty(const struct pool_group *g)
{
	return g->idle_count == 0 && g->busy_count == 0;
}

/* Many ask for the destination that was asked for just before. */
static struct destination *
find_destination(const struct pool *p, struct str name)
{
	if (p->last != NULL && str_equal(p->last->node.key, name))
		return p->last;

	struct map_node *n = map_find(&p->destinations, name);

	return n == NULL ? NULL : container_of(n, struct destination, node);
}

struct pool_group *
pool_destination(struct pool *p, struct str name, unsigned max, nsec_t keep)
{
	struct destination *d = find_destination(p, name);

	if (d != NULL) {
		d->held++;
		p->last = d;
		return &d->group;
	}
	if (name.len > sizeof d->name)
		return NULL;
	d = slab_take(&p->groups);
	if (d == NULL)
		return NULL;
	pool_group_init(&d->group, max, keep, NULL);
	d->group.is_destination = true;
	d->held = 1;
	memcpy(d->name, name.at, name.len);
	map_add(&p->destinations, &d->node, str_make(d->name, name.len));
	p->last = d;
	return &d->group;
}

/* Free a destination that nothing is left of. */
static HOT void
settle(struct pool *p, struct pool_group *g)
{
	if (!g->is_destination)
		return;

	struct destination *d = container_of(g, struct destination, group);
	if (d->held != 0 || g->idle_count != 0 || g->busy_count != 0)
		return;
	map_remove(&p->destinations, &d->node);
	if (p->last == d)
		p->last = NULL;
	slab_give(&p->groups, d);
}

void
pool_group_done(struct pool *p, struct pool_group **group)
{
	struct pool_group *g = *group;

	if (g == NULL)
		return;
	*group = NULL;
	if (g->is_destination) {
		container_of(g, struct destination, group)->held--;
		settle(p, g);
	}
}

/* --- a connection's states --------------------------------------------- */

/* n more idle ones, or less: of an upstream, or of destinations. */
static void
count_idle(struct conn *c, int n)
{
	struct pool_group *g = c->group;

	g->idle_count += (unsigned)n;
	stat_add(g->stats != NULL ? &g->stats->pool_idle :
	    &c->pool->stats->destination_idle, (uint64_t)n);
}

static void
count_busy(struct conn *c, int n)
{
	struct pool_group *g = c->group;

	g->busy_count += (unsigned)n;
	stat_add(g->stats != NULL ? &g->stats->pool_busy :
	    &c->pool->stats->destination_busy, (uint64_t)n);
}

static HOT void
enter_busy(struct conn *c)
{
	if (c->idle) {
		list_remove(&c->in_group);
		list_remove(&c->by_age);
		wheel_disarm(&c->expiry);
		count_idle(c, -1);
	}
	c->idle = false;
	count_busy(c, 1);
}

static void
enter_idle(struct conn *c, nsec_t keep)
{
	c->idle = true;
	count_busy(c, -1);
	count_idle(c, 1);
	c->idle_since = loop_now(c->pool->loop);
	list_add_first(&c->group->idle, &c->in_group);
	list_add_last(&c->pool->by_age, &c->by_age);
	stream_set_reader(c->stream, on_idle_event, c);
	loop_arm(c->pool->loop, &c->expiry, keep);
}

/* Close c, whichever it is, and free it. */
static APART void
leave(struct conn *c)
{
	struct pool_group *g = c->group;
	struct pool *p = c->pool;

	if (c->idle)
		enter_busy(c);
	count_busy(c, -1);
	loop_cancel(p->loop, &c->expiry);
	stream_close(&c->stream);
	slab_give(&p->conns, c);
	settle(p, g);
}

struct conn *
conn_new(struct pool *p, struct pool_group *g, struct stream *s,
    const struct addr *to)
{
	struct conn *c = slab_take(&p->conns);

	if (c == NULL)
		return NULL;
	*c = (struct conn){ .pool = p, .group = g, .stream = s,
	    .to = *to };
	list_init(&c->in_group);
	list_init(&c->by_age);
	wheel_timer_init(&c->expiry, on_expiry);
	enter_busy(c);
	stat_increment(&p->stats->pool_dialled);
	return c;
}

/*
 * What has come on it belongs to no request, and must not be taken for the
 * answer to the next one.  One that was given back in this turn has not been
 * polled since: more than the answer may lie in it, behind a read that had no
 * room for more.
 */
static bool
is_usable(const struct conn *c)
{
	nsec_t idle = loop_now(c->pool->loop) - c->idle_since;
	bool known = idle > 0 ? idle <= POOL_TRUSTED :
	    stream_took_all(c->stream);

	return known ? stream_seems_quiet(c->stream) :
	    stream_is_quiet(c->stream);
}

struct conn *
pool_take(struct pool *p, struct pool_group *g)
{
	while (!list_is_empty(&g->idle)) {
		struct conn *c = container_of(g->idle.next, struct conn,
		    in_group);

		if (is_usable(c)) {
			stream_set_reader(c->stream, NULL, NULL);
			enter_busy(c);
			stat_increment(&p->stats->pool_reused);
			return c;
		}
		on_idle_event(c);
	}
	return NULL;
}

bool
pool_group_is_old(const struct pool_group *g, nsec_t now)
{
	return now < g->old_until;
}

void
pool_group_spoke(struct pool_group *g, unsigned minor, nsec_t now)
{
	g->old_until = minor == 0 ? now + POOL_OLD : 0;
}

/* The end of the group's list. */
static void
leave_coldest(struct pool_group *g)
{
	struct conn *c = container_of(g->idle.prev, struct conn, in_group);

	stat_increment(&c->pool->stats->pool_expired);
	leave(c);
}

void
conn_give(struct conn **conn, nsec_t keep)
{
	struct conn *c = *conn;
	struct pool_group *g = c->group;

	*conn = NULL;
	ASSERT(!c->idle && c->stream != NULL);
	ASSERT(stream_queued(c->stream) == 0);

	keep = MIN(keep, g->keep);
	if (g->max == 0 || keep == 0) {
		leave(c);
		return;
	}
	if (g->idle_count >= g->max)
		leave_coldest(g);
	enter_idle(c, keep);
}

void
pool_group_set(struct pool_group *g, unsigned max, nsec_t keep)
{
	g->max = max;
	g->keep = keep;
	while (g->idle_count > max)
		leave_coldest(g);
}

void
conn_close(struct conn **conn)
{
	struct conn *c = *conn;

	if (c == NULL)
		return;
	*conn = NULL;
	leave(c);
}

struct stream *
conn_detach(struct conn *c)
{
	struct stream *s = c->stream;

	ASSERT(!c->idle);
	c->stream = NULL;
	return s;
}

struct stream *
conn_stream(const struct conn *c)
{
	return c->stream;
}

const struct addr *
conn_addr(const struct conn *c)
{
	return &c->to;
}

/* --- idle ones that end ------------------------------------------------ */

static void
on_expiry(struct wheel_timer *t)
{
	struct conn *c = container_of(t, struct conn, expiry);

	ASSERT(c->idle);
	stat_increment(&c->pool->stats->pool_expired);
	leave(c);
}

/* Whatever happens on an idle connection makes it useless. */
static APART void
on_idle_event(void *arg)
{
	struct conn *c = arg;
	uint8_t byte;

	if (stream_recv(c->stream, &byte, 1) > 0)
		stat_increment(&c->pool->stats->stale_bytes);
	else
		stat_increment(&c->pool->stats->stale_closed);
	leave(c);
}

bool
pool_evict(struct pool *p)
{
	if (list_is_empty(&p->by_age))
		return false;
	stat_increment(&p->stats->pool_expired);
	leave(container_of(p->by_age.next, struct conn, by_age));
	return true;
}

void
pool_clear(struct pool *p)
{
	while (pool_evict(p))
		;
}
