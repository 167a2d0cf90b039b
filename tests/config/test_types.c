/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_types.c - src/config/types.c and src/config/types_list.c
 */
#include "config/types.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "config/store.h"
#include "harness.h"

/* Large enough for the value of any type. */
union value {
	uint64_t		 number;
	bool			 flag;
	const char		*text;
	unsigned		 choice;
	struct conf_rate	 rate;
	struct conf_addrs	 addrs;
	struct conf_rules	 rules;
	struct conf_ports	 ports;
	struct conf_servers	 servers;
	struct conf_words	 words;
};

static struct conf_reading reading;

static void
a_reading(void)
{
	reading = (struct conf_reading){ .store = store_new() };
}

static void
end_of_reading(void)
{
	store_free(&reading.store);
}

static bool
parse(const struct conf_type *t, const char *text, union value *v)
{
	memset(v, 0, sizeof *v);
	return t->parse(&reading, t, text, v);
}

/* All of a value as text, elements with a comma between them. */
static char *
print(const struct conf_type *t, const union value *v)
{
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	for (size_t i = 0; i < type_count(t, v); i++) {
		if (i > 0)
			fputc(',', out);
		t->print(out, NULL, v, i);
	}
	fclose(out);
	return text;
}

/* --- numbers ------------------------------------------------------------ */

static const struct {
	const struct conf_type	*type;
	const char		*text;
	uint64_t		 value;
	const char		*printed;	/* NULL: as read */
} numbers[] = {
	{ &type_COUNT,	"0",		0,			NULL },
	{ &type_COUNT,	"1000000",	1000000,		NULL },
	{ &type_COUNT,	"18446744073709551615", UINT64_MAX,	NULL },
	{ &type_BYTES,	"0",		0,			NULL },
	{ &type_BYTES,	"1",		1,			NULL },
	{ &type_BYTES,	"1023",		1023,			NULL },
	{ &type_BYTES,	"1024",		1024,			"1k" },
	{ &type_BYTES,	"64k",		65536,			NULL },
	{ &type_BYTES,	"3m",		3u << 20,		NULL },
	{ &type_BYTES,	"1g",		1u << 30,		NULL },
	{ &type_BYTES,	"2048m",	UINT64_C(1) << 31,	"2g" },
	{ &type_BYTES,	"1t",		UINT64_C(1) << 40,	NULL },
	{ &type_BYTES,	"16777215t",	UINT64_C(16777215) << 40, NULL },
	{ &type_WORKERS, "auto",	0,			NULL },
	{ &type_WORKERS, "8",		8,			NULL },
	{ &type_TIME,	"0",		0,			NULL },
	{ &type_TIME,	"0s",		0,			"0" },
	{ &type_TIME,	"1ms",		1000000,		NULL },
	{ &type_TIME,	"1500ms",	1500 * NSEC_PER_MSEC,	NULL },
	{ &type_TIME,	"2s",		2 * NSEC_PER_SEC,	NULL },
	{ &type_TIME,	"90s",		90 * NSEC_PER_SEC,	NULL },
	{ &type_TIME,	"120s",		120 * NSEC_PER_SEC,	"2m" },
	{ &type_TIME,	"1h",		3600 * NSEC_PER_SEC,	NULL },
	{ &type_TIME,	"7d",		604800 * NSEC_PER_SEC,	NULL },
	{ &type_MODE,	"forward",	MODE_FORWARD,		NULL },
	{ &type_MODE,	"tcp",		MODE_TCP,		NULL },
	{ &type_LEVEL,	"debug",	LEVEL_DEBUG,		NULL },
	{ &type_BALANCE, "least_busy",	BALANCE_LEAST_BUSY,	NULL },
	{ &type_QUEUE_ORDER, "adaptive", QUEUE_ORDER_ADAPTIVE,	NULL },
	{ &type_TABLE_FULL, "allow",	TABLE_FULL_ALLOW,	NULL },
	{ &type_PRIORITY, "high",	PRIORITY_HIGH,		NULL },
	{ &type_LOG_FORMAT, "json",	LOG_FORMAT_JSON,	NULL },
	{ &type_LOG_FORMAT, "logfmt",	LOG_FORMAT_LOGFMT,	NULL },
	{ &type_LOG_FORMAT, "combined",	LOG_FORMAT_COMBINED,	NULL },
	{ &type_SAMPLE, "1",		1,			NULL },
	{ &type_SAMPLE, "1/1",		1,			"1" },
	{ &type_SAMPLE, "1/100",	100,			NULL },
	{ &type_SAMPLE, "1/1000000",	1000000,		NULL },
	{ &type_FLAG,	"on",		true,			NULL },
	{ &type_FLAG,	"off",		false,			NULL },
};

