/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_config.c - src/config/config.c, table.c, dump.c and problem.c
 */
#include "config/config.h"

#include "config/loading.h"
#include "config/table.h"
#include "config/types.h"
#include "harness.h"

/* --- the tables test themselves ----------------------------------------- */

/* What is asked of a keyword when it is set alone. */
static bool
set_alone(const struct section *s, const struct keyword *k, const char *value,
    char *why, size_t size)
{
	char text[512];

	snprintf(text, sizeof text, "[%s%s]\n%s%s = %s\n", s->name,
	    s->is_named ? " x" : "", keyword_prefix(s, k), k->name, value);
	struct loaded l = load_bytes(text, strlen(text));
	/* Rules between keywords are not asked here; they name the section. */
	bool is_good = strstr(l.errors, "x.conf:2: ") == NULL ||
	    strstr(l.errors, "x.conf:2: [") != NULL;
	snprintf(why, size, "%s: %s", text, l.errors);
	unload(&l);
	return is_good;
}

static void
expect_right(const struct section *s, const struct keyword *k,
    const char *value)
{
	char why[1024];

	if (value[0] != '\0')
		ck_assert_msg(set_alone(s, k, value, why, sizeof why), "%s",
		    why);
}

START_TEST(every_fallback_minimum_and_maximum_passes_its_own_checks)
{
	FOR_EACH_SECTION(s)
		FOR_EACH_KEYWORD(k, s) {
			expect_right(s, k, k->fallback);
			expect_right(s, k, k->min);
			expect_right(s, k, k->max);
			if (k->zero[0] != '\0')
				expect_right(s, k, "0");
		}
}
END_TEST

START_TEST(every_number_beyond_its_range_is_refused)
{
	char why[1024];

	FOR_EACH_SECTION(s)
		FOR_EACH_KEYWORD(k, s) {
			if (k->type->compare == NULL)
				continue;
			ck_assert_str_ne(k->min, "");
			ck_assert_str_ne(k->max, "");
			/* Units and limits make this too much for any. */
			const char *much = k->type == &type_TIME ? "9999d" :
			    k->type == &type_RATE ? "1000000001/s" :
			    k->type == &type_BYTES ? "1025g" : "4294967297";
			ck_assert_msg(!set_alone(s, k, much, why, sizeof why),
			    "%s", why);
			if (k->zero[0] == '\0' && strcmp(k->min, "0") != 0)
				ck_assert_msg(!set_alone(s, k, "0", why,
				    sizeof why), "%s", why);
		}
}
END_TEST

START_TEST(every_keyword_has_help_and_ends_it_with_a_full_stop)
{
	FOR_EACH_SECTION(s)
		FOR_EACH_KEYWORD(k, s) {
			size_t n = strlen(k->help);

			ck_assert_uint_gt(n, 10);
			ck_assert_int_eq(k->help[n - 1], '.');
			ck_assert_uint_le(strlen(keyword_prefix(s, k)) +
			    strlen(k->name), CONF_NAME_MAX);
		}
}
END_TEST

START_TEST(every_keyword_is_found_by_its_name)
{
	FOR_EACH_SECTION(s)
		FOR_EACH_KEYWORD(k, s) {
			char name[64];

			snprintf(name, sizeof name, "%s%s",
			    keyword_prefix(s, k), k->name);
			ck_assert_ptr_eq(keyword_find(s, name), k);
		}
	ck_assert_ptr_null(keyword_find(section_find("listener"), "connect"));
	ck_assert_ptr_null(keyword_find(section_find("timeouts"),
	    "timeout_connect"));
}
END_TEST

/* --- values ------------------------------------------------------------- */

