/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * addr.c - addresses and ranges of them; see addr.h.
 *
 * inet_pton() reads the literals: unlike inet_aton() it wants four decimal
 * octets without leading zeros, and it knows no zones.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "base/str.h"

/* Each connection has one. */
static_assert(sizeof(struct addr) <= 24, "struct addr has grown");

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

#define UNIX_PREFIX	"unix:"

/* --- reading ------------------------------------------------------------ */

static void
set_ip4(struct addr *a, const uint8_t ip[4], uint16_t port)
{
	*a = (struct addr){ .family = ADDR_IP4, .port = port };
	memcpy(a->ip, ip, 4);
}

static void
set_ip6(struct addr *a, const uint8_t ip[16], uint16_t port)
{
	if (memcmp(ip, mapped, sizeof mapped) == 0) {
		set_ip4(a, ip + sizeof mapped, port);
		return;
	}
	*a = (struct addr){ .family = ADDR_IP6, .port = port };
	memcpy(a->ip, ip, 16);
}

bool
addr_parse_ip(struct addr *a, const char *text, size_t n, uint16_t port)
{
	char copy[INET6_ADDRSTRLEN];
	uint8_t ip[16];
	bool brackets = n >= 2 && text[0] == '[' && text[n - 1] == ']';

	if (brackets) {
		text++;
		n -= 2;
	}
	if (n == 0 || n >= sizeof copy || memchr(text, '\0', n) != NULL)
		return false;
	memcpy(copy, text, n);
	copy[n] = '\0';
	if (!brackets && inet_pton(AF_INET, copy, ip) == 1)
		set_ip4(a, ip, port);
	else if (inet_pton(AF_INET6, copy, ip) == 1)
		set_ip6(a, ip, port);
	else
		return false;
	return true;
}

bool
addr_parse_port(uint16_t *port, const char *text, size_t n)
{
	uint64_t v;

	if (!str_number(str_make(text, n), &v) || v < 1 || v > 65535)
		return false;
	*port = (uint16_t)v;
	return true;
}

static bool
parse_unix(struct addr *a, const char *path)
{
	struct sockaddr_un sun;

	if (path[0] != '/' || strlen(path) >= sizeof sun.sun_path)
		return false;
	*a = (struct addr){ .family = ADDR_UNIX, .path = path };
	return true;
}

bool
addr_parse(struct addr *a, const char *text)
{
	struct str s = str_of(text);
	size_t colon = str_find_last(s, ':');
	uint16_t port;

	if (str_starts(s, STR(UNIX_PREFIX)))
		return parse_unix(a, text + sizeof UNIX_PREFIX - 1);
	if (colon == s.len || !addr_parse_port(&port, text + colon + 1,
	    s.len - colon - 1))
		return false;

	/* Without brackets, a colon in the address could be either kind. */
	if (text[0] != '[' && str_find(s, ':') != colon)
		return false;
	return addr_parse_ip(a, text, colon, port);
}

/* --- ranges ------------------------------------------------------------- */

/* Do the first `bits` bits agree? */
static bool
same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	uint32_t x, y;

	for (; bits >= 32; bits -= 32, a += 4, b += 4) {
		memcpy(&x, a, sizeof x);
		memcpy(&y, b, sizeof y);
		if (x != y)
			return false;
	}
	if (bits == 0)
		return true;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return ntohl(x ^ y) >> (32 - bits) == 0;
}

/* No bit is set after the first `bits`. */
static bool
is_aligned(const uint8_t ip[16], unsigned bits)
{
	for (unsigned i = bits; i < 128; i++)
		if (ip[i / 8] & 0x80 >> i % 8)
			return false;
	return true;
}

bool
addr_range_parse(struct addr_range *r, const char *text)
{
	struct str s = str_of(text);
	size_t slash = str_find(s, '/');
	bool written_as_6 = str_find(s, ':') < slash;
	uint64_t max = written_as_6 ? 128 : 32;
	uint64_t bits = max;
	struct addr a;

	if (text[0] == '[' || !addr_parse_ip(&a, text, slash, 0))
		return false;
	if (slash < s.len && (!str_number(str_skip(s, slash + 1), &bits) ||
	    bits > max))
		return false;
	if (written_as_6 && a.family == ADDR_IP4) {
		if (bits < 96)
			return false;
		bits -= 96;
	}
	if (!is_aligned(a.ip, (unsigned)bits))
		return false;
	*r = (struct addr_range){ .family = a.family, .bits = (uint8_t)bits };
	memcpy(r->ip, a.ip, sizeof r->ip);
	return true;
}

bool
addr_range_has(const struct addr_range *r, const struct addr *a)
{
	return r->family == a->family && same_bits(r->ip, a->ip, r->bits);
}

/* --- writing ------------------------------------------------------------ */