START_TEST(a_number_is_read_exactly_and_written_in_its_largest_unit)
{
	const char *as = numbers[_i].printed;
	union value v;

	ck_assert(parse(numbers[_i].type, numbers[_i].text, &v));
	ck_assert_uint_eq(v.number, numbers[_i].value);
	char *text = print(numbers[_i].type, &v);
	ck_assert_str_eq(text, as != NULL ? as : numbers[_i].text);
	free(text);
}
END_TEST

static const struct {
	const char	*text;
	uint64_t	 count;
	nsec_t		 span;
	const char	*printed;
} rates[] = {
	{ "0",		0,		NSEC_PER_SEC,		"0" },
	{ "0/h",	0,		3600 * NSEC_PER_SEC,	"0" },
	{ "100/s",	100,		NSEC_PER_SEC,		"100/s" },
	{ "10/m",	10,		60 * NSEC_PER_SEC,	"10/m" },
	{ "5/h",	5,		3600 * NSEC_PER_SEC,	"5/h" },
};

START_TEST(a_rate_has_a_count_and_a_span)
{
	union value v;

	ck_assert(parse(&type_RATE, rates[_i].text, &v));
	ck_assert_uint_eq(v.rate.count, rates[_i].count);
	ck_assert_uint_eq(v.rate.span, rates[_i].span);
	char *text = print(&type_RATE, &v);
	ck_assert_str_eq(text, rates[_i].printed);
	free(text);
}
END_TEST

START_TEST(rates_of_different_spans_are_compared_by_what_they_let_through)
{
	struct conf_rate a = { 60, 60 * NSEC_PER_SEC };
	struct conf_rate b = { 1, NSEC_PER_SEC };
	struct conf_rate c = { UINT64_MAX, 3600 * NSEC_PER_SEC };
	struct conf_rate d = { UINT64_MAX, NSEC_PER_SEC };

	ck_assert_int_eq(type_RATE.compare(&a, &b), 0);
	ck_assert_int_lt(type_RATE.compare(&b, &c), 0);
	ck_assert_int_gt(type_RATE.compare(&d, &c), 0);
}
END_TEST

/* --- what is read and written the same, or canonically ------------------ */