START_TEST(what_is_not_given_has_its_fallback)
{
	struct config *c = load_right(TCP_LISTENER "[limit l]\nrate = 3/s\n"
	    "[access a]\nallow = all\n");

	ck_assert_uint_eq(c->penstock.workers, 0);
	ck_assert_str_eq(c->penstock.user, "");
	ck_assert_str_eq(c->penstock.name, "auto");
	ck_assert_str_eq(c->penstock.hosts, "/etc/hosts");
	ck_assert_uint_eq(c->penstock.buffers, 64u << 20);
	ck_assert_ptr_null(c->penstock.origin.file);
	ck_assert_str_eq(c->log.access, "off");
	ck_assert_uint_eq(c->log.level, LEVEL_INFO);
	ck_assert_uint_eq(c->admin.bind.count, 1);
	ck_assert_uint_eq(c->admin.bind.at[0].port, 9480);
	ck_assert_uint_eq(c->timeouts.connect, 4 * NSEC_PER_SEC);
	ck_assert_uint_eq(c->timeouts.total, 0);
	ck_assert_int_eq(c->listener[0].access, CONF_NO_REF);
	ck_assert_uint_eq(c->listener[0].limits.count, 0);
	ck_assert_uint_eq(c->listener[0].timeouts.connect, NSEC_NEVER);
	ck_assert_uint_eq(c->access[0].connect_ports.count, 1);
	ck_assert_uint_eq(c->limit[0].queue_timeout, NSEC_PER_SEC);
	ck_assert_uint_eq(c->limit[0].key.what, LIMIT_KEY_NONE);
	config_free(&c);
}
END_TEST

START_TEST(a_list_that_is_given_replaces_its_fallback)
{
	struct config *c = load_right(TCP_LISTENER "[access a]\n"
	    "connect_ports = 80\nconnect_ports = 81 82\n    83\n"
	    "[admin]\nbind = off\n");

	ck_assert_uint_eq(c->access[0].connect_ports.count, 4);
	ck_assert_uint_eq(c->access[0].connect_ports.at[0].first, 80);
	ck_assert_uint_eq(c->access[0].connect_ports.at[3].first, 83);
	ck_assert_uint_eq(c->admin.bind.count, 0);
	config_free(&c);
}
END_TEST

START_TEST(references_may_point_forward_and_are_indexes)
{
	struct config *c = load_right(
	    "[listener w]\nmode = gateway\nbind = :1 :2\nupstream = b\n"
	    "limits = m l\n"
	    "[upstream a]\nserver = x:1\n[upstream b]\nserver = y:1\n"
	    "[limit l]\nrate = 3/s\n[limit m]\nconcurrency = 1\n"
	    "[listener v]\nmode = gateway\nbind = :3\n"
	    "[route r]\nlistener = v w\nupstream = a\n");

	ck_assert_int_eq(c->listener[0].upstream, 1);
	ck_assert_uint_eq(c->listener[0].limits.count, 2);
	ck_assert_uint_eq(c->listener[0].limits.at[0], 1);
	ck_assert_uint_eq(c->listener[0].limits.at[1], 0);
	ck_assert_uint_eq(c->route[0].listener.at[0], 1);
	ck_assert_uint_eq(c->route[0].listener.at[1], 0);
	ck_assert_int_eq(c->route[0].upstream, 0);
	config_free(&c);
}
END_TEST

START_TEST(sections_know_their_name_and_line)
{
	struct config *c = load_right("[log]\nlevel = debug\n" TCP_LISTENER);

	ck_assert_str_eq(c->listener[0].name_, "t");
	ck_assert_str_eq(c->listener[0].origin.file, "x.conf");
	ck_assert_uint_eq(c->listener[0].origin.line, 3);
	ck_assert_uint_eq(c->log.origin.line, 1);
	ck_assert_str_eq(c->log.name_, "");
	config_free(&c);
}
END_TEST

START_TEST(the_upstreams_times_win_over_the_listeners_and_those_over_all)
{
	struct timeouts t;
	struct config *c = load_right("[timeouts]\nconnect = 1s\nsend = 1s\n"
	    "idle = 1s\ntotal = 1s\n"
	    "[listener t]\nmode = gateway\nbind = 127.0.0.1:1\nupstream = u\n"
	    "timeout_send = 2s\ntimeout_idle = 2s\ntimeout_total = 0\n"
	    "[upstream u]\nserver = 127.0.0.1:2\ntimeout_idle = 3s\n");

	config_timeouts(&t, c, &c->listener[0], &c->upstream[0]);
	ck_assert_uint_eq(t.connect, 1 * NSEC_PER_SEC);
	ck_assert_uint_eq(t.send, 2 * NSEC_PER_SEC);
	ck_assert_uint_eq(t.idle, 3 * NSEC_PER_SEC);
	ck_assert_uint_eq(t.total, 0);
	config_timeouts(&t, c, NULL, NULL);
	ck_assert_uint_eq(t.idle, 1 * NSEC_PER_SEC);
	ck_assert_uint_eq(t.total, 1 * NSEC_PER_SEC);
	config_free(&c);
}
END_TEST

