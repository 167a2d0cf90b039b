/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_log_writer.c - src/base/log_writer.c, log_ring.c
 */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "base/log_rig.h"

enum {
	LINES = 20000,
	PRODUCERS = 3,
	WRAP_LINE = 3000,
};

#define MEGABYTE	((off_t)1 << 20)

/* --- the way to the file ------------------------------------------------ */

static void *
produce(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	struct log_ring *r = log_writer_ring(w, me);
	char line[128];

	for (int i = 0; i < LINES; i++) {
		int n = snprintf(line, sizeof line, "%u %d %.*s|", me, i,
		    i % 90, "....................................."
		    ".....................................................");

		while (!log_put(r, line, (size_t)n))
			sched_yield();
	}
	return NULL;
}

START_TEST(every_line_arrives_whole_and_in_its_producers_order)
{
	pthread_t threads[PRODUCERS];
	int next[PRODUCERS] = { 0 };
	char line[256];
	unsigned who;
	int number;

	start(path, PRODUCERS, NSEC_PER_MSEC);
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, produce,
		    (void *)i), 0);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	log_writer_stop(&w);

	FILE *f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f) != NULL) {
		ck_assert_int_eq(sscanf(line, "%u %d ", &who, &number), 2);
		ck_assert_uint_lt(who, PRODUCERS);
		ck_assert_int_eq(number, next[who]++);
		ck_assert_str_eq(line + strlen(line) - 2, "|\n");
	}
	fclose(f);
	for (int i = 0; i < PRODUCERS; i++)
		ck_assert_int_eq(next[i], LINES);
}
END_TEST

START_TEST(a_stop_writes_what_is_left)
{
	start(path, 1, AN_HOUR);
	ck_assert(put("one"));
	ck_assert(put(""));
	ck_assert(put("two"));
	ck_assert_uint_eq(log_writer_dropped(w), 0);
	log_writer_stop(&w);
	ck_assert_ptr_null(w);
	log_writer_stop(&w);
	check_contents(path, "one\n\ntwo\n");
}
END_TEST

START_TEST(a_file_is_appended_to_and_private)
{
	struct stat st;

	for (int i = 0; i < 2; i++) {
		start(path, 1, AN_HOUR);
		ck_assert(put("x"));
		log_writer_stop(&w);
	}
	check_contents(path, "x\nx\n");
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0137, 0);
}
END_TEST

START_TEST(a_line_beyond_the_longest_is_dropped)
{
	char *line = malloc(LOG_LINE_MAX + 1);

	memset(line, 'x', LOG_LINE_MAX + 1);
	start(path, 1, AN_HOUR);
	ck_assert(!log_put(log_writer_ring(w, 0), line, LOG_LINE_MAX + 1));
	ck_assert_uint_eq(log_writer_dropped(w), 1);
	ck_assert(log_put(log_writer_ring(w, 0), line, LOG_LINE_MAX));
	ck_assert_uint_eq(log_writer_dropped(w), 1);
	free(line);
}
END_TEST

START_TEST(a_path_that_can_not_be_opened_is_an_error)
{
	int err = log_writer_start(&w, &(struct log_writer_opts){
	    .path = "/nonexistent/log", .rings = 1, .ring_size = RING });

	ck_assert_int_eq(err, -ENOENT);
	ck_assert_ptr_null(w);
}
END_TEST

/*
 * Check's time limit fails this one if nobody wakes the writer.  It may still
 * be awake when the ring gets half full, but hardly so every time.
 */
START_TEST(a_ring_half_full_wakes_the_writer)
{
	char line[1023], bytes[RING / 2];

	memset(line, 'x', sizeof line);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	FILE *f = fopen(path, "r+e");
	ck_assert_ptr_nonnull(f);
	start(path, 1, AN_HOUR);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < RING / 2 / 1024; i++)
			ck_assert(log_put(log_writer_ring(w, 0), line,
			    sizeof line));
		ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, f),
		    sizeof bytes);
	}
	fclose(f);
}
END_TEST

START_TEST(a_moved_file_is_left_for_a_new_one)
{
	start(path, 1, AN_HOUR);
	ck_assert(put("before"));
	wait_written();
	ck_assert_int_eq(rename(path, moved), 0);
	ck_assert(put("still"));
	wait_written();
	log_writer_reopen(w);
	wait_written();
	ck_assert(put("after"));
	log_writer_stop(&w);
	check_contents(moved, "before\nstill\n");
	check_contents(path, "after\n");
}
END_TEST

