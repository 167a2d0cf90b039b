/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_flow.c - bytes one way: held back, ended, failed, stopped.
 */
#include "net/flow.h"
#include "net/rig.h"

enum { HIGH = 65536, LOW = 16384, READ_MIN = 4096 };

static struct rig rig;

/* A flow with bare sockets at its far ends. */
static struct {
	struct flow	 flow;
	struct rig_way	 way;
	/* What was seen. */
	size_t		 worst;		/* most queued in the sink */
	unsigned	 calls;		/* of bytes */
	unsigned	 dones;
	unsigned	 ends;
	enum flow_end	 how;
	int		 err;
	bool		 ended;
	bool		 inside;	/* of a function of the flow's */
	/* What to do. */
	enum flow_step	 step;
	bool		 stop;		/* in the bytes function */
	size_t		 farewell;	/* to send in source_done */
} x;

static flow_bytes_fn		on_bytes;
static flow_source_done_fn	on_done;
static flow_ended_fn		on_ended;

static void
set_up(void)
{
	rig_open(&rig, 1 << 20);
	memset(&x, 0, sizeof x);
	rig_way_open(&rig, &x.way);
	rig_small_buffers(x.way.source_fd);
	rig_small_buffers(x.way.in);
	rig_small_buffers(x.way.sink_fd);
	rig_small_buffers(x.way.out);
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
	.source_done = on_done,
	.ended = on_ended,
};

static struct flow_opts
opts(void)
{
	return (struct flow_opts){
		.ops = &ops,
		.source = x.way.source,
		.sink = x.way.sink,
		.high = HIGH,
		.low = LOW,
		.use = BLOCK_BODY,
		.carry_end = true,
	};
}

static void
start(const struct flow_opts *o)
{
	x.inside = true;
	flow_start(&x.flow, o);
	x.inside = false;
}

static enum flow_step
push(const char *text)
{
	uint8_t *bytes = loop_scratch(rig.loop);

	memcpy(bytes, text, strlen(text));
	x.inside = true;
	enum flow_step step = flow_push(&x.flow, bytes, strlen(text));
	x.inside = false;
	return step;
}

static enum flow_step
on_bytes(struct flow *f, uint8_t *bytes, size_t n)
{
	ck_assert_ptr_eq(flow_sink(f), x.way.sink);
	x.calls++;
	if (x.stop) {
		flow_stop(f);
		return FLOW_GONE;
	}
	if (n > 0)
		(void)flow_send(f, &(struct iovec){ bytes, n }, 1);
	x.worst = MAX(x.worst, stream_queued(x.way.sink));
	return x.step;
}

static void
on_done(struct flow *f)
{
	static uint8_t zeros[8 * HIGH];

	ck_assert(!x.inside && !x.ended);
	x.dones++;
	if (x.farewell > 0)
		(void)flow_send(f, &(struct iovec){ zeros, x.farewell }, 1);
}

static void
on_ended(struct flow *f, enum flow_end how, int err)
{
	ck_assert(!x.inside);
	ck_assert(!flow_is_running(f));
	/* It may be freed now. */
	memset(f, 0xa5, sizeof *f);
	flow_init(f);
	x.ends++;
	x.ended = true;
	x.how = how;
	x.err = err;
}

