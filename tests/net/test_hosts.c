/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts.c - src/net/hosts.c
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/addr.h"
#include "harness.h"
#include "net/hosts.h"

static char path[] = "/tmp/penstock-hosts-XXXXXX";
static struct hosts *hosts;
static struct addr_set set;

static void
a_file(void)
{
	memcpy(path + sizeof path - 7, "XXXXXX", 6);
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void
no_file(void)
{
	hosts_free(&hosts);
	unlink(path);
}

static void
read_hosts(const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
	hosts_free(&hosts);
	hosts = hosts_read(path);
	ck_assert_ptr_nonnull(hosts);
}

static void
read_text(const char *text)
{
	read_hosts(text, strlen(text));
}

/* The addresses of a name, with spaces between. */
static const char *
found(const char *name)
{
	static char text[RESOLVER_ADDRS * ADDR_TEXT];
	char one[ADDR_TEXT];
	size_t n = 0;

	text[0] = '\0';
	if (!hosts_find(hosts, name, strlen(name), &set))
		return text;
	for (unsigned i = 0; i < set.count; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s",
		    i > 0 ? " " : "", addr_print_ip(&set.addrs[i], one,
		    sizeof one));
	return text;
}

START_TEST(every_name_of_a_line_has_its_address)
{
	read_text("10.0.0.1 a b.example\tc\r\n::1 six\n");
	ck_assert_str_eq(found("a"), "10.0.0.1");
	ck_assert_str_eq(found("b.example"), "10.0.0.1");
	ck_assert_str_eq(found("c"), "10.0.0.1");
	ck_assert_str_eq(found("six"), "::1");
	ck_assert_str_eq(found("b"), "");
	ck_assert_str_eq(found("b.example2"), "");
}
END_TEST

START_TEST(addresses_of_one_name_keep_the_files_order)
{
	read_text("10.0.0.9 x\n::1 y x\n10.0.0.1 a x\n10.0.0.9 x\n");
	ck_assert_str_eq(found("x"), "10.0.0.9 ::1 10.0.0.1");
}
END_TEST

START_TEST(a_name_has_eight_addresses_at_most)
{
	char text[1000];
	size_t n = 0;

	for (int i = 1; i <= 20; i++)
		n += (size_t)snprintf(text + n, sizeof text - n,
		    "10.0.0.%d x\n", i);
	read_text(text);
	ck_assert_str_eq(found("x"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 "
	    "10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8");
}
END_TEST

START_TEST(case_final_dots_and_comments_do_not_matter)
{
	read_text("# 1.1.1.1 no\n  10.0.0.1 Big.Example. # no\n10.0.0.2 b#c");
	ck_assert_str_eq(found("big.example"), "10.0.0.1");
	ck_assert_str_eq(found("b"), "10.0.0.2");
	ck_assert_str_eq(found("no"), "");
	ck_assert_str_eq(found("c"), "");
}
END_TEST

START_TEST(what_is_no_address_or_no_name_is_passed_over)
{
	read_text("nonsense a\n127.1 a\n1.2.3.4\nfe80::1%lo a\n\n\n"
	    "10.0.0.1 b/c 1.2.3.4 good\n10.0.0.2");
	ck_assert_str_eq(found("a"), "");
	ck_assert_str_eq(found("b/c"), "");
	ck_assert_str_eq(found("1.2.3.4"), "");
	ck_assert_str_eq(found("good"), "10.0.0.1");
}
END_TEST

START_TEST(a_nul_in_the_file_spoils_one_word_only)
{
	static const char text[] = "10.0.0.1 a\0b good\n10.0.0.2 c\n";

	read_hosts(text, sizeof text - 1);
	ck_assert_str_eq(found("a"), "");
	ck_assert_str_eq(found("good"), "10.0.0.1");
	ck_assert_str_eq(found("c"), "10.0.0.2");
}
END_TEST

START_TEST(only_the_first_mib_is_read)
{
	size_t size = 1024 * 1024 + 100;
	char *text = malloc(size);

	ck_assert_ptr_nonnull(text);
	memset(text, '\n', size);
	memcpy(text, "10.0.0.1 first\n", 15);
	/* "cut.example" would become "cut.exam". */
	memcpy(text + 1024 * 1024 - 17, "10.0.0.2 cut.example", 20);
	memcpy(text + 1024 * 1024 + 20, "10.0.0.3 beyond", 15);
	read_hosts(text, size);
	free(text);
	ck_assert_str_eq(found("first"), "10.0.0.1");
	ck_assert_str_eq(found("cut.exam"), "");
	ck_assert_str_eq(found("cut.example"), "");
	ck_assert_str_eq(found("beyond"), "");
}
END_TEST

START_TEST(many_names_are_all_found)
{
	char text[64 * 1024], name[16], want[32];
	size_t n = 0;

	for (int i = 0; i < 1000; i++)
		n += (size_t)snprintf(text + n, sizeof text - n,
		    "10.0.%d.%d n%d\n", i / 250, i % 250, i * 7919 % 1000);
	read_hosts(text, n);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "n%d", i * 7919 % 1000);
		snprintf(want, sizeof want, "10.0.%d.%d", i / 250, i % 250);
		ck_assert_str_eq(found(name), want);
	}
}
END_TEST

START_TEST(a_missing_file_has_no_names)
{
	hosts = hosts_read("/nonexistent/hosts");
	ck_assert_ptr_nonnull(hosts);
	ck_assert_str_eq(found("localhost"), "");
}
END_TEST

START_TEST(a_directory_and_a_pipe_have_no_names)
{
	hosts = hosts_read("/tmp");
	ck_assert_str_eq(found("a"), "");
	hosts_free(&hosts);
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	hosts = hosts_read(path);
	ck_assert_str_eq(found("a"), "");
}
END_TEST

START_TEST(an_empty_file_and_no_table_have_no_names)
{
	read_text("");
	ck_assert_str_eq(found("a"), "");
	hosts_free(&hosts);
	ck_assert_str_eq(found("a"), "");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("hosts");
	TCase *t = tcase_create("hosts");

	tcase_add_checked_fixture(t, a_file, no_file);
	tcase_add_test(t, every_name_of_a_line_has_its_address);
	tcase_add_test(t, addresses_of_one_name_keep_the_files_order);
	tcase_add_test(t, a_name_has_eight_addresses_at_most);
	tcase_add_test(t, case_final_dots_and_comments_do_not_matter);
	tcase_add_test(t, what_is_no_address_or_no_name_is_passed_over);
	tcase_add_test(t, a_nul_in_the_file_spoils_one_word_only);
	tcase_add_test(t, only_the_first_mib_is_read);
	tcase_add_test(t, many_names_are_all_found);
	tcase_add_test(t, a_missing_file_has_no_names);
	tcase_add_test(t, a_directory_and_a_pipe_have_no_names);
	tcase_add_test(t, an_empty_file_and_no_table_have_no_names);
	suite_add_tcase(s, t);
	return run_suite(s);
}
