/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_addr.c - src/base/addr.c
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "harness.h"

#include "base/addr.h"

/* The address of a literal that is known to be right. */
static struct addr
ip(const char *text)
{
	struct addr a;

	ck_assert_msg(addr_parse_ip(&a, text, strlen(text), 0), "%s", text);
	return a;
}

/* { text, how it is printed; NULL if it must be refused } */
static const struct { const char *text, *printed; } literals[] = {
	{ "1.2.3.4",		"1.2.3.4" },
	{ "0.0.0.0",		"0.0.0.0" },
	{ "255.255.255.255",	"255.255.255.255" },
	{ "::",			"::" },
	{ "::1",		"::1" },
	{ "[::1]",		"::1" },
	{ "2001:DB8:0:0:1::",	"2001:db8:0:0:1::" },
	{ "::ffff:127.0.0.1",	"127.0.0.1" },
	{ "[::ffff:7f00:1]",	"127.0.0.1" },
	{ "::1.2.3.4",		"::1.2.3.4" },
	{ "64:ff9b::10.0.0.1",	"64:ff9b::a00:1" },
	{ "",			NULL },
	{ "2130706433",		NULL },
	{ "0x7f000001",		NULL },
	{ "127.1",		NULL },
	{ "1.2.3",		NULL },
	{ "1.2.3.4.5",		NULL },
	{ "1.2.3.4.",		NULL },
	{ ".1.2.3.4",		NULL },
	{ "01.2.3.4",		NULL },
	{ "1.2.3.004",		NULL },
	{ "1.2.3.00",		NULL },
	{ "1.2.3.256",		NULL },
	{ "1.2.3.0x4",		NULL },
	{ "1.2.3.+4",		NULL },
	{ "1.2.3. 4",		NULL },
	{ " 1.2.3.4",		NULL },
	{ "1.2.3.4 ",		NULL },
	{ "[127.0.0.1]",	NULL },
	{ "[::1",		NULL },
	{ "::1]",		NULL },
	{ "[::1]x",		NULL },
	{ "[]",			NULL },
	{ "[",			NULL },
	{ "[[::1]]",		NULL },
	{ "fe80::1%lo",		NULL },
	{ "[fe80::1%25lo]",	NULL },
	{ ":",			NULL },
	{ ":::",		NULL },
	{ "1::2::3",		NULL },
	{ "1:2:3:4:5:6:7",	NULL },
	{ "1:2:3:4:5:6:7:8:9",	NULL },
	{ "12345::",		NULL },
	{ "::ffff:01.2.3.4",	NULL },
	{ "::ffff:1.2.3",	NULL },
	{ "g::",		NULL },
	{ "localhost",		NULL },
	{ "0000:0000:0000:0000:0000:0000:255.255.255.2555", NULL },
};

START_TEST(only_whole_literals_are_addresses)
{
	struct addr a = { .family = ADDR_NONE };
	const char *text = literals[_i].text;
	char out[ADDR_TEXT];
	bool ok = addr_parse_ip(&a, text, strlen(text), 7);

	ck_assert_msg(ok == (literals[_i].printed != NULL), "\"%s\"", text);
	if (!ok)
		return;
	ck_assert_str_eq(addr_print_ip(&a, out, sizeof out),
	    literals[_i].printed);
	ck_assert_uint_eq(a.port, 7);
}
END_TEST

START_TEST(a_nul_ends_no_literal)
{
	struct addr a;

	ck_assert(!addr_parse_ip(&a, "1.2.3.4\0", 8, 0));
	ck_assert(!addr_parse_ip(&a, "1.2.3.4\0x", 9, 0));
	ck_assert(addr_parse_ip(&a, "1.2.3.4:80", 7, 0));
}
END_TEST

