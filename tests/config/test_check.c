/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_check.c - src/config/check.c
 */
#include "config/check.h"

#include "config/loading.h"
#include "harness.h"

#define UPSTREAM	"[upstream u]\nserver = 127.0.0.1:2\n"
#define FORWARD		"[listener f]\nmode = forward\nbind = 127.0.0.1:1\n"
#define GATEWAY \
	"[listener g]\nmode = gateway\nbind = 127.0.0.1:1\nupstream = u\n"
#define TCP \
	"[listener t]\nmode = tcp\nbind = 127.0.0.1:1\nupstream = u\n"
#define ROUTE(name)	"[route " name "]\nlistener = g\nupstream = u\n"

/* Ten limits, of which one exchange may pass eight. */
#define LIMIT(n)	"[limit l" n "]\nrate = 1/s\n"
#define LIMITS \
	LIMIT("0") LIMIT("1") LIMIT("2") LIMIT("3") LIMIT("4") LIMIT("5") \
	LIMIT("6") LIMIT("7") LIMIT("8") LIMIT("9")
#define TOO_MANY \
	"an exchange would pass more than 8 limits: those of listener, " \
	"route and upstream together\n"

static const struct { const char *text, *errors; } wrong[] = {
	/* listeners */
	{ "[listener x]\nbind = 127.0.0.1:1\n", "x.conf:1: [listener x] mode "
	  "is missing: forward, gateway or tcp\n" },
	{ "[listener x]\nmode = forward\n",
	  "x.conf:1: [listener x] bind is missing\n" },
	{ "[listener x]\nmode = forward\nbind = off\n",
	  "x.conf:3: [listener x] bind is missing\n" },
	{ "[listener x]\n", "x.conf:1: [listener x] bind is missing\n"
	  "x.conf:1: [listener x] mode is missing: forward, gateway or tcp\n" },
	{ "[listener x]\nmode = tcp\nbind = :1\n",
	  "x.conf:2: [listener x] upstream is missing\n" },
	{ "[listener x]\nmode = gateway\nbind = :1\n", "x.conf:2: [listener x] "
	  "needs an upstream, or a [route NAME] with listener = x\n" },
	{ "[listener x]\nmode = forward\nbind = 127.0.0.1:1 10.0.0.1:1\n",
	  "x.conf:3: [listener x] access is missing: others than this machine "
	  "could use the proxy\n" },
	{ "[listener x]\nmode = forward\nbind = :1\n",
	  "x.conf:3: [listener x] access is missing: others than this machine "
	  "could use the proxy\n" },
	{ FORWARD "low_watermark = 65k\n", "x.conf:4: [listener f] "
	  "low_watermark is above high_watermark\n" },
	{ FORWARD "high_watermark = 8k\n", "x.conf:1: [listener f] "
	  "low_watermark is above high_watermark\n" },
	{ FORWARD "request_line = 9k\nhead_size = 8k\n",
	  "x.conf:4: [listener f] request_line is above head_size\n" },
	/* keywords of other modes */
	{ FORWARD "upstream = u\n" UPSTREAM, "x.conf:4: [listener f] upstream: "
	  "means nothing in mode = forward\n" },
	{ FORWARD "trusted = all\n", "x.conf:4: [listener f] trusted: means "
	  "nothing in mode = forward\n" },
	{ GATEWAY "access = a\n[access a]\nallow = all\n" UPSTREAM,
	  "x.conf:5: [listener g] access: means nothing in mode = gateway\n" },
	{ GATEWAY "pool_max = 1\npool_idle = 1s\nretry_body = 0\n" UPSTREAM,
	  "x.conf:5: [listener g] pool_max: means nothing in mode = gateway\n"
	  "x.conf:6: [listener g] pool_idle: means nothing in mode = gateway\n"
	  "x.conf:7: [listener g] retry_body: means nothing in mode = gateway\n"
	},
	{ TCP "access = a\n[access a]\nallow = all\n" UPSTREAM,
	  "x.conf:5: [listener t] access: means nothing in mode = tcp\n" },
	{ TCP "trusted = all\nhead_size = 8k\nhead_fields = 9\n"
	  "request_line = 300\nbody_size = 0\n" UPSTREAM,
	  "x.conf:5: [listener t] trusted: means nothing in mode = tcp\n"
	  "x.conf:6: [listener t] head_size: means nothing in mode = tcp\n"
	  "x.conf:7: [listener t] head_fields: means nothing in mode = tcp\n"
	  "x.conf:8: [listener t] request_line: means nothing in mode = tcp\n"
	  "x.conf:9: [listener t] body_size: means nothing in mode = tcp\n" },
	{ TCP "timeout_request_head = 1s\ntimeout_request_body = 1s\n"
	  "timeout_keepalive = 1s\ntimeout_response = 1s\ntimeout_idle = 1s\n"
	  UPSTREAM,
	  "x.conf:5: [listener t] timeout_request_head: means nothing in mode "
	  "= tcp\n"
	  "x.conf:6: [listener t] timeout_request_body: means nothing in mode "
	  "= tcp\n"
	  "x.conf:7: [listener t] timeout_keepalive: means nothing in mode = "
	  "tcp\n"
	  "x.conf:8: [listener t] timeout_response: means nothing in mode = "
	  "tcp\n"
	  "x.conf:9: [listener t] timeout_idle: means nothing in mode = tcp\n"
	},
	/* logs */
	{ FORWARD "[log]\naccess = /var/log/a\nerror = /var/log/a\n",
	  "x.conf:6: [log] error: /var/log/a is the file of access already\n" },
	/* addresses */
	{ FORWARD "bind = 127.0.0.1:1\n", "x.conf:3: [listener f] bind: "
	  "127.0.0.1:1 clashes with 127.0.0.1:1 of [listener f]\n" },
	{ FORWARD "[listener x]\nmode = tcp\nbind = 127.0.0.1:1\n"
	  "upstream = u\n" UPSTREAM, "x.conf:6: [listener x] bind: 127.0.0.1:1 "
	  "clashes with 127.0.0.1:1 of [listener f]\n" },
	{ FORWARD "[listener x]\nmode = tcp\nbind = :1\nupstream = u\n"
	  UPSTREAM, "x.conf:6: [listener x] bind: 0.0.0.0:1 clashes with "
	  "127.0.0.1:1 of [listener f]\n" },
	{ "[listener x]\nmode = forward\nbind = 127.0.0.1:9480\n",
	  "x.conf:3: [listener x] bind: 127.0.0.1:9480 clashes with "
	  "127.0.0.1:9480 of [admin]\n" },
	{ "[admin]\nbind = unix:/a\n[listener x]\nmode = forward\n"
	  "bind = unix:/a\n", "x.conf:5: [listener x] bind: unix:/a clashes "
	  "with unix:/a of [admin]\n" },
	/* the admin listener: only this machine, or whom allow names */
	{ FORWARD "[admin]\nbind = 127.0.0.1:3 0.0.0.0:4\n",
	  "x.conf:5: [admin] allow is missing: others than this machine could "
	  "look at it\n" },
	{ FORWARD "[admin]\nbind = unix:/b [2001:db8::1]:3\n",
	  "x.conf:5: [admin] allow is missing: others than this machine could "
	  "look at it\n" },
	/* routes */
	{ GATEWAY UPSTREAM "[route r]\nupstream = u\n",
	  "x.conf:7: [route r] listener is missing\n" },
	{ GATEWAY UPSTREAM "[route r]\nlistener = g\n",
	  "x.conf:7: [route r] upstream is missing\n" },
	{ TCP UPSTREAM "[route r]\nlistener = t\nupstream = u\n",
	  "x.conf:8: [route r] listener: [listener t] is no gateway\n" },
	{ GATEWAY UPSTREAM ROUTE("r") ROUTE("s"), "x.conf:10: [route s] takes "
	  "host * and path /, as [route r] does\n" },
	{ GATEWAY UPSTREAM ROUTE("r") "host = a B\npath = /x /y\n" ROUTE("s")
	  "host = b c\npath = /y /z\n", "x.conf:12: [route s] takes host b "
	  "and path /y, as [route r] does\n" },
	/* upstreams */
	{ TCP "[upstream u]\n",
	  "x.conf:5: [upstream u] server is missing\n" },
	{ TCP "[upstream u]\nserver = a:1 backup\nserver = b:1 backup\n",
	  "x.conf:6: [upstream u] all servers are backups; one must not be\n" },
	{ TCP UPSTREAM "timeout_keepalive = 1s\ntimeout_request_head = 1s\n",
	  "x.conf:8: [upstream u] timeout_request_head: is over when the "
	  "upstream is chosen; it belongs to a listener\n"
	  "x.conf:7: [upstream u] timeout_keepalive: is over when the "
	  "upstream is chosen; it belongs to a listener\n" },
	/* limits */
	{ FORWARD "[limit l]\nburst = 3\n",
	  "x.conf:5: [limit l] burst: means nothing without rate\n" },
	{ FORWARD "[limit l]\nrate = 0\nwait = 1s\n",
	  "x.conf:6: [limit l] wait: means nothing without rate\n" },
	{ FORWARD "[limit l]\nrate = 1/s\nburst = 0\n", "x.conf:6: burst: "
	  "0 is outside 1 to 4294967296\n" },
	{ FORWARD "[limit l]\nconcurrency = 3\nrate_headers = refused\n",
	  "x.conf:6: [limit l] rate_headers: means nothing without rate\n" },
	{ FORWARD "[limit l]\nqueue = 3\n",
	  "x.conf:5: [limit l] queue: means nothing without concurrency\n" },
	{ FORWARD "[limit l]\nconcurrency = 3\nqueue_timeout = 1s\n",
	  "x.conf:6: [limit l] queue_timeout: means nothing without "
	  "concurrency and queue\n" },
	{ FORWARD "[limit l]\nconcurrency = 3\nqueue_order = adaptive\n",
	  "x.conf:6: [limit l] queue_order: means nothing without concurrency "
	  "and queue\n" },
	{ FORWARD "[limit l]\nconcurrency = 3\nqueue = 3\nqueue_target = 1s\n",
	  "x.conf:7: [limit l] queue_target: means nothing without "
	  "queue_order = adaptive\n" },
	{ FORWARD "[limit l]\nrate = 1/s\nkeys = 100\n",
	  "x.conf:6: [limit l] keys: means nothing without key\n" },
	{ FORWARD "[limit l]\nrate = 1/s\ntable_full = allow\n",
	  "x.conf:6: [limit l] table_full: means nothing without key\n" },
	{ FORWARD "[limit l]\nkey = client_address\nrate = 1001/s\n",
	  "x.conf:6: [limit l] rate: with a key, at most 1000/s\n" },
	{ FORWARD "[limit l]\nkey = client_address\nrate = 60001/m\n",
	  "x.conf:6: [limit l] rate: with a key, at most 1000/s\n" },
	{ FORWARD "[limit l]\nkey = user\nrate = 1/h\nburst = 601\n",
	  "x.conf:7: [limit l] burst: with a key, at most what rate lets "
	  "through in 25 days\n" },
	{ FORWARD "[limit l]\nconcurrency = 3\nqueue_fair_by = user\n",
	  "x.conf:6: [limit l] queue_fair_by: means nothing without "
	  "concurrency and queue\n" },
	{ FORWARD "[limit l]\nconcurrency = 3\nkey = user\nkey_ipv6 = 48\n",
	  "x.conf:7: [limit l] key_ipv6: means nothing without "
	  "client_address\n" },
	{ FORWARD "[limit l]\nconcurrency = 3\nqueue = 3\nkey = user\n"
	  "queue_fair_by = host\n",
	  "x.conf:8: [limit l] queue_fair_by: each key has a queue of its "
	  "own\n" },
	{ FORWARD "[limit l]\nkey = header:a\nconnections = 3\n",
	  "x.conf:6: [limit l] connections: of a client that has connected "
	  "only its address is known\n" },
	{ FORWARD "[limit l]\nconcurrency = 3\nqueue = 3\nkey = user\n"
	  "queue_order = adaptive\n",
	  "x.conf:8: [limit l] queue_order: the queue of a key is fifo\n" },
	{ GATEWAY UPSTREAM "limits = l\n[limit l]\nconnections = 3\n",
	  "x.conf:7: [upstream u] limit l counts connections of listeners, "
	  "and none has it in its limits\n" },
	{ GATEWAY UPSTREAM ROUTE("r") "limits = l\n[limit l]\nrate = 1/s\n"
	  "connections = 3\n",
	  "x.conf:10: [route r] limit l counts connections of listeners, "
	  "and none has it in its limits\n" },
	{ TCP "limits = l\n" UPSTREAM "[limit l]\nkey = host\nrate = 1/s\n",
	  "x.conf:5: [listener t] limit l asks for what only a request has, "
	  "and tcp has none\n" },
	{ TCP UPSTREAM "limits = l\n[limit l]\nconcurrency = 1\nqueue = 1\n"
	  "queue_fair_by = user\n",
	  "x.conf:1: [listener t] limit l asks for what only a request has, "
	  "and tcp has none\n" },
	{ FORWARD "[limit l]\nconcurrency = 3\nconcurrency_min = 1\n",
	  "x.conf:6: [limit l] concurrency_min: means nothing without "
	  "concurrency = adaptive\n" },
	{ FORWARD "[limit l]\nconcurrency_max = 9\n",
	  "x.conf:5: [limit l] concurrency_max: means nothing without "
	  "concurrency = adaptive\n" },
	{ FORWARD "[limit l]\nconcurrency = adaptive\nconcurrency_min = 9\n"
	  "concurrency_max = 8\n",
	  "x.conf:6: [limit l] concurrency_min: above concurrency_max\n" },
	{ FORWARD "[limit l]\nconcurrency = adaptive\nconcurrency_max = 4\n",
	  "x.conf:4: [limit l] concurrency_min: above concurrency_max\n" },
	{ FORWARD "[limit l]\nconcurrency = adaptive\nkey = user\n",
	  "x.conf:5: [limit l] concurrency: adaptive finds one number, not "
	  "one for each key\n" },
	{ FORWARD "[limit l]\nconcurrency = adaptive\ndry_run = on\n",
	  "x.conf:6: [limit l] dry_run: adaptive finds its number by holding "
	  "exchanges back\n" },
	{ TCP "limits = l\n" UPSTREAM "[limit l]\nconcurrency = adaptive\n",
	  "x.conf:5: [listener t] limit l is adaptive, and of tcp nothing "
	  "tells how long a response takes\n" },
	{ FORWARD "[limit l]\nrate = 1/h\nburst = 1281024\n",
	  "x.conf:6: [limit l] burst: would take more than 146 years to come "
	  "back at this rate\n" },
	{ FORWARD "[limit l]\nbandwidth_burst = 64k\n",
	  "x.conf:5: [limit l] bandwidth_burst: means nothing without "
	  "bandwidth_in or bandwidth_out\n" },
	{ FORWARD "[limit l]\nbandwidth_in = 1023\n",
	  "x.conf:5: [limit l] bandwidth_in: at least 1k, or 0\n" },
	{ FORWARD "[limit l]\nbandwidth_out = 1\n",
	  "x.conf:5: [limit l] bandwidth_out: at least 1k, or 0\n" },
	{ FORWARD "[limit l]\nbandwidth_out = 1k\nbandwidth_burst = 65535\n",
	  "x.conf:6: [limit l] bandwidth_burst: at least 64k, as so much may "
	  "come with the head of a request\n" },
	{ FORWARD "[limit l]\nbandwidth_in = 5000000\n"
	  "bandwidth_burst = 99999\n", "x.conf:6: [limit l] bandwidth_burst: "
	  "at least what bandwidth_in lets through in 20ms\n" },
	{ FORWARD "[limit l]\nbandwidth_out = 1k\nbandwidth_burst = 3601k\n",
	  "x.conf:6: [limit l] bandwidth_burst: at most what bandwidth_out "
	  "lets through in an hour\n" },
	{ FORWARD "limits = l0 l1 l2 l3 l4 l5 l6 l7 l8\n" LIMITS,
	  "x.conf:4: [listener f] " TOO_MANY },
	{ FORWARD "limits = l0 l1 l2 l3 l4 l5 l6 l7 l8 l9\n" LIMITS,
	  "x.conf:4: [listener f] " TOO_MANY },
	{ GATEWAY "limits = l0 l1 l2 l3\n" UPSTREAM
	  "limits = l4 l5 l6 l7 l8\n" LIMITS,
	  "x.conf:5: [listener g] " TOO_MANY },
	{ GATEWAY "limits = l0 l1\n" UPSTREAM "limits = l2 l3 l4\n"
	  ROUTE("r") "limits = l5 l6 l7 l8\n" LIMITS,
	  "x.conf:12: [route r] " TOO_MANY },
};

