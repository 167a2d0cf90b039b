/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stats.c - src/base/stats.c
 *
 * With --print it writes a text with every row of counters.def instead, which
 * lint_metrics.sh gives to promtool.
 */
#include <stdio.h>

#include "harness.h"

#include "base/stats.h"

/* Each scope's struct with another number in every field. */
static struct worker_stats worker;
static struct listener_stats listener;
static struct upstream_stats upstream;
static struct server_stats server;

static struct metrics m;
static char *text;

static void
every_counter_with_a_number_of_its_own(void)
{
	uint64_t n = 100;

#define WORKER_COUNTER(field, ...)	stat_add(&worker.field, n++);
#define LISTENER_COUNTER(field, ...)	stat_add(&listener.field, n++);
#define UPSTREAM_COUNTER(field, ...)	stat_add(&upstream.field, n++);
#define SERVER_COUNTER(field, ...)	stat_add(&server.field, n++);
#define LISTENER_HIST(field, ...)	hist_add(&listener.field, n++);
#define UPSTREAM_HIST(field, ...)	hist_add(&upstream.field, n++);
#include "base/counters.def"
	stat_code(&listener, 200);
	stat_code(&listener, 503);
	stat_code(&listener, 503);
	stat_failure(&listener, FAIL_QUEUE_FULL);
	metrics_init(&m);
}

static void
free_text(void)
{
	free(text);
	text = NULL;
	metrics_fini(&m);
}

static void
print_all(void)
{
	struct stats_item workers[] = { { .stats = &worker } };
	struct stats_item listeners[] = {
		{ .name = "web", .stats = &listener },
		{ .name = "pro\"xy", .stats = &listener },
	};
	struct stats_item upstreams[] = {
		{ .name = "api", .stats = &upstream },
	};
	struct stats_item servers[] = {
		{ .name = "api", .server = "10.0.0.1:80", .stats = &server },
		{ .name = "api", .server = "[::1]:80", .stats = &server },
	};

	stats_print(&m, STATS_WORKER, workers, 1);
	stats_print(&m, STATS_LISTENER, listeners, 2);
	stats_print(&m, STATS_UPSTREAM, upstreams, 1);
	stats_print(&m, STATS_SERVER, servers, 2);
}

/* What was printed, with a NUL. */
static void
take_text(void)
{
	struct str s;

	ck_assert(metrics_text(&m, &s));
	text = strndup(s.at, s.len);
}

/* How often the line is in the text. */
static int
count_lines(const char *line)
{
	size_t len = strlen(line);
	int n = 0;

	for (const char *p = text; *p != '\0'; p = strchr(p, '\n') + 1)
		n += strncmp(p, line, len) == 0 && p[len] == '\n';
	return n;
}

static void
check_line(const char *line)
{
	ck_assert_msg(count_lines(line) == 1, "%s is not once in:\n%s", line,
	    text);
}

/* The line that a row must give, from the row. */
static void
check_row(const char *metric, const char *labels, const char *label,
    const counter_t *field)
{
	char line[256], own[64] = "";
	int name = (int)strcspn(label, "=");
	const char *comma = labels[0] != '\0' && label[0] != '\0' ? "," : "";
	bool braces = labels[0] != '\0' || label[0] != '\0';

	if (label[0] != '\0')
		snprintf(own, sizeof own, "%.*s=\"%s\"", name, label,
		    label + name + 1);
	snprintf(line, sizeof line, "penstock_%s%s%s%s%s%s %llu", metric,
	    braces ? "{" : "", labels, comma, own, braces ? "}" : "",
	    (unsigned long long)stat_read(field));
	check_line(line);
}

START_TEST(every_row_gives_its_line)
{
	print_all();
	take_text();
#define WORKER_COUNTER(field, kind, metric, label, help) \
	check_row(metric, "", label, &worker.field);
#define LISTENER_COUNTER(field, kind, metric, label, help) \
	check_row(metric, "listener=\"web\"", label, &listener.field);	\
	check_row(metric, "listener=\"pro\\\"xy\"", label, &listener.field);
#define UPSTREAM_COUNTER(field, kind, metric, label, help) \
	check_row(metric, "upstream=\"api\"", label, &upstream.field);
#define SERVER_COUNTER(field, kind, metric, label, help)		\
	check_row(metric, "upstream=\"api\",server=\"[::1]:80\"", label, \
	    &server.field);
#define LISTENER_HIST(field, metric, help) \
	check_line("penstock_" metric "_count{listener=\"web\"} 1");
#define UPSTREAM_HIST(field, metric, help) \
	check_line("penstock_" metric "_count{upstream=\"api\"} 1");
#include "base/counters.def"
}
END_TEST

START_TEST(codes_and_reasons_are_printed_if_they_occurred)
{
	print_all();
	take_text();
	check_line("penstock_requests_total{listener=\"web\",code=\"200\"} 1");
	check_line("penstock_requests_total{listener=\"web\",code=\"503\"} 2");
	check_line("penstock_failures_total{listener=\"web\","
	    "reason=\"queue_full\"} 1");
	ck_assert_ptr_null(strstr(text, "code=\"404\""));
	ck_assert_ptr_null(strstr(text, "reason=\"denied\""));
}
END_TEST

