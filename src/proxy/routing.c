/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * routing.c - where does a request go; see routing.h.
 */
#include "proxy/routing.h"

#include "http/rewrite.h"
#include "proxy/access.h"
#include "proxy/router.h"
#include "proxy/worker.h"

/* What a gateway says to a CONNECT; whoever is last to TRACE and OPTIONS. */
static const char allowed_methods[] =
    "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";

/* --- both kinds of proxy ----------------------------------------------- */

/*
 * RFC 9110 section 10.1.1: only 100-continue is known.  Whatever it is, a
 * client that expects something may keep its body back when it is refused, so
 * that nobody knows what comes next.
 */
static enum failure
read_expect(struct exchange *x)
{
	const struct field *f = head_first(&x->request, FIELD_EXPECT);

	if (f == NULL || x->request.minor == 0)
		return FAIL_NONE;
	x->expects = x->framing.kind == FRAMING_CHUNKED ||
	    (x->framing.kind == FRAMING_LENGTH && x->framing.length > 0);
	if (head_next(&x->request, f) != NULL ||
	    !str_equal_nocase(field_value(&x->request, f),
	    STR("100-continue")))
		return FAIL_EXPECTATION_FAILED;
	return FAIL_NONE;
}

static enum failure
read_framing(struct exchange *x)
{
	uint64_t most = x->service->conf->body_size;
	enum failure why = framing_of_request(&x->request, &x->framing);

	if (why != FAIL_NONE) {
		x->framing_bad = true;
		return why;
	}
	body_init(&x->body, &x->framing);
	why = read_expect(x);
	if (why == FAIL_NONE && x->framing.kind == FRAMING_LENGTH &&
	    most != 0 && x->framing.length > most)
		why = FAIL_BODY_TOO_LARGE;
	return why;
}

static enum failure
read_request(struct exchange *x)
{
	enum failure why = read_framing(x);

	if (why != FAIL_NONE)
		return why;
	why = target_parse(&x->request, &x->target);
	if (why != FAIL_NONE)
		return why;
	if (via_has(&x->request, x->worker->shared->name))
		return FAIL_LOOP_DETECTED;
	x->upgrades = x->request.upgrade &&
	    x->request.method != METHOD_CONNECT;
	scan_init(&x->scan, SCAN_RESPONSE);
	return FAIL_NONE;
}

/* --- forward ----------------------------------------------------------- */

static enum failure
read_destination(struct exchange *x)
{
	bool connect = x->request.method == METHOD_CONNECT;

	if (x->target.form != (connect ? TARGET_AUTHORITY : TARGET_ABSOLUTE))
		return FAIL_BAD_REQUEST;
	x->host = x->target.authority;
	if (x->host.port == 0 && !connect)
		x->host.port = 80;
	return x->host.port != 0 ? FAIL_NONE : FAIL_BAD_REQUEST;
}

static enum failure
route_forward(struct exchange *x)
{
	const struct access *access = x->service->access;
	enum failure why;

	if (!access_client(access, x->from))
		return FAIL_DENIED;
	why = read_destination(x);
	if (why != FAIL_NONE)
		return why;
	if (x->request.method == METHOD_CONNECT &&
	    !access_connect_port(access, x->host.port))
		return FAIL_DESTINATION_DENIED;

	switch (access_name(access, x->host.host, x->host.port)) {
	case ACCESS_DENIED:
		return FAIL_DESTINATION_DENIED;
	case ACCESS_LISTED:
		x->listed = true;
		break;
	case ACCESS_UNLISTED:
		break;
	}
	x->keep_most = x->service->conf->retry_body;
	return FAIL_NONE;
}

/* --- gateway ----------------------------------------------------------- */

static enum failure
read_host(struct exchange *x)
{
	if (x->target.form == TARGET_ABSOLUTE) {
		x->host = x->target.authority;
		return FAIL_NONE;
	}
	/* HTTP/1.0 may have none: whatever takes any host takes it. */
	if (x->request.minor == 0 &&
	    head_first(&x->request, FIELD_HOST) == NULL)
		return FAIL_NONE;
	return host_parse(&x->request, &x->host);
}

static enum failure
route_gateway(struct exchange *x)
{
	const struct service *s = x->service;
	const struct route *route = NULL;
	enum failure why;

	if (x->request.method == METHOD_CONNECT) {
		x->allow = allowed_methods;
		return FAIL_METHOD_NOT_ALLOWED;
	}
	why = read_host(x);
	if (why != FAIL_NONE)
		return why;
	if (s->router != NULL)
		route = router_find(s->router, x->host.host,
		    x->target.slash ? STR("/") : x->target.path);
	if (route != NULL)
		x->route = route;
	if (x->route->upstream == NULL)
		return FAIL_NO_ROUTE;
	x->keep_most = x->route->upstream->retry_body;
	return FAIL_NONE;
}

bool
routing_is_trusted(const struct exchange *x)
{
	return access_ranges_have(&x->service->conf->trusted, x->from);
}

/* --- the state --------------------------------------------------------- */

static enum failure
route(struct exchange *x)
{
	enum failure why = read_request(x);

	if (why != FAIL_NONE)
		return why;
	return x->service->conf->mode == MODE_FORWARD ? route_forward(x) :
	    route_gateway(x);
}

/* TRACE and OPTIONS say how far they want to go: RFC 9110 section 7.6.2. */
static bool
ends_here(const struct exchange *x)
{
	enum method m = x->request.method;

	return (m == METHOD_OPTIONS || m == METHOD_TRACE) &&
	    max_forwards(&x->request) == 0;
}

HOT enum exchange_state
routing_enter(struct exchange *x)
{
	enum failure why = FAIL_NONE;

	if (x->has_head)
		why = route(x);
	if (x->route->timeouts.total != 0)
		x->total_due = x->times.began + x->route->timeouts.total;
	if (why != FAIL_NONE)
		return exchange_failed(x, why);
	if (x->has_head && ends_here(x)) {
		x->allow = allowed_methods;
		if (x->request.method == METHOD_OPTIONS)
			return XS_REPLY;
		return exchange_failed(x, FAIL_METHOD_NOT_ALLOWED);
	}
	x->keeps = x->has_head && x->keep_most > 0 &&
	    method_is_idempotent(x->request.method);
	return XS_ADMIT;
}
