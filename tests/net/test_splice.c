/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_splice.c - bytes that stay in the kernel, from a socket to the other end
 * of a flow.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "net/flow.h"
#include "net/pipe.h"
#include "net/rig.h"

enum { HIGH = 65536, LOW = 16384, MANY = 2 * 1000 * 1000, PAST = 777 };

static struct rig rig;

static struct {
	struct flow	 flow;
	struct rig_way	 way;
	size_t		 fed;		/* into `in` */
	size_t		 feed_most;	/* then FIN, if `fin` */
	size_t		 burst;		/* most at once; waits for it to go */
	bool		 fin;
	/* What was seen. */
	uint64_t	 left;		/* opaque bytes */
	uint64_t	 copied;
	uint64_t	 passed;
	size_t		 extra;		/* read behind the opaque ones */
	bool		 done;
	bool		 ended;
	enum flow_end	 how;
	int		 err;
	/* What to do. */
	size_t		 farewell;	/* bytes to send in source_done */
	uint8_t		 rest[2 * PAST];
} x;

static uint8_t pattern[MANY + 200 * PAST];

static enum flow_step
count_off(size_t n)
{
	x.left -= n;
	return x.left == 0 ? FLOW_LAST : FLOW_MORE;
}

static enum flow_step
on_bytes(struct flow *f, uint8_t *bytes, size_t n)
{
	size_t mine = (size_t)MIN((uint64_t)n, x.left);

	x.extra += n - mine;
	if (mine == 0)
		return FLOW_MORE;
	x.copied += mine;
	(void)flow_send(f, &(struct iovec){ bytes, mine }, 1);
	return count_off(mine);
}

static uint64_t
opaque(struct flow *f)
{
	(void)f;
	return x.left;
}

static enum flow_step
on_passed(struct flow *f, size_t n)
{
	(void)f;
	ck_assert_uint_le(n, x.left);
	x.passed += n;
	return count_off(n);
}

static void
on_done(struct flow *f)
{
	x.done = true;
	if (x.farewell > 0)
		(void)flow_send(f, &(struct iovec){ pattern + MANY,
		    x.farewell }, 1);
}

static void
on_ended(struct flow *f, enum flow_end how, int err)
{
	(void)f;
	x.ended = true;
	x.how = how;
	x.err = err;
}

static void
set_up(void)
{
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = rig_byte(i);
	rig_open(&rig, 1 << 24);
	rig_give_pipes(&rig, 2);
	memset(&x, 0, sizeof x);
	rig_way_open(&rig, &x.way);
	rig_small_buffers(x.way.sink_fd);
	rig_small_buffers(x.way.out);
	x.left = UINT64_MAX;
	x.feed_most = MANY;
	x.fin = true;
	flow_init(&x.flow);
}

static void
tear_down(void)
{
	flow_stop(&x.flow);
	rig_way_close(&x.way);
	rig_close(&rig);
}

static const struct flow_ops ops = {
	.bytes = on_bytes,
	.opaque = opaque, .passed = on_passed,
	.source_done = on_done, .ended = on_ended,
	.any_size = true,
};

static struct flow_opts
opts(void)
{
	return (struct flow_opts){
		.ops = &ops,
		.source = x.way.source,
		.sink = x.way.sink,
		.high = HIGH, .low = LOW,
		.use = BLOCK_BODY,
		.carry_end = true,
		.splice = true,
	};
}

static void
start(void)
{
	struct flow_opts o = opts();

	flow_start(&x.flow, &o);
}

/* Write what the source's buffer takes. */
static void
feed(void)
{
	size_t most = x.feed_most - x.fed;

	if (x.burst > 0) {
		if (x.fed > x.flow.bytes)
			return;
		most = MIN(most, x.burst);
	}
	ssize_t n = x.way.in != -1 && most > 0 ?
	    write(x.way.in, pattern + x.fed, most) : 0;

	if (n <= 0)
		return;
	x.fed += (size_t)n;
	if (x.fed == x.feed_most && x.fin)
		shutdown(x.way.in, SHUT_WR);
}

static bool
all_through(void *arg)
{
	feed();
	return rig_sink_read(arg) && x.ended;
}