START_TEST(a_file_that_can_not_be_opened_again_stays)
{
	start(path, 1, AN_HOUR);
	ck_assert_int_eq(rename(path, moved), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	log_writer_reopen(w);
	wait_written();
	ck_assert_int_eq(failures, 1);
	ck_assert_int_eq(last_error, EISDIR);
	ck_assert(put("x"));
	log_writer_stop(&w);
	check_contents(moved, "x\n");
	rmdir(path);
}
END_TEST

/* --- what the file refuses ---------------------------------------------- */

START_TEST(a_pipe_nobody_reads_costs_lines_and_nothing_else)
{
	enum { PUT = 3000 };
	char line[99], bytes[4096];
	unsigned accepted = 0, arrived = 0;

	memset(line, 'x', sizeof line);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	start(path, 1, NSEC_PER_MSEC);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	for (int i = 0; i < PUT; i++)
		accepted += log_put(log_writer_ring(w, 0), line, sizeof line);
	ck_assert_uint_lt(accepted, PUT);
	ck_assert_uint_eq(log_writer_dropped(w), PUT - accepted);

	/* Now somebody reads; nothing that was accepted is missing. */
	while (arrived < accepted) {
		ssize_t n = read(fd, bytes, sizeof bytes);

		if (n > 0)
			arrived += count_newlines(bytes, (size_t)n);
		else
			sched_yield();
	}
	ck_assert_uint_eq(arrived + log_writer_dropped(w), PUT);
	close(fd);
}
END_TEST

START_TEST(a_stop_waits_for_a_reader_only_so_long)
{
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	fill_pipe(fd, 0);
	start(path, 1, AN_HOUR);
	ck_assert(put("x"));
	log_writer_stop(&w);
	close(fd);
}
END_TEST

START_TEST(a_full_disk_is_reported_once_and_lines_counted)
{
	start("/dev/full", 1, AN_HOUR);
	for (int i = 0; i < 5; i++) {
		ck_assert(put("x"));
		wait_written();
	}
	ck_assert_int_eq(failures, 1);
	ck_assert_int_eq(last_error, ENOSPC);
	ck_assert_uint_eq(log_writer_dropped(w), 5);
}
END_TEST

/* Let files grow to `size`; beyond is EFBIG.  -1: as far as they like. */
static void
limit_files(off_t size)
{
	struct rlimit r;

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = size < 0 ? r.rlim_max : (rlim_t)size;
	setrlimit(RLIMIT_FSIZE, &r);
}

static void
lift_limit(void *arg, const char *where, bool opening, int err)
{
	on_failed(arg, where, opening, err);
	limit_files(-1);
}

/* A megabyte long, so that the limit hits no other file of this process. */
static void
start_before_limit(off_t left)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_eq(ftruncate(fd, MEGABYTE), 0);
	close(fd);
	ck_assert_int_eq(log_writer_start(&w, &(struct log_writer_opts){
	    .path = path, .rings = 1, .ring_size = RING, .interval = AN_HOUR,
	    .failed = lift_limit, .tick = on_tick }), 0);
	wait_written();
	limit_files(MEGABYTE + left);
}

/* What the file holds after its first megabyte. */
static size_t
tail_of_file(char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = pread(fd, out, size - 1, MEGABYTE);

	ck_assert_int_ge(n, 0);
	out[n] = '\0';
	close(fd);
	return (size_t)n;
}

START_TEST(a_line_broken_off_does_not_spoil_the_next)
{
	char text[64];

	start_before_limit(8);
	put("first");
	put("second");
	wait_written();
	limit_files(-1);
	put("third");
	log_writer_stop(&w);
	tail_of_file(text, sizeof text);
	ck_assert_str_eq(text, "first\nse\nthird\n");
	ck_assert_int_eq(last_error, EFBIG);
}
END_TEST

/* The file is full when the first half comes, and no more for the second. */
START_TEST(both_halves_of_a_dropped_line_are_dropped)
{
	static char line[WRAP_LINE], text[RING];
	size_t used = 0;

	memset(line, 'x', sizeof line);
	start_before_limit(RING);
	while (used + WRAP_LINE + 1 <= RING) {
		log_put(log_writer_ring(w, 0), line, sizeof line);
		used += WRAP_LINE + 1;
		wait_written();
	}
	limit_files(MEGABYTE + (off_t)used);
	log_put(log_writer_ring(w, 0), line, sizeof line);
	put("next");
	wait_written();
	uint64_t dropped = log_writer_dropped(w);
	limit_files(-1);
	log_writer_stop(&w);

	size_t n = tail_of_file(text, sizeof text);
	ck_assert_uint_eq(dropped, 1);
	ck_assert_uint_eq(n, used + 5);
	ck_assert_str_eq(text + used, "next\n");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("log_writer");
	TCase *t = tcase_create("log_writer");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, a_directory, no_directory);
	tcase_add_test(t,
	    every_line_arrives_whole_and_in_its_producers_order);
	tcase_add_test(t, a_stop_writes_what_is_left);
	tcase_add_test(t, a_file_is_appended_to_and_private);
	tcase_add_test(t, a_line_beyond_the_longest_is_dropped);
	tcase_add_test(t, a_path_that_can_not_be_opened_is_an_error);
	tcase_add_test(t, a_ring_half_full_wakes_the_writer);
	tcase_add_test(t, a_moved_file_is_left_for_a_new_one);
	tcase_add_test(t, a_file_that_can_not_be_opened_again_stays);
	tcase_add_test(t, a_pipe_nobody_reads_costs_lines_and_nothing_else);
	tcase_add_test(t, a_stop_waits_for_a_reader_only_so_long);
	tcase_add_test(t, a_full_disk_is_reported_once_and_lines_counted);
	tcase_add_test(t, a_line_broken_off_does_not_spoil_the_next);
	tcase_add_test(t, both_halves_of_a_dropped_line_are_dropped);
	suite_add_tcase(s, t);
	return run_suite(s);
}
