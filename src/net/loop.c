/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop.c - event loop over libev; see loop.h.
 *
 * libev does the descriptors and the waiting.  All else is done in one
 * prepare watcher, which runs after the callbacks of a turn and before the
 * next poll: timers, mail, the `again` and the `later` list, in this order.
 *
 * There is one libev timer.  It only limits the poll: what is due is found by
 * asking the wheels.  It is moved when the wheels' next time has changed,
 * which costs no system call; and an idle watcher, whose function does
 * nothing, keeps the poll from blocking while there is work left over.
 *
 * The clock is read twice a turn, around the poll, for the figures; what
 * comes out of the poll is the time of the turn.
 */
#include "net/loop_own.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "net/clock.h"
#include "net/spent.h"

static_assert(sizeof(ev_io) == sizeof(struct watch) &&
    _Alignof(ev_io) <= _Alignof(struct watch) &&
    offsetof(ev_io, data) == offsetof(struct watch, kind) &&
    offsetof(ev_io, active) == offsetof(struct watch, active) &&
    offsetof(ev_io, pending) == offsetof(struct watch, pending) &&
    offsetof(ev_io, fd) == offsetof(struct watch, fd) &&
    offsetof(ev_io, events) == offsetof(struct watch, events),
    "struct watch is not libev's ev_io");

#define BLIND	(100 * NSEC_PER_MSEC)	/* later than that: see is_blind() */

static void	on_prepare(struct ev_loop *ev, ev_prepare *w, int revents);
static void	on_timer(struct ev_loop *ev, ev_timer *w, int revents);
static void	on_idle(struct ev_loop *ev, ev_idle *w, int revents);
static void	on_async(struct ev_loop *ev, ev_async *w, int revents);
static void	on_io(struct ev_loop *ev, ev_io *io, int revents);
static void	before_poll(struct ev_loop *ev);
static void	after_poll(struct ev_loop *ev);
static void	on_syserr(const char *what);
static void	read_wall(struct loop *loop);
static void	start_watchers(struct loop *loop);

/* --- the loop ---------------------------------------------------------- */

struct loop *
loop_new(void)
{
	/* libev aborts if it gets none for its wake-ups: ask before. */
	int fd = eventfd(0, EFD_CLOEXEC);
	if (fd == -1)
		return NULL;
	close(fd);
	ev_set_syserr_cb(on_syserr);

	struct ev_loop *ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV |
	    EVFLAG_NOSIGMASK | EVFLAG_NOTIMERFD);
	if (ev == NULL)
		return NULL;

	struct loop *loop = xcalloc(1, sizeof *loop);
	loop->ev = ev;
	loop->now = loop->polled = loop->slept = read_clock(CLOCK_MONOTONIC);
	loop->planned = loop->max_lag = NSEC_NEVER;
	loop->wheels = wheels_new(loop->now);
	spent_init(&loop->spent);
	wheels_on_fire(loop->wheels, spent_mark_timer, &loop->spent);
	loop->timer_due = NSEC_NEVER;
	loop->scratch = xcalloc(1, LOOP_BULK + LOOP_SCRATCH);
	loop->later_end = &loop->later;
	list_init(&loop->again);
	mailbox_init(&loop->box);
	read_wall(loop);
	start_watchers(loop);
	return loop;
}

static void
start_watchers(struct loop *loop)
{
	ev_set_userdata(loop->ev, loop);
	ev_set_loop_release_cb(loop->ev, before_poll, after_poll);

	ev_init(&loop->timer, on_timer);
	ev_idle_init(&loop->idle, on_idle);
	ev_prepare_init(&loop->prepare, on_prepare);
	ev_prepare_start(loop->ev, &loop->prepare);
	ev_async_init(&loop->async, on_async);
	ev_async_start(loop->ev, &loop->async);
}

uint64_t
loop_memory(uint64_t descriptors)
{
	/*
	 * libev has, for each number, what is watched, whether that changed
	 * and what is pending; tables that double, the old one beside the new.
	 */
	enum { EACH = 16 + 4 + 16, DOUBLING = 3 };

	return sizeof(struct loop) + LOOP_BULK + LOOP_SCRATCH +
	    wheels_memory() + DOUBLING * EACH * descriptors;
}

void
loop_free(struct loop **loop)
{
	struct loop *l = *loop;

	if (l == NULL)
		return;
	*loop = NULL;
	ev_async_stop(l->ev, &l->async);
	ev_prepare_stop(l->ev, &l->prepare);
	ev_idle_stop(l->ev, &l->idle);
	ev_timer_stop(l->ev, &l->timer);
	ev_loop_destroy(l->ev);
	wheels_free(&l->wheels);
	free(l->scratch);
	free(l);
}

void
loop_run(struct loop *loop)
{
	loop_set_running(loop);
	ev_now_update(loop->ev);
	loop->now = loop->polled = read_clock(CLOCK_MONOTONIC);
	spent_begin(&loop->spent, CALLBACK_NAME(loop_run));
	ev_run(loop->ev, 0);
	loop_set_running(NULL);
	/* Now, not on entry: a stop that came before the start counts. */
	atomic_store(&loop->stop, false);
}

