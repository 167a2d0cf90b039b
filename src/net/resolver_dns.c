/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolver_dns.c - questions to DNS servers; see resolver_dns.h.
 *
 * c-ares looks at its timeouts whenever it is called.  A steady tick while
 * there are questions costs less than asking it for the next timeout, which
 * walks all of them.
 */
#include "net/resolver_dns.h"

#include <ares.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "net/names.h"

/*
 * A question is sent at 0, 0.5 and 1.5 s, to each server in turn, and given
 * up at 3.5 s.
 */
enum { DNS_MSEC = 500, DNS_TRIES = 3 };

enum { DNS_SERVERS = 8, DNS_SOCKS = 32 };

#define TICK	(100 * NSEC_PER_MSEC)

struct sock {
	struct watch		 watch;
	struct dns		*dns;
	int			 fd;		/* -1: unused */
};

struct dns {
	struct loop		*loop;
	struct watch_kind	 kind;		/* of its sockets */
	ares_channel		 channel;
	struct wheel_timer	 tick;
	unsigned		 asking;
	bool			 closing;
	struct sock		 socks[DNS_SOCKS];
};

static watch_fn		on_ready;
static wheel_fn		on_tick;
static void		on_answer(void *arg, int status, int timeouts,
			    struct ares_addrinfo *ai);
static void		on_sock(void *arg, ares_socket_t fd, int readable,
			    int writable);

static int		open_channel(struct dns *dns);
static int		set_servers(struct dns *dns, const char *list);
static bool		read_server(struct ares_addr_port_node *node,
			    const char *text, size_t n);
static enum resolve_result read_answer(struct dns_question *q,
			    const struct ares_addrinfo *ai);

/* Ours; c-ares has more to say only about answers. */
static int
errno_of(int status)
{
	return status == ARES_SUCCESS ? 0 : status == ARES_ENOMEM ? ENOMEM :
	    status == ARES_EFILE ? EIO : EINVAL;
}

int
dns_global_init(void)
{
	return -errno_of(ares_library_init(ARES_LIB_INIT_ALL));
}

void
dns_global_fini(void)
{
	ares_library_cleanup();
}

int
dns_open(struct dns **out, struct loop *loop, const char *servers)
{
	struct dns *dns = xcalloc(1, sizeof *dns);
	int err;

	*out = NULL;
	dns->loop = loop;
	dns->kind = WATCH_KIND(loop, on_ready);
	wheel_timer_init(&dns->tick, on_tick);
	for (size_t i = 0; i < DNS_SOCKS; i++)
		dns->socks[i].fd = -1;

	err = open_channel(dns);
	if (err != 0)
		goto free_dns;
	if (servers != NULL)
		err = set_servers(dns, servers);
	if (err != 0)
		goto close_channel;
	*out = dns;
	return 0;

close_channel:
	ares_destroy(dns->channel);
free_dns:
	free(dns);
	return err;
}

static int
open_channel(struct dns *dns)
{
	char dns_only[] = "b";
	struct ares_options o = {
		.flags = ARES_FLAG_NOSEARCH,
		.timeout = DNS_MSEC,
		.tries = DNS_TRIES,
		.lookups = dns_only,
		.sock_state_cb = on_sock,
		.sock_state_cb_data = dns,
	};

	/*
	 * 1.18 heeds NOSEARCH in other calls than ours, so there are no
	 * domains to search either.
	 */
	return -errno_of(ares_init_options(&dns->channel, &o, ARES_OPT_FLAGS |
	    ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
	    ARES_OPT_DOMAINS | ARES_OPT_SOCK_STATE_CB));
}

static int
set_servers(struct dns *dns, const char *list)
{
	struct ares_addr_port_node nodes[DNS_SERVERS];
	size_t n = 0;

	memset(nodes, 0, sizeof nodes);
	for (const char *at = list; at != NULL; n++) {
		const char *comma = strchr(at, ',');
		size_t length = comma != NULL ? (size_t)(comma - at) :
		    strlen(at);

		if (n == DNS_SERVERS || !read_server(&nodes[n], at, length))
			return -EINVAL;
		if (n > 0)
			nodes[n - 1].next = &nodes[n];
		at = comma != NULL ? comma + 1 : NULL;
	}
	return -errno_of(ares_set_servers_ports(dns->channel, nodes));
}

static bool
read_server(struct ares_addr_port_node *node, const char *text, size_t n)
{
	char copy[ADDR_TEXT];
	struct addr a;

	if (n >= sizeof copy)
		return false;
	memcpy(copy, text, n);
	copy[n] = '\0';
	if (!addr_parse(&a, copy) || a.family == ADDR_UNIX)
		return false;
	node->family = a.family == ADDR_IP4 ? AF_INET : AF_INET6;
	memcpy(&node->addr, a.ip, a.family == ADDR_IP4 ? 4 : 16);
	node->udp_port = node->tcp_port = a.port;
	return true;
}