/* Everything that can be read from `out`, as text. */
static const char *
heard(void)
{
	static char text[256];
	ssize_t n = read(x.way.out, text, sizeof text - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

START_TEST(bytes_and_the_end_go_through)
{
	struct flow_opts o = opts();

	start(&o);
	ck_assert(flow_is_running(&x.flow));
	rig_write(x.way.in, "hello");
	shutdown(x.way.in, SHUT_WR);
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
	ck_assert_uint_eq(x.dones, 1);
	ck_assert_str_eq(heard(), "hello");
	ck_assert_int_eq(read(x.way.out, &(char){ 0 }, 1), 0);
	rig_turns(&rig, 5);
	ck_assert_uint_eq(x.ends, 1);
}
END_TEST

START_TEST(without_functions_bytes_go_as_they_are)
{
	struct flow_opts o = opts();

	o.ops = &(struct flow_ops){ .ended = on_ended };
	o.carry_end = false;
	start(&o);
	rig_write(x.way.in, "hello");
	shutdown(x.way.in, SHUT_WR);
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
	ck_assert_str_eq(heard(), "hello");
	ck_assert_int_eq(read(x.way.out, &(char){ 0 }, 1), -1);
	ck_assert(!stream_has_ended(x.way.sink));
}
END_TEST

/* --- watermarks --- */

enum { MANY = 500 * 1000 };

static struct {
	size_t	sent;
	bool	full;		/* the source takes no more */
} feeder;

static void
feed(void)
{
	uint8_t buf[7001];
	size_t n = MIN(sizeof buf, MANY - feeder.sent);

	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		buf[i] = rig_byte(feeder.sent + i);

	ssize_t w = write(x.way.in, buf, n);

	feeder.full = w == -1 && errno == EAGAIN;
	if (w > 0)
		feeder.sent += (size_t)w;
	if (feeder.sent == MANY)
		shutdown(x.way.in, SHUT_WR);
}

/* For so long that nothing more will move. */
static bool
held_back(void *arg)
{
	unsigned *turns = arg;

	feed();
	*turns = feeder.full ? *turns + 1 : 0;
	return *turns == 50 && x.flow.waits == FLOW_WAITS_SINK;
}

static bool
all_through(void *arg)
{
	feed();
	return rig_sink_read(arg) && x.ended;
}

START_TEST(a_sink_that_does_not_read_holds_the_source_back)
{
	struct flow_opts o = opts();
	struct rig_sink sink = { .fd = x.way.out };
	unsigned turns = 0;

	start(&o);
	rig_until(&rig, held_back, &turns);
	ck_assert_uint_ge(x.worst, HIGH);
	ck_assert_uint_lt(x.worst, HIGH + READ_MIN);
	ck_assert_uint_lt(feeder.sent, MANY);

	uint64_t bytes = x.flow.bytes;
	rig_turns(&rig, 20);
	ck_assert_uint_eq(x.flow.bytes, bytes);

	rig_until(&rig, all_through, &sink);
	ck_assert_uint_eq(sink.got, MANY);
	ck_assert(sink.ended);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
	ck_assert_uint_lt(x.worst, HIGH + READ_MIN);
}
END_TEST

/* The least that a configuration may say: nothing between the two. */
START_TEST(one_mark_may_be_both)
{
	struct flow_opts o = opts();
	struct rig_sink sink = { .fd = x.way.out };
	unsigned turns = 0;

	o.low = o.high;
	start(&o);
	rig_until(&rig, held_back, &turns);
	rig_until(&rig, all_through, &sink);
	ck_assert_uint_eq(sink.got, MANY);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
}
END_TEST

/* --- ends of messages --- */

START_TEST(after_the_last_byte_the_source_is_free_for_another)
{
	struct flow_opts o = opts();

	x.step = FLOW_LAST;
	start(&o);
	rig_write(x.way.in, "one");
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
	ck_assert_uint_eq(x.dones, 1);
	ck_assert(stream_is_paused(x.way.source));
	ck_assert(!stream_has_ended(x.way.sink));
	rig_write(x.way.in, "two");
	rig_turns(&rig, 5);
	ck_assert_uint_eq(x.calls, 1);
	start(&o);
	x.ended = false;
	rig_until_true(&rig, &x.ended);
	ck_assert_str_eq(heard(), "onetwo");
}
END_TEST

START_TEST(a_push_that_is_the_last_ends_later)
{
	struct flow_opts o = opts();

	x.step = FLOW_LAST;
	start(&o);
	ck_assert_int_eq(push("all"), FLOW_LAST);
	ck_assert_uint_eq(x.dones, 0);
	/* The source has been let go, so it may be closed. */
	stream_close(&x.way.source);
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
	ck_assert_uint_eq(x.dones, 1);
	ck_assert_str_eq(heard(), "all");
}
END_TEST

START_TEST(a_push_goes_before_what_is_read)
{
	struct flow_opts o = opts();

	rig_write(x.way.in, "second");
	start(&o);
	ck_assert_int_eq(push("first "), FLOW_MORE);
	ck_assert_int_eq(push(""), FLOW_MORE);
	shutdown(x.way.in, SHUT_WR);
	rig_until_true(&rig, &x.ended);
	ck_assert_str_eq(heard(), "first second");
}
END_TEST

START_TEST(the_end_of_the_source_may_be_said_from_outside)
{
	struct flow_opts o = opts();

	start(&o);
	x.inside = true;
	flow_source_end(&x.flow);
	flow_source_end(&x.flow);
	x.inside = false;
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_DRAINED);
	ck_assert_uint_eq(x.dones, 1);
	ck_assert_uint_eq(x.calls, 0);
}
END_TEST

START_TEST(a_flow_stopped_by_its_bytes_function_is_over)
{
	struct flow_opts o = opts();

	x.stop = true;
	start(&o);
	rig_write(x.way.in, "x");
	rig_turns(&rig, 10);
	ck_assert_uint_eq(x.calls, 1);
	ck_assert(!flow_is_running(&x.flow));
	start(&o);
	ck_assert_int_eq(push("x"), FLOW_GONE);
	rig_turns(&rig, 10);
	ck_assert_uint_eq(x.ends + x.dones, 0);
}
END_TEST

START_TEST(a_stopped_flow_calls_nobody)
{
	struct flow_opts o = opts();

	x.step = FLOW_LAST;
	start(&o);
	(void)push("x");
	flow_stop(&x.flow);
	flow_stop(&x.flow);
	rig_turns(&rig, 5);
	ck_assert_uint_eq(x.ends + x.dones, 0);
}
END_TEST

/* --- failures --- */

START_TEST(a_reset_source_is_a_failure)
{
	struct flow_opts o = opts();

	start(&o);
	rig_reset(x.way.in);
	x.way.in = -1;
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SOURCE_FAILED);
	ck_assert_int_eq(x.err, ECONNRESET);
	ck_assert_uint_eq(x.dones, 0);
}
END_TEST

