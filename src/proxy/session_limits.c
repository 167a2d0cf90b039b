/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_limits.c - what a session counts in; see session_limits.h.
 */
#include "proxy/session_limits.h"

#include <stdlib.h>

#include "proxy/session.h"
#include "proxy/worker.h"

static void
set_up(struct limit_pass *p, const struct session *s, struct limit *l)
{
	const struct limits *registry = s->door->worker->shared->limits;
	const struct limit_spec *spec = limit_spec(l);
	uint64_t key = !limit_is_keyed(spec) ? 0 :
	    limit_key_of_addr(registry, &spec->key, &s->client);

	limit_pass_init(p, l, key, NULL);
}

enum failure
session_limits_enter(struct session *s, const struct limit **refused_by)
{
	const struct service *service = s->door->service;
	unsigned n = service->session_limit_count, i;
	enum failure why = FAIL_NONE;

	if (n == 0)
		return FAIL_NONE;
	s->passes = calloc(n, sizeof *s->passes);
	if (s->passes == NULL)
		return FAIL_MEMORY;
	for (i = 0; i < n; i++) {
		set_up(&s->passes[i], s, service->session_limits[i]);
		why = limit_session_begin(&s->passes[i]);
		if (why != FAIL_NONE)
			break;
	}
	if (why == FAIL_NONE)
		return FAIL_NONE;
	*refused_by = s->passes[i].limit;
	while (i-- > 0)
		limit_session_end(&s->passes[i]);
	free(s->passes);
	s->passes = NULL;
	return why;
}

void
session_limits_leave(struct session *s)
{
	if (s->passes == NULL)
		return;
	for (unsigned i = 0; i < s->door->service->session_limit_count; i++)
		limit_session_end(&s->passes[i]);
	free(s->passes);
	s->passes = NULL;
}

/* Its pass of that limit, or NULL. */
static struct limit_pass *
find(const struct session *s, const struct limit *l)
{
	unsigned n = s->passes == NULL ? 0 :
	    s->door->service->session_limit_count;

	for (unsigned i = 0; i < n; i++)
		if (s->passes[i].limit == l)
			return &s->passes[i];
	return NULL;
}

bool
session_limits_move(struct session *s, const struct service *to)
{
	unsigned n = to->session_limit_count;
	struct limit_pass *passes = NULL;

	if (n != 0) {
		passes = calloc(n, sizeof *passes);
		if (passes == NULL)
			return false;
	}
	for (unsigned i = 0; i < n; i++) {
		struct limit_pass *was = find(s, to->session_limits[i]);

		set_up(&passes[i], s, to->session_limits[i]);
		if (was != NULL)
			limit_session_move(&passes[i], was);
		else
			limit_session_count(&passes[i]);
	}
	session_limits_leave(s);
	s->passes = passes;
	return true;
}