static const struct {
	const struct conf_type	*type;
	const char		*text, *printed;
} texts[] = {
	{ &type_TEXT,	"nobody",	"nobody" },
	{ &type_TOKEN,	"proxy-1.example", "proxy-1.example" },
	{ &type_LOGFILE, "off",		"off" },
	{ &type_LOGFILE, "stderr",	"stderr" },
	{ &type_LOGFILE, "/var/log/x y", "/var/log/x y" },
	{ &type_ERRORFILE, "stderr",	"stderr" },
	{ &type_ERRORFILE, "/var/log/x", "/var/log/x" },
	{ &type_PATHNAME, "/etc/hosts",	"/etc/hosts" },
	{ &type_AUTHORITY, "example.com", "example.com" },
	{ &type_AUTHORITY, "example.com:8080", "example.com:8080" },
	{ &type_AUTHORITY, "10.0.0.1",	"10.0.0.1" },
	{ &type_AUTHORITY, "10.0.0.1:80", "10.0.0.1:80" },
	{ &type_AUTHORITY, "[::1]",	"[::1]" },
	{ &type_AUTHORITY, "[::1]:80",	"[::1]:80" },
	{ &type_ADDRS,	"10.0.0.1",	"10.0.0.1:53" },
	{ &type_ADDRS,	"10.0.0.1:5353", "10.0.0.1:5353" },
	{ &type_ADDRS,	"::1",		"[::1]:53" },
	{ &type_BINDS,	":80",		"0.0.0.0:80,[::]:80" },
	{ &type_BINDS,	"127.0.0.1:80",	"127.0.0.1:80" },
	{ &type_BINDS,	"[fd00::1]:80",	"[fd00::1]:80" },
	{ &type_BINDS,	"[::ffff:127.0.0.1]:80", "127.0.0.1:80" },
	{ &type_BINDS,	"unix:/run/P.sock", "unix:/run/P.sock" },
	{ &type_BINDS,	"off",		"" },
	{ &type_RANGES,	"10.0.0.0/8",	"10.0.0.0/8" },
	{ &type_RANGES,	"10.1.2.3",	"10.1.2.3" },
	{ &type_RANGES,	"fd00::/8",	"fd00::/8" },
	{ &type_RANGES,	"fd00::1",	"fd00::1" },
	{ &type_RANGES,	"loopback",	"127.0.0.0/8,::1,0.0.0.0,::" },
	{ &type_RANGES,	"link-local",	"169.254.0.0/16,fe80::/10" },
	{ &type_RANGES,	"private",
	    "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7" },
	{ &type_RANGES,	"all",		"0.0.0.0/0,::/0" },
	{ &type_RANGES,	"public",	"public" },
	{ &type_DESTINATIONS, "10.0.0.0/8:443", "10.0.0.0/8:443" },
	{ &type_DESTINATIONS, "10.0.0.1", "10.0.0.1" },
	{ &type_DESTINATIONS, "fd00::/8", "fd00::/8" },
	{ &type_DESTINATIONS, "[fd00::/8]:443", "[fd00::/8]:443" },
	{ &type_DESTINATIONS, "[fd00::/8]", "fd00::/8" },
	{ &type_DESTINATIONS, "[::1]:80", "[::1]:80" },
	{ &type_DESTINATIONS, "public:443", "public:443" },
	{ &type_DESTINATIONS, "all:53",	"0.0.0.0/0:53,[::/0]:53" },
	{ &type_DESTINATIONS, "Example.COM", "example.com" },
	{ &type_DESTINATIONS, "example.com:80", "example.com:80" },
	{ &type_DESTINATIONS, "*.Example.com:80", "*.example.com:80" },
	{ &type_DESTINATIONS, "localhost", "localhost" },
	{ &type_PORTS,	"443",		"443" },
	{ &type_PORTS,	"8000-8999",	"8000-8999" },
	{ &type_PORTS,	"80-80",	"80" },
	{ &type_PORTS,	"all",		"all" },
	{ &type_SERVERS, "10.0.0.1:80",	"10.0.0.1:80" },
	{ &type_SERVERS, "10.0.0.1:80 \t weight=2  backup",
	    "10.0.0.1:80 weight=2 backup" },
	{ &type_SERVERS, "10.0.0.1:80 backup weight=256",
	    "10.0.0.1:80 weight=256 backup" },
	{ &type_SERVERS, "Db1.internal:5432", "db1.internal:5432" },
	{ &type_SERVERS, "[::1]:80 weight=1", "[::1]:80" },
	{ &type_SERVERS, "unix:/run/A.sock", "unix:/run/A.sock" },
	{ &type_HOSTS,	"API.example.com", "api.example.com" },
	{ &type_HOSTS,	"*.example.com", "*.example.com" },
	{ &type_HOSTS,	"*",		"*" },
	{ &type_HOSTS,	"10.0.0.1",	"10.0.0.1" },
	{ &type_HOSTS,	"[::1]",	"[::1]" },
	{ &type_PATHS,	"/",		"/" },
	{ &type_PATHS,	"/V1/a%20b",	"/V1/a%20b" },
	{ &type_CONCURRENCY, "12",	"12" },
	{ &type_CONCURRENCY, "0",	"0" },
	{ &type_CONCURRENCY, "adaptive", "adaptive" },
	{ &type_KEY,	"none",		"none" },
	{ &type_KEY,	"client_address", "client_address" },
	{ &type_KEY,	"user",		"user" },
	{ &type_KEY,	"host",		"host" },
	{ &type_KEY,	"header:X-Api-Key", "header:x-api-key" },
};

START_TEST(what_is_written_is_read_as_the_same)
{
	const struct conf_type *t = texts[_i].type;
	union value v, again;

	memset(&again, 0, sizeof again);
	ck_assert_msg(parse(t, texts[_i].text, &v), "%s", reading.why);
	char *text = print(t, &v);
	ck_assert_str_eq(text, texts[_i].printed);
	for (char *rest = text, *one; (one = strsep(&rest, ",")) != NULL;)
		if (one[0] != '\0')
			ck_assert(t->parse(&reading, t, one, &again));
	char *text_again = print(t, t->shape == CONF_SCALAR ||
	    again.words.count > 0 ? &again : &v);
	ck_assert_str_eq(text_again, texts[_i].printed);
	free(text_again);
	free(text);
}
END_TEST