void
loop_stop(struct loop *loop)
{
	atomic_store(&loop->stop, true);
	ev_async_send(loop->ev, &loop->async);
}

nsec_t
loop_now(const struct loop *loop)
{
	return loop->now;
}

struct timespec
loop_wall(const struct loop *loop)
{
	nsec_t wall = loop->now + loop->wall_offset;

	return (struct timespec){
		.tv_sec = (time_t)(wall / NSEC_PER_SEC),
		.tv_nsec = (long)(wall % NSEC_PER_SEC),
	};
}

void
loop_now_update(struct loop *loop)
{
	loop->now = read_clock(CLOCK_MONOTONIC);
}

uint8_t *
loop_scratch(struct loop *loop)
{
	return loop->scratch;
}

uint8_t *
loop_scratch_out(struct loop *loop)
{
	return loop->scratch + LOOP_BULK;
}

void
loop_set_blocks(struct loop *loop, struct blocks *blocks)
{
	loop->blocks = blocks;
}

void
loop_set_turn(struct loop *loop, struct loop_turn *t)
{
	loop->turn = t;
}

bool
loop_is_busy(const struct loop *loop)
{
	return loop->ready_last > LOOP_BUSY;
}

bool
loop_is_calm(const struct loop *loop)
{
	return loop->ready_last <= LOOP_CALM;
}

void
loop_set_max_lag(struct loop *loop, nsec_t most)
{
	loop->max_lag = most;
}

bool
loop_is_late(const struct loop *loop)
{
	return loop->now < loop->late_until || loop->late > loop->max_lag;
}

struct blocks *
loop_blocks(const struct loop *loop)
{
	return loop->blocks;
}

const struct loop_stats *
loop_stats(const struct loop *loop)
{
	return &loop->stats;
}

struct spent *
loop_spent(struct loop *loop)
{
	return &loop->spent;
}

/* --- descriptors ------------------------------------------------------- */

static_assert((int)WATCH_READ == (int)EV_READ &&
    (int)WATCH_WRITE == (int)EV_WRITE, "events need translating");
enum { WATCH_EVENTS = WATCH_READ | WATCH_WRITE };

static ev_io *
io_of(struct watch *w)
{
	return (ev_io *)(void *)w;
}

void
watch_init(struct watch *w, struct watch_kind *kind, int fd)
{
	ev_io *io = io_of(w);

	/* Says that the descriptor is new, even if its number is not. */
	ev_io_init(io, on_io, fd, 0);
	io->data = kind;
}

void
watch_want(struct watch *w, unsigned events)
{
	ev_io *io = io_of(w);
	struct loop *loop = watch_kind(w)->loop;

	ASSERT((events & ~(unsigned)WATCH_EVENTS) == 0);
	if (events == watch_wanted(w))
		return;
	ev_io_stop(loop->ev, io);
	if (events == 0)
		return;
	/* Not set: that would cost a system call even for no change. */
	ev_io_modify(io, (int)events);
	ev_io_start(loop->ev, io);
}

/* --- timers ------------------------------------------------------------ */

HOT void
loop_arm(struct loop *loop, struct wheel_timer *t, nsec_t after)
{
	nsec_t most = NSEC_NEVER - 1 - loop->now;
	wheel_arm(loop->wheels, t, loop->now + MIN(after, most));
}

void
loop_arm_at(struct loop *loop, struct wheel_timer *t, nsec_t due)
{
	wheel_arm(loop->wheels, t, due);
}

void
loop_cancel(struct loop *loop, struct wheel_timer *t)
{
	wheel_cancel(loop->wheels, t);
}

/* --- a turn ------------------------------------------------------------ */

/* Apart, so that on_io() has nothing to keep across a call. */
static APART void
call_after_long(struct watch *w, unsigned ready)
{
	struct watch_kind *kind = watch_kind(w);

	spent_mark(&kind->loop->spent, kind->name);
	kind->fn(w, ready);
}

static HOT void
on_io(struct ev_loop *ev, ev_io *io, int revents)
{
	struct watch_kind *kind = io->data;
	struct loop *loop = kind->loop;
	struct watch *w = (struct watch *)(void *)io;
	unsigned ready = (unsigned)revents & WATCH_EVENTS;

	(void)ev;
	if (UNLIKELY(revents & EV_ERROR))
		ready = ((unsigned)io->events & WATCH_EVENTS) | WATCH_ERROR;
	stat_increment(&loop->stats.ready);
	if (ready & WATCH_READ)
		stat_increment(&loop->stats.readers);
	if (ready & WATCH_WRITE)
		stat_increment(&loop->stats.writers);
	if (LIKELY(spent_mark_short(&loop->spent, kind->name)))
		kind->fn(w, ready);
	else
		call_after_long(w, ready);
}