static void
until_all_through(void)
{
	struct rig_sink sink = { .fd = x.way.out };

	rig_until(&rig, all_through, &sink);
	ck_assert(sink.ended);
	ck_assert_uint_eq(sink.got, MANY);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
}

/* The sink is read until something is left in a pipe; then no more. */
static bool
is_stuck_in_a_pipe(void *arg)
{
	struct rig_sink *sink = arg;

	feed();
	if (atomic_load(&rig.pipes.taken) == 1)
		return true;
	(void)rig_sink_read(sink);
	return false;
}

static struct rig_sink
until_stuck_in_a_pipe(void)
{
	struct rig_sink sink = { .fd = x.way.out };

	rig_until(&rig, is_stuck_in_a_pipe, &sink);
	ck_assert_int_eq(x.flow.waits, FLOW_WAITS_SINK);
	return sink;
}

/* It splices, and the sink is read. */
static bool
is_spliced(void *arg)
{
	feed();
	(void)rig_sink_read(arg);
	return x.passed > 0;
}

static bool
is_all_of_it(void *arg)
{
	struct rig_sink *sink = arg;

	feed();
	(void)rig_sink_read(sink);
	return x.ended && sink->got == MANY + x.farewell;
}

/* All that was not for the flow, unless a last copy got that too. */
static bool
is_rest_there(void *arg)
{
	(void)arg;
	feed();
	return x.extra == PAST ||
	    recv(x.way.source_fd, x.rest, sizeof x.rest, MSG_PEEK) == PAST;
}

/* All that was fed has arrived. */
static bool
is_idle(void *arg)
{
	struct rig_sink *sink = arg;

	(void)rig_sink_read(sink);
	return sink->got == x.fed;
}

static bool
reads_until_ended(void *arg)
{
	(void)rig_sink_read(arg);
	return x.ended;
}

/* --- through --- */

START_TEST(much_goes_through_a_pipe_byte_by_byte)
{
	start();
	until_all_through();
	/* How much of it depends on how the kernel cuts it. */
	ck_assert_uint_gt(x.passed, 0);
	ck_assert_uint_eq(x.passed + x.copied, MANY);
	ck_assert_uint_eq(x.flow.bytes, MANY);
	ck_assert_uint_eq(atomic_load(&rig.totals.received), MANY);
	ck_assert_uint_eq(atomic_load(&rig.totals.sent), MANY);
	ck_assert_uint_eq(atomic_load(&rig.pipes.moved), x.passed);
}
END_TEST

START_TEST(a_sink_that_does_not_read_holds_the_source_back)
{
	start();
	struct rig_sink sink = until_stuck_in_a_pipe();
	ck_assert_uint_le(stream_queued(x.way.sink), PIPE_BYTES);
	ck_assert_uint_eq(atomic_load(&rig.totals.awaited), 1);

	uint64_t bytes = x.flow.bytes;
	rig_turns(&rig, 50);
	ck_assert_uint_eq(x.flow.bytes, bytes);
	rig_until(&rig, all_through, &sink);
	ck_assert_uint_eq(sink.got, MANY);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
	ck_assert_uint_eq(atomic_load(&rig.totals.awaited), 0);
}
END_TEST

START_TEST(it_stops_at_the_last_opaque_byte)
{
	struct rig_sink sink = { .fd = x.way.out };

	x.left = MANY;
	x.feed_most = MANY + PAST;
	x.fin = false;
	x.farewell = 10;		/* behind what waits in the pipe */
	start();
	rig_until(&rig, is_all_of_it, &sink);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
	ck_assert(x.done);
	ck_assert_uint_gt(x.passed, 0);
	ck_assert_uint_eq(x.passed + x.copied, MANY);
	/* What came after it is there for somebody else. */
	rig_until(&rig, is_rest_there, NULL);
	if (x.extra == 0)
		ck_assert_int_eq(memcmp(x.rest, pattern + MANY, PAST), 0);
	rig_turns(&rig, 5);
	ck_assert(!rig_sink_read(&sink));
	ck_assert_uint_eq(sink.got, MANY + x.farewell);
}
END_TEST

START_TEST(whether_it_took_all_is_not_known)
{
	rig_write(x.way.in, "some");
	while (stream_splice(x.way.source, x.way.sink, PIPE_BYTES) == 0)
		continue;
	/* The kernel says less than asked for when the pipe is full, too. */
	ck_assert(!stream_took_all(x.way.source));
}
END_TEST

