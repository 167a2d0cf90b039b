/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dns_server.h - a DNS server in a thread, for tests; on UDP and TCP.
 *
 * The first label of the name says how it behaves; see `scripts`.  It listens
 * on a port of 127.0.0.1 that the kernel chooses.
 */
#ifndef PENSTOCK_TESTS_NET_DNS_SERVER_H
#define PENSTOCK_TESTS_NET_DNS_SERVER_H

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/defs.h"

enum { DNS_A = 1, DNS_CNAME = 5, DNS_AAAA = 28 };
enum { DNS_CONNS = 4, DNS_HELD = 16, DNS_SEEN = 4096, DNS_MESSAGE = 8192 };
enum { RCODE_SERVFAIL = 2, RCODE_NXDOMAIN = 3 };

/* A question, and what is made of it. */
struct dns_message {
	uint8_t			 bytes[DNS_MESSAGE];
	size_t			 len;
	size_t			 question_end;
	char			 label[64];
	unsigned		 type;
	bool			 tcp;
	bool			 drop;		/* send nothing */
	struct sockaddr_in	 from;
};

struct dns_server {
	int			 udp;
	int			 tcp;
	int			 wake;
	int			 conns[DNS_CONNS];
	char			 where[32];	/* "127.0.0.1:port" */
	pthread_t		 thread;
	atomic_bool		 stop;
	atomic_bool		 release;	/* answer what is held */
	atomic_bool		 broken;	/* `flaky` fails */
	atomic_bool		 quiet;		/* `flaky` doesn't answer */
	atomic_uint		 questions;	/* without repetitions */
	atomic_uint		 over_tcp;
	atomic_uint		 sent;		/* answers by UDP */
	unsigned		 held_count;
	struct dns_message	 held[DNS_HELD];
	unsigned		 seen_count;
	uint16_t		 seen[DNS_SEEN];	/* ids */
};

typedef void dns_script_fn(struct dns_server *s, struct dns_message *m);

static inline void
put16(struct dns_message *m, unsigned v)
{
	ck_assert_uint_le(m->len + 2, sizeof m->bytes);
	m->bytes[m->len++] = (uint8_t)(v >> 8);
	m->bytes[m->len++] = (uint8_t)v;
}

/* A record up to its data; `name` is a compression pointer's target. */
static inline void
put_record(struct dns_message *m, unsigned name, unsigned type, unsigned ttl)
{
	put16(m, 0xc000 | name);
	put16(m, type);
	put16(m, 1);
	put16(m, ttl >> 16);
	put16(m, ttl & 0xffff);
	m->bytes[7]++;
}

static inline void
put_a(struct dns_message *m, unsigned name, unsigned last, unsigned ttl)
{
	put_record(m, name, DNS_A, ttl);
	put16(m, 4);
	put16(m, 127 << 8);
	put16(m, last);
}

static inline void
put_aaaa(struct dns_message *m, unsigned name, unsigned ttl)
{
	put_record(m, name, DNS_AAAA, ttl);
	put16(m, 16);
	for (unsigned i = 0; i < 8; i++)
		put16(m, i == 7);
}

static inline void
script_v4(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	if (m->type == DNS_A)
		put_a(m, 12, 2, 300);
}

static inline void
script_v6(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	if (m->type == DNS_AAAA)
		put_aaaa(m, 12, 300);
}

static inline void
script_both(struct dns_server *s, struct dns_message *m)
{
	script_v4(s, m);
	script_v6(s, m);
}

/* IPv4 at once, IPv6 never. */
static inline void
script_half(struct dns_server *s, struct dns_message *m)
{
	script_v4(s, m);
	m->drop = m->type == DNS_AAAA;
}

static inline void
script_nx(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	m->bytes[3] |= RCODE_NXDOMAIN;
}

static inline void
script_nodata(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	(void)m;
}

static inline void
script_servfail(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	m->bytes[3] |= RCODE_SERVFAIL;
}

static inline void
script_silent(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	m->drop = true;
}

static inline void
script_trunc(struct dns_server *s, struct dns_message *m)
{
	if (m->tcp)
		script_v4(s, m);
	else
		m->bytes[2] |= 2;
}

static inline void
script_many(struct dns_server *s, struct dns_message *m)
{
	if (!m->tcp)
		script_trunc(s, m);
	else if (m->type == DNS_A)
		for (unsigned i = 1; i <= 200; i++)
			put_a(m, 12, i, 300);
}

static inline void
script_empty(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	m->len = 0;
}

static inline void
script_short(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	m->len = 7;
}

/* a -> b -> a, without an address. */
static inline void
script_circle(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	put_record(m, 12, DNS_CNAME, 300);
	put16(m, 4);
	unsigned b = (unsigned)m->len;
	put16(m, 1 << 8 | 'b');
	put16(m, 0xc000 | 12);
	put_record(m, b, DNS_CNAME, 300);
	put16(m, 2);
	put16(m, 0xc000 | 12);
}