/* --- what is refused ---------------------------------------------------- */

#define LONG_PATH \
	"/123456789012345678901234567890123456789012345678901234567890" \
	"12345678901234567890123456789012345678901234567890"

static const struct {
	const struct conf_type	*type;
	const char		*text;
} wrong[] = {
	{ &type_FLAG,	"yes" },	{ &type_FLAG,	"On" },
	{ &type_COUNT,	"" },		{ &type_COUNT,	"-1" },
	{ &type_COUNT,	"+1" },		{ &type_COUNT,	"1k" },
	{ &type_COUNT,	"0x10" },	{ &type_COUNT,	"1 " },
	{ &type_COUNT,	"18446744073709551616" },
	{ &type_BYTES,	"" },		{ &type_BYTES,	"k" },
	{ &type_BYTES,	"1K" },		{ &type_BYTES,	"1kb" },
	{ &type_BYTES,	"1.5m" },	{ &type_BYTES,	"1 k" },
	{ &type_BYTES,	"16777216t" },	{ &type_BYTES,	"-1k" },
	{ &type_WORKERS, "0" },		{ &type_WORKERS, "Auto" },
	{ &type_TIME,	"" },		{ &type_TIME,	"10" },
	{ &type_TIME,	"1us" },	{ &type_TIME,	"1.5s" },
	{ &type_TIME,	"1m30s" },	{ &type_TIME,	"-1s" },
	{ &type_TIME,	"213504d" },	{ &type_TIME,	"s" },
	{ &type_RATE,	"10" },		{ &type_RATE,	"10/d" },
	{ &type_RATE,	"/s" },		{ &type_RATE,	"10s" },
	{ &type_RATE,	"10/" },	{ &type_RATE,	"1.5/s" },
	{ &type_RATE,	"0x" },
	{ &type_CONCURRENCY, "" },	{ &type_CONCURRENCY, "Adaptive" },
	{ &type_CONCURRENCY, "auto" },	{ &type_CONCURRENCY, "-1" },
	{ &type_KEY,	"" },		{ &type_KEY,	"address" },
	{ &type_KEY,	"header" },	{ &type_KEY,	"header:" },
	{ &type_KEY,	"header:a b" },	{ &type_KEY,	"header:a:" },
	{ &type_KEY,	"Header:a" },	{ &type_KEY,	"host:a" },
	{ &type_KEY,
	  "header:a2345678901234567890123456789012345678901" },
	{ &type_TOKEN,	"a b" },	{ &type_TOKEN,	"a\"b" },
	{ &type_TOKEN,	"1a" },		{ &type_TOKEN,	"a,b" },
	{ &type_TOKEN,	"a23456789012345678901234567890123456789012" },
	{ &type_LOGFILE, "stdout" },	{ &type_LOGFILE, "log/access" },
	{ &type_ERRORFILE, "off" },	{ &type_ERRORFILE, "error.log" },
	{ &type_SAMPLE, "" },		{ &type_SAMPLE, "0" },
	{ &type_SAMPLE, "2" },		{ &type_SAMPLE, "1/0" },
	{ &type_SAMPLE, "2/100" },	{ &type_SAMPLE, "1/" },
	{ &type_SAMPLE, "1/1000001" },	{ &type_SAMPLE, "1/1.5" },
	{ &type_SAMPLE, "off" },	{ &type_SAMPLE, "11" },
	{ &type_PATHNAME, "hosts" },
	{ &type_AUTHORITY, "a b" },	{ &type_AUTHORITY, "a:0" },
	{ &type_AUTHORITY, "::1" },	{ &type_AUTHORITY, "[::1" },
	{ &type_AUTHORITY, "a:80:80" },	{ &type_AUTHORITY, "a/b" },
	{ &type_AUTHORITY, "u@a" },	{ &type_AUTHORITY, ":80" },
	{ &type_ADDRS,	"ns.example" },	{ &type_ADDRS,	"unix:/a" },
	{ &type_ADDRS,	"10.0.0.1:" },
	{ &type_BINDS,	"80" },		{ &type_BINDS,	"localhost:80" },
	{ &type_BINDS,	"::1:80" },	{ &type_BINDS,	"127.0.0.1" },
	{ &type_BINDS,	"127.0.0.1:0" }, { &type_BINDS,	":65536" },
	{ &type_BINDS,	"127.1:80" },	{ &type_BINDS,	"unix:run/a" },
	{ &type_BINDS,	"unix:" },	{ &type_BINDS,	"*:80" },
	{ &type_BINDS,	"unix:" LONG_PATH },
	{ &type_RANGES,	"10.0.0.1/8" },	{ &type_RANGES,	"10.0.0.0/33" },
	{ &type_RANGES,	"10.0.0" },	{ &type_RANGES,	"example.com" },
	{ &type_RANGES,	"10.0.0.0/8:80" }, { &type_RANGES, "Private" },
	{ &type_RANGES,	"fd00::/129" },	{ &type_RANGES,	"" },
	{ &type_DESTINATIONS, "10.0.0.256" },
	{ &type_DESTINATIONS, "10.0.0.1/8" },
	{ &type_DESTINATIONS, "a:0" },	{ &type_DESTINATIONS, "a:" },
	{ &type_DESTINATIONS, "[a]:80" }, { &type_DESTINATIONS, "[::1" },
	{ &type_DESTINATIONS, "[]" },	{ &type_DESTINATIONS, "[::1]x" },
	{ &type_DESTINATIONS, "*" },	{ &type_DESTINATIONS, "a.*.b" },
	{ &type_DESTINATIONS, "a..b" },	{ &type_DESTINATIONS, "-a.b" },
	{ &type_DESTINATIONS, "a.b." },	{ &type_DESTINATIONS, "a/b" },
	{ &type_PORTS,	"0" },		{ &type_PORTS,	"65536" },
	{ &type_PORTS,	"9-8" },	{ &type_PORTS,	"1-" },
	{ &type_PORTS,	"-1" },		{ &type_PORTS,	"1-2-3" },
	{ &type_PORTS,	"http" },
	{ &type_SERVERS, "10.0.0.1" },	{ &type_SERVERS, "a:b" },
	{ &type_SERVERS, "a:80 weight=0" },
	{ &type_SERVERS, "a:80 weight=257" },
	{ &type_SERVERS, "a:80 weight=1 weight=1" },
	{ &type_SERVERS, "a:80 backup backup" },
	{ &type_SERVERS, "a:80 b:80" },	{ &type_SERVERS, "::1:80" },
	{ &type_SERVERS, "unix:a" },	{ &type_SERVERS, "http://a:80" },
	{ &type_SERVERS, "1.2.3.4.5:80" },
	{ &type_SERVERS, "unix:" LONG_PATH },
	{ &type_HOSTS,	"a:80" },	{ &type_HOSTS,	"*.*" },
	{ &type_HOSTS,	"a b" },	{ &type_HOSTS,	"::1" },
	{ &type_HOSTS,	"1.2.3" },	{ &type_HOSTS,	"*a" },
	{ &type_PATHS,	"v1" },		{ &type_PATHS,	"/a?b" },
	{ &type_PATHS,	"/a/../b" },	{ &type_PATHS,	"/." },
	{ &type_PATHS,	"/a#b" },	{ &type_PATHS,	"/\xc3\xa4" },
	{ &type_MODE,	"" },		{ &type_MODE,	"Forward" },
};

