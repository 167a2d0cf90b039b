/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolver_fixture.h - a resolver, its loop and its server, for tests.
 */
#ifndef PENSTOCK_TESTS_NET_RESOLVER_FIXTURE_H
#define PENSTOCK_TESTS_NET_RESOLVER_FIXTURE_H

#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "harness.h"
#include "net/dns_server.h"
#include "net/resolver.h"

/* Long enough never to matter, and short enough to wait for. */
#define LONG	(20 * NSEC_PER_SEC)
#define SHORT	(30 * NSEC_PER_MSEC)

/* One call of resolve_start() and what came of it. */
struct question {
	struct resolve		*handle;
	enum resolve_result	 result;
	struct addr_set		 set;
	unsigned		 calls;
	void			(*then)(struct question *q);
};

static struct dns_server	*server;
static struct loop		*loop;
static struct resolver		*resolver;
static struct resolver_stats	 stats;
static unsigned			 pending;

static inline void
open_resolver(const char *servers, const struct hosts *hosts)
{
	struct resolver_opts o = {
		.servers = servers,
		.hosts = hosts,
		.stats = &stats,
	};

	resolver_free(&resolver);
	ck_assert_int_eq(resolver_new(&resolver, loop, &o), 0);
}

static inline void
a_resolver(void)
{
	setenv("LOCALDOMAIN", "search.example", 1);
	setenv("RES_OPTIONS", "ndots:5", 1);
	ck_assert_int_eq(resolver_global_init(), 0);
	server = dns_server_start();
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	stats = (struct resolver_stats){ 0 };
	pending = 0;
	open_resolver(server->where, NULL);
}

static inline void
no_resolver(void)
{
	resolver_free(&resolver);
	loop_free(&loop);
	dns_server_stop(&server);
	resolver_global_fini();
}

static inline void
on_done(void *arg, enum resolve_result result, const struct addr_set *set)
{
	struct question *q = arg;

	ck_assert_int_eq(set != NULL, result == RESOLVE_KNOWN);
	q->handle = NULL;
	q->result = result;
	q->calls++;
	if (set != NULL)
		q->set = *set;
	if (--pending == 0)
		loop_stop(loop);
	if (q->then != NULL)
		q->then(q);
}

static inline enum resolve_result
start(struct question *q, const char *name, nsec_t timeout)
{
	struct resolve_opts o = {
		.name = name,
		.length = strlen(name),
		.port = 8080,
		.timeout = timeout,
		.done = on_done,
		.arg = q,
	};

	q->calls = 0;
	q->result = resolve_start(&q->handle, resolver, &o, &q->set);
	ck_assert_int_eq(q->handle != NULL, q->result == RESOLVE_WAITS);
	ck_assert_uint_eq(q->calls, 0);
	pending += q->result == RESOLVE_WAITS;
	return q->result;
}

static inline void
run(void)
{
	if (pending > 0)
		loop_run(loop);
	ck_assert_uint_eq(pending, 0);
}

/* Ask and wait. */
static inline enum resolve_result
look_up(struct question *q, const char *name, nsec_t timeout)
{
	*q = (struct question){ 0 };
	if (start(q, name, timeout) == RESOLVE_WAITS) {
		run();
		ck_assert_uint_eq(q->calls, 1);
	}
	return q->result;
}

/* "127.0.0.2:8080 ..." */
static inline const char *
text_of(const struct addr_set *set)
{
	static char text[RESOLVER_ADDRS * ADDR_TEXT];
	char one[ADDR_TEXT];
	size_t n = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < set->count; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s",
		    i > 0 ? " " : "", addr_print(&set->addrs[i], one,
		    sizeof one));
	return text;
}

static inline void
on_over(struct wheel_timer *t)
{
	(void)t;
	loop_stop(loop);
}

static inline void
run_for(nsec_t span)
{
	struct wheel_timer t;

	wheel_timer_init(&t, on_over);
	loop_arm(loop, &t, span);
	loop_run(loop);
	loop_cancel(loop, &t);
}

static inline void
on_wake(struct watch *w, unsigned ready)
{
	(void)w;
	(void)ready;
	loop_stop(loop);
}

/* Wait until the server has sent n answers, and let the loop read them. */
static inline void
take_answers(unsigned n)
{
	struct watch_kind kind = WATCH_KIND(loop, on_wake);
	struct watch w;
	int fd = eventfd(1, EFD_CLOEXEC);

	while (atomic_load(&server->sent) < n)
		sched_yield();
	watch_init(&w, &kind, fd);
	watch_want(&w, WATCH_READ);
	loop_run(loop);
	watch_stop(&w);
	close(fd);
}

/* Let an answer of TTL 0, which is taken for a second, expire. */
static inline void
let_a_second_pass(void)
{
	run_for(NSEC_PER_SEC + 50 * NSEC_PER_MSEC);
}

#endif