START_TEST(without_a_file_there_is_a_proxy_for_this_machine)
{
	struct config *c = config_builtin();

	ck_assert_uint_eq(c->listener_count, 1);
	ck_assert_str_eq(c->listener[0].name_, "proxy");
	ck_assert_uint_eq(c->listener[0].mode, MODE_FORWARD);
	ck_assert_uint_eq(c->listener[0].bind.at[0].port, 8080);
	ck_assert(addr_is_loopback(&c->listener[0].bind.at[0]));
	ck_assert_uint_eq(c->admin.bind.at[0].port, 9480);
	ck_assert_str_eq(c->log.access, "stderr");
	ck_assert_str_eq(c->listener[0].origin.file, "built-in");
	config_free(&c);
	ck_assert_ptr_null(c);
	config_free(&c);
}
END_TEST

/* --- what is wrong ------------------------------------------------------ */

static const struct { const char *text, *errors; } wrong[] = {
	{ "[lisener a]\n" TCP_LISTENER, "x.conf:1: unknown section [lisener]; "
	  "did you mean \"listener\"?\n" },
	{ "[backend a]\nserver = x\n" TCP_LISTENER, "x.conf:1: unknown section "
	  "[backend]; the nearest is \"access\"\n" },
	{ "[Log]\n" TCP_LISTENER, "x.conf:1: unknown section [Log]; did you "
	  "mean \"log\"?\n" },
	{ "[listener]\nmode = tcp\n" TCP_LISTENER,
	  "x.conf:1: [listener] needs a name: [listener NAME]\n" },
	{ "[log x]\nlevel = x\n" TCP_LISTENER,
	  "x.conf:1: [log x]: [log] has no name\n" },
	{ "[log]\n[log]\n" TCP_LISTENER,
	  "x.conf:2: [log] again; it is at x.conf:1\n" },
	{ TCP_LISTENER "[upstream u]\nserver = x:1\n",
	  "x.conf:7: [upstream u] again; it is at x.conf:5\n" },
	{ "[log]\nlevl = info\n" TCP_LISTENER, "x.conf:2: unknown keyword "
	  "\"levl\" in [log]; did you mean \"level\"?\n" },
	{ "[log]\nLevel = info\n" TCP_LISTENER, "x.conf:2: unknown keyword "
	  "\"Level\" in [log]; did you mean \"level\"?\n" },
	{ "[log]\nburst = 3\n" TCP_LISTENER, "x.conf:2: unknown keyword "
	  "\"burst\" in [log]; it belongs to [limit NAME]\n" },
	{ TCP_LISTENER "timeout_conect = 3s\n", "x.conf:7: unknown keyword "
	  "\"timeout_conect\" in [upstream u]; did you mean "
	  "\"timeout_connect\"?\n" },
	{ "[timeouts]\ntimeout_connect = 3s\n" TCP_LISTENER, "x.conf:2: "
	  "unknown keyword \"timeout_connect\" in [timeouts]; it belongs to "
	  "[listener NAME]\n" },
	{ "[log]\nlevel = info\n\nlevel = info\n" TCP_LISTENER,
	  "x.conf:4: level: given again; it is at x.conf:2\n" },
	{ "[log]\nlevel = inf\n" TCP_LISTENER, "x.conf:2: level: \"inf\" is "
	  "no choice; did you mean \"info\"?\n" },
	{ "[log]\naccess = on\n" TCP_LISTENER, "x.conf:2: access: \"on\" is "
	  "not off, stderr or a path that begins with /\n" },
	{ "[penstock]\nworkers = 65\n" TCP_LISTENER,
	  "x.conf:2: workers: 65 is outside 1 to 64\n" },
	{ "[penstock]\nbuffers = 10\n" TCP_LISTENER,
	  "x.conf:2: buffers: 10 is outside 1m to 64g\n" },
	{ "[penstock]\nbuffers = 10M\n" TCP_LISTENER, "x.conf:2: buffers: "
	  "\"10M\" is not a size: a number, and k, m, g or t\n" },
	{ "[timeouts]\nconnect = 0\n" TCP_LISTENER,
	  "x.conf:2: connect: 0 is outside 10ms to 5m\n" },
	{ "[timeouts]\nconnect = 10\n" TCP_LISTENER, "x.conf:2: connect: "
	  "\"10\" is not a time: a number and ms, s, m, h or d\n" },
	{ TCP_LISTENER "timeout_connect = 6m\n",
	  "x.conf:7: timeout_connect: 6m is outside 10ms to 5m\n" },
	{ "[limit l]\nrate = 2000000000/s\n" TCP_LISTENER,
	  "x.conf:2: rate: 2000000000/s is outside 0 to 1000000000/s\n" },
	{ "[limit l]\nrate = 100\n" TCP_LISTENER, "x.conf:2: rate: \"100\" is "
	  "not a rate: a number and /s, /m or /h\n" },
	{ TCP_LISTENER "limits = none\n",
	  "x.conf:7: limits: there is no [limit none]\n" },
	{ TCP_LISTENER "limits = capacty\n[limit capacity]\nconcurrency = 1\n",
	  "x.conf:7: limits: there is no [limit capacty]; did you mean "
	  "\"capacity\"?\n" },
	{ TCP_LISTENER "limits = l m\n    l\n[limit l]\nconcurrency = 1\n"
	  "[limit m]\nconcurrency = 1\n",
	  "x.conf:8: limits: \"l\" is listed twice\n" },
	{ TCP_LISTENER "server = x\n",
	  "x.conf:7: server: \"x\" needs a port, as in x:80\n" },
	{ TCP_LISTENER "server = x:1\nserver = x:1 backup\n",
	  "x.conf:8: server: \"x:1\" is listed twice\n" },
	{ "[access a]\nallow = 10.0.0.1/8\n" TCP_LISTENER, "x.conf:2: allow: "
	  "\"10.0.0.1/8\" is not an address, a block whose bits after the "
	  "prefix are zero, or loopback, link-local, private, public or all\n"
	},
	/* All of them, in one go. */
	{ "[penstock]\nworkers = 0\nbufers = 1\n[lg]\n[limit l]\nburst = x\n"
	  "[listener a]\nmode = tpc\nbind = 80\nupstream = v\n" TCP_LISTENER,
	  "x.conf:2: workers: \"0\" is not a number from 1, or auto\n"
	  "x.conf:3: unknown keyword \"bufers\" in [penstock]; did you mean "
	  "\"buffers\"?\n"
	  "x.conf:4: unknown section [lg]; did you mean \"log\"?\n"
	  "x.conf:6: burst: \"x\" is not a number\n"
	  "x.conf:8: mode: \"tpc\" is no choice; did you mean \"tcp\"?\n"
	  "x.conf:9: bind: \"80\" is not address:port, [address]:port, :port, "
	  "unix:/path or off\n"
	  "x.conf:10: upstream: there is no [upstream v]; did you mean "
	  "\"u\"?\n" },
};