/* { text, value; 0 if it must be refused } */
static const struct { const char *text; unsigned value; } ports[] = {
	{ "1",		1 },
	{ "80",		80 },
	{ "0080",	80 },
	{ "65535",	65535 },
	{ "",		0 },
	{ "0",		0 },
	{ "65536",	0 },
	{ "99999",	0 },
	{ "4294967739",	0 },		/* 443 after 32 bits */
	{ "18446744073709552059", 0 },	/* 443 after 64 bits */
	{ "+80",	0 },
	{ "-1",		0 },
	{ "8 0",	0 },
	{ " 80",	0 },
	{ "80 ",	0 },
	{ "0x50",	0 },
	{ "x",		0 },
	{ "80/",	0 },
};

START_TEST(only_1_to_65535_are_ports)
{
	uint16_t port = 0;
	const char *text = ports[_i].text;
	bool ok = addr_parse_port(&port, text, strlen(text));

	ck_assert_msg(ok == (ports[_i].value != 0), "\"%s\"", text);
	ck_assert_uint_eq(port, ports[_i].value);
}
END_TEST

/* { text, how it is printed; NULL if it must be refused } */
static const struct { const char *text, *printed; } written[] = {
	{ "1.2.3.4:80",		"1.2.3.4:80" },
	{ "[::1]:80",		"[::1]:80" },
	{ "[::ffff:1.2.3.4]:5",	"1.2.3.4:5" },
	{ "unix:/run/a.sock",	"unix:/run/a.sock" },
	{ "unix:",		NULL },
	{ "unix:a.sock",	NULL },
	{ "unix:@abstract",	NULL },
	{ "",			NULL },
	{ "1.2.3.4",		NULL },
	{ "1.2.3.4:",		NULL },
	{ "1.2.3.4:0",		NULL },
	{ ":80",		NULL },
	{ "::1:80",		NULL },
	{ "::1",		NULL },
	{ "[::1]",		NULL },
	{ "[::1]80",		NULL },
	{ "[1.2.3.4]:80",	NULL },
	{ "host:80",		NULL },
	{ "1.2.3.4:80:80",	NULL },
};

START_TEST(an_operator_writes_address_and_port)
{
	struct addr a;
	char out[ADDR_TEXT];
	bool ok = addr_parse(&a, written[_i].text);

	ck_assert_msg(ok == (written[_i].printed != NULL), "\"%s\"",
	    written[_i].text);
	if (ok)
		ck_assert_str_eq(addr_print(&a, out, sizeof out),
		    written[_i].printed);
}
END_TEST

START_TEST(a_unix_path_fits_into_a_sockaddr_or_is_refused)
{
	struct sockaddr_un sun;
	char text[5 + sizeof sun.sun_path + 1] = "unix:/";
	struct sockaddr_storage ss;
	struct addr a;

	memset(text + 6, 'x', sizeof sun.sun_path - 2);
	ck_assert(addr_parse(&a, text));
	ck_assert_uint_eq(addr_to_sockaddr(&a, &ss), sizeof sun);
	text[5 + sizeof sun.sun_path - 1] = 'x';
	ck_assert(!addr_parse(&a, text));
}
END_TEST

/* { range, an address, is it in there? }; address NULL: refused */
static const struct {
	const char *range, *text;
	bool in;
} ranges[] = {
	{ "10.0.0.0/8",		"10.255.0.1",		true },
	{ "10.0.0.0/8",		"11.0.0.0",		false },
	{ "10.0.0.0/8",		"::ffff:10.1.1.1",	true },
	{ "10.0.0.0/8",		"::10.1.1.1",		false },
	{ "192.168.4.0/22",	"192.168.7.255",	true },
	{ "192.168.4.0/22",	"192.168.8.0",		false },
	{ "1.2.3.4",		"1.2.3.4",		true },
	{ "1.2.3.4",		"1.2.3.5",		false },
	{ "1.2.3.4/32",		"1.2.3.4",		true },
	{ "0.0.0.0/0",		"255.1.1.1",		true },
	{ "0.0.0.0/0",		"::1",			false },
	{ "::/0",		"::1",			true },
	{ "::/0",		"1.2.3.4",		false },
	{ "fd00::/8",		"fdff::1",		true },
	{ "fc00::/7",		"fe00::",		false },
	{ "::1",		"::1",			true },
	{ "::1/128",		"::2",			false },
	{ "::ffff:10.0.0.0/104", "10.9.9.9",		true },
	{ "::ffff:10.0.0.0/104", "11.9.9.9",		false },
	{ "::ffff:0:0/96",	"1.2.3.4",		true },
	{ "::ffff:0:0/95",	NULL,			false },
	{ "10.0.0.1/8",		NULL,			false },
	{ "10.0.0.0/33",	NULL,			false },
	{ "10.0.0.0/",		NULL,			false },
	{ "10.0.0.0/-1",	NULL,			false },
	{ "10.0.0.0/8/8",	NULL,			false },
	{ "10.0.0.0/255.0.0.0",	NULL,			false },
	{ "10/8",		NULL,			false },
	{ "fd00::/129",		NULL,			false },
	{ "fd00::1/8",		NULL,			false },
	{ "[fd00::]/8",		NULL,			false },
	{ "/8",			NULL,			false },
	{ "",			NULL,			false },
	{ "host",		NULL,			false },
};