START_TEST(little_at_a_time_is_copied)
{
	x.burst = 8000;
	start();
	until_all_through();
	ck_assert_uint_eq(x.passed, 0);
}
END_TEST

START_TEST(it_goes_back_to_copying_when_little_comes)
{
	struct rig_sink sink = { .fd = x.way.out };

	x.fin = false;
	start();
	rig_until(&rig, is_spliced, &sink);
	x.fin = true;
	x.burst = PAST;
	x.feed_most = x.fed + 200 * x.burst;
	rig_until(&rig, all_through, &sink);
	ck_assert_uint_eq(sink.got, x.feed_most);
	/* Whatever was there already, and some bursts. */
	ck_assert_uint_lt(x.passed, x.feed_most - 190 * x.burst);
}
END_TEST

/* --- not through a pipe --- */

START_TEST(without_a_pipe_it_is_copied)
{
	struct pipe *taken[2];
	int from[2];

	rig_pair(from);
	for (int i = 0; i < 2; i++) {
		rig_write(from[0], "x");
		while (pipes_fill(&rig.pipes, &taken[i], from[1], 1) == 0)
			continue;
	}
	ck_assert(!pipes_are_left(&rig.pipes));
	start();
	until_all_through();
	ck_assert_uint_eq(x.passed, 0);
	for (int i = 0; i < 2; i++) {
		pipes_give(&rig.pipes, &taken[i]);
		ck_assert_ptr_null(taken[i]);
		close(from[i]);
	}
}
END_TEST

START_TEST(what_is_not_asked_for_is_not_done)
{
	struct flow_opts o = opts();

	o.splice = false;
	flow_start(&x.flow, &o);
	until_all_through();
	ck_assert_uint_eq(x.passed, 0);
}
END_TEST

/* The kernel splices to no descriptor that appends. */
START_TEST(a_sink_that_can_not_gets_copies)
{
	ck_assert_int_eq(fcntl(x.way.sink_fd, F_SETFL,
	    O_NONBLOCK | O_APPEND), 0);
	start();
	until_all_through();
	/* The first came into the pipe, and out of it again. */
	ck_assert_uint_gt(x.passed, 0);
	ck_assert_uint_le(x.passed, PIPE_BYTES);
	ck_assert_uint_eq(atomic_load(&rig.pipes.moved), 0);
	ck_assert(!stream_can_splice(x.way.source, x.way.sink));
}
END_TEST

static void
forbid_splice(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_splice, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		sizeof filter / sizeof *filter, filter,
	};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
	    &program), 0);
}

START_TEST(a_kernel_that_can_not_copies)
{
	forbid_splice();	/* for good: tests have a process each */
	start();
	until_all_through();
	ck_assert_uint_eq(x.passed, 0);
	ck_assert(!stream_can_splice(x.way.source, x.way.sink));
}
END_TEST

/*
 * The kernel's splice() stops before urgent data, with EAGAIN or, after a FIN,
 * as if that were all.
 */
START_TEST(urgent_data_is_no_end_and_no_loop)
{
	struct rig_sink sink = { .fd = x.way.out };

	x.fin = false;
	start();
	rig_until(&rig, is_spliced, &sink);
	x.feed_most = x.fed;
	rig_until(&rig, is_idle, &sink);
	x.flow.large = UINT8_MAX;	/* what comes next is spliced */
	ck_assert_int_eq(send(x.way.in, pattern + x.fed, 1, MSG_OOB), 1);
	/* It is not in the stream: the next has its place. */
	ck_assert_int_eq(send(x.way.in, pattern + x.fed, PAST, 0), PAST);
	shutdown(x.way.in, SHUT_WR);
	rig_until(&rig, all_through, &sink);
	ck_assert_uint_eq(sink.got, x.fed + PAST);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
}
END_TEST

/* --- failures --- */