void
dns_close(struct dns **handle)
{
	struct dns *dns = *handle;

	if (dns == NULL)
		return;
	*handle = NULL;
	dns->closing = true;
	ares_destroy(dns->channel);
	loop_cancel(dns->loop, &dns->tick);
	free(dns);
}

void
dns_ask(struct dns *dns, struct dns_question *q, const char *name, int family,
    dns_fn *fn)
{
	char dotted[NAME_MAX_BYTES + 2];
	size_t n = strlen(name);
	struct ares_addrinfo_hints hints = {
		/* To sort, c-ares opens a socket for every address. */
		.ai_flags = ARES_AI_NOSORT,
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
	};

	ASSERT(n >= 1 && n <= NAME_MAX_BYTES);
	*q = (struct dns_question){
		.dns = dns,
		.fn = fn,
		.result = RESOLVE_WAITS,
		.ttl = UINT32_MAX,
	};
	if (dns->asking++ == 0)
		loop_arm(dns->loop, &dns->tick, TICK);

	/* The final dot says that this is the whole name. */
	memcpy(dotted, name, n);
	memcpy(dotted + n, ".", 2);
	ares_getaddrinfo(dns->channel, dotted, NULL, &hints, on_answer, q);
}

static void
on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *ai)
{
	struct dns_question *q = arg;

	(void)timeouts;
	if (q->dns->closing) {
		ares_freeaddrinfo(ai);
		return;
	}
	if (status == ARES_SUCCESS)
		q->result = read_answer(q, ai);
	else if (status == ARES_ENODATA || status == ARES_ENOTFOUND)
		q->result = RESOLVE_NONE;
	else
		q->result = status == ARES_ETIMEOUT ? RESOLVE_LATE :
		    RESOLVE_FAILED;
	q->no_name = status == ARES_ENOTFOUND;
	ares_freeaddrinfo(ai);
	q->dns->asking--;
	q->fn(q);
}

static enum resolve_result
read_answer(struct dns_question *q, const struct ares_addrinfo *ai)
{
	for (const struct ares_addrinfo_cname *c = ai->cnames; c != NULL;
	    c = c->next)
		q->ttl = MIN(q->ttl, (unsigned)MAX(c->ttl, 0));
	for (const struct ares_addrinfo_node *at = ai->nodes; at != NULL;
	    at = at->ai_next) {
		struct addr a;

		addr_from_sockaddr(&a, at->ai_addr, at->ai_addrlen);
		if (a.family == ADDR_NONE)
			continue;
		q->ttl = MIN(q->ttl, (unsigned)MAX(at->ai_ttl, 0));
		if (!addr_set_add(&q->set, &a))
			break;
	}
	return q->set.count > 0 ? RESOLVE_KNOWN : RESOLVE_NONE;
}

static void
on_tick(struct wheel_timer *t)
{
	struct dns *dns = container_of(t, struct dns, tick);

	ares_process_fd(dns->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	if (dns->asking > 0)
		loop_arm(dns->loop, &dns->tick, TICK);
}

static void
on_ready(struct watch *w, unsigned ready)
{
	struct sock *s = container_of(w, struct sock, watch);

	ares_process_fd(s->dns->channel,
	    ready & WATCH_READ ? s->fd : ARES_SOCKET_BAD,
	    ready & WATCH_WRITE ? s->fd : ARES_SOCKET_BAD);
}

static struct sock *
find_sock(struct dns *dns, int fd)
{
	for (size_t i = 0; i < DNS_SOCKS; i++) {
		if (dns->socks[i].fd == fd)
			return &dns->socks[i];
	}
	return NULL;
}

/* With neither, it is about to be closed.  Beyond DNS_SOCKS, nobody looks. */
static void
on_sock(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct dns *dns = arg;
	struct sock *s = find_sock(dns, fd);
	unsigned wanted = (readable ? WATCH_READ : 0u) |
	    (writable ? WATCH_WRITE : 0u);

	if (s == NULL && wanted != 0) {
		s = find_sock(dns, -1);
		if (s == NULL)
			return;
		s->dns = dns;
		s->fd = fd;
		watch_init(&s->watch, &dns->kind, fd);
	}
	if (s == NULL)
		return;
	if (wanted != 0) {
		watch_want(&s->watch, wanted);
		return;
	}
	watch_stop(&s->watch);
	s->fd = -1;
}