static inline void
script_cname(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	put_record(m, 12, DNS_CNAME, 300);
	put16(m, 4);
	unsigned b = (unsigned)m->len;
	put16(m, 1 << 8 | 'b');
	put16(m, 0xc000 | 12);
	if (m->type == DNS_A)
		put_a(m, b, 2, 300);
}

/* A record whose name is a pointer to itself. */
static inline void
script_pointer(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	put_a(m, (unsigned)m->len, 2, 300);
}

static inline void
script_zero(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	if (m->type == DNS_A)
		put_a(m, 12, 2, 0);
}

/* The question in the answer is another one. */
static inline void
script_other(struct dns_server *s, struct dns_message *m)
{
	script_v4(s, m);
	m->bytes[13] ^= 1;
}

/* The record is about another name: the part after the first label. */
static inline void
script_stray(struct dns_server *s, struct dns_message *m)
{
	(void)s;
	if (m->type == DNS_A)
		put_a(m, 12 + 1 + m->bytes[12], 2, 300);
}

static inline void
script_wrongid(struct dns_server *s, struct dns_message *m)
{
	script_v4(s, m);
	m->bytes[0] ^= 0xff;
}

static inline void
script_held(struct dns_server *s, struct dns_message *m)
{
	if (atomic_load(&s->release)) {
		script_v4(s, m);
		return;
	}
	if (s->held_count < DNS_HELD)
		s->held[s->held_count++] = *m;
	m->drop = true;
}

static inline void
script_flaky(struct dns_server *s, struct dns_message *m)
{
	m->drop = atomic_load(&s->quiet);
	if (atomic_load(&s->broken))
		script_servfail(s, m);
	else
		script_zero(s, m);
}

static const struct { const char *label; dns_script_fn *fn; } scripts[] = {
	{ "v4",		script_v4 },
	{ "v6",		script_v6 },
	{ "both",	script_both },
	{ "half",	script_half },
	{ "nx",		script_nx },
	{ "nodata",	script_nodata },
	{ "servfail",	script_servfail },
	{ "silent",	script_silent },
	{ "trunc",	script_trunc },
	{ "many",	script_many },
	{ "empty",	script_empty },
	{ "short",	script_short },
	{ "circle",	script_circle },
	{ "cname",	script_cname },
	{ "pointer",	script_pointer },
	{ "zero",	script_zero },
	{ "other",	script_other },
	{ "stray",	script_stray },
	{ "wrongid",	script_wrongid },
	{ "held",	script_held },
	{ "flaky",	script_flaky },
};

/* Turn a question into an answer without records; false if it is none. */
static inline bool
dns_read_question(struct dns_message *m)
{
	size_t at = 12;

	if (m->len < 17 || m->bytes[12] > 63 || m->bytes[12] + 13u > m->len)
		return false;
	memcpy(m->label, m->bytes + 13, m->bytes[12]);
	m->label[m->bytes[12]] = '\0';
	while (at < m->len && m->bytes[at] != 0)
		at += m->bytes[at] + 1u;
	if (at + 5 > m->len)
		return false;
	m->type = m->bytes[at + 1] << 8 | m->bytes[at + 2];
	m->len = at + 5;
	m->bytes[2] |= 0x80;		/* an answer */
	m->bytes[3] = 0x80;		/* recursion is available */
	memset(m->bytes + 6, 0, 6);
	m->drop = false;
	return true;
}

static inline void
dns_count(struct dns_server *s, const struct dns_message *m)
{
	uint16_t id = (uint16_t)(m->bytes[0] << 8 | m->bytes[1]);

	if (m->tcp) {
		atomic_fetch_add(&s->over_tcp, 1);
		return;
	}
	for (unsigned i = 0; i < s->seen_count; i++) {
		if (s->seen[i] == id)
			return;
	}
	if (s->seen_count < DNS_SEEN)
		s->seen[s->seen_count++] = id;
	atomic_fetch_add(&s->questions, 1);
}

static inline void
dns_run_script(struct dns_server *s, struct dns_message *m)
{
	/* Names may go on after the word: silent17. */
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		size_t n = strlen(scripts[i].label);

		if (strncmp(m->label, scripts[i].label, n) == 0 &&
		    (m->label[n] == '\0' || (m->label[n] <= '9' &&
		    m->label[n] >= '0'))) {
			scripts[i].fn(s, m);
			return;
		}
	}
	script_nx(s, m);
}

static inline void
dns_send_udp(struct dns_server *s, const struct dns_message *m)
{
	if (m->drop)
		return;
	sendto(s->udp, m->bytes, m->len, 0,
	    (const struct sockaddr *)&m->from, sizeof m->from);
	atomic_fetch_add(&s->sent, 1);
}

