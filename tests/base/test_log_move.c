/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_log_move.c - src/base/log_writer.c: stderr, which others have too, and
 * other files to go on with.
 */
#include "base/log_rig.h"

/* A page of room, and a line of four: writing it whole would block. */
START_TEST(our_stderr_stays_blocking_and_blocks_nobody)
{
	static char line[LOG_LINE_MAX];
	int fds[2];

	memset(line, 'x', sizeof line);
	ck_assert_int_eq(pipe(fds), 0);
	fill_pipe(fds[1], 1);
	int saved = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	start(NULL, 1, AN_HOUR);
	log_put(log_writer_ring(w, 0), line, sizeof line);
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	log_writer_stop(&w);
	dup2(saved, STDERR_FILENO);
	ck_assert_int_eq(flags & O_NONBLOCK, 0);
	close(saved);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/*
 * The first holds stderr's turn since nobody reads; who waits for that is
 * stopped all the same, and its line is lost.
 */
START_TEST(a_stop_waits_for_its_turn_at_stderr_only_so_long)
{
	struct log_writer *other = NULL;
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	fill_pipe(fds[1], 0);
	int saved = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	start(NULL, 1, NSEC_PER_MSEC);
	ck_assert(put("x"));
	wait_ticks(3);
	ck_assert_int_eq(log_writer_start(&other, &(struct log_writer_opts){
	    .rings = 1, .ring_size = RING, .interval = AN_HOUR,
	    .patience = NSEC_PER_MSEC }), 0);
	log_put(log_writer_ring(other, 0), "y", 1);
	log_writer_stop(&other);
	log_writer_stop(&w);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* In pieces of PIECE, lines of two writers would be torn. */
START_TEST(two_writers_to_stderr_tear_no_line)
{
	static char a[10000], b[10000], line[sizeof a + 2];
	struct log_writer *other = NULL;
	int fds[2], lines = 0;

	memset(a, 'a', sizeof a);
	memset(b, 'b', sizeof b);
	ck_assert_int_eq(pipe(fds), 0);
	int saved = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	start(NULL, 1, NSEC_PER_MSEC);
	ck_assert_int_eq(log_writer_start(&other, &(struct log_writer_opts){
	    .rings = 1, .ring_size = RING, .interval = NSEC_PER_MSEC }), 0);
	FILE *f = fdopen(fds[0], "r");
	for (int i = 0; i < 1000; i++) {
		ck_assert(log_put(log_writer_ring(w, 0), a, sizeof a));
		ck_assert(log_put(log_writer_ring(other, 0), b, sizeof b));
		for (int j = 0; j < 2; j++, lines++) {
			ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
			ck_assert_uint_eq(strspn(line, line[0] == 'a' ? "a" :
			    "b"), sizeof a);
		}
	}
	log_writer_stop(&other);
	log_writer_stop(&w);
	dup2(saved, STDERR_FILENO);
	close(saved);
	fclose(f);
	close(fds[1]);
}
END_TEST

START_TEST(a_writer_moves_to_another_file)
{
	int fd;

	start(path, 1, AN_HOUR);
	ck_assert(put("one"));
	wait_written();
	ck_assert_int_eq(log_writer_open("/nonexistent/x", &fd), -ENOENT);
	ck_assert_int_eq(log_writer_open(moved, &fd), 0);
	ck_assert(put("still"));
	log_writer_move(w, moved, fd);
	wait_written();
	ck_assert(put("two"));
	wait_written();
	check_contents(path, "one\nstill\n");
	check_contents(moved, "two\n");
	/* And that one is what is opened again from now on. */
	unlink(moved);
	log_writer_reopen(w);
	wait_written();
	ck_assert(put("three"));
	wait_written();
	check_contents(moved, "three\n");
}
END_TEST

START_TEST(a_writer_moves_away_from_a_pipe_nobody_reads)
{
	int fd;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	int pipe_fd = open(path, O_RDWR | O_CLOEXEC);
	fill_pipe(pipe_fd, 0);
	start(path, 1, AN_HOUR);
	ck_assert(put("lost"));
	ck_assert_int_eq(log_writer_open(moved, &fd), 0);
	log_writer_move(w, moved, fd);
	/* Two moves before it looks: the first is forgotten. */
	ck_assert_int_eq(log_writer_open(moved, &fd), 0);
	log_writer_move(w, moved, fd);
	wait_written();
	ck_assert(put("kept"));
	wait_written();
	close(pipe_fd);
	log_writer_stop(&w);
	FILE *f = fopen(moved, "re");
	char text[64] = "";
	ck_assert_ptr_nonnull(f);
	while (fgets(text, sizeof text, f) != NULL)
		continue;
	fclose(f);
	ck_assert_str_eq(text, "kept\n");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("log_move");
	TCase *t = tcase_create("log_move");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, a_directory, no_directory);
	tcase_add_test(t, our_stderr_stays_blocking_and_blocks_nobody);
	tcase_add_test(t, a_stop_waits_for_its_turn_at_stderr_only_so_long);
	tcase_add_test(t, two_writers_to_stderr_tear_no_line);
	tcase_add_test(t, a_writer_moves_to_another_file);
	tcase_add_test(t, a_writer_moves_away_from_a_pipe_nobody_reads);
	suite_add_tcase(s, t);
	return run_suite(s);
}
