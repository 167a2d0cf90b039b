/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leaving.c - clients that go while they wait; see leaving.h.
 */
#include "proxy/leaving.h"

#include "base/block.h"
#include "net/stream.h"
#include "proxy/throttling.h"
#include "proxy/worker.h"

/* What a client sends in one go may arrive so far apart. */
#define WITH_REQUEST	(100 * NSEC_PER_MSEC)

static hangup_fn	on_hangup;

void
leaving_mind(struct exchange *x, struct stream *client)
{
	if (x->minds || x->state == XS_OVER)
		return;
	x->minds = true;
	x->hangup.fn = on_hangup;
	stream_mind(client, &x->hangup);
}

/* A tunnel has closed the stream that it took. */
void
leaving_stop(struct exchange *x)
{
	struct stream *client = x->client->stream(x->session);

	if (x->minds && client != NULL)
		stream_mind_no_more(client);
	x->minds = false;
}

/* --- a FIN -------------------------------------------------------------- */

static bool
is_before_relay(const struct exchange *x)
{
	return x->state == XS_ADMIT || x->state == XS_RESOLVE ||
	    x->state == XS_CONNECT;
}

static bool
needs_body(const struct exchange *x)
{
	if (x->framing.kind != FRAMING_LENGTH || x->body.left == 0)
		return false;
	return is_before_relay(x) || (x->state == XS_RELAY &&
	    flow_is_running(&x->up) && !x->up.source_over);
}

/* All there will be is here, read or not, and is less than was announced. */
static bool
is_cut_short(const struct exchange *x, const struct stream *client)
{
	const struct block *b = *x->client->input(x->session);
	uint64_t here = b != NULL ? b->end - b->start : 0;
	size_t unread;

	if (!needs_body(x) || !stream_unread(client, &unread))
		return false;
	return here + unread < x->body.left;
}

/*
 * It came that long after the request.  With it, it says that the client has
 * no more to ask; later, while that waits, that it has gone.
 */
static bool
is_farewell(const struct exchange *x, nsec_t after)
{
	return after > WITH_REQUEST && is_before_relay(x);
}

void
leaving_on_end(struct exchange *x)
{
	struct stream *client = x->client->stream(x->session);

	x->half_closed = true;
	if (is_farewell(x, worker_now(x->worker) - x->times.asked) ||
	    is_cut_short(x, client))
		exchange_fail(x, FAIL_CLIENT_CLOSED);
	else
		leaving_mind(x, client);
}

/* With bytes in front, that came with the request or after. */
static bool
has_left(const struct exchange *x, const struct stream *client)
{
	nsec_t since = worker_now(x->worker) - x->times.asked;

	if (x->half_closed)
		return false;
	return is_farewell(x, MIN(since, stream_silence(client))) ||
	    is_cut_short(x, client);
}

/* --- both --------------------------------------------------------------- */

static void
on_hangup(struct hangup *h)
{
	struct exchange *x = container_of(h, struct exchange, hangup);
	bool tunnel = x->state == XS_TUNNEL;
	struct stream *client = tunnel ? x->tunnel.client :
	    x->client->stream(x->session);

	/* What it sent before goes on first, if nothing holds that up. */
	if (tunnel && throttling_of(x, LIMIT_IN) == NULL)
		return;
	if (stream_is_broken(client))
		exchange_on_client_lost(x);
	else if (has_left(x, client))
		exchange_fail(x, FAIL_CLIENT_CLOSED);
}