START_TEST(what_is_no_such_value_is_refused_with_a_reason)
{
	union value v;

	ck_assert_msg(!parse(wrong[_i].type, wrong[_i].text, &v), "%s",
	    wrong[_i].text);
	ck_assert_uint_gt(strlen(reading.why), 5);
	ck_assert_ptr_nonnull(strstr(reading.why, wrong[_i].text[0] == '\0' ?
	    "\"\"" : "\""));
}
END_TEST

/* --- the parts of a value ----------------------------------------------- */

START_TEST(a_server_is_a_name_to_resolve_or_an_address)
{
	union value v;
	struct conf_server *s;

	memset(&v, 0, sizeof v);
	ck_assert(type_SERVERS.parse(&reading, &type_SERVERS, "DB.int:5432",
	    &v));
	ck_assert(type_SERVERS.parse(&reading, &type_SERVERS,
	    "10.0.0.1:80 weight=3 backup", &v));
	ck_assert(type_SERVERS.parse(&reading, &type_SERVERS, "unix:/a", &v));
	ck_assert_uint_eq(v.servers.count, 3);
	s = v.servers.at;
	ck_assert_str_eq(s[0].host, "db.int");
	ck_assert_uint_eq(s[0].port, 5432);
	ck_assert_uint_eq(s[0].weight, 1);
	ck_assert(!s[0].backup);
	ck_assert_ptr_null(s[1].host);
	ck_assert_uint_eq(s[1].addr.family, ADDR_IP4);
	ck_assert_uint_eq(s[1].addr.port, 80);
	ck_assert_uint_eq(s[1].port, 80);
	ck_assert_uint_eq(s[1].weight, 3);
	ck_assert(s[1].backup);
	ck_assert_str_eq(s[1].text, "10.0.0.1:80");
	ck_assert_uint_eq(s[2].addr.family, ADDR_UNIX);
	ck_assert_str_eq(s[2].addr.path, "/a");
}
END_TEST

