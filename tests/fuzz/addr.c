/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * addr.c - fuzz target: literals of addresses and ranges.
 *
 * The C library accepts whatever is accepted, as the same address; what is
 * printed is read as the same again; and an address belongs to itself.
 */
#include "fuzz/fuzz.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/addr.h"

static void
check_kinds(const struct addr *a)
{
	HOLDS(!(addr_is_loopback(a) && addr_is_link_local(a)));
	HOLDS(!(addr_is_loopback(a) && addr_is_private(a)));
	if (addr_is_loopback(a) || addr_is_link_local(a) ||
	    addr_is_private(a) || addr_is_any(a))
		HOLDS(!addr_is_public(a));
}

static void
check_sockaddr(const struct addr *a)
{
	struct sockaddr_storage ss;
	struct addr again;
	socklen_t n = addr_to_sockaddr(a, &ss);

	addr_from_sockaddr(&again, (struct sockaddr *)&ss, n);
	HOLDS(again.family == a->family && again.port == a->port);
	HOLDS(a->family == ADDR_UNIX || addr_equal(&again, a));
}

/* Printed and read again, with a port and without. */
static void
check_print(const struct addr *a)
{
	char out[ADDR_TEXT];
	struct addr again;
	struct addr_range alone;

	addr_print(a, out, sizeof out);
	HOLDS(addr_parse(&again, out) == (a->port != 0));
	HOLDS(a->port == 0 || addr_equal(&again, a));
	addr_print_ip(a, out, sizeof out);
	HOLDS(addr_parse_ip(&again, out, strlen(out), a->port));
	HOLDS(addr_equal(&again, a));
	HOLDS(addr_range_parse(&alone, out));
	HOLDS(addr_range_has(&alone, a));
}

static void
check_ip(struct str in)
{
	struct in6_addr six;
	struct in_addr four;
	struct addr a;

	if (!addr_parse_ip(&a, in.at, in.len, 8080))
		return;
	HOLDS(a.port == 8080 && a.scope == 0);
	if (str_starts(in, STR("[")))
		in = str_head(str_skip(in, 1), in.len - 2);
	char *text = fuzz_copy(in);
	text = realloc(text, in.len + 1);
	HOLDS(text != NULL);
	text[in.len] = '\0';
	if (str_find(in, ':') < in.len) {
		HOLDS(inet_pton(AF_INET6, text, &six) == 1);
		HOLDS(memcmp(a.family == ADDR_IP4 ? six.s6_addr + 12 :
		    six.s6_addr, a.ip, a.family == ADDR_IP4 ? 4 : 16) == 0);
		HOLDS((a.family == ADDR_IP4) == !!IN6_IS_ADDR_V4MAPPED(&six));
	} else {
		HOLDS(inet_pton(AF_INET, text, &four) == 1);
		HOLDS(a.family == ADDR_IP4 && memcmp(&four, a.ip, 4) == 0);
	}
	free(text);
	check_print(&a);
	check_sockaddr(&a);
	check_kinds(&a);
}

/* For those that read up to a NUL. */
static void
check_text(const char *text)
{
	struct addr_range r;
	struct addr a;

	if (addr_parse(&a, text)) {
		HOLDS(a.family == ADDR_UNIX || a.port != 0);
		HOLDS(a.family != ADDR_UNIX ||
		    strcmp(text, a.path - strlen("unix:")) == 0);
		if (a.family != ADDR_UNIX)
			check_print(&a);
		check_sockaddr(&a);
		check_kinds(&a);
	}
	if (addr_range_parse(&r, text)) {
		a = (struct addr){ .family = r.family };
		HOLDS(r.bits <= (r.family == ADDR_IP4 ? 32 : 128));
		memcpy(a.ip, r.ip, sizeof a.ip);
		HOLDS(addr_range_has(&r, &a));
	}
}

void
fuzz_one(struct str in)
{
	uint16_t port;
	uint64_t number;

	check_ip(in);
	if (addr_parse_port(&port, in.at, in.len))
		HOLDS(str_number(in, &number) && number == port && port != 0);
	char *text = realloc(fuzz_copy(in), in.len + 1);
	HOLDS(text != NULL);
	text[in.len] = '\0';
	check_text(text);
	free(text);
}
