/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_throttle.c - streams, flows and tunnels that are read no faster than
 * they may be.
 *
 * What passes is compared with the time that has gone by the clock of who
 * receives: that bound holds however slow the machine is.
 */
#include <time.h>

#include "base/keybucket.h"
#include "net/flow.h"
#include "net/rig.h"
#include "net/throttle.h"
#include "net/tunnel.h"

enum { MANY = 1500000, BURST = 65536, RATE = 4000000, KEY = 9 };

static struct rig rig;
static struct pace pace;
static struct pace_spec spec;
static struct throttle throttle, second;

/* Whoever reads a stream by itself. */
static struct reader {
	struct stream	*s;
	struct throttle	*t;
	size_t		 most;		/* at once */
	size_t		 head;		/* bytes that don't count */
	size_t		 got;
	size_t		 want;		/* stop there */
	unsigned	 calls;
	bool		 done;
	ssize_t		 last;
} a, b;

static nsec_t
clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (nsec_t)t.tv_sec * NSEC_PER_SEC + (nsec_t)t.tv_nsec;
}

static void
set_up(void)
{
	rig_open(&rig, 8 << 20);
	pace_init(&pace);
	pace_spec_init(&spec, RATE, BURST);
	pace_set(&pace, &spec, 0);
	throttle_init(&throttle);
	throttle_init(&second);
	throttle_add(&throttle, &pace, KEY);
	throttle_add(&second, &pace, KEY);
	a = b = (struct reader){ .most = BURST, .want = SIZE_MAX };
}

static void
tear_down(void)
{
	ck_assert_uint_eq(atomic_load(&rig.totals.throttled), 0);
	ck_assert_uint_eq(pace.waiting, 0);
	if (pace.table != NULL)
		ck_assert_uint_eq(keybucket_waiting(pace.table, KEY), 0);
	pace_fini(&pace);
	rig_close(&rig);
}

static void
slow(uint64_t rate)
{
	pace_spec_init(&spec, rate, BURST);
}

/* Nothing is left for a while. */
static void
empty(void)
{
	struct pace_use u;

	pace_use_init(&u, &pace, KEY);
	loop_now_update(rig.loop);
	while (pace_take(&u, BURST, loop_now(rig.loop)) > 0)
		;
}

/* A peer that says so much, as it is read. */
static struct feeder {
	struct loop_again	 again;
	int			 fd;
	size_t			 left;
	bool			 fin;
} feeders[2];

static void
on_feed(struct loop_again *again)
{
	struct feeder *f = container_of(again, struct feeder, again);
	static uint8_t bytes[65536];
	ssize_t n = f->left == 0 ? 0 :
	    write(f->fd, bytes, MIN(f->left, sizeof bytes));

	if (n > 0)
		f->left -= (size_t)n;
	if (f->left == 0 && f->fin) {
		f->fin = false;
		shutdown(f->fd, SHUT_WR);
	}
}

static void
feed(int i, int fd, size_t bytes)
{
	struct feeder *f = &feeders[i];

	*f = (struct feeder){ .again.fn = on_feed, .fd = fd, .left = bytes };
	list_init(&f->again.link);
	loop_again(rig.loop, &f->again);
}

static void
feed_no_more(int i)
{
	list_remove(&feeders[i].again.link);
	close(feeders[i].fd);
}

/* --- streams ------------------------------------------------------------ */

static void
on_read(void *arg)
{
	struct reader *r = arg;

	r->calls++;
	r->last = stream_recv(r->s, loop_scratch(rig.loop), r->most);
	if (r->last > 0) {
		size_t n = (size_t)r->last, head = MIN(r->head, n);

		if (r->t->peeks) {
			stream_take_shown(r->s, n - head);
			r->t->peeks = head == n;
			n = head;
		}
		r->head -= head;
		r->got += n;
	}
	r->done = r->got >= r->want || (r->last <= 0 && r->last != -EAGAIN);
}

static int
begin(struct reader *r, struct throttle *t)
{
	int peer;

	r->s = rig_stream(&rig, &peer);
	r->t = t;
	stream_set_throttle(r->s, t);
	stream_set_reader(r->s, on_read, r);
	return peer;
}