START_TEST(a_server_is_listed_once)
{
	union value v;

	memset(&v, 0, sizeof v);
	ck_assert(type_SERVERS.parse(&reading, &type_SERVERS, "a:80", &v));
	ck_assert(!type_SERVERS.parse(&reading, &type_SERVERS,
	    "A:80 weight=2", &v));
	ck_assert_str_eq(reading.why, "\"a:80\" is listed twice");
}
END_TEST

START_TEST(a_suffix_is_kept_without_its_star)
{
	union value v;

	ck_assert(parse(&type_DESTINATIONS, "*.example.com:81", &v));
	ck_assert_uint_eq(v.rules.at[0].kind, RULE_SUFFIX);
	ck_assert_str_eq(v.rules.at[0].name, "example.com");
	ck_assert_uint_eq(v.rules.at[0].port, 81);
}
END_TEST

START_TEST(lists_grow_and_keep_what_they_have)
{
	union value v;
	char text[16];

	memset(&v, 0, sizeof v);
	for (unsigned i = 1; i <= 1000; i++) {
		snprintf(text, sizeof text, "%u", i);
		ck_assert(type_PORTS.parse(&reading, &type_PORTS, text, &v));
	}
	ck_assert_uint_eq(v.ports.count, 1000);
	for (unsigned i = 1; i <= 1000; i++)
		ck_assert_uint_eq(v.ports.at[i - 1].first, i);
}
END_TEST

START_TEST(a_wrong_choice_names_the_nearest)
{
	union value v;

	ck_assert(!parse(&type_MODE, "gatewya", &v));
	ck_assert_str_eq(reading.why,
	    "\"gatewya\" is no choice; did you mean \"gateway\"?");
}
END_TEST

START_TEST(host_names_have_labels_of_at_most_63_bytes)
{
	char label[66];

	memset(label, 'a', sizeof label);
	ck_assert(type_is_host_name(str_make(label, 63)));
	ck_assert(!type_is_host_name(str_make(label, 64)));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("types");
	TCase *t = tcase_create("types");

	tcase_add_checked_fixture(t, a_reading, end_of_reading);
	tcase_add_loop_test(t,
	    a_number_is_read_exactly_and_written_in_its_largest_unit, 0,
	    (int)ARRAY_LEN(numbers));
	tcase_add_loop_test(t, a_rate_has_a_count_and_a_span, 0,
	    (int)ARRAY_LEN(rates));
	tcase_add_test(t,
	    rates_of_different_spans_are_compared_by_what_they_let_through);
	tcase_add_loop_test(t, what_is_written_is_read_as_the_same, 0,
	    (int)ARRAY_LEN(texts));
	tcase_add_loop_test(t,
	    what_is_no_such_value_is_refused_with_a_reason, 0,
	    (int)ARRAY_LEN(wrong));
	tcase_add_test(t, a_server_is_a_name_to_resolve_or_an_address);
	tcase_add_test(t, a_server_is_listed_once);
	tcase_add_test(t, a_suffix_is_kept_without_its_star);
	tcase_add_test(t, lists_grow_and_keep_what_they_have);
	tcase_add_test(t, a_wrong_choice_names_the_nearest);
	tcase_add_test(t, host_names_have_labels_of_at_most_63_bytes);
	suite_add_tcase(s, t);
	return run_suite(s);
}