START_TEST(a_mistake_is_told_with_its_line_and_the_nearest_word)
{
	expect_errors(wrong[_i].text, wrong[_i].errors);
}
END_TEST

START_TEST(after_a_hundred_mistakes_there_are_only_more)
{
	char text[8192] = "[log]\n", *at = text + strlen(text);
	unsigned lines = 0;

	for (int i = 0; i < 300; i++)
		at = stpcpy(at, "x = 1\n");
	struct loaded l = load_bytes(text, strlen(text));
	for (char *p = l.errors; *p != '\0'; p++)
		lines += *p == '\n';
	ck_assert_uint_eq(lines, 101);
	ck_assert_ptr_nonnull(strstr(l.errors, "\nand more\n"));
	unload(&l);
}
END_TEST

START_TEST(a_list_has_an_end)
{
	char *text = calloc(1, 200000), *at;

	at = stpcpy(text, TCP_LISTENER "[access a]\n");
	for (int i = 0; i < 4097; i++)
		at = stpcpy(at, "connect_ports = 80\n");
	expect_errors(text,
	    "x.conf:4104: connect_ports: more than 4096 of them\n");
	free(text);
}
END_TEST

START_TEST(sections_have_an_end)
{
	char *text = calloc(1, 400000), *at = text;

	for (int i = 0; i < 10001; i++)
		at += sprintf(at, "[limit l%d]\n", i);
	strcpy(at, TCP_LISTENER);
	expect_errors(text, "x.conf:10001: more than 10000 [limit] "
	    "sections\n");
	free(text);
}
END_TEST