static void
end(struct reader *r)
{
	stream_set_throttle(r->s, NULL);
	stream_close(&r->s);
}

static struct bound {
	nsec_t	 began;
	size_t	*got, *also;
	size_t	 want;
} bound;

/* Is it all there?  At no time is there more than may be. */
static bool
within_bound(void *arg)
{
	struct bound *k = arg;
	size_t got = *k->got + (k->also != NULL ? *k->also : 0);
	nsec_t span = clock_now() - k->began;

	ck_assert_uint_le(got, BURST + span * spec.rate / NSEC_PER_SEC);
	return got >= k->want;
}

static struct bound *
bound_of(size_t *got, size_t want)
{
	bound = (struct bound){ .began = clock_now(), .got = got,
	    .want = want };
	loop_now_update(rig.loop);
	return &bound;
}

START_TEST(a_stream_is_read_no_faster_than_it_may_be)
{
	if (_i)
		pace_make_table(&pace, 64);
	feed(0, begin(&a, &throttle), MANY);
	rig_until(&rig, within_bound, bound_of(&a.got, MANY));
	ck_assert_uint_le(pace_passed(&pace), MANY);
	end(&a);
	ck_assert_uint_eq(pace_passed(&pace), MANY);
	ck_assert_uint_gt(throttle.waited, 0);
	feed_no_more(0);
}
END_TEST

START_TEST(two_streams_share_a_pace)
{
	if (_i)
		pace_make_table(&pace, 64);
	feed(0, begin(&a, &throttle), MANY);
	feed(1, begin(&b, &second), MANY);

	struct bound *k = bound_of(&a.got, MANY);

	k->also = &b.got;
	rig_until(&rig, within_bound, k);
	ck_assert_uint_gt(a.got, MANY / 4);
	ck_assert_uint_gt(b.got, MANY / 4);
	end(&a);
	end(&b);
	feed_no_more(0);
	feed_no_more(1);
}
END_TEST

START_TEST(all_paces_of_a_throttle_count)
{
	struct pace wide;
	struct pace_spec wide_spec;

	pace_init(&wide);
	pace_spec_init(&wide_spec, 100 * RATE, 100 * BURST);
	pace_set(&wide, &wide_spec, 0);
	throttle_init(&throttle);
	throttle_add(&throttle, &wide, 0);
	throttle_add(&throttle, &pace, 0);
	feed(0, begin(&a, &throttle), MANY);
	rig_until(&rig, within_bound, bound_of(&a.got, MANY));
	end(&a);
	ck_assert_uint_eq(pace_passed(&wide), MANY);
	ck_assert_uint_eq(pace_passed(&pace), MANY);
	feed_no_more(0);
	pace_fini(&wide);
}
END_TEST

START_TEST(a_reader_is_left_alone_until_something_may_be_read)
{
	int peer = begin(&a, &throttle);

	slow(1024);
	empty();
	rig_write(peer, "abc");
	rig_turns(&rig, 20);
	ck_assert_uint_eq(a.calls, 0);
	ck_assert_uint_eq(atomic_load(&rig.totals.throttled), 1);
	ck_assert_uint_eq(stream_held(a.s), loop_now(rig.loop));

	/* And the loop isn't woken meanwhile. */
	uint64_t before = rig_ready(&rig);
	rig_turns(&rig, 50);
	ck_assert_uint_eq(rig_ready(&rig), before);

	a.want = 3;
	rig_until_true(&rig, &a.done);
	ck_assert_uint_eq(atomic_load(&rig.totals.throttled), 0);
	ck_assert_uint_gt(stream_held(a.s), 0);
	end(&a);
	close(peer);
}
END_TEST

START_TEST(an_end_is_found_when_something_may_be_read)
{
	int peer = begin(&a, &throttle);

	slow(10240);
	empty();
	if (_i)
		rig_reset(peer);
	else
		close(peer);
	rig_until_true(&rig, &a.done);
	ck_assert_int_eq(a.last, _i ? -ECONNRESET : 0);
	end(&a);
}
END_TEST

static bool
is_throttled(void *arg)
{
	return (atomic_load(&rig.totals.throttled) != 0) == *(bool *)arg;
}