START_TEST(a_reset_sink_is_a_failure_while_the_source_is_held_back)
{
	struct flow_opts o = opts();
	unsigned turns = 0;

	start(&o);
	rig_until(&rig, held_back, &turns);
	rig_reset(x.way.out);
	x.way.out = -1;
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SINK_FAILED);
	ck_assert_int_ne(x.err, 0);
}
END_TEST

/* Have the sink fail before the flow begins. */
static void
break_sink(void)
{
	struct iovec iov = { (char[]){ 'x' }, 1 };

	rig_reset(x.way.out);
	x.way.out = -1;
	while (stream_send(x.way.sink, &iov, 1, BLOCK_BODY) == 0)
		continue;
}

START_TEST(a_sink_that_had_failed_before_is_a_failure_not_an_end)
{
	struct flow_opts o = opts();

	break_sink();
	start(&o);
	flow_source_end(&x.flow);
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SINK_FAILED);
}
END_TEST

START_TEST(a_failure_found_by_push_is_told_later)
{
	struct flow_opts o = opts();

	break_sink();
	start(&o);
	(void)push("x");
	ck_assert_uint_eq(x.ends, 0);
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SINK_FAILED);
}
END_TEST

START_TEST(a_source_that_says_nothing_is_late)
{
	struct flow_opts o = opts();

	o.source_timeout = 60 * NSEC_PER_SEC;
	start(&o);
	flow_set_source_timeout(&x.flow, 20 * NSEC_PER_MSEC);
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SOURCE_LATE);
}
END_TEST