START_TEST(a_range_has_what_agrees_in_its_first_bits)
{
	struct addr_range r;
	bool ok = addr_range_parse(&r, ranges[_i].range);

	ck_assert_msg(ok == (ranges[_i].text != NULL), "%s",
	    ranges[_i].range);
	if (!ok)
		return;
	struct addr a = ip(ranges[_i].text);
	ck_assert_msg(addr_range_has(&r, &a) == ranges[_i].in, "%s %s",
	    ranges[_i].range, ranges[_i].text);
}
END_TEST

/* { address, public, loopback, link-local, private } */
static const struct {
	const char *text;
	bool public, loopback, link_local, private;
} kinds[] = {
	{ "8.8.8.8",		true,  false, false, false },
	{ "1.0.0.0",		true,  false, false, false },
	{ "0.0.0.0",		false, false, false, false },
	{ "0.1.2.3",		false, false, false, false },
	{ "9.255.255.255",	true,  false, false, false },
	{ "10.0.0.0",		false, false, false, true },
	{ "10.255.255.255",	false, false, false, true },
	{ "11.0.0.0",		true,  false, false, false },
	{ "100.63.255.255",	true,  false, false, false },
	{ "100.64.0.0",		false, false, false, false },
	{ "100.127.255.255",	false, false, false, false },
	{ "100.128.0.0",	true,  false, false, false },
	{ "127.0.0.1",		false, true,  false, false },
	{ "127.255.255.254",	false, true,  false, false },
	{ "128.0.0.1",		true,  false, false, false },
	{ "169.254.169.254",	false, false, true,  false },
	{ "169.253.255.255",	true,  false, false, false },
	{ "172.15.255.255",	true,  false, false, false },
	{ "172.16.0.1",		false, false, false, true },
	{ "172.31.255.255",	false, false, false, true },
	{ "172.32.0.0",		true,  false, false, false },
	{ "192.0.0.8",		false, false, false, false },
	{ "192.0.1.1",		true,  false, false, false },
	{ "192.0.2.1",		false, false, false, false },
	{ "192.88.99.1",	false, false, false, false },
	{ "192.168.1.1",	false, false, false, true },
	{ "198.17.255.255",	true,  false, false, false },
	{ "198.18.0.1",		false, false, false, false },
	{ "198.19.255.255",	false, false, false, false },
	{ "198.20.0.0",		true,  false, false, false },
	{ "198.51.100.7",	false, false, false, false },
	{ "203.0.113.7",	false, false, false, false },
	{ "223.255.255.255",	true,  false, false, false },
	{ "224.0.0.1",		false, false, false, false },
	{ "239.255.255.255",	false, false, false, false },
	{ "240.0.0.1",		false, false, false, false },
	{ "255.255.255.255",	false, false, false, false },
	{ "::ffff:127.0.0.1",	false, true,  false, false },
	{ "::ffff:10.0.0.1",	false, false, false, true },
	{ "::ffff:8.8.8.8",	true,  false, false, false },
	{ "::",			false, false, false, false },
	{ "::1",		false, true,  false, false },
	{ "::2",		false, false, false, false },
	{ "::8.8.8.8",		false, false, false, false },
	{ "::127.0.0.1",	false, false, false, false },
	{ "2600::1",		true,  false, false, false },
	{ "2a00:1450:4001::8a",	true,  false, false, false },
	{ "2001:0:1::1",	false, false, false, false },
	{ "2001:200::1",	true,  false, false, false },
	{ "2001:db8::1",	false, false, false, false },
	{ "2001:db9::1",	true,  false, false, false },
	{ "3fff::1",		false, false, false, false },
	{ "3fff:1000::1",	true,  false, false, false },
	{ "2002:808:808::1",	true,  false, false, false },
	{ "2002:7f00:1::1",	false, false, false, false },
	{ "2002:a00:1::",	false, false, false, false },
	{ "2002:a9fe:a9fe::1",	false, false, false, false },
	{ "64:ff9b::8.8.8.8",	true,  false, false, false },
	{ "64:ff9b::10.0.0.1",	false, false, false, false },
	{ "64:ff9b::169.254.169.254", false, false, false, false },
	{ "64:ff9b:1::8.8.8.8",	false, false, false, false },
	{ "64:ff9b::1:808:808",	false, false, false, false },
	{ "100::1",		false, false, false, false },
	{ "4000::1",		false, false, false, false },
	{ "5f00::1",		false, false, false, false },
	{ "fc00::1",		false, false, false, true },
	{ "fdff::1",		false, false, false, true },
	{ "fe80::1",		false, false, true,  false },
	{ "febf::1",		false, false, true,  false },
	{ "fec0::1",		false, false, false, true },
	{ "ff02::1",		false, false, false, false },
};