/* The next from this set has nothing of another's in it. */
static void
check_that_pipes_are_clean(void)
{
	struct pipe *pipe;
	int from[2];
	char got[8];

	ck_assert_uint_eq(atomic_load(&rig.pipes.taken), 0);
	rig_pair(from);
	rig_write(from[0], "clean");
	while (pipes_fill(&rig.pipes, &pipe, from[1], 100) == 0)
		continue;
	ck_assert_int_eq(pipes_drain(&rig.pipes, &pipe, from[1]), 5);
	ck_assert_ptr_null(pipe);
	ck_assert_int_eq(fcntl(from[0], F_SETFL, 0), 0);
	ck_assert_int_eq(read(from[0], got, sizeof got), 5);
	ck_assert_int_eq(memcmp(got, "clean", 5), 0);
	close(from[0]);
	close(from[1]);
}

START_TEST(a_sink_that_is_reset_loses_what_is_in_the_pipe)
{
	start();
	(void)until_stuck_in_a_pipe();
	rig_reset(x.way.out);
	x.way.out = -1;
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SINK_FAILED);
	ck_assert_int_eq(x.err, ECONNRESET);
	check_that_pipes_are_clean();
}
END_TEST

START_TEST(a_reset_source_is_a_failure_after_what_it_sent)
{
	x.fin = false;
	start();
	struct rig_sink sink = until_stuck_in_a_pipe();

	x.feed_most = x.fed;
	rig_reset(x.way.in);
	x.way.in = -1;
	rig_until(&rig, reads_until_ended, &sink);
	ck_assert_int_eq(x.how, FLOW_SOURCE_FAILED);
	ck_assert_int_eq(x.err, ECONNRESET);
	ck_assert_uint_gt(sink.got, 0);
	ck_assert(!sink.ended);
}
END_TEST

START_TEST(a_reset_is_not_taken_for_an_end)
{
	struct rig_sink sink = { .fd = x.way.out };

	x.fin = false;
	start();
	rig_until(&rig, is_spliced, &sink);
	x.feed_most = x.fed;
	rig_until(&rig, is_idle, &sink);
	x.flow.large = UINT8_MAX;	/* what comes next is spliced */
	rig_reset(x.way.in);
	x.way.in = -1;
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SOURCE_FAILED);
	ck_assert_int_eq(x.err, ECONNRESET);
}
END_TEST

START_TEST(a_sink_that_takes_nothing_is_late)
{
	start();
	(void)until_stuck_in_a_pipe();
	x.flow.opts.sink_timeout = 20 * NSEC_PER_MSEC;
	loop_arm(rig.loop, &x.flow.timer, 1);
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SINK_LATE);
	ck_assert_uint_gt(stream_queued(x.way.sink), 0);
	stream_close(&x.way.sink);
	check_that_pipes_are_clean();
}
END_TEST

START_TEST(a_flow_may_be_stopped_with_a_full_pipe)
{
	start();
	(void)until_stuck_in_a_pipe();
	flow_stop(&x.flow);
	stream_reset(&x.way.sink);
	check_that_pipes_are_clean();
	rig_turns(&rig, 5);
	ck_assert(!x.ended);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/splice");
	TCase *t = tcase_create("splice");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, much_goes_through_a_pipe_byte_by_byte);
	tcase_add_test(t, a_sink_that_does_not_read_holds_the_source_back);
	tcase_add_test(t, it_stops_at_the_last_opaque_byte);
	tcase_add_test(t, whether_it_took_all_is_not_known);
	tcase_add_test(t, little_at_a_time_is_copied);
	tcase_add_test(t, it_goes_back_to_copying_when_little_comes);
	tcase_add_test(t, without_a_pipe_it_is_copied);
	tcase_add_test(t, what_is_not_asked_for_is_not_done);
	tcase_add_test(t, a_sink_that_can_not_gets_copies);
	tcase_add_test(t, a_kernel_that_can_not_copies);
	tcase_add_test(t, urgent_data_is_no_end_and_no_loop);
	tcase_add_test(t, a_sink_that_is_reset_loses_what_is_in_the_pipe);
	tcase_add_test(t, a_reset_source_is_a_failure_after_what_it_sent);
	tcase_add_test(t, a_reset_is_not_taken_for_an_end);
	tcase_add_test(t, a_sink_that_takes_nothing_is_late);
	tcase_add_test(t, a_flow_may_be_stopped_with_a_full_pipe);
	return run_suite(s);
}