/* The digits of each byte, and in the last place how many there are. */
#define TEN(tens, rest) \
	tens "0" rest, tens "1" rest, tens "2" rest, tens "3" rest, \
	tens "4" rest, tens "5" rest, tens "6" rest, tens "7" rest, \
	tens "8" rest, tens "9" rest

static const char byte_texts[256][4] = {
	TEN("", "  \1"), TEN("1", " \2"), TEN("2", " \2"), TEN("3", " \2"),
	TEN("4", " \2"), TEN("5", " \2"), TEN("6", " \2"), TEN("7", " \2"),
	TEN("8", " \2"), TEN("9", " \2"), TEN("10", "\3"), TEN("11", "\3"),
	TEN("12", "\3"), TEN("13", "\3"), TEN("14", "\3"), TEN("15", "\3"),
	TEN("16", "\3"), TEN("17", "\3"), TEN("18", "\3"), TEN("19", "\3"),
	TEN("20", "\3"), TEN("21", "\3"), TEN("22", "\3"), TEN("23", "\3"),
	TEN("24", "\3"), "250\3", "251\3", "252\3", "253\3", "254\3",
	"255\3",
};

/* For each request, where those are told: so without out_number(). */
static void
put_ip4(struct out *o, const uint8_t *ip)
{
	char text[INET_ADDRSTRLEN], *end = text;

	for (int i = 0; i < 4; i++) {
		const char *digits = byte_texts[ip[i]];

		/* What is no digit of these three is written over. */
		end[0] = digits[0];
		end[1] = digits[1];
		end[2] = digits[2];
		end += digits[3];
		*end++ = '.';
	}
	out_add(o, text, (size_t)(end - text) - 1);
}

void
addr_put_ip(struct out *o, const struct addr *a)
{
	char text[INET6_ADDRSTRLEN];

	switch (a->family) {
	case ADDR_IP4:
		put_ip4(o, a->ip);
		break;
	case ADDR_IP6:
		inet_ntop(AF_INET6, a->ip, text, sizeof text);
		out_put(o, text);
		if (a->scope != 0) {
			out_char(o, '%');
			out_number(o, a->scope);
		}
		break;
	case ADDR_UNIX:
		out_put(o, UNIX_PREFIX);
		break;
	default:
		out_char(o, '-');
	}
}

char *
addr_print(const struct addr *a, char *out, size_t size)
{
	bool is_ip = a->family == ADDR_IP4 || a->family == ADDR_IP6;
	struct out o;

	ASSERT(size > 0);
	out_init(&o, out, size - 1);
	if (a->family == ADDR_IP6)
		out_char(&o, '[');
	addr_put_ip(&o, a);
	if (a->family == ADDR_IP6)
		out_char(&o, ']');
	if (is_ip) {
		out_char(&o, ':');
		out_number(&o, a->port);
	} else if (a->family == ADDR_UNIX && a->path != NULL) {
		out_put(&o, a->path);
	}
	out[out_len(&o)] = '\0';
	return out;
}

char *
addr_print_ip(const struct addr *a, char *out, size_t size)
{
	struct out o;

	ASSERT(size > 0);
	out_init(&o, out, size - 1);
	addr_put_ip(&o, a);
	out[out_len(&o)] = '\0';
	return out;
}

/* --- comparing ---------------------------------------------------------- */

