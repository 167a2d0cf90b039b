/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * addr.h - addresses: IPv4, IPv6 and unix sockets; and ranges of them.
 *
 * A struct addr is small enough to keep one per connection.  An IPv4 address
 * that comes in IPv6 clothes (::ffff:a.b.c.d) is stored as IPv4, so that one
 * rule covers both.
 *
 * Owner:    the caller; for a unix address, `path` is whoever's made it, and
 *           must outlive the struct.
 * Threads:  any; nothing is shared.
 */
#ifndef PENSTOCK_BASE_ADDR_H
#define PENSTOCK_BASE_ADDR_H

#include <sys/socket.h>

#include "base/defs.h"
#include "base/str.h"

enum addr_family { ADDR_NONE, ADDR_IP4, ADDR_IP6, ADDR_UNIX };

struct addr {
	uint8_t		 family;	/* enum addr_family */
	uint16_t	 port;		/* host order */
	uint32_t	 scope;		/* of IPv6 link-local */
	union {
		uint8_t		 ip[16]; /* the first 4 for IPv4; rest 0 */
		const char	*path;	/* unix: of the socket, or "" */
	};
};

/* A block of addresses: the first `bits` of `ip` count. */
struct addr_range {
	uint8_t		 family;
	uint8_t		 bits;
	uint8_t		 ip[16];
};

/* Longest text of addr_print() for IP, with the NUL: [v6%scope]:port. */
enum { ADDR_TEXT = 80, ADDR_IP4_TEXT = 15 };

/*
 * Read "1.2.3.4", "::1" or "[::1]" (the whole of n bytes) with `port`.
 * Strict: four decimal octets, no zone.  False if it is no such literal.
 */
bool addr_parse_ip(struct addr *a, const char *text, size_t n, uint16_t port);

/* Read a port, 1 to 65535, decimal digits only; false otherwise. */
bool addr_parse_port(uint16_t *port, const char *text, size_t n);

/*
 * Read what an operator writes: "1.2.3.4:80", "[::1]:80" or "unix:/path".
 * With `path` the text's own bytes.  False for anything else, names too.
 */
bool addr_parse(struct addr *a, const char *text);

/* "10.0.0.0/8", "fd00::/8", an address alone; bits beyond must be zero. */
bool addr_range_parse(struct addr_range *r, const char *text);

/* The address is of the same family and in the block; its port is ignored. */
bool addr_range_has(const struct addr_range *r, const struct addr *a);

/* Write as text with the port, or "unix:/path"; returns `out`. */
char *addr_print(const struct addr *a, char *out, size_t size);

/* The same without port and brackets: "1.2.3.4", "::1", "unix:". */
void addr_put_ip(struct out *o, const struct addr *a);
char *addr_print_ip(const struct addr *a, char *out, size_t size);

/* Same family, address and port (or path). */
bool addr_equal(const struct addr *a, const struct addr *b);

/* For the kernel; the length.  Never fails: paths are checked when read. */
socklen_t addr_to_sockaddr(const struct addr *a, struct sockaddr_storage *ss);

/*
 * From the kernel; ADDR_NONE for families unknown here.  The path of a unix
 * socket is not kept: it is "".
 */
void addr_from_sockaddr(struct addr *a, const struct sockaddr *sa,
    socklen_t len);

/* 127/8, ::1, and unix sockets, both of whose ends are on this host. */
bool addr_is_loopback(const struct addr *a);

/* 169.254/16, fe80::/10. */
bool addr_is_link_local(const struct addr *a);

/* 10/8, 172.16/12, 192.168/16, fc00::/7, and fec0::/10 of old. */
bool addr_is_private(const struct addr *a);

/*
 * Nothing that a server on the Internet could have: unspecified, loopback,
 * link-local, private, shared (100.64/10), documentation, benchmarking,
 * multicast, reserved, broadcast, 6to4 and NAT64 of such; the special-purpose
 * registries of RFC 6890.  Then it is false; and true for everything else.
 */
bool addr_is_public(const struct addr *a);

/* "0.0.0.0" or "::". */
bool addr_is_any(const struct addr *a);

#endif
