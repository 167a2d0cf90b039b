/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connecting.c - to a connection that leads there; see connecting.h.
 */
#include "proxy/connecting.h"

#include <errno.h>

#include "net/dial.h"
#include "net/stream.h"
#include "proxy/access.h"
#include "proxy/leaving.h"
#include "proxy/worker.h"
#include "upstream/pool.h"

static resolve_done_fn	on_resolved;
static dial_done_fn	on_dialled;

/* --- both states ------------------------------------------------------- */

/* An exchange whose bytes are not ours to read has a connection of its own. */
static bool
is_opaque(const struct exchange *x)
{
	return x->service->conf->mode == MODE_TCP ||
	    x->request.method == METHOD_CONNECT;
}

static enum exchange_state
connected(struct exchange *x)
{
	x->times.connected = worker_now(x->worker);
	return is_opaque(x) ? XS_TUNNEL : XS_RELAY;
}

/* RFC 9112 section 6.1: whoever speaks HTTP/1.0 knows no chunks. */
static bool
is_too_old(const struct exchange *x)
{
	return x->framing.kind == FRAMING_CHUNKED && x->group != NULL &&
	    pool_group_is_old(x->group, worker_now(x->worker));
}

static HOT bool
take_pooled(struct exchange *x)
{
	if (x->group == NULL || x->fresh_only || is_opaque(x))
		return false;
	x->conn = pool_take(x->worker->pool, x->group);
	if (x->conn == NULL)
		return false;
	x->upstream = conn_stream(x->conn);
	x->upstream_addr = *conn_addr(x->conn);
	x->reused = x->was_reused = true;
	return true;
}

static enum exchange_state
dial_addrs(struct exchange *x, const struct addr_set *set)
{
	struct worker *w = x->worker;

	leaving_waits(x);
	worker_spare_descriptors(w);
	x->dialling = worker_now(w);
	int err = dial_start(&x->dial, w->dials, &(struct dial_opts){
		.to = set->addrs,
		.count = MIN(set->count, DIAL_ADDRS),
		.timeout = x->route->timeouts.connect,
		.done = on_dialled,
		.arg = x,
	});
	return err == 0 ? XS_CONNECT :
	    exchange_failed(x, FAIL_CONNECTION_LIMIT);
}

/* --- RESOLVE ----------------------------------------------------------- */

/*
 * Destinations are kept apart by listener, and by setup: what one may reach
 * another may not, and a pooled connection isn't checked again.
 */
static struct pool_group *
destination_group(struct exchange *x)
{
	const struct conf_listener *conf = x->service->conf;
	char name[320];
	struct out o;

	out_init(&o, name, sizeof name);
	out_put(&o, conf->name_);
	out_char(&o, ' ');
	out_str(&o, x->host.host);
	/* Nobody reads it: these are bytes. */
	out_add(&o, &x->host.port, sizeof x->host.port);
	out_add(&o, &x->service->setup->round,
	    sizeof x->service->setup->round);
	return out_is_full(&o) ? NULL : pool_destination(x->worker->pool,
	    out_text(&o), x->service->pool_max, conf->pool_idle);
}

static enum failure
failure_of_resolve(enum resolve_result r)
{
	return r == RESOLVE_LATE ? FAIL_DNS_TIMEOUT : FAIL_DNS_ERROR;
}

static APART enum exchange_state
resolve_destination(struct exchange *x)
{
	struct worker *w = x->worker;
	/* Only until it is dialled, and that copies. */
	struct addr_set *known = (void *)loop_scratch_out(w->loop);

	if (!is_opaque(x))
		x->group = destination_group(x);
	if (is_too_old(x))
		return exchange_failed(x, FAIL_LENGTH_REQUIRED);
	if (take_pooled(x))
		return connected(x);

	struct resolve_opts opts = {
		.name = x->host.host.at,
		.length = x->host.host.len,
		.port = x->host.port,
		.timeout = x->route->timeouts.resolve,
		.done = on_resolved,
		.arg = x,
	};
	enum resolve_result r = resolve_start(&x->resolve, w->resolver, &opts,
	    known);
	if (r == RESOLVE_WAITS) {
		leaving_waits(x);
		return XS_RESOLVE;
	}
	if (r != RESOLVE_KNOWN)
		return exchange_failed(x, failure_of_resolve(r));
	x->addrs = known;
	return XS_CONNECT;
}

HOT enum exchange_state
connect_enter_resolve(struct exchange *x)
{
	if (x->times.connecting == 0)
		x->times.connecting = worker_now(x->worker);
	return x->route->upstream != NULL ? XS_CONNECT :
	    resolve_destination(x);
}