bool
addr_equal(const struct addr *a, const struct addr *b)
{
	if (a->family != b->family)
		return false;
	if (a->family == ADDR_UNIX)
		return str_equal(str_of(a->path), str_of(b->path));
	return a->port == b->port && a->scope == b->scope &&
	    memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

/* --- the kernel's form -------------------------------------------------- */

static socklen_t
to_unix(const struct addr *a, struct sockaddr_un *sun)
{
	size_t n = a->path == NULL ? 0 : strlen(a->path);

	ASSERT(n < sizeof sun->sun_path);
	sun->sun_family = AF_UNIX;
	if (n == 0)
		return (socklen_t)offsetof(struct sockaddr_un, sun_path);
	memcpy(sun->sun_path, a->path, n + 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
}

socklen_t
addr_to_sockaddr(const struct addr *a, struct sockaddr_storage *ss)
{
	struct sockaddr_in *in = (void *)ss;
	struct sockaddr_in6 *in6 = (void *)ss;

	memset(ss, 0, sizeof *ss);
	switch (a->family) {
	case ADDR_IP4:
		in->sin_family = AF_INET;
		in->sin_port = htons(a->port);
		memcpy(&in->sin_addr, a->ip, 4);
		return sizeof *in;
	case ADDR_IP6:
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(a->port);
		in6->sin6_scope_id = a->scope;
		memcpy(&in6->sin6_addr, a->ip, 16);
		return sizeof *in6;
	case ADDR_UNIX:
		return to_unix(a, (void *)ss);
	default:
		ss->ss_family = AF_UNSPEC;
		return sizeof ss->ss_family;
	}
}

void
addr_from_sockaddr(struct addr *a, const struct sockaddr *sa, socklen_t len)
{
	const struct sockaddr_in *in = (const void *)sa;
	const struct sockaddr_in6 *in6 = (const void *)sa;

	*a = (struct addr){ .family = ADDR_NONE };
	if (len < sizeof sa->sa_family)
		return;
	if (sa->sa_family == AF_INET && len >= sizeof *in) {
		set_ip4(a, (const void *)&in->sin_addr, ntohs(in->sin_port));
	} else if (sa->sa_family == AF_INET6 && len >= sizeof *in6) {
		set_ip6(a, in6->sin6_addr.s6_addr, ntohs(in6->sin6_port));
		if (a->family == ADDR_IP6)
			a->scope = in6->sin6_scope_id;
	} else if (sa->sa_family == AF_UNIX) {
		a->family = ADDR_UNIX;
		a->path = "";
	}
}

/* --- kinds of addresses ------------------------------------------------- */

#define IP4(bits, ...)	{ ADDR_IP4, bits, { __VA_ARGS__ } }
#define IP6(bits, ...)	{ ADDR_IP6, bits, { __VA_ARGS__ } }

static const struct addr_range loopback[] = {
	IP4(8, 127),
	IP6(128, [15] = 1),
};

static const struct addr_range link_local[] = {
	IP4(16, 169, 254),
	IP6(10, 0xfe, 0x80),
};

static const struct addr_range private[] = {
	IP4(8, 10),
	IP4(12, 172, 16),
	IP4(16, 192, 168),
	IP6(7, 0xfc),
	IP6(10, 0xfe, 0xc0),
};

/*
 * Of the registries, as IANA has them.  A block with a few public addresses in
 * it (192.0.0.0/24, 2001::/23) counts whole: no server is there.
 */
static const struct addr_range special[] = {
	IP4(8, 0),			/* "this network" */
	IP4(8, 10),
	IP4(10, 100, 64),		/* shared, RFC 6598 */
	IP4(8, 127),
	IP4(16, 169, 254),
	IP4(12, 172, 16),
	IP4(24, 192, 0, 0),		/* protocol assignments */
	IP4(24, 192, 0, 2),		/* documentation */
	IP4(24, 192, 88, 99),		/* 6to4 relays, RFC 7526 */
	IP4(16, 192, 168),
	IP4(15, 198, 18),		/* benchmarking */
	IP4(24, 198, 51, 100),		/* documentation */
	IP4(24, 203, 0, 113),		/* documentation */
	IP4(4, 224),			/* multicast */
	IP4(4, 240),			/* reserved, and broadcast */
	IP6(23, 0x20, 0x01),		/* protocol assignments, Teredo */
	IP6(32, 0x20, 0x01, 0x0d, 0xb8),	/* documentation */
	IP6(20, 0x3f, 0xff),		/* documentation, RFC 9637 */
};

/* Outside this block IPv6 has nothing that is public. */
static const struct addr_range unicast6[] = { IP6(3, 0x20) };

static const struct addr_range six_to_four[] = { IP6(16, 0x20, 0x02) };
static const struct addr_range nat64[] = { IP6(96, 0, 0x64, 0xff, 0x9b) };

static bool
is_in(const struct addr *a, const struct addr_range *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (addr_range_has(&r[i], a))
			return true;
	return false;
}

#define IS_IN(a, ranges)	is_in(a, ranges, ARRAY_LEN(ranges))

bool
addr_is_loopback(const struct addr *a)
{
	return a->family == ADDR_UNIX || IS_IN(a, loopback);
}

bool
addr_is_link_local(const struct addr *a)
{
	return IS_IN(a, link_local);
}

bool
addr_is_private(const struct addr *a)
{
	return IS_IN(a, private);
}

bool
addr_is_public(const struct addr *a)
{
	struct addr inner;

	if (a->family == ADDR_IP4)
		return !IS_IN(a, special);
	if (a->family != ADDR_IP6)
		return false;

	/* A translator or relay would send it on to the address inside. */
	if (IS_IN(a, six_to_four) || IS_IN(a, nat64)) {
		set_ip4(&inner, a->ip + (a->ip[0] == 0x20 ? 2 : 12), 0);
		return !IS_IN(&inner, special);
	}
	return IS_IN(a, unicast6) && !IS_IN(a, special);
}

bool
addr_is_any(const struct addr *a)
{
	static const uint8_t zero[16];

	return (a->family == ADDR_IP4 || a->family == ADDR_IP6) &&
	    memcmp(a->ip, zero, sizeof zero) == 0;
}