static inline void
dns_on_udp(struct dns_server *s)
{
	static struct dns_message m;
	socklen_t len = sizeof m.from;
	ssize_t n = recvfrom(s->udp, m.bytes, sizeof m.bytes, 0,
	    (struct sockaddr *)&m.from, &len);

	m.len = n > 0 ? (size_t)n : 0;
	m.tcp = false;
	if (!dns_read_question(&m))
		return;
	dns_count(s, &m);
	dns_run_script(s, &m);
	dns_send_udp(s, &m);
}

/* One question; they are small and come whole.  False at the end. */
static inline bool
dns_on_tcp(struct dns_server *s, int fd)
{
	static struct dns_message m;
	uint8_t head[2];

	if (recv(fd, head, 2, MSG_WAITALL) != 2)
		return false;
	m.len = head[0] << 8 | head[1];
	if (m.len > sizeof m.bytes ||
	    recv(fd, m.bytes, m.len, MSG_WAITALL) != (ssize_t)m.len)
		return false;
	m.tcp = true;
	if (!dns_read_question(&m))
		return false;
	dns_count(s, &m);
	dns_run_script(s, &m);
	head[0] = (uint8_t)(m.len >> 8);
	head[1] = (uint8_t)m.len;
	return m.drop || (send(fd, head, 2, MSG_NOSIGNAL) == 2 &&
	    send(fd, m.bytes, m.len, MSG_NOSIGNAL) == (ssize_t)m.len);
}

static inline void
dns_release_held(struct dns_server *s)
{
	for (unsigned i = 0; i < s->held_count; i++) {
		struct dns_message *m = &s->held[i];

		m->drop = false;
		script_v4(s, m);
		dns_send_udp(s, m);
	}
	s->held_count = 0;
}

static inline void
dns_accept(struct dns_server *s)
{
	int fd = accept(s->tcp, NULL, NULL);

	for (int i = 0; fd != -1 && i < DNS_CONNS; i++) {
		if (s->conns[i] == -1) {
			s->conns[i] = fd;
			return;
		}
	}
	if (fd != -1)
		close(fd);
}

static inline void *
dns_thread(void *arg)
{
	struct dns_server *s = arg;

	while (!atomic_load(&s->stop)) {
		struct pollfd p[3 + DNS_CONNS] = {
			{ s->udp, POLLIN, 0 },
			{ s->tcp, POLLIN, 0 },
			{ s->wake, POLLIN, 0 },
		};
		for (int i = 0; i < DNS_CONNS; i++)
			p[3 + i] = (struct pollfd){ s->conns[i], POLLIN, 0 };
		if (poll(p, ARRAY_LEN(p), -1) < 1)
			continue;
		if (p[0].revents != 0)
			dns_on_udp(s);
		for (int i = 0; i < DNS_CONNS; i++) {
			if (p[3 + i].revents == 0 ||
			    dns_on_tcp(s, s->conns[i]))
				continue;
			close(s->conns[i]);
			s->conns[i] = -1;
		}
		if (p[1].revents != 0)
			dns_accept(s);
		uint64_t n;
		if (p[2].revents != 0 && read(s->wake, &n, 8) == 8 &&
		    atomic_load(&s->release))
			dns_release_held(s);
	}
	return NULL;
}

static inline void
dns_wake(struct dns_server *s)
{
	uint64_t one = 1;

	ck_assert_int_eq(write(s->wake, &one, sizeof one), 8);
}

static inline struct dns_server *
dns_server_start(void)
{
	struct dns_server *s = xcalloc(1, sizeof *s);
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	socklen_t len = sizeof a;

	s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	s->wake = eventfd(0, EFD_CLOEXEC);
	/* The port must be free for both. */
	do {
		a.sin_port = 0;
		s->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ck_assert(bind(s->tcp, (struct sockaddr *)&a, len) == 0);
		ck_assert(listen(s->tcp, DNS_CONNS) == 0);
		getsockname(s->tcp, (struct sockaddr *)&a, &len);
	} while (bind(s->udp, (struct sockaddr *)&a, len) != 0 &&
	    close(s->tcp) == 0);
	snprintf(s->where, sizeof s->where, "127.0.0.1:%u",
	    ntohs(a.sin_port));
	for (int i = 0; i < DNS_CONNS; i++)
		s->conns[i] = -1;
	ck_assert(pthread_create(&s->thread, NULL, dns_thread, s) == 0);
	return s;
}

static inline void
dns_server_stop(struct dns_server **server)
{
	struct dns_server *s = *server;

	*server = NULL;
	atomic_store(&s->stop, true);
	dns_wake(s);
	pthread_join(s->thread, NULL);
	for (int i = 0; i < DNS_CONNS; i++) {
		if (s->conns[i] != -1)
			close(s->conns[i]);
	}
	close(s->wake);
	close(s->tcp);
	close(s->udp);
	free(s);
}

#endif
