/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_log.c - src/base/log.c
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

#include "base/log.h"

#define WHEN	"[0-9]*-[0-9]*-[0-9]*T[0-9]*:[0-9]*:[0-9]*.[0-9]*Z "

enum { SPEAKERS = 4, LINES = 200 };

static char dir[] = "/tmp/test_log.XXXXXX";
static char path[64];
static struct log *l;
static _Atomic nsec_t now;

static nsec_t
test_clock(void)
{
	return now;
}

static void
a_directory(void)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/log", dir);
	now = 1000 * NSEC_PER_SEC;
}

static void
no_directory(void)
{
	log_free(&l);
	unlink(path);
	rmdir(dir);
}

static void
open_at(const char *where, enum log_level level)
{
	int err = log_new(&l, &(struct log_opts){
	    .path = where, .level = level, .clock = test_clock });

	ck_assert_int_eq(err, 0);
}

/* End the log; its lines must match these patterns, one each. */
static void
check_lines(int n, const char *const *patterns)
{
	char line[8192];
	int i = 0;

	log_free(&l);
	FILE *f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	for (; fgets(line, sizeof line, f) != NULL; i++) {
		line[strcspn(line, "\n")] = '\0';
		ck_assert_msg(i < n, "too many lines: %s", line);
		ck_assert_msg(fnmatch(patterns[i], line, 0) == 0,
		    "\"%s\" is not \"%s\"", line, patterns[i]);
	}
	fclose(f);
	ck_assert_int_eq(i, n);
}

#define CHECK_LINES(...) do {						\
	static const char *const patterns_[] = { __VA_ARGS__ };		\
	check_lines((int)ARRAY_LEN(patterns_), patterns_);		\
} while (0)

START_TEST(a_line_has_its_time_and_level)
{
	open_at(path, SAY_DEBUG);
	log_say(l, SAY_ERROR, "e %d", 1);
	log_say(l, SAY_WARNING, "w");
	log_say(l, SAY_NOTICE, "n");
	log_say(l, SAY_INFO, "i");
	log_say(l, SAY_DEBUG, "d");
	CHECK_LINES(WHEN "error: e 1", WHEN "warning: w", WHEN "notice: n",
	    WHEN "info: i", WHEN "debug: d");
}
END_TEST

START_TEST(what_is_below_the_level_is_not_said)
{
	open_at(path, SAY_NOTICE);
	log_say(l, SAY_INFO, "no");
	log_say(l, SAY_NOTICE, "yes");
	ck_assert(!log_hears(l, SAY_INFO));
	log_set_level(l, SAY_INFO);
	ck_assert(log_hears(l, SAY_INFO));
	log_say(l, SAY_INFO, "now");
	log_set_level(l, SAY_ERROR);
	log_say(l, SAY_WARNING, "no");
	CHECK_LINES(WHEN "notice: yes", WHEN "info: now");
}
END_TEST

START_TEST(nobody_hears_without_a_log)
{
	ck_assert(!log_hears(NULL, SAY_ERROR));
	log_say(NULL, SAY_ERROR, "x");
	log_free(&l);
}
END_TEST

START_TEST(foreign_bytes_make_no_line_and_no_colour)
{
	open_at(path, SAY_INFO);
	log_say(l, SAY_INFO, "%s", "a\n2026 error: b\r\x1b[0m\xe4\\");
	CHECK_LINES(WHEN "info: a\\\\x0a2026 error: b\\\\x0d\\\\x1b\\[0m"
	    "\\\\xe4\\\\\\\\");
}
END_TEST

START_TEST(a_message_too_long_is_cut)
{
	char text[2 * LOG_TEXT_MAX], line[8192];

	memset(text, '\xff', sizeof text);
	text[sizeof text - 1] = '\0';
	open_at(path, SAY_INFO);
	log_say(l, SAY_INFO, "%s", text);
	ck_assert_uint_eq(log_dropped(l), 0);
	log_free(&l);
	FILE *f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
	fclose(f);
	ck_assert_uint_eq(strlen(line),
	    strlen("2026-01-01T00:00:00.000Z info: \n") + 4 * LOG_TEXT_MAX);
}
END_TEST

static void
complain(int n)
{
	for (int i = 0; i < n; i++)
		log_say(l, SAY_WARNING, "no %d", i);
}

START_TEST(repeats_within_a_second_are_summed_up)
{
	open_at(path, SAY_INFO);
	complain(LOG_BURST + 5);
	log_say(l, SAY_INFO, "another kind");
	now += NSEC_PER_SEC;
	complain(1);
	CHECK_LINES(WHEN "warning: no 0", WHEN "warning: no 1",
	    WHEN "warning: no 2", WHEN "warning: no 3", WHEN "warning: no 4",
	    WHEN "warning: no 5", WHEN "warning: no 6", WHEN "warning: no 7",
	    WHEN "warning: no 8", WHEN "warning: no 9",
	    WHEN "info: another kind",
	    WHEN "warning: 5 more suppressed, like: no 9",
	    WHEN "warning: no 0");
}
END_TEST