/*
 * After a process was stopped, or a turn took long, what timers wait for may
 * lie in the kernel unseen: descriptors come first, once.
 */
static bool
is_blind(struct loop *loop)
{
	loop->blind = loop->late > BLIND && !loop->blind;
	return loop->blind;
}

static void
run_timers(struct loop *loop)
{
	if (is_blind(loop))
		return;

	unsigned fired = wheels_advance(loop->wheels, loop->now);
	if (fired > 0)
		stat_add(&loop->stats.timers, fired);
}

/* How long may the poll last? */
static void
plan_poll(struct loop *loop)
{
	nsec_t due = wheels_next(loop->wheels);
	loop->planned = MAX(due, loop->now);
	if (!list_is_empty(&loop->again) || loop->later != NULL ||
	    due <= loop->now) {
		ev_idle_start(loop->ev, &loop->idle);
		return;
	}
	ev_idle_stop(loop->ev, &loop->idle);
	if (due == loop->timer_due)
		return;
	loop->timer_due = due;
	ev_timer_stop(loop->ev, &loop->timer);
	if (due == NSEC_NEVER)
		return;
	/* libev counts from when poll returned. */
	ev_timer_set(&loop->timer, (double)(due - loop->polled) / 1e9, 0.);
	ev_timer_start(loop->ev, &loop->timer);
}

static HOT void
on_prepare(struct ev_loop *ev, ev_prepare *w, int revents)
{
	struct loop *loop = ev_userdata(ev);

	(void)w, (void)revents;
	if (loop->turn != NULL)
		loop->turn->ready(loop->turn);
	spent_mark(&loop->spent, CALLBACK_NAME(on_prepare));
	run_timers(loop);
	loop_take_mail(loop);
	loop_run_again(loop);
	loop_run_later(loop);
	if (loop->turn != NULL) {
		loop->turn->over(loop->turn);
		loop_run_later(loop);
	}
	if (atomic_load_explicit(&loop->stop, memory_order_relaxed))
		ev_break(ev, EVBREAK_ONE);
	plan_poll(loop);
}

static void
on_timer(struct ev_loop *ev, ev_timer *w, int revents)
{
	struct loop *loop = ev_userdata(ev);

	(void)w, (void)revents;
	loop->timer_due = NSEC_NEVER;
}

static void
on_idle(struct ev_loop *ev, ev_idle *w, int revents)
{
	(void)ev, (void)w, (void)revents;
}

static void
on_async(struct ev_loop *ev, ev_async *w, int revents)
{
	(void)ev, (void)w, (void)revents;
}

static void
before_poll(struct ev_loop *ev)
{
	struct loop *loop = ev_userdata(ev);
	struct loop_stats *stats = &loop->stats;

	loop->slept = read_clock(CLOCK_MONOTONIC);
	nsec_t busy = loop->slept - loop->polled;
	nsec_t lag = MAX(busy, loop->late);
	loop->late = 0;
	loop->worst = MAX(loop->worst, lag);
	hist_add(&stats->lag, lag);
	if (lag > stat_read(&stats->lag_recent))
		stat_set(&stats->lag_recent, lag);
	if (lag > loop->max_lag) {
		loop->late_until = loop->slept + LOOP_LATE;
		stat_increment(&stats->turns_late);
	}
	stat_add(&stats->busy, busy);
	loop->ready_last = stat_read(&stats->ready) - loop->ready_then;
	loop->ready_then += loop->ready_last;
	spent_end(&loop->spent, busy > stat_read(&stats->longest) ?
	    &stats->longest_by : NULL);
	if (busy > stat_read(&stats->longest))
		stat_set(&stats->longest, busy);
	stat_set(&stats->timers_linked, wheels_count(loop->wheels));
	stat_set(&stats->turn_began, 0);
}

static void
after_poll(struct ev_loop *ev)
{
	struct loop *loop = ev_userdata(ev);
	struct loop_stats *stats = &loop->stats;

	loop->now = loop->polled = read_clock(CLOCK_MONOTONIC);
	if (loop->polled > loop->planned)
		loop->late = loop->polled - loop->planned;
	stat_add(&stats->idle, loop->now - loop->slept);
	stat_increment(&stats->turns);
	stat_set(&stats->turn_began, loop->now);
	spent_begin(&loop->spent, CALLBACK_NAME(after_poll));
	if (loop->now < loop->wall_due)
		return;
	read_wall(loop);
	stat_set(&stats->lag_recent, loop->worst);
	loop->worst = 0;
}

/* --- clocks and errors ------------------------------------------------- */

/* May wrap, if the time of day is before the start: then so does the sum. */
static void
read_wall(struct loop *loop)
{
	loop->wall_offset = read_clock(CLOCK_REALTIME) -
	    read_clock(CLOCK_MONOTONIC);
	loop->wall_due = loop->now + NSEC_PER_SEC;
}

/* epoll itself failed: nothing can be served any more. */
static void
on_syserr(const char *what)
{
	fprintf(stderr, "penstock: %s: %s\n", what, strerror(errno));
	abort();
}
