/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolver_dns.h - questions to DNS servers; the resolver's part on c-ares.
 *
 * One channel, with its sockets and its time on the loop.  A question can't
 * be taken back: it ends within some seconds by itself.
 *
 * Names here begin with dns_.
 *
 * Owner:    dns_open() gives a handle.  A question is embedded in whatever
 *           it is about, which must outlive `fn` or dns_close().
 * Threads:  the loop's.
 * Promise:  `fn` runs once, perhaps before dns_ask() has returned; it may
 *           neither ask nor close.  It doesn't run after dns_close() began.
 */
#ifndef PENSTOCK_NET_RESOLVER_DNS_H
#define PENSTOCK_NET_RESOLVER_DNS_H

#include "net/resolver.h"

struct dns;
struct dns_question;

/* About what c-ares keeps for a question: name, packet, answer as it comes. */
enum { DNS_QUESTION = 4096 };

typedef void dns_fn(struct dns_question *q);

/* For the addresses of one family. */
struct dns_question {
	struct dns		*dns;
	dns_fn			*fn;
	enum resolve_result	 result;	/* WAITS: not answered */
	bool			 no_name;	/* for any family */
	unsigned		 ttl;		/* seconds, of all there is */
	struct addr_set		 set;
};

/* `servers` as in resolver_opts.  0 and *out, or -errno. */
int dns_open(struct dns **out, struct loop *loop, const char *servers)
    MUST_USE;
void dns_close(struct dns **dns);

/* Ask for name, `family` AF_INET or AF_INET6. */
void dns_ask(struct dns *dns, struct dns_question *q, const char *name,
    int family, dns_fn *fn);

/* Once in the process, before and after all else; 0 or -errno. */
int dns_global_init(void) MUST_USE;
void dns_global_fini(void);

#endif
