/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_file.c - src/config/file.c and src/config/expand.c
 *
 * Among them is every way in which inih alone misreads a file.
 */
#include "config/file.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include "config/loading.h"
#include "harness.h"

#define X10	"xxxxxxxxxx"
#define X40	X10 X10 X10 X10
#define X160	X40 X40 X40 X40
#define X190	X160 X10 X10 X10

static char folder[32];

static void
a_folder(void)
{
	strcpy(folder, "/tmp/test_file.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void
no_folder(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* Write folder/name, making folders on the way; its path, to be freed. */
static char *
write_file(const char *name, const char *text)
{
	char *path;

	ck_assert_int_gt(asprintf(&path, "%s/%s", folder, name), 0);
	char *slash = strrchr(path, '/');
	*slash = '\0';
	ck_assert(mkdir(path, 0700) == 0 || access(path, F_OK) == 0);
	*slash = '/';
	FILE *out = fopen(path, "w");
	ck_assert_ptr_nonnull(out);
	fputs(text, out);
	fclose(out);
	return path;
}

/* --- lines that are refused --------------------------------------------- */

static const struct { const char *text, *errors; } refused[] = {
	/* inih: the tail becomes a line of its own */
	{ "[penstock]\nuser = " X190 X10 X40 "\n" TCP_LISTENER,
	  "x.conf:2: the line is longer than 198 bytes\n" },
	{ "[penstock]\nuser = " X190 "/?k=evil\n" TCP_LISTENER,
	  "x.conf:2: the line is longer than 198 bytes\n" },
	{ "[penstock]\n; " X190 X10 " workers=2\n" TCP_LISTENER,
	  "x.conf:2: the line is longer than 198 bytes\n" },
	/* inih: the name of a section is cut */
	{ "[limit " X40 "x]\nrate = 1/s\n" TCP_LISTENER,
	  "x.conf:1: the name \"" X40 "x\" is longer than 40 bytes\n" },
	{ "[penstock]\n" X40 "x = 1\n" TCP_LISTENER,
	  "x.conf:2: the name \"" X40 "x\" is longer than 40 bytes\n" },
	/* inih: an indented key is a second value of the one above */
	{ "[penstock]\nworkers = 1\n   user=2\n   workers = 3\n" TCP_LISTENER,
	  "x.conf:4: workers: given again; it is at x.conf:2\n" },
	{ "[penstock]\nworkers = 1\n   2\n" TCP_LISTENER,
	  "x.conf:3: workers: has one value, which ends with its line\n" },
	/* inih: an empty key, no value, a colon for = */
	{ "[penstock]\n=v\n" TCP_LISTENER,
	  "x.conf:2: \"\" is no name: letters, digits, -, _ and . make one\n" },
	{ "[penstock]\nworkers =\n" TCP_LISTENER,
	  "x.conf:2: workers: needs a value\n" },
	{ "[penstock]\nworkers = ; none\n" TCP_LISTENER,
	  "x.conf:2: workers: needs a value\n" },
	{ "[penstock]\nworkers : 2\n" TCP_LISTENER,
	  "x.conf:2: expected keyword = value or [section]\n" },
	{ "[penstock]\na b = 2\n" TCP_LISTENER,
	  "x.conf:2: expected keyword = value or [section]\n" },
	{ "[penstock]\nworkers: = 2\n" TCP_LISTENER, "x.conf:2: \"workers:\" "
	  "is no name: letters, digits, -, _ and . make one\n" },
	{ "[penstock]\nworkers\n" TCP_LISTENER,
	  "x.conf:2: expected keyword = value or [section]\n" },
	/* sections */
	{ "[penstock\n" TCP_LISTENER, "x.conf:1: a section is [kind] or "
	  "[kind NAME], alone on its line\n" },
	{ "[penstock] workers = 2\n" TCP_LISTENER, "x.conf:1: a section is "
	  "[kind] or [kind NAME], alone on its line\n" },
	{ "[]\n" TCP_LISTENER, "x.conf:1: \"\" is no name: letters, digits, "
	  "-, _ and . make one\n" },
	{ "[limit a b]\n" TCP_LISTENER, "x.conf:1: \"a b\" is no name: "
	  "letters, digits, -, _ and . make one\n" },
	{ "[limit a/b]\nrate = 1\n" TCP_LISTENER, "x.conf:1: \"a/b\" is no "
	  "name: letters, digits, -, _ and . make one\n" },
	/* continuations */
	{ "   10.0.0.1\n" TCP_LISTENER, "x.conf:1: this continues a list, but "
	  "there is none above\n" },
	{ "[admin]\n   10.0.0.1:80\n" TCP_LISTENER, "x.conf:2: this continues "
	  "a list, but there is none above\n" },
	{ "[admin]\nbind = 127.0.0.1:3\n[penstock]\n   127.0.0.1:4\n"
	  TCP_LISTENER, "x.conf:4: this continues a list, but there is none "
	  "above\n" },
	{ "  [penstock]\n" TCP_LISTENER, "x.conf:1: this continues a list, "
	  "but there is none above\n" },
	/* control bytes */
	{ "[penstock]\nuser = a\001b\n" TCP_LISTENER,
	  "x.conf:2: a control byte\n" },
	{ "[penstock]\nuser = a\177b\n" TCP_LISTENER,
	  "x.conf:2: a control byte\n" },
	{ "; a comment with \033[31mcolour\n" TCP_LISTENER,
	  "x.conf:1: a control byte\n" },
	{ "[penstock]\r\n" TCP_LISTENER, "x.conf:1: a carriage return; lines "
	  "end with a newline alone\n" },
	/* where nothing may be */
	{ "workers = 2\n" TCP_LISTENER,
	  "x.conf:1: \"workers\" stands before the first [section]\n" },
	{ "[log]\ninclude = a.conf\n" TCP_LISTENER, "x.conf:2: include: may "
	  "stand only before the first section or in [penstock]\n" },
	{ "include = missing.conf\n    more\n" TCP_LISTENER,
	  "x.conf:1: cannot read missing.conf: No such file or directory\n"
	  "x.conf:2: include: has one value; it may be repeated\n" },
	{ "", "x.conf: there is no [listener NAME], so there is nothing to "
	  "do\n" },
};

START_TEST(what_is_no_line_is_refused_with_its_number)
{
	expect_errors(refused[_i].text, refused[_i].errors);
}
END_TEST

START_TEST(a_nul_ends_nothing)
{
	static const char text[] = "[penstock]\nuser = a\0b\n" TCP_LISTENER;

	expect_error(text, sizeof text - 1, "x.conf:2: a NUL byte");
}
END_TEST

START_TEST(a_nul_in_a_comment_is_seen)
{
	static const char text[] = TCP_LISTENER "; a\0b";

	expect_error(text, sizeof text - 1, "x.conf:7: a NUL byte");
}
END_TEST

/* --- lines that are read ------------------------------------------------ */

START_TEST(comments_and_blank_lines_are_skipped)
{
	struct config *c = load_right(
	    "# one\n; two\n  ; three\n\t# four\n\n   \n"
	    "[penstock] ; behind a section\n"
	    "user = a;b#c # d\t; the blank makes it a comment\n"
	    TCP_LISTENER);

	ck_assert_str_eq(c->penstock.user, "a;b#c # d");
	config_free(&c);
}
END_TEST

START_TEST(the_last_line_needs_no_newline)
{
	struct config *c = load_right(TCP_LISTENER "[penstock]\nworkers = 7");

	ck_assert_uint_eq(c->penstock.workers, 7);
	config_free(&c);
}
END_TEST

START_TEST(a_byte_order_mark_is_skipped)
{
	struct config *c = load_right("\xef\xbb\xbf" TCP_LISTENER);

	config_free(&c);
}
END_TEST

START_TEST(blanks_around_everything_mean_nothing)
{
	struct config *c = load_right("[\tlimit   a ]\t\n\t rate\t=\t1/s \t\n"
	    "concurrency=3\n" TCP_LISTENER);

	ck_assert_str_eq(c->limit[0].name_, "a");
	ck_assert_uint_eq(c->limit[0].rate.count, 1);
	ck_assert_uint_eq(c->limit[0].concurrency.count, 3);
	config_free(&c);
}
END_TEST

START_TEST(an_indented_line_continues_a_list)
{
	struct config *c = load_right("[admin]\n"
	    "bind = 127.0.0.1:10 ; one\n"
	    "\t127.0.0.1:11   127.0.0.1:12\n"
	    "\n"
	    "  ; a comment between\n"
	    "  [::1]:10\n"
	    "bind = 127.0.0.1:13\n"
	    "  unix:/a\n" TCP_LISTENER);

	ck_assert_uint_eq(c->admin.bind.count, 6);
	ck_assert_uint_eq(c->admin.bind.at[3].family, ADDR_IP6);
	ck_assert_uint_eq(c->admin.bind.at[5].family, ADDR_UNIX);
	config_free(&c);
}
END_TEST

START_TEST(an_indented_server_is_one_more)
{
	struct config *c = load_right(TCP_LISTENER
	    "   10.0.0.1:80 weight=2\n   10.0.0.2:80 backup ; last\n");

	ck_assert_uint_eq(c->upstream[0].server.count, 3);
	ck_assert_uint_eq(c->upstream[0].server.at[1].weight, 2);
	ck_assert(c->upstream[0].server.at[2].backup);
	config_free(&c);
}
END_TEST

START_TEST(a_line_of_the_longest_is_read_whole)
{
	char text[1024];
	static const char line[] = "hosts = /" X40 X40 X40 "xxxxxxxx";

	/* 9 + 128, and a comment up to the limit of 198. */
	ck_assert_uint_eq(strlen(line), 137);
	snprintf(text, sizeof text, "[penstock]\n%s ; %s\n" TCP_LISTENER, line,
	    X40 X10 "xxxxxxxx");
	struct config *c = load_right(text);
	ck_assert_uint_eq(strlen(c->penstock.hosts), 129);
	config_free(&c);
	snprintf(text, sizeof text, "[penstock]\n%s ; %s\n" TCP_LISTENER, line,
	    X40 X10 "xxxxxxxxx");
	expect_errors(text, "x.conf:2: the line is longer than 198 bytes\n");
}
END_TEST

START_TEST(a_continuation_of_the_longest_is_read_whole)
{
	char text[1024];

	/* Long words are refused for their own length, not cut. */
	snprintf(text, sizeof text, "[admin]\nbind = 127.0.0.1:3\n %s\n"
	    TCP_LISTENER, X190 "xxxxxxx");
	expect_errors(text, "x.conf:3: bind: \"xxxxxxxxxxxxxxxxxxxx...\" is "
	    "longer than 150 bytes\n");
}
END_TEST

/* --- variables ---------------------------------------------------------- */

static struct config *
with_user(const char *value)
{
	char text[512];

	snprintf(text, sizeof text, "[penstock]\nuser = %s\n" TCP_LISTENER,
	    value);
	return load_right(text);
}

static const struct { const char *text, *value; } variables[] = {
	{ "${PENSTOCK_A}",		"one" },
	{ "x${PENSTOCK_A}y",		"xoney" },
	{ "${PENSTOCK_A}${PENSTOCK_A}",	"oneone" },
	{ "${PENSTOCK_NO:-two}",	"two" },
	{ "${PENSTOCK_A:-two}",		"one" },
	{ "${PENSTOCK_EMPTY:-two}",	"two" },
	{ "x${PENSTOCK_EMPTY}",		"x" },
	{ "x${PENSTOCK_NO:-}",		"x" },
	{ "$PENSTOCK_A $ {x} $$",	"$PENSTOCK_A $ {x} $$" },
	{ "${PENSTOCK_NO:-a:-b}",	"a:-b" },
};

START_TEST(variables_are_expanded)
{
	setenv("PENSTOCK_A", "one", 1);
	setenv("PENSTOCK_EMPTY", "", 1);
	struct config *c = with_user(variables[_i].text);
	ck_assert_str_eq(c->penstock.user, variables[_i].value);
	config_free(&c);
}
END_TEST

static const struct { const char *text, *error; } bad_variables[] = {
	{ "${PENSTOCK_NO}",	"the variable PENSTOCK_NO is not set" },
	{ "${PENSTOCK_EMPTY}",	"needs a value" },
	{ "${PENSTOCK_A",	"\"${PENSTOCK_A\" has no }" },
	{ "${}",	"\"${}\" is not ${NAME} or ${NAME:-default}" },
	{ "${1A}",	"\"${1A}\" is not ${NAME} or ${NAME:-default}" },
	{ "${A-b}",	"\"${A-b}\" is not ${NAME} or ${NAME:-default}" },
	{ "${A:b}",	"\"${A:b}\" is not ${NAME} or ${NAME:-default}" },
	{ "${PENSTOCK_LINES}",	"a value can't have control bytes, ${ from a "
	  "variable, or a ; at its start or after a blank" },
	{ "${PENSTOCK_COMMENT}", "a value can't have control bytes, ${ from a "
	  "variable, or a ; at its start or after a blank" },
	{ "${PENSTOCK_NESTED}",	"a value can't have control bytes, ${ from a "
	  "variable, or a ; at its start or after a blank" },
	{ "${PENSTOCK_LONG}",	"longer than 4095 bytes with its variables" },
};

START_TEST(a_variable_that_can_not_be_a_value_is_refused)
{
	char text[512], error[512], *much = calloc(1, 5001);

	memset(much, 'x', 5000);
	setenv("PENSTOCK_LONG", much, 1);
	setenv("PENSTOCK_EMPTY", "", 1);
	setenv("PENSTOCK_LINES", "a\nworkers = 3", 1);
	setenv("PENSTOCK_COMMENT", "a ; b", 1);
	setenv("PENSTOCK_NESTED", "${PENSTOCK_A}", 1);
	snprintf(text, sizeof text, "[penstock]\nuser = %s\n" TCP_LISTENER,
	    bad_variables[_i].text);
	snprintf(error, sizeof error, "x.conf:2: user: %s\n",
	    bad_variables[_i].error);
	expect_errors(text, error);
	free(much);
}
END_TEST

START_TEST(a_variable_may_hold_several_elements_but_no_keyword)
{
	setenv("PENSTOCK_BINDS", "127.0.0.1:10  127.0.0.1:11", 1);
	struct config *c = load_right("[admin]\nbind = ${PENSTOCK_BINDS}\n"
	    TCP_LISTENER);
	ck_assert_uint_eq(c->admin.bind.count, 2);
	config_free(&c);

	setenv("PENSTOCK_BINDS", "level = debug", 1);
	expect_error("[admin]\nbind = ${PENSTOCK_BINDS}\n" TCP_LISTENER,
	    strlen("[admin]\nbind = ${PENSTOCK_BINDS}\n" TCP_LISTENER),
	    "x.conf:2: bind: \"level\" is not address:port, [address]:port, "
	    ":port, unix:/path or off");
}
END_TEST

/* --- files -------------------------------------------------------------- */

static void
expect_load_error(const char *path, const char *fmt, const char *a)
{
	struct loaded l = load_path(path);
	char expected[1024];

	ck_assert_ptr_null(l.config);
	snprintf(expected, sizeof expected, "%s: ", path);
	ck_assert_int_eq(strncmp(l.errors, expected, strlen(expected)), 0);
	snprintf(expected, sizeof expected, fmt, a);
	ck_assert_msg(strstr(l.errors, expected) != NULL, "no \"%s\" in:\n%s",
	    expected, l.errors);
	unload(&l);
}

START_TEST(a_missing_file_is_an_error)
{
	expect_load_error("/nonexistent/x.conf", "cannot read %s: No such "
	    "file or directory", "/nonexistent/x.conf");
}
END_TEST

START_TEST(a_folder_is_no_empty_file)
{
	expect_load_error(folder, "cannot read %s: it is a directory", folder);
}
END_TEST

START_TEST(a_read_error_is_no_end)
{
	struct loaded l = load_path("/proc/self/mem");

	ck_assert_ptr_null(l.config);
	ck_assert_str_eq(l.errors,
	    "/proc/self/mem:1: cannot read on: Input/output error\n");
	unload(&l);
}
END_TEST

START_TEST(an_endless_file_ends)
{
	struct loaded l = load_path("/dev/zero");

	ck_assert_ptr_null(l.config);
	ck_assert_ptr_nonnull(strstr(l.errors, "/dev/zero:1: a NUL byte\n"));
	ck_assert_ptr_nonnull(strstr(l.errors, "larger than 4 MiB"));
	unload(&l);
}
END_TEST

START_TEST(an_unreadable_file_is_an_error)
{
	char *path = write_file("secret.conf", TCP_LISTENER);

	if (geteuid() != 0) {
		ck_assert_int_eq(chmod(path, 0), 0);
		expect_load_error(path, "cannot read %s: Permission denied",
		    path);
	}
	free(path);
}
END_TEST

START_TEST(an_include_is_found_beside_its_file)
{
	free(write_file("d/b.conf", "[penstock]\nworkers = 3\n"));
	char *path = write_file("a.conf", "include = d/b.conf\n" TCP_LISTENER);
	struct loaded l = load_path(path);

	ck_assert_str_eq(l.errors, "");
	ck_assert_uint_eq(l.config->penstock.workers, 3);
	unload(&l);
	free(path);
}
END_TEST

START_TEST(a_pattern_includes_its_matches_in_order)
{
	free(write_file("d/2.conf", "[limit two]\nrate = 2/s\n"));
	free(write_file("d/1.conf", "[limit one]\nrate = 1/s\n"));
	free(write_file("d/3.off", "[limit three]\nrate = 3/s\n"));
	char *path = write_file("a.conf", "[penstock]\nuser = me\n"
	    "include = d/*.conf\nworkers = 5\n" TCP_LISTENER);
	struct loaded l = load_path(path);

	ck_assert_str_eq(l.errors, "");
	ck_assert_uint_eq(l.config->limit_count, 2);
	ck_assert_str_eq(l.config->limit[0].name_, "one");
	ck_assert_str_eq(l.config->limit[1].name_, "two");
	/* [penstock] goes on after it. */
	ck_assert_uint_eq(l.config->penstock.workers, 5);
	unload(&l);
	free(path);
}
END_TEST

START_TEST(what_is_wrong_in_an_include_has_its_own_name_and_line)
{
	char expected[256];
	char *inner = write_file("d/b.conf", "\n[penstock]\nworkers = x\n");
	char *path = write_file("a.conf", "include = d/*.conf\n" TCP_LISTENER);
	struct loaded l = load_path(path);

	snprintf(expected, sizeof expected, "%s:3: workers: \"x\" is not a "
	    "number from 1, or auto\n", inner);
	ck_assert_str_eq(l.errors, expected);
	unload(&l);
	free(inner);
	free(path);
}
END_TEST

START_TEST(a_pattern_without_a_match_is_no_error)
{
	free(write_file("d/x.off", ""));
	char *path = write_file("a.conf", "include = d/*.conf\n" TCP_LISTENER);
	struct loaded l = load_path(path);

	ck_assert_str_eq(l.errors, "");
	unload(&l);
	free(path);
}
END_TEST

START_TEST(a_pattern_in_a_missing_folder_is_an_error)
{
	char *path = write_file("a.conf", "include = no/*.conf\n" TCP_LISTENER);

	struct loaded l = load_path(path);

	ck_assert_ptr_null(l.config);
	ck_assert_ptr_nonnull(strstr(l.errors, "a.conf:1: include: cannot "
	    "look for "));
	unload(&l);
	free(path);
}
END_TEST

START_TEST(a_folder_can_not_be_included)
{
	free(write_file("d/x.conf", ""));
	char *path = write_file("a.conf", "include = d\n" TCP_LISTENER);
	struct loaded l = load_path(path);

	ck_assert_ptr_nonnull(strstr(l.errors, "a.conf:1: cannot read "));
	ck_assert_ptr_nonnull(strstr(l.errors, "it is a directory\n"));
	unload(&l);
	free(path);
}
END_TEST

START_TEST(no_file_is_read_twice)
{
	char *path = write_file("a.conf", "include = *.conf\n" TCP_LISTENER);
	struct loaded l = load_path(path);
	char expected[256];

	snprintf(expected, sizeof expected, "%s:1: %s was read already\n",
	    path, path);
	ck_assert_str_eq(l.errors, expected);
	unload(&l);
	free(path);
}
END_TEST

START_TEST(includes_go_only_so_deep)
{
	char name[32], text[64];

	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof name, "%d.conf", i);
		snprintf(text, sizeof text, "include = %d.conf\n", i + 1);
		free(write_file(name, text));
	}
	char *path = write_file("a.conf", "include = 0.conf\n" TCP_LISTENER);
	struct loaded l = load_path(path);
	ck_assert_ptr_nonnull(strstr(l.errors, "6.conf:1: include: more than "
	    "8 files deep\n"));
	unload(&l);
	free(path);
}
END_TEST

START_TEST(a_folder_with_a_strange_name_is_no_pattern)
{
	free(write_file("[ab]*/b.conf", "[penstock]\nworkers = 3\n"));
	free(write_file("a/b.conf", "[penstock]\nworkers = 4\n"));
	char *path = write_file("[ab]*/a.conf", "include = b.co*\n"
	    TCP_LISTENER);
	struct loaded l = load_path(path);

	ck_assert_str_eq(l.errors, "");
	ck_assert_uint_eq(l.config->penstock.workers, 3);
	unload(&l);
	free(path);
}
END_TEST

static void
add_file_tests(TCase *t)
{
	tcase_add_checked_fixture(t, a_folder, no_folder);
	tcase_add_test(t, a_missing_file_is_an_error);
	tcase_add_test(t, a_folder_is_no_empty_file);
	tcase_add_test(t, a_read_error_is_no_end);
	tcase_add_test(t, an_endless_file_ends);
	tcase_add_test(t, an_unreadable_file_is_an_error);
	tcase_add_test(t, an_include_is_found_beside_its_file);
	tcase_add_test(t, a_pattern_includes_its_matches_in_order);
	tcase_add_test(t,
	    what_is_wrong_in_an_include_has_its_own_name_and_line);
	tcase_add_test(t, a_pattern_without_a_match_is_no_error);
	tcase_add_test(t, a_pattern_in_a_missing_folder_is_an_error);
	tcase_add_test(t, a_folder_can_not_be_included);
	tcase_add_test(t, no_file_is_read_twice);
	tcase_add_test(t, includes_go_only_so_deep);
	tcase_add_test(t, a_folder_with_a_strange_name_is_no_pattern);
}

int
main(void)
{
	Suite *s = suite_create("file");
	TCase *t = tcase_create("lines");

	tcase_add_loop_test(t, what_is_no_line_is_refused_with_its_number, 0,
	    (int)ARRAY_LEN(refused));
	tcase_add_test(t, a_nul_ends_nothing);
	tcase_add_test(t, a_nul_in_a_comment_is_seen);
	tcase_add_test(t, comments_and_blank_lines_are_skipped);
	tcase_add_test(t, the_last_line_needs_no_newline);
	tcase_add_test(t, a_byte_order_mark_is_skipped);
	tcase_add_test(t, blanks_around_everything_mean_nothing);
	tcase_add_test(t, an_indented_line_continues_a_list);
	tcase_add_test(t, an_indented_server_is_one_more);
	tcase_add_test(t, a_line_of_the_longest_is_read_whole);
	tcase_add_test(t, a_continuation_of_the_longest_is_read_whole);
	tcase_add_loop_test(t, variables_are_expanded, 0,
	    (int)ARRAY_LEN(variables));
	tcase_add_loop_test(t, a_variable_that_can_not_be_a_value_is_refused,
	    0, (int)ARRAY_LEN(bad_variables));
	tcase_add_test(t,
	    a_variable_may_hold_several_elements_but_no_keyword);
	suite_add_tcase(s, t);
	t = tcase_create("files");
	add_file_tests(t);
	suite_add_tcase(s, t);
	return run_suite(s);
}