START_TEST(who_is_paused_meanwhile_stays_so)
{
	int peer = begin(&a, &throttle);

	/* A second is longer than a turn, however busy the machine is. */
	slow(1024);
	empty();
	rig_write(peer, "abc");
	rig_until(&rig, is_throttled, &(bool){ true });
	stream_pause(a.s);
	rig_until(&rig, is_throttled, &(bool){ false });
	rig_turns(&rig, 20);
	ck_assert_uint_eq(a.calls, 0);
	stream_resume(a.s);
	a.want = 3;
	rig_until_true(&rig, &a.done);
	end(&a);
	close(peer);
}
END_TEST

START_TEST(a_throttle_that_waits_may_be_taken_away)
{
	int peer = begin(&a, &throttle);

	slow(1024);
	empty();
	rig_write(peer, "abc");
	rig_turns(&rig, 20);
	ck_assert_uint_eq(atomic_load(&rig.totals.throttled), 1);
	stream_set_throttle(a.s, NULL);
	ck_assert_uint_eq(atomic_load(&rig.totals.throttled), 0);
	ck_assert_ptr_null(throttle.stream);
	a.want = 3;
	rig_until_true(&rig, &a.done);
	ck_assert_uint_eq(stream_held(a.s), 0);
	stream_close(&a.s);
	close(peer);
}
END_TEST

/* Else it would take three minutes; and where nothing is left, longer. */
START_TEST(what_does_not_count_waits_for_nothing)
{
	size_t more = _i ? 1 : BURST - 100;

	slow(1024);
	if (_i)
		empty();
	throttle.peeks = true;
	a.head = 3 * BURST + 100;
	feed(0, begin(&a, &throttle), a.head + more);
	a.want = a.head + more;
	rig_until_true(&rig, &a.done);
	ck_assert_uint_eq(a.got, a.want);
	ck_assert((throttle.waited > 0) == (_i == 1));
	end(&a);
	ck_assert_uint_eq(pace_passed(&pace), more);
	feed_no_more(0);
}
END_TEST

START_TEST(what_was_only_shown_is_read_again)
{
	int peer = begin(&a, &throttle);

	throttle.peeks = true;
	a.head = 2;
	a.want = 2;
	rig_write(peer, "abcd");
	rig_until_true(&rig, &a.done);
	ck_assert_uint_eq(a.got, 2);
	ck_assert_uint_eq(pace_passed(&pace), 0);
	a.done = false;
	a.want = 4;
	rig_until_true(&rig, &a.done);
	ck_assert_mem_eq(loop_scratch(rig.loop), "cd", 2);
	ck_assert_uint_eq(atomic_load(&rig.totals.received), 4);
	a.done = false;
	throttle.peeks = true;
	close(peer);
	rig_until_true(&rig, &a.done);
	ck_assert_int_eq(a.last, 0);
	end(&a);
}
END_TEST

START_TEST(what_did_not_come_costs_nothing)
{
	int peer = begin(&a, &throttle);

	/* Each time a whole burst is asked for. */
	slow(1024);
	for (a.want = 3; a.want <= 60; a.want += 3) {
		a.done = false;
		rig_write(peer, "abc");
		rig_until_true(&rig, &a.done);
		ck_assert_uint_eq(stream_held(a.s), 0);
	}
	end(&a);
	ck_assert_uint_eq(pace_passed(&pace), 60);
	close(peer);
}
END_TEST

/* --- flows -------------------------------------------------------------- */

static struct {
	struct flow	 flow;
	struct stream	*source, *sink;
	int		 in, out;
	struct rig_sink	 at_out;
	size_t		 got;
	bool		 ended;
	enum flow_end	 how;
} x;

static void
on_ended(struct flow *f, enum flow_end how, int err)
{
	(void)f, (void)err;
	x.ended = true;
	x.how = how;
}

static const struct flow_ops ops = { .ended = on_ended, .any_size = true };

static void
start(nsec_t source_timeout)
{
	memset(&x, 0, sizeof x);
	x.source = rig_stream(&rig, &x.in);
	x.sink = rig_stream(&rig, &x.out);
	flow_init(&x.flow);
	flow_start(&x.flow, &(struct flow_opts){
		.ops = &ops,
		.source = x.source,
		.sink = x.sink,
		.throttle = &throttle,
		.high = 65536,
		.low = 16384,
		.source_timeout = source_timeout,
		.use = BLOCK_BODY,
		.carry_end = true,
		.splice = true,
	});
}