START_TEST(every_special_block_is_known)
{
	struct addr a = ip(kinds[_i].text);

	ck_assert_msg(addr_is_public(&a) == kinds[_i].public, "public %s",
	    kinds[_i].text);
	ck_assert_msg(addr_is_loopback(&a) == kinds[_i].loopback,
	    "loopback %s", kinds[_i].text);
	ck_assert_msg(addr_is_link_local(&a) == kinds[_i].link_local,
	    "link-local %s", kinds[_i].text);
	ck_assert_msg(addr_is_private(&a) == kinds[_i].private,
	    "private %s", kinds[_i].text);
}
END_TEST

START_TEST(any_is_all_zero_of_either_family)
{
	struct addr none = { .family = ADDR_NONE };
	struct addr any4 = ip("0.0.0.0"), any6 = ip("::"), one = ip("::1");

	ck_assert(addr_is_any(&any4));
	ck_assert(addr_is_any(&any6));
	ck_assert(!addr_is_any(&one));
	ck_assert(!addr_is_any(&none));
	ck_assert(!addr_is_public(&none));
}
END_TEST

static const char *const trips[] = {
	"1.2.3.4:80", "[2001:db8::1]:65535", "unix:/run/x"
};

START_TEST(an_address_survives_the_way_to_the_kernel_and_back)
{
	struct addr a, b;
	struct sockaddr_storage ss;

	ck_assert(addr_parse(&a, trips[_i]));
	socklen_t len = addr_to_sockaddr(&a, &ss);
	addr_from_sockaddr(&b, (struct sockaddr *)&ss, len);
	if (a.family == ADDR_UNIX) {
		ck_assert_uint_eq(b.family, ADDR_UNIX);
		ck_assert_str_eq(b.path, "");
	} else {
		ck_assert(addr_equal(&a, &b));
	}
}
END_TEST

START_TEST(a_scope_goes_along)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
	    .sin6_port = htons(80), .sin6_scope_id = 3,
	    .sin6_addr.s6_addr = { 0xfe, 0x80, [15] = 1 } };
	struct sockaddr_storage ss;
	struct addr a, b;
	char out[ADDR_TEXT];

	addr_from_sockaddr(&a, (struct sockaddr *)&in6, sizeof in6);
	ck_assert_str_eq(addr_print(&a, out, sizeof out), "[fe80::1%3]:80");
	addr_to_sockaddr(&a, &ss);
	ck_assert_uint_eq(((struct sockaddr_in6 *)(void *)&ss)->sin6_scope_id,
	    3);
	b = a;
	b.scope = 4;
	ck_assert(!addr_equal(&a, &b));
}
END_TEST