START_TEST(a_rule_that_is_broken_is_told_with_its_line)
{
	expect_errors(wrong[_i].text, wrong[_i].errors);
}
END_TEST

static const char *const right[] = {
	FORWARD,
	"[listener x]\nmode = forward\nbind = [::1]:1 unix:/a 127.9.9.9:1\n",
	"[listener x]\nmode = forward\nbind = :1\naccess = a\n[access a]\n",
	GATEWAY UPSTREAM,
	"[listener g]\nmode = gateway\nbind = :1\n" ROUTE("r") UPSTREAM,
	TCP "timeout_tunnel = 1s\ntimeout_connect = 1s\n" UPSTREAM,
	FORWARD "low_watermark = 64k\n",
	FORWARD "request_line = 8k\nhead_size = 8k\n",
	/* The same port of other addresses and families. */
	FORWARD "[listener x]\nmode = tcp\nbind = [::]:1 127.0.0.2:1\n"
	    "upstream = u\n" UPSTREAM,
	GATEWAY UPSTREAM ROUTE("r") "host = a\n" ROUTE("s") "path = /x\n"
	    ROUTE("t"),
	TCP "[upstream u]\nserver = a:1 backup\nserver = b:1\n",
	FORWARD "[admin]\nbind = [::1]:3 127.0.0.9:3 unix:/b\n",
	FORWARD "[admin]\nbind = :3\nallow = 10.0.0.0/8 private\n"
	    "hosts = a.test *.b.test\nadmin_writes = on\n",
	FORWARD "[admin]\nallow = 10.0.0.0/8\n",
	/* What nobody uses is no mistake. */
	FORWARD UPSTREAM "[limit l]\n[access a]\n",
	FORWARD "[limit l]\nkey = client_address\nrate = 60000/m\nburst = 9\n"
	    "wait = 1s\nkeys = 64\ntable_full = allow\nconnections = 3\n",
	FORWARD "[limit l]\nconcurrency = 1\nqueue = 1\nqueue_timeout = 1s\n"
	    "queue_order = adaptive\nqueue_target = 1ms\n",
	FORWARD "limits = l\n[limit l]\nconcurrency = adaptive\nqueue = 1\n"
	    "concurrency_min = 9\nconcurrency_max = 9\nqueue_timeout = 1s\n",
	FORWARD "[limit l]\nrate = 1/h\nburst = 1281023\n",
	FORWARD "[limit l]\nkey = user\nrate = 1/h\nburst = 600\n",
	FORWARD "[limit l]\nkey = user\nrate = 1000/s\n"
	    "burst = 2160000000\n",
	GATEWAY "limits = l\n" UPSTREAM "limits = l\n" ROUTE("r")
	    "limits = l\n[limit l]\nconnections = 3\n",
	FORWARD "[limit l]\nconcurrency = 3\nqueue = 3\nkey = user\n"
	    "queue_order = fifo\n",
	FORWARD "[limit l]\nrate = 1/h\nrate_headers = always\n"
	    "dry_run = on\n",
	FORWARD "[limit l]\nkey = user\nbandwidth_in = 1k\n"
	    "bandwidth_out = 1t\n",
	FORWARD "[limit l]\nbandwidth_in = 5000000\nbandwidth_out = 1k\n"
	    "bandwidth_burst = 100000\n",
	FORWARD "[limit l]\nbandwidth_in = 1k\nbandwidth_burst = 3600k\n",
	FORWARD "limits = l0 l1 l2 l3 l4 l5 l6 l7\n" LIMITS,
	/* The same one in several places is passed once. */
	GATEWAY "limits = l0 l1 l2 l3 l4\n" UPSTREAM
	    "limits = l4 l5 l6 l0\n" ROUTE("r") "limits = l7 l1 l6\n" LIMITS,
};