START_TEST(each_metric_has_one_head_and_stands_together)
{
	char seen[200][64], name[64];
	int n = 0;

	print_all();
	take_text();
	for (char *p = text; *p != '\0'; p = strchr(p, '\n') + 1) {
		if (sscanf(p, "# TYPE %63s", name) == 1) {
			for (int i = 0; i < n; i++)
				ck_assert_str_ne(seen[i], name);
			ck_assert_int_lt(n, 200);
			strcpy(seen[n++], name);
		} else if (p[0] != '#') {
			ck_assert_int_gt(n, 0);
			ck_assert_msg(strncmp(p, name, strlen(name)) == 0,
			    "under %s: %.60s", name, p);
		}
	}
	ck_assert_int_gt(n, 20);
}
END_TEST

START_TEST(the_text_of_a_scope_is_exact)
{
	struct stats_item item = { .name = "u", .server = "s",
	    .stats = &server };

	server = (struct server_stats){ 0 };
	stat_increment(&server.requests);
	stat_increment(&server.in_use);
	stats_print(&m, STATS_SERVER, &item, 1);
	take_text();
	ck_assert_str_eq(text,
	    "# HELP penstock_server_in_use "
	    "Exchanges and tunnels that a server is busy with.\n"
	    "# TYPE penstock_server_in_use gauge\n"
	    "penstock_server_in_use{upstream=\"u\",server=\"s\"} 1\n"
	    "# HELP penstock_server_requests_total "
	    "Exchanges and tunnels given to a server.\n"
	    "# TYPE penstock_server_requests_total counter\n"
	    "penstock_server_requests_total{upstream=\"u\",server=\"s\"} 1\n"
	    "# HELP penstock_server_failures_total "
	    "Exchanges and tunnels that failed because of a server.\n"
	    "# TYPE penstock_server_failures_total counter\n"
	    "penstock_server_failures_total{upstream=\"u\",server=\"s\"} 0\n");
}
END_TEST

START_TEST(a_merge_adds_every_field)
{
	struct worker_stats w = { 0 };
	struct listener_stats *l = calloc(1, sizeof *l);
	struct upstream_stats u = { 0 };
	struct server_stats s = { 0 };

	for (int i = 0; i < 2; i++) {
		stats_merge(STATS_WORKER, &w, &worker);
		stats_merge(STATS_LISTENER, l, &listener);
		stats_merge(STATS_UPSTREAM, &u, &upstream);
		stats_merge(STATS_SERVER, &s, &server);
	}
#define TWICE(sum, one)	ck_assert_uint_eq(stat_read(sum), 2 * stat_read(one));
#define WORKER_COUNTER(field, ...)	TWICE(&w.field, &worker.field)
#define LISTENER_COUNTER(field, ...)	TWICE(&l->field, &listener.field)
#define UPSTREAM_COUNTER(field, ...)	TWICE(&u.field, &upstream.field)
#define SERVER_COUNTER(field, ...)	TWICE(&s.field, &server.field)
#define LISTENER_HIST(field, ...) \
	TWICE(&l->field.sum, &listener.field.sum)
#define UPSTREAM_HIST(field, ...) \
	TWICE(&u.field.sum, &upstream.field.sum)
#include "base/counters.def"
	ck_assert_uint_eq(stat_read(&l->codes[503]), 4);
	ck_assert_uint_eq(stat_read(&l->failed[FAIL_QUEUE_FULL]), 2);
	free(l);
}
END_TEST

START_TEST(a_level_goes_up_and_down_and_never_below_zero)
{
	struct stats_item item = { .name = "u", .server = "s",
	    .stats = &server };

	server = (struct server_stats){ 0 };
	stat_increment(&server.in_use);
	stat_decrement(&server.in_use);
	ck_assert_uint_eq(stat_read(&server.in_use), 0);
	stat_decrement(&server.in_use);
	stats_print(&m, STATS_SERVER, &item, 1);
	take_text();
	check_line("penstock_server_in_use{upstream=\"u\",server=\"s\"} 0");
}
END_TEST

START_TEST(what_is_no_status_and_no_failure_is_not_counted)
{
	struct listener_stats *l = calloc(1, sizeof *l);
	static const struct listener_stats none;

	stat_code(l, 0);
	stat_code(l, 99);
	stat_code(l, 600);
	stat_failure(l, FAIL_NONE);
	ck_assert_mem_eq(l, &none, sizeof none);
	stat_code(l, 100);
	stat_code(l, 599);
	ck_assert_uint_eq(stat_read(&l->codes[100]), 1);
	ck_assert_uint_eq(stat_read(&l->codes[599]), 1);
	free(l);
}
END_TEST

static int
print_sample(void)
{
	struct str s;

	every_counter_with_a_number_of_its_own();
	print_all();
	if (!metrics_text(&m, &s) || fwrite(s.at, 1, s.len, stdout) != s.len)
		return EXIT_FAILURE;
	metrics_fini(&m);
	return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	Suite *s;
	TCase *t;

	if (argc == 2 && strcmp(argv[1], "--print") == 0)
		return print_sample();
	s = suite_create("stats");
	t = tcase_create("stats");
	tcase_add_checked_fixture(t, every_counter_with_a_number_of_its_own,
	    free_text);
	tcase_add_test(t, every_row_gives_its_line);
	tcase_add_test(t, codes_and_reasons_are_printed_if_they_occurred);
	tcase_add_test(t, each_metric_has_one_head_and_stands_together);
	tcase_add_test(t, the_text_of_a_scope_is_exact);
	tcase_add_test(t, a_merge_adds_every_field);
	tcase_add_test(t, a_level_goes_up_and_down_and_never_below_zero);
	tcase_add_test(t, what_is_no_status_and_no_failure_is_not_counted);
	suite_add_tcase(s, t);
	return run_suite(s);
}