static void
stop(void)
{
	flow_stop(&x.flow);
	ck_assert_ptr_null(throttle.stream);
	stream_close(&x.source);
	stream_close(&x.sink);
	close(x.out);
}

static bool
bytes_come(void *arg)
{
	static uint8_t bytes[262144];
	ssize_t n = read(x.out, bytes, sizeof bytes);

	if (n > 0)
		x.got += (size_t)n;
	return within_bound(arg);
}

/* Large enough to be spliced, once pipes are there. */
START_TEST(a_flow_keeps_to_it)
{
	if (_i)
		rig_give_pipes(&rig, 4);
	pace_spec_init(&spec, 10 * RATE, BURST * 10);
	start(0);
	feed(0, x.in, 10 * MANY);

	struct bound *k = bound_of(&x.got, 10 * MANY - 9 * BURST);

	k->began -= 9 * BURST * NSEC_PER_SEC / spec.rate;
	rig_until(&rig, bytes_come, k);
	ck_assert((atomic_load(&rig.pipes.moved) > MANY) == (_i == 1));
	stop();
	feed_no_more(0);
}
END_TEST

/* A quantum takes a second, ten times as long as it has. */
START_TEST(a_held_source_is_not_late)
{
	slow(1024);
	empty();
	start(NSEC_PER_SEC / 10);
	rig_write(x.in, "abc");
	x.at_out = (struct rig_sink){ .fd = x.out };
	rig_until_true(&rig, &x.ended);
	/* It was, but only after those had come. */
	ck_assert_int_eq(x.how, FLOW_SOURCE_LATE);
	ck_assert_uint_eq(x.flow.bytes, 3);
	stop();
	close(x.in);
}
END_TEST

static bool
tunnel_is_over(void *arg)
{
	(void)arg;
	return x.ended;
}

static void
on_tunnel_ended(struct tunnel *t, enum failure why)
{
	x.got = t->up.bytes;
	x.ended = true;
	ck_assert_int_eq(why, FAIL_TUNNEL_IDLE);
}

START_TEST(a_held_tunnel_is_not_idle)
{
	static struct tunnel tunnel;
	struct tunnel_opts opts = {
		.high = 65536,
		.low = 16384,
		.throttle_up = &throttle,
		.idle = NSEC_PER_SEC / 10,
		.half_closed = NSEC_PER_SEC / 10,
		.ended = on_tunnel_ended,
	};
	int client, server;

	memset(&x, 0, sizeof x);
	slow(1024);
	empty();
	opts.client = rig_stream(&rig, &client);
	opts.upstream = rig_stream(&rig, &server);
	tunnel_start(&tunnel, &opts);
	rig_write(client, "abc");
	rig_until(&rig, tunnel_is_over, NULL);
	ck_assert_uint_eq(x.got, 3);
	close(client);
	close(server);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("net/throttle");
	TCase *t = tcase_create("throttle");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, a_stream_is_read_no_faster_than_it_may_be, 0,
	    2);
	tcase_add_loop_test(t, two_streams_share_a_pace, 0, 2);
	tcase_add_test(t, all_paces_of_a_throttle_count);
	tcase_add_test(t, a_reader_is_left_alone_until_something_may_be_read);
	tcase_add_loop_test(t, an_end_is_found_when_something_may_be_read, 0,
	    2);
	tcase_add_test(t, who_is_paused_meanwhile_stays_so);
	tcase_add_test(t, a_throttle_that_waits_may_be_taken_away);
	tcase_add_loop_test(t, what_does_not_count_waits_for_nothing, 0, 2);
	tcase_add_test(t, what_was_only_shown_is_read_again);
	tcase_add_test(t, what_did_not_come_costs_nothing);
	tcase_add_loop_test(t, a_flow_keeps_to_it, 0, 2);
	tcase_add_test(t, a_held_source_is_not_late);
	tcase_add_test(t, a_held_tunnel_is_not_idle);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	return run_suite(suite());
}