START_TEST(what_the_kernel_cuts_short_is_no_address)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr unknown = { .sa_family = AF_PACKET };
	struct addr a;

	addr_from_sockaddr(&a, (struct sockaddr *)&in, sizeof in - 1);
	ck_assert_uint_eq(a.family, ADDR_NONE);
	addr_from_sockaddr(&a, (struct sockaddr *)&in, 0);
	ck_assert_uint_eq(a.family, ADDR_NONE);
	addr_from_sockaddr(&a, &unknown, sizeof unknown);
	ck_assert_uint_eq(a.family, ADDR_NONE);
}
END_TEST

START_TEST(equal_means_family_address_and_port)
{
	struct addr a, b;

	ck_assert(addr_parse(&a, "1.2.3.4:80"));
	b = a;
	ck_assert(addr_equal(&a, &b));
	b.port = 81;
	ck_assert(!addr_equal(&a, &b));
	ck_assert(addr_parse(&b, "1.2.3.5:80"));
	ck_assert(!addr_equal(&a, &b));
	ck_assert(addr_parse(&a, "unix:/a"));
	ck_assert(addr_parse(&b, "unix:/b"));
	ck_assert(!addr_equal(&a, &b));
}
END_TEST

START_TEST(every_byte_is_printed)
{
	struct addr a = { .family = ADDR_IP4 };
	char out[ADDR_TEXT], expected[ADDR_TEXT];

	for (unsigned b = 0; b < 256; b++) {
		a.ip[0] = a.ip[1] = a.ip[3] = (uint8_t)b;
		a.ip[2] = (uint8_t)(255 - b);
		snprintf(expected, sizeof expected, "%u.%u.%u.%u", b, b,
		    255 - b, b);
		ck_assert_str_eq(addr_print_ip(&a, out, sizeof out), expected);
	}
}
END_TEST

START_TEST(printing_never_exceeds_its_room)
{
	struct addr a;

	ck_assert(addr_parse(&a, "[2001:db8:1:2:3:4:5:6]:65535"));
	for (size_t size = 1; size <= 30; size++) {
		char *out = malloc(size);	/* so that ASan sees it */

		addr_print(&a, out, size);
		ck_assert_uint_lt(strlen(out), size);
		addr_print_ip(&a, out, size);
		ck_assert_uint_lt(strlen(out), size);
		free(out);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("addr");
	TCase *t = tcase_create("addr");

	tcase_add_loop_test(t, only_whole_literals_are_addresses, 0,
	    (int)ARRAY_LEN(literals));
	tcase_add_test(t, a_nul_ends_no_literal);
	tcase_add_test(t, every_byte_is_printed);
	tcase_add_loop_test(t, only_1_to_65535_are_ports, 0,
	    (int)ARRAY_LEN(ports));
	tcase_add_loop_test(t, an_operator_writes_address_and_port, 0,
	    (int)ARRAY_LEN(written));
	tcase_add_test(t, a_unix_path_fits_into_a_sockaddr_or_is_refused);
	tcase_add_loop_test(t, a_range_has_what_agrees_in_its_first_bits, 0,
	    (int)ARRAY_LEN(ranges));
	tcase_add_loop_test(t, every_special_block_is_known, 0,
	    (int)ARRAY_LEN(kinds));
	tcase_add_test(t, any_is_all_zero_of_either_family);
	tcase_add_loop_test(t,
	    an_address_survives_the_way_to_the_kernel_and_back, 0,
	    (int)ARRAY_LEN(trips));
	tcase_add_test(t, a_scope_goes_along);
	tcase_add_test(t, what_the_kernel_cuts_short_is_no_address);
	tcase_add_test(t, equal_means_family_address_and_port);
	tcase_add_test(t, printing_never_exceeds_its_room);
	suite_add_tcase(s, t);
	return run_suite(s);
}