/* --- the dump ----------------------------------------------------------- */

START_TEST(the_example_is_right_and_its_dump_too)
{
	size_t n;
	char *text = read_example(&n);
	struct loaded l = load_bytes(text, n);

	ck_assert_str_eq(l.errors, "");
	expect_round_trip(l.config);
	/* It has a listener of each mode. */
	unsigned modes = 0;
	for (size_t i = 0; i < l.config->listener_count; i++)
		modes |= BIT(l.config->listener[i].mode);
	ck_assert_uint_eq(modes, 7);
	unload(&l);
	free(text);
}
END_TEST

START_TEST(a_dump_of_all_kinds_of_values_is_read_as_the_same)
{
	struct config *c = load_right(
	    "[penstock]\nuser = a b;c\t#d\nname = x\nnameservers = ::1\n"
	    "[admin]\nbind = off\n"
	    "[access a]\nallow = all public\ndeny_destination = *.x.y:1 "
	    "[fd00::/8]:2 private:3 10.0.0.1\nconnect_ports = all\n"
	    "[listener f]\nmode = forward\nbind = :1 unix:/a\naccess = a\n"
	    "[listener g]\nmode = gateway\nbind = [::1]:2\ntrusted = ::/0\n"
	    "timeout_total = 90s\nhigh_watermark = 5000\n"
	    "low_watermark = 0\nsplice = off\n"
	    "[route r]\nlistener = g\nupstream = u\nhost = * *.a [::1]\n"
	    "path = / /a%20b\nhost_header = [::1]:80\nlimits = l m\n"
	    "[limit l]\nrate = 120/m\nburst = 3\nconcurrency = 1\n"
	    "queue = 1\nqueue_order = adaptive\n"
	    "[limit m]\nkey = client_address\nconcurrency = 1\n"
	    "table_full = allow\n"
	    "[upstream u]\nserver = A:1 backup weight=3\nserver = unix:/B\n"
	    "timeout_connect = 1500ms\n");

	expect_round_trip(c);
	config_free(&c);
}
END_TEST

START_TEST(the_built_in_dump_is_read_as_the_same)
{
	struct config *c = config_builtin();

	expect_round_trip(c);
	config_free(&c);
}
END_TEST

START_TEST(a_dump_says_where_each_value_is_from)
{
	struct config *c = load_right("[log]\nlevel = debug\n" TCP_LISTENER);
	char *text = dump(c, true);

	ck_assert_ptr_nonnull(strstr(text, "\nlevel = debug\t; x.conf:2\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n; access = off\t; default\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n; user is not given\n"));
	ck_assert_ptr_nonnull(strstr(text, "[upstream u]\nserver = "
	    "127.0.0.1:2\t; x.conf:8\n"));
	free(text);
	config_free(&c);
}
END_TEST

START_TEST(a_dump_has_no_line_that_is_too_long)
{
	char name[301], text[512];

	/* File names may hold anything. */
	memset(name, 'x', 300);
	name[300] = '\0';
	memset(name + 250, '\n', 40);
	snprintf(text, sizeof text, "[penstock]\nhosts = /%.149s\n"
	    TCP_LISTENER, name);
	FILE *errors = fopen("/dev/null", "w");
	struct config *c = config_parse(name, text, strlen(text), errors);
	fclose(errors);
	ck_assert_ptr_nonnull(c);
	expect_round_trip(c);
	config_free(&c);
}
END_TEST

/* --- reload ------------------------------------------------------------- */

static void
expect_conflicts(const char *was, const char *is, const char *lines,
    unsigned count)
{
	struct config *a = load_right(was), *b = load_right(is);
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	ck_assert_uint_eq(config_reload_conflicts(out, a, b), count);
	fclose(out);
	ck_assert_str_eq(text, lines);
	free(text);
	config_free(&a);
	config_free(&b);
}