START_TEST(a_sink_that_takes_nothing_is_late)
{
	struct flow_opts o = opts();
	unsigned turns = 0;

	o.sink_timeout = 60 * NSEC_PER_SEC;
	start(&o);
	rig_until(&rig, held_back, &turns);
	/* Nothing comes, but it is not the source that is waited for. */
	flow_set_source_timeout(&x.flow, 1);
	rig_turns(&rig, 50);
	ck_assert(!x.ended);
	flow_stop(&x.flow);
	o.sink_timeout = 20 * NSEC_PER_MSEC;
	start(&o);
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SINK_LATE);
}
END_TEST

START_TEST(what_is_sent_after_the_last_byte_has_its_time_too)
{
	struct flow_opts o = opts();

	o.sink_timeout = 20 * NSEC_PER_MSEC;
	x.step = FLOW_LAST;
	x.farewell = 8 * HIGH;
	start(&o);
	rig_write(x.way.in, "x");
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SINK_LATE);
}
END_TEST

/* --- memory --- */

START_TEST(without_memory_the_source_is_not_read_until_there_is_some)
{
	struct flow_opts o = opts();

	atomic_store(&rig.budget.limit, 0);
	start(&o);
	rig_write(x.way.in, "hello");
	rig_turns(&rig, 100);
	ck_assert_uint_eq(x.calls, 0);
	ck_assert_int_eq(x.flow.waits, FLOW_WAITS_MEMORY);
	atomic_store(&rig.budget.limit, 1 << 20);
	shutdown(x.way.in, SHUT_WR);
	rig_until_true(&rig, &x.ended);
	ck_assert_str_eq(heard(), "hello");
}
END_TEST

START_TEST(a_shortage_of_memory_does_not_last_for_ever)
{
	struct flow_opts o = opts();

	atomic_store(&rig.budget.limit, 0);
	o.sink_timeout = 20 * NSEC_PER_MSEC;
	start(&o);
	rig_write(x.way.in, "hello");
	rig_until_true(&rig, &x.ended);
	ck_assert_int_eq(x.how, FLOW_SINK_FAILED);
	ck_assert_int_eq(x.err, ENOMEM);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/flow");
	TCase *t = tcase_create("flow");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, bytes_and_the_end_go_through);
	tcase_add_test(t, without_functions_bytes_go_as_they_are);
	tcase_add_test(t, a_sink_that_does_not_read_holds_the_source_back);
	tcase_add_test(t, one_mark_may_be_both);
	tcase_add_test(t, after_the_last_byte_the_source_is_free_for_another);
	tcase_add_test(t, a_push_that_is_the_last_ends_later);
	tcase_add_test(t, a_push_goes_before_what_is_read);
	tcase_add_test(t, the_end_of_the_source_may_be_said_from_outside);
	tcase_add_test(t, a_flow_stopped_by_its_bytes_function_is_over);
	tcase_add_test(t, a_stopped_flow_calls_nobody);
	tcase_add_test(t, a_reset_source_is_a_failure);
	tcase_add_test(t,
	    a_reset_sink_is_a_failure_while_the_source_is_held_back);
	tcase_add_test(t,
	    a_sink_that_had_failed_before_is_a_failure_not_an_end);
	tcase_add_test(t, a_failure_found_by_push_is_told_later);
	tcase_add_test(t, a_source_that_says_nothing_is_late);
	tcase_add_test(t, a_sink_that_takes_nothing_is_late);
	tcase_add_test(t,
	    what_is_sent_after_the_last_byte_has_its_time_too);
	tcase_add_test(t,
	    without_memory_the_source_is_not_read_until_there_is_some);
	tcase_add_test(t, a_shortage_of_memory_does_not_last_for_ever);
	return run_suite(s);
}
