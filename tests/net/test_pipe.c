/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pipe.c - the set of pipes alone; test_splice.c has what uses it.
 */
#include "harness.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/pipe.h"

static struct pipes pipes;
static struct pipe *pipe_;

/* Bytes put into `from` can be filled into a pipe, and drained into `to`. */
static int from[2], to[2];

static void
set_up(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, from), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, to), 0);
	pipes_init(&pipes, 1);
}

static void
tear_down(void)
{
	pipes_give(&pipes, &pipe_);
	pipes_fini(&pipes);
	for (int i = 0; i < 2; i++) {
		close(from[i]);
		close(to[i]);
	}
}

static ssize_t
fill(const char *text, size_t size)
{
	ck_assert_int_eq(write(from[0], text, size), (ssize_t)size);
	return pipes_fill(&pipes, &pipe_, from[1], size);
}

START_TEST(what_goes_in_comes_out_and_the_pipe_is_free_again)
{
	char got[8];

	ck_assert_int_eq(fill("bytes", 5), 5);
	ck_assert_uint_eq(pipes.taken, 1);
	ck_assert(!pipes_are_left(&pipes));
	ck_assert_int_eq(pipes_drain(&pipes, &pipe_, to[0]), 5);
	ck_assert_ptr_null(pipe_);
	ck_assert_uint_eq(pipes.taken, 0);
	ck_assert_uint_eq(pipes.moved, 5);
	ck_assert_int_eq(read(to[1], got, sizeof got), 5);
	ck_assert_mem_eq(got, "bytes", 5);
}
END_TEST

/* Somebody's secret, and then another's pipe. */
START_TEST(nobody_gets_what_was_left_in_a_pipe)
{
	char got[8];

	ck_assert_int_eq(fill("secret", 6), 6);
	pipes_give(&pipes, &pipe_);
	ck_assert_int_eq(fill("mine", 4), 4);
	ck_assert_int_eq(pipes_drain(&pipes, &pipe_, to[0]), 4);
	ck_assert_int_eq(read(to[1], got, sizeof got), 4);
	ck_assert_mem_eq(got, "mine", 4);
}
END_TEST

START_TEST(there_are_no_more_than_were_asked_for)
{
	struct pipe *other;

	ck_assert_int_eq(fill("one", 3), 3);
	ck_assert_int_eq(write(from[0], "two", 3), 3);
	ck_assert_int_eq(pipes_fill(&pipes, &other, from[1], 3), 0);
	ck_assert_ptr_null(other);
}
END_TEST

START_TEST(a_kernel_that_has_none_is_asked_less_often)
{
	struct rlimit was, none;
	unsigned skipped = 0;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){ 0, was.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(fill("x", 1), 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(pipes_fill(&pipes, &pipe_, from[1], 1), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	/* It was asked the first and the fourth time; then four times not. */
	while (pipes_fill(&pipes, &pipe_, from[1], 1) == 0)
		ck_assert_uint_lt(++skipped, 100);
	ck_assert_uint_eq(skipped, 4);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/pipe");
	TCase *t = tcase_create("pipe");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, what_goes_in_comes_out_and_the_pipe_is_free_again);
	tcase_add_test(t, nobody_gets_what_was_left_in_a_pipe);
	tcase_add_test(t, there_are_no_more_than_were_asked_for);
	tcase_add_test(t, a_kernel_that_has_none_is_asked_less_often);
	return run_suite(s);
}
