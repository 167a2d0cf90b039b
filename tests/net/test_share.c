/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_share.c - how much a bulk flow moves at once; test_splice.c has where
 * it goes.
 */
#include <sys/eventfd.h>

#include "net/flow.h"
#include "net/pipe.h"
#include "net/rig.h"

enum { HIGH = 65536, LOW = 16384, OTHERS = LOOP_BUSY + 1 };
enum { FIRST = 16384, LITTLE = 32768 };
enum { MIB = 1 << 20, BODY = 4 * MIB, PIECE = MIB };

static struct rig rig;

static struct {
	struct flow	 flow;
	struct rig_way	 way;
	struct watch	 others[OTHERS];
	unsigned	 count;		/* of them that are there */
	/* What was seen. */
	uint64_t	 left;		/* of the message */
	uint64_t	 passed;
	uint64_t	 passed_then;	/* a turn ago */
	uint64_t	 most;		/* in a turn */
	size_t		 first;		/* bytes that were read first */
	uint64_t	 copied;
	bool		 ended;
	/* What to do. */
	uint64_t	 until;		/* so much has passed */
	uint64_t	 to_feed;
} x;

static enum flow_step
count_off(size_t n)
{
	ck_assert_uint_le(n, x.left);
	x.left -= n;
	return x.left == 0 ? FLOW_LAST : FLOW_MORE;
}

static enum flow_step
on_bytes(struct flow *f, uint8_t *at, size_t n)
{
	if (x.first == 0)
		x.first = n;
	x.copied += n;
	(void)flow_send(f, &(struct iovec){ at, n }, 1);
	return count_off(n);
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
	x.passed += n;
	return count_off(n);
}

static void
on_ended(struct flow *f, enum flow_end how, int err)
{
	(void)f;
	(void)err;
	ck_assert_int_eq(how, FLOW_DRAINED);
	x.ended = true;
}

static void
on_other(struct watch *w, unsigned ready)
{
	(void)w;
	(void)ready;
}

/* They have something to do in every turn. */
static void
add_others(unsigned n)
{
	static struct watch_kind kind;

	kind = WATCH_KIND(rig.loop, on_other);
	for (x.count = 0; x.count < n; x.count++) {
		int fd = eventfd(1, EFD_CLOEXEC);

		ck_assert_int_ge(fd, 0);
		watch_init(&x.others[x.count], &kind, fd);
		watch_want(&x.others[x.count], WATCH_READ);
	}
}

static void
set_up(void)
{
	rig_open(&rig, 1 << 24);
	rig_give_pipes(&rig, 2);
	memset(&x, 0, sizeof x);
	rig_way_open(&rig, &x.way);
	flow_init(&x.flow);
}

static void
tear_down(void)
{
	flow_stop(&x.flow);
	rig_way_close(&x.way);
	for (unsigned i = 0; i < x.count; i++) {
		watch_stop(&x.others[i]);
		close(watch_fd(&x.others[i]));
	}
	rig_close(&rig);
}

static const struct flow_ops ops = {
	.bytes = on_bytes,
	.opaque = opaque,
	.passed = on_passed,
	.ended = on_ended,
};

static void
start(uint64_t length)
{
	x.left = length;
	x.first = 0;
	x.copied = 0;
	x.ended = false;
	flow_start(&x.flow, &(struct flow_opts){
		.source = x.way.source,
		.sink = x.way.sink,
		.high = HIGH,
		.low = LOW,
		.use = BLOCK_BODY,
		.splice = true,
		.ops = &ops,
	});
}

/* What was said is forgotten, and more of the same is sent. */
static void
drain_and_feed(void)
{
	static uint8_t piece[PIECE];

	while (read(x.way.out, piece, sizeof piece) > 0)
		;
	while (x.to_feed > 0) {
		ssize_t n = write(x.way.in, piece,
		    MIN(x.to_feed, sizeof piece));

		if (n <= 0)
			return;
		x.to_feed -= (uint64_t)n;
	}
}

static void
note_turn(void)
{
	x.most = MAX(x.most, x.passed - x.passed_then);
	x.passed_then = x.passed;
}

static bool
has_passed(void *arg)
{
	(void)arg;
	note_turn();
	drain_and_feed();
	return x.passed >= x.until;
}

static bool
more_than_a_pipe_at_once(void *arg)
{
	(void)has_passed(arg);
	return x.most > PIPE_BYTES;
}

START_TEST(alone_it_moves_more_than_a_pipe_holds)
{
	x.to_feed = UINT64_MAX;
	start(UINT64_MAX);
	/* As soon as the kernel has that much for it. */
	rig_until(&rig, more_than_a_pipe_at_once, NULL);
}
END_TEST

START_TEST(beside_some_it_moves_what_a_pipe_holds)
{
	add_others(LOOP_CALM + 1);
	x.to_feed = UINT64_MAX;
	start(UINT64_MAX);
	x.until = 64 * MIB;
	rig_until(&rig, has_passed, NULL);
	ck_assert_uint_le(x.most, PIPE_BYTES);
	ck_assert_uint_gt(x.most, LOOP_SCRATCH);
}
END_TEST

START_TEST(beside_many_it_moves_what_a_read_would)
{
	add_others(OTHERS);
	x.to_feed = UINT64_MAX;
	start(UINT64_MAX);
	x.until = 16 * MIB;
	rig_until(&rig, has_passed, NULL);
	ck_assert_uint_le(x.most, LOOP_SCRATCH);
}
END_TEST

static bool
message_ended(void *arg)
{
	(void)arg;
	drain_and_feed();
	return x.ended;
}

/* It is on its way before the flow begins, as far as it goes. */
static void
run_message(uint64_t length)
{
	x.to_feed = length;
	drain_and_feed();
	start(length);
	rig_until(&rig, message_ended, NULL);
}

START_TEST(after_a_spliced_message_little_of_the_next_is_copied)
{
	run_message(BODY);
	ck_assert_uint_gt(x.first, FIRST);
	ck_assert_uint_gt(x.passed, 0);

	run_message(BODY);
	ck_assert_uint_eq(x.first, FIRST);
	/* And what is too little for a pipe, at its end. */
	ck_assert_uint_le(x.copied, FIRST + LITTLE);
}
END_TEST

START_TEST(after_a_small_one_it_reads_as_before)
{
	run_message(BODY);
	run_message(100);
	ck_assert_uint_eq(x.first, 100);
	run_message(BODY);
	ck_assert_uint_gt(x.first, FIRST);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/share");
	TCase *t = tcase_create("share");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, alone_it_moves_more_than_a_pipe_holds);
	tcase_add_test(t, beside_some_it_moves_what_a_pipe_holds);
	tcase_add_test(t, beside_many_it_moves_what_a_read_would);
	tcase_add_test(t, after_a_spliced_message_little_of_the_next_is_copied);
	tcase_add_test(t, after_a_small_one_it_reads_as_before);
	return run_suite(s);
}