static void
on_resolved(void *arg, enum resolve_result result, const struct addr_set *set)
{
	struct exchange *x = arg;

	ASSERT(x->state == XS_RESOLVE);
	x->resolve = NULL;		/* it has gone; see resolver.h */
	x->addrs = set;
	if (result == RESOLVE_KNOWN)
		exchange_run(x, XS_CONNECT);
	else
		exchange_fail(x, failure_of_resolve(result));
}

/* --- CONNECT: a destination -------------------------------------------- */

static enum failure
check_addr(const struct exchange *x, const struct addr *a)
{
	enum failure why = access_addr(x->service->access, a, x->listed);

	if (why == FAIL_NONE && access_is_own(&x->service->setup->addrs, a))
		why = FAIL_LOOP_DETECTED;
	return why;
}

/*
 * Only addresses that may be reached are dialled; the others are left out.  A
 * name that leads to ourselves is refused whatever else it leads to.
 */
static APART enum exchange_state
try_destination(struct exchange *x)
{
	struct addr_set checked = { .count = 0 };
	enum failure why = FAIL_DNS_ERROR;

	for (unsigned i = 0; i < x->addrs->count; i++) {
		const struct addr *a = &x->addrs->addrs[i];
		enum failure no = check_addr(x, a);

		if (no == FAIL_LOOP_DETECTED)
			return exchange_failed(x, no);
		if (no == FAIL_NONE)
			checked.addrs[checked.count++] = *a;
		else
			why = no;
	}
	x->addrs = NULL;
	return checked.count == 0 ? exchange_failed(x, why) :
	    dial_addrs(x, &checked);
}

/* --- CONNECT: an upstream's server ------------------------------------- */

/* The next server that was not tried yet. */
static HOT enum exchange_state
try_server(struct exchange *x)
{
	struct server *s = upstream_choose(x->route->upstream, &x->tried);
	struct server_local *local;
	struct addr_set set;

	if (s == NULL)
		return exchange_failed(x, x->last_failure != FAIL_NONE ?
		    x->last_failure : FAIL_NO_SERVER);

	local = server_local(s, x->worker->id);
	stat_increment(&local->stats.in_use);
	stat_increment(&local->stats.requests);
	x->server = s;
	x->group = &local->pool;
	if (is_too_old(x))
		return exchange_failed(x, FAIL_LENGTH_REQUIRED);
	if (take_pooled(x))
		return connected(x);
	server_get_addrs(s, &set);
	return dial_addrs(x, &set);
}

void
connect_release_server(struct exchange *x)
{
	if (x->server == NULL)
		return;
	stat_decrement(&server_local(x->server, x->worker->id)->stats.in_use);
	x->last_server = x->server;
	x->server = NULL;
	x->group = NULL;
}

HOT enum exchange_state
connect_enter(struct exchange *x)
{
	return x->route->upstream != NULL ? try_server(x) :
	    try_destination(x);
}

/* --- how it went ------------------------------------------------------- */

static enum failure
failure_of_dial(int err)
{
	switch (err) {
	case ECONNREFUSED:
	case ENOENT:			/* a unix socket that isn't there */
		return FAIL_CONNECT_REFUSED;
	case ETIMEDOUT:
		return FAIL_CONNECT_TIMEOUT;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return FAIL_CONNECTION_LIMIT;
	default:
		return FAIL_CONNECT_FAILED;
	}
}

/* Nothing of the request has been sent, so any request may go elsewhere. */
static void
try_another(struct exchange *x, enum failure why)
{
	struct worker *w = x->worker;

	if (x->server == NULL) {
		exchange_fail(x, why);
		return;
	}
	stat_increment(&server_local(x->server, w->id)->stats.failures);
	connect_release_server(x);
	x->last_failure = why;
	if (++x->dials >= CONNECT_SERVERS) {
		exchange_fail(x, why);
		return;
	}

	enum exchange_state next = try_server(x);
	if (x->server != NULL) {
		x->retries++;
		stat_increment(&w->stats.retried_connect);
	}
	exchange_run(x, next);
}

static void
on_dialled(void *arg, struct stream *stream, int err, unsigned tried)
{
	struct exchange *x = arg;
	struct worker *w = x->worker;

	(void)tried;
	ASSERT(x->state == XS_CONNECT);
	x->dial = NULL;			/* it has gone; see dial.h */
	if (err != 0) {
		try_another(x, failure_of_dial(err));
		return;
	}
	if (x->server != NULL)
		hist_add(&x->route->upstream->stats[w->id].connect,
		    worker_now(w) - x->dialling);
	x->upstream = stream;
	stream_peer(stream, &x->upstream_addr);
	if (x->group != NULL)
		x->conn = conn_new(w->pool, x->group, stream,
		    &x->upstream_addr);
	exchange_run(x, connected(x));
}