START_TEST(the_last_repeats_are_summed_up_at_the_end)
{
	open_at(path, SAY_INFO);
	complain(LOG_BURST + 1);
	CHECK_LINES(WHEN "*", WHEN "*", WHEN "*", WHEN "*", WHEN "*",
	    WHEN "*", WHEN "*", WHEN "*", WHEN "*", WHEN "warning: no 9",
	    WHEN "warning: 1 more suppressed, like: no 9");
}
END_TEST

START_TEST(debug_lines_are_not_held_back)
{
	char line[256];
	int n = 0;

	open_at(path, SAY_DEBUG);
	for (int i = 0; i < 3 * LOG_BURST; i++)
		log_say(l, SAY_DEBUG, "x");
	log_free(&l);
	FILE *f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f) != NULL)
		n++;
	fclose(f);
	ck_assert_int_eq(n, 3 * LOG_BURST);
}
END_TEST

/* Check's time limit fails this one if the writer's thread doesn't do it. */
START_TEST(repeats_are_summed_up_even_if_silence_follows)
{
	char line[256];

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	open_at(path, SAY_INFO);
	complain(LOG_BURST + 3);
	now += NSEC_PER_SEC;
	FILE *f = fdopen(fd, "r");
	do
		ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
	while (fnmatch(WHEN "warning: 3 more suppressed, like: no 9\n", line,
	    0) != 0);
	fclose(f);
}
END_TEST

static void *
speak(void *arg)
{
	for (int i = 0; i < LINES; i++)
		log_say(l, SAY_DEBUG, "%s %d|", (const char *)arg, i);
	return NULL;
}

START_TEST(many_threads_say_whole_lines)
{
	static char names[SPEAKERS][2] = { "a", "b", "c", "d" };
	pthread_t threads[SPEAKERS];
	int next[SPEAKERS] = { 0 };
	char line[256], name;
	int number;

	open_at(path, SAY_DEBUG);
	for (int i = 0; i < SPEAKERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, speak,
		    names[i]), 0);
	for (int i = 0; i < SPEAKERS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(log_dropped(l), 0);
	log_free(&l);

	FILE *f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f) != NULL) {
		ck_assert_int_eq(sscanf(line, "%*s debug: %c %d|", &name,
		    &number), 2);
		ck_assert_int_eq(number, next[name - 'a']++);
		ck_assert_str_eq(line + strlen(line) - 2, "|\n");
	}
	fclose(f);
	for (int i = 0; i < SPEAKERS; i++)
		ck_assert_int_eq(next[i], LINES);
}
END_TEST

/* Say one line on a stderr that is our file, with this JOURNAL_STREAM. */
static void
say_to_stderr(const char *stream)
{
	setenv("JOURNAL_STREAM", stream, 1);
	open_at(NULL, SAY_INFO);
	log_say(l, SAY_WARNING, "w");
	log_free(&l);
}

START_TEST(only_the_journal_gets_its_prefix)
{
	int saved = dup(STDERR_FILENO);
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	char stream[64];
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	snprintf(stream, sizeof stream, "%llu:%llu",
	    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	dup2(fd, STDERR_FILENO);
	say_to_stderr(stream);
	say_to_stderr("1:2");
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	CHECK_LINES("<4>w", WHEN "warning: w");
}
END_TEST

START_TEST(a_log_that_can_not_be_opened_is_an_error)
{
	int err = log_new(&l, &(struct log_opts){ .path = "/nonexistent/x" });

	ck_assert_int_eq(err, -ENOENT);
	ck_assert_ptr_null(l);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("log");
	TCase *t = tcase_create("log");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, a_directory, no_directory);
	tcase_add_test(t, a_line_has_its_time_and_level);
	tcase_add_test(t, what_is_below_the_level_is_not_said);
	tcase_add_test(t, nobody_hears_without_a_log);
	tcase_add_test(t, foreign_bytes_make_no_line_and_no_colour);
	tcase_add_test(t, a_message_too_long_is_cut);
	tcase_add_test(t, repeats_within_a_second_are_summed_up);
	tcase_add_test(t, the_last_repeats_are_summed_up_at_the_end);
	tcase_add_test(t, debug_lines_are_not_held_back);
	tcase_add_test(t, repeats_are_summed_up_even_if_silence_follows);
	tcase_add_test(t, many_threads_say_whole_lines);
	tcase_add_test(t, only_the_journal_gets_its_prefix);
	tcase_add_test(t, a_log_that_can_not_be_opened_is_an_error);
	suite_add_tcase(s, t);
	return run_suite(s);
}