START_TEST(what_breaks_no_rule_is_right)
{
	struct config *c = load_right(right[_i]);

	config_free(&c);
}
END_TEST

START_TEST(a_section_with_a_mistake_is_not_reproached_with_what_follows)
{
	expect_errors("[listener x]\nmode = gatway\nbind = 127.0.0.1:1\n"
	    "upstream = u\ntrusted = all\n" UPSTREAM,
	    "x.conf:2: mode: \"gatway\" is no choice; did you mean "
	    "\"gateway\"?\n");
	expect_errors(GATEWAY UPSTREAM "[route r]\nlistener = g\n"
	    "upstream = v\n", "x.conf:9: upstream: there is no [upstream v]; "
	    "did you mean \"u\"?\n");
}
END_TEST

START_TEST(routes_that_are_too_many_to_compare_are_refused)
{
	char *text = calloc(1, 200000), *at;

	at = stpcpy(text, GATEWAY UPSTREAM ROUTE("r"));
	for (int i = 0; i < 1001; i++)
		at += sprintf(at, "host = h%d\npath = /%d\n", i, i);
	expect_errors(text, "x.conf:7: [route r] routes have more than "
	    "1000000 hosts and paths\n");
	free(text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("check");
	TCase *t = tcase_create("check");

	tcase_add_loop_test(t, a_rule_that_is_broken_is_told_with_its_line, 0,
	    (int)ARRAY_LEN(wrong));
	tcase_add_loop_test(t, what_breaks_no_rule_is_right, 0,
	    (int)ARRAY_LEN(right));
	tcase_add_test(t,
	    a_section_with_a_mistake_is_not_reproached_with_what_follows);
	tcase_add_test(t, routes_that_are_too_many_to_compare_are_refused);
	suite_add_tcase(s, t);
	return run_suite(s);
}