START_TEST(what_a_reload_may_change_is_no_conflict)
{
	expect_conflicts(TCP_LISTENER, TCP_LISTENER "pool_max = 3\n"
	    "[upstream v]\nserver = x:1\n[log]\nlevel = debug\n"
	    "[timeouts]\nconnect = 1s\n", "", 0);
}
END_TEST

START_TEST(the_same_value_written_otherwise_is_no_conflict)
{
	expect_conflicts("[admin]\nbind = :3\nallow = all\n" TCP_LISTENER,
	    TCP_LISTENER "[admin]\nbind = 0.0.0.0:3\nbind = [::]:3\n"
	    "allow = all\n", "", 0);
}
END_TEST

START_TEST(what_needs_a_restart_is_a_conflict)
{
	expect_conflicts(TCP_LISTENER,
	    "[penstock]\nworkers = 3\n[admin]\nbind = [::1]:4\n"
	    "[listener t]\nmode = gateway\nbind = 127.0.0.1:1\nupstream = u\n"
	    "[upstream u]\nserver = 127.0.0.1:2\n",
	    "x.conf:2: [penstock] workers: a change needs a restart\n"
	    "x.conf:4: [admin] bind: a change needs a restart\n"
	    "x.conf:6: [listener t] mode: a change needs a restart\n", 3);
}
END_TEST

START_TEST(listeners_come_and_go_and_move)
{
	expect_conflicts(TCP_LISTENER,
	    "[listener s]\nmode = gateway\nbind = 127.0.0.1:1\n"
	    "upstream = u\n[upstream u]\nserver = 127.0.0.1:2\n", "", 0);
	expect_conflicts(TCP_LISTENER,
	    "[listener t]\nmode = tcp\nbind = 127.0.0.1:3\nupstream = u\n"
	    "[upstream u]\nserver = 127.0.0.1:2\n", "", 0);
}
END_TEST

START_TEST(what_is_no_longer_given_is_a_conflict_without_a_line)
{
	expect_conflicts("[penstock]\nworkers = 3\n" TCP_LISTENER,
	    TCP_LISTENER, "[penstock] workers: a change needs a restart\n",
	    1);
}
END_TEST

static void
add_value_tests(TCase *t)
{
	tcase_add_test(t,
	    every_fallback_minimum_and_maximum_passes_its_own_checks);
	tcase_add_test(t, every_number_beyond_its_range_is_refused);
	tcase_add_test(t,
	    every_keyword_has_help_and_ends_it_with_a_full_stop);
	tcase_add_test(t, every_keyword_is_found_by_its_name);
	tcase_add_test(t, what_is_not_given_has_its_fallback);
	tcase_add_test(t, a_list_that_is_given_replaces_its_fallback);
	tcase_add_test(t, references_may_point_forward_and_are_indexes);
	tcase_add_test(t, sections_know_their_name_and_line);
	tcase_add_test(t,
	    the_upstreams_times_win_over_the_listeners_and_those_over_all);
	tcase_add_test(t, without_a_file_there_is_a_proxy_for_this_machine);
	tcase_add_loop_test(t,
	    a_mistake_is_told_with_its_line_and_the_nearest_word, 0,
	    (int)ARRAY_LEN(wrong));
	tcase_add_test(t, after_a_hundred_mistakes_there_are_only_more);
	tcase_add_test(t, a_list_has_an_end);
	tcase_add_test(t, sections_have_an_end);
}

int
main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("values");

	add_value_tests(t);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);

	t = tcase_create("dump");
	tcase_add_test(t, the_example_is_right_and_its_dump_too);
	tcase_add_test(t, a_dump_of_all_kinds_of_values_is_read_as_the_same);
	tcase_add_test(t, the_built_in_dump_is_read_as_the_same);
	tcase_add_test(t, a_dump_says_where_each_value_is_from);
	tcase_add_test(t, a_dump_has_no_line_that_is_too_long);
	tcase_add_test(t, what_a_reload_may_change_is_no_conflict);
	tcase_add_test(t, the_same_value_written_otherwise_is_no_conflict);
	tcase_add_test(t, what_needs_a_restart_is_a_conflict);
	tcase_add_test(t, listeners_come_and_go_and_move);
	tcase_add_test(t,
	    what_is_no_longer_given_is_a_conflict_without_a_line);
	suite_add_tcase(s, t);
	return run_suite(s);
}
