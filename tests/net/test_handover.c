/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_handover.c - who gives a connection to whom, and that none is lost.
 *
 * With one thread the loops run only when a test lets them, so what is on its
 * way stays so.
 */
#include <pthread.h>
#include <sched.h>

#include "net/handover.h"
#include "net/rig.h"

enum { TEAM = 8 };

static const char		 some_door[1];

static struct handover *team;

static struct member_of_test {
	struct loop		*loop;
	counter_t		 open;
	struct handover_item	 last;
	unsigned		 taken;
	unsigned		 stop_at;	/* taken so many */
} team_of[TEAM];

static void
on_taken(void *arg, const struct handover_item *item)
{
	struct member_of_test *m = arg;

	m->last = *item;
	stat_increment(&m->open);
	if (++m->taken == m->stop_at)
		loop_stop(m->loop);
}

static void
set_up_team(unsigned members, handover_fn *taken)
{
	team = handover_new(members);
	for (unsigned i = 0; i < members; i++) {
		struct member_of_test *m = &team_of[i];

		*m = (struct member_of_test){ .loop = loop_new() };
		handover_join(team, i, &(struct handover_opts){
			.loop = m->loop,
			.open = &m->open,
			.taken = taken,
			.arg = m,
		});
	}
}

static void
tear_down(void)
{
	handover_free(&team);
	for (unsigned i = 0; i < TEAM; i++)
		loop_free(&team_of[i].loop);
}

/* Let a member take so many; for ever, if they don't come. */
static void
let_take(unsigned member, unsigned count)
{
	struct member_of_test *m = &team_of[member];

	m->stop_at = m->taken + count;
	loop_run(m->loop);
}

static void
open_now(unsigned member, uint64_t count)
{
	atomic_store(&team_of[member].open, count);
}

/* A descriptor that is none, for what never comes to be closed. */
static bool
give(unsigned member)
{
	return handover_give(team, member, &(struct handover_item){
		.door = some_door,
		.fd = -1,
		.from = { .family = ADDR_IP4, .port = 4711 },
	});
}

static unsigned
give_all(unsigned member)
{
	unsigned n = 0;

	/* One may be kept for the sake of another: only many say it is over. */
	for (unsigned kept = 0; kept < 2 * HANDOVER_PARCELS; )
		if (give(member))
			n++;
		else
			kept++;
	return n;
}

START_TEST(alone_it_keeps_everything)
{
	set_up_team(1, on_taken);
	open_now(0, 1000);
	ck_assert(!give(0));
	handover_close(team, 0);
	ck_assert(handover_is_quiet(team, 0));
}
END_TEST

START_TEST(who_has_fewer_gets_it_whole)
{
	set_up_team(2, on_taken);
	open_now(0, 20);
	ck_assert(give(0));
	ck_assert_uint_eq(team_of[1].taken, 0);
	let_take(1, 1);
	ck_assert_ptr_eq(team_of[1].last.door, some_door);
	ck_assert_int_eq(team_of[1].last.fd, -1);
	ck_assert_uint_eq(team_of[1].last.from.port, 4711);
	ck_assert_uint_eq(handover_given(team, 0), 1);
	ck_assert_uint_eq(handover_taken(team, 1), 1);
	ck_assert_uint_eq(handover_taken(team, 0), 0);
}
END_TEST

START_TEST(a_quarter_more_and_the_slack_are_kept)
{
	const struct { uint64_t mine, theirs; bool gives; } rows[] = {
		{ 0, 0, false }, { 0, 100, false },
		{ HANDOVER_SLACK, 0, false }, { HANDOVER_SLACK + 1, 0, true },
		{ 1000, 1000, false },
		{ 1250, 1000, false }, { 1251, 1000, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		set_up_team(2, on_taken);
		open_now(0, rows[i].mine);
		open_now(1, rows[i].theirs);
		ck_assert_msg(give(0) == rows[i].gives, "row %zu", i);
		if (i + 1 < ARRAY_LEN(rows))
			tear_down();
	}
}
END_TEST

START_TEST(what_is_on_its_way_counts_for_who_gets_it)
{
	set_up_team(2, on_taken);
	open_now(0, HANDOVER_SLACK + 5);
	ck_assert_uint_eq(give_all(0), 5);
	/* And for nobody twice, when it has come. */
	let_take(1, 5);
	ck_assert_uint_eq(give_all(0), 0);
}
END_TEST

START_TEST(the_least_loaded_is_found_within_a_round)
{
	set_up_team(TEAM, on_taken);
	for (unsigned i = 0; i < TEAM; i++)
		open_now(i, 1000);
	open_now(2, 100);
	unsigned kept = 0;
	while (!give(0))
		ck_assert_uint_lt(kept++, TEAM);
	let_take(2, 1);
	/* Remembered, until another has fewer. */
	ck_assert(give(0));
	let_take(2, 1);
	open_now(3, 10);
	for (unsigned i = 0; i < TEAM; i++)
		ck_assert(give(0));
	let_take(3, 1);
}
END_TEST

START_TEST(not_too_much_goes_to_one_that_does_not_take)
{
	set_up_team(2, on_taken);
	open_now(0, 1000000);
	ck_assert_uint_eq(give_all(0), HANDOVER_COMING);
	let_take(1, HANDOVER_COMING);
	ck_assert_uint_eq(give_all(0), HANDOVER_COMING);
}
END_TEST

START_TEST(parcels_come_back)
{
	set_up_team(TEAM, on_taken);
	open_now(0, 1000000);
	ck_assert_uint_eq(give_all(0), HANDOVER_PARCELS);
	/* Those of one are free; the ones before and after them are not. */
	let_take(1, HANDOVER_PARCELS / TEAM);
	ck_assert_uint_eq(give_all(0), team_of[1].taken);
}
END_TEST

START_TEST(who_has_closed_takes_only_what_is_on_its_way)
{
	set_up_team(2, on_taken);
	open_now(0, 100);
	ck_assert(!handover_is_quiet(team, 1));
	ck_assert(give(0));
	handover_close(team, 1);
	ck_assert(!handover_is_quiet(team, 1));
	ck_assert(!give(0));
	let_take(1, 1);
	ck_assert(handover_is_quiet(team, 1));
	ck_assert(!give(0));
}
END_TEST

START_TEST(what_never_came_is_closed)
{
	int fds[2];
	char c;

	set_up_team(2, on_taken);
	open_now(0, 100);
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert(handover_give(team, 0, &(struct handover_item){
		.fd = fds[1],
	}));
	handover_free(&team);
	ck_assert_int_eq(read(fds[0], &c, 1), 0);
	close(fds[0]);
}
END_TEST

/* --- threads ----------------------------------------------------------- */

enum { THREADS = 4, EACH = 20000, BATCH = 16 };

/* Of each connection, whose number is its descriptor. */
static atomic_uint	served[THREADS * EACH];

static struct giver {
	struct loop_again	 again;
	pthread_t		 thread;
	unsigned		 id;
	unsigned		 done;
	uint64_t		 random;
} givers[THREADS];

static void
on_taken_by_thread(void *arg, const struct handover_item *item)
{
	(void)arg;
	atomic_fetch_add(&served[item->fd], 1);
}

static void
give_or_serve(struct giver *g)
{
	int fd = (int)(g->id * EACH + g->done++);

	if (!handover_give(team, g->id, &(struct handover_item){ .fd = fd }))
		atomic_fetch_add(&served[fd], 1);
}

/* Loads jump about, so that all give to all; the end is as a worker's. */
static void
on_turn(struct loop_again *a)
{
	struct giver *g = container_of(a, struct giver, again);

	g->random = g->random * 6364136223846793005 + 1442695040888963407;
	atomic_store_explicit(&team_of[g->id].open, g->random >> 54,
	    memory_order_relaxed);
	for (int i = 0; i < BATCH && g->done < EACH; i++)
		give_or_serve(g);
	/* However few cores: who should take them must come to run. */
	sched_yield();
	if (g->done < EACH)
		return;
	handover_close(team, g->id);
	if (!handover_is_quiet(team, g->id))
		return;
	list_remove(&a->link);
	loop_stop(team_of[g->id].loop);
}

static void *
run_giver(void *arg)
{
	struct giver *g = arg;
	struct loop *loop = team_of[g->id].loop;

	list_init(&g->again.link);
	g->again.fn = on_turn;
	loop_again(loop, &g->again);
	loop_run(loop);
	return NULL;
}

START_TEST(each_is_served_once_whoever_ends_meanwhile)
{
	uint64_t given = 0, taken = 0;

	set_up_team(THREADS, on_taken_by_thread);
	for (unsigned i = 0; i < THREADS; i++) {
		givers[i] = (struct giver){ .id = i, .random = i + 1 };
		ck_assert_int_eq(pthread_create(&givers[i].thread, NULL,
		    run_giver, &givers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(givers[i].thread, NULL);
		given += handover_given(team, i);
		taken += handover_taken(team, i);
	}
	for (size_t i = 0; i < ARRAY_LEN(served); i++)
		if (atomic_load(&served[i]) != 1)
			ck_abort_msg("%zu was served %u times", i,
			    atomic_load(&served[i]));
	ck_assert_uint_gt(given, 0);
	ck_assert_uint_eq(given, taken);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("net/handover");
	TCase *one = tcase_create("one thread");
	TCase *many = tcase_create("threads");

	tcase_add_checked_fixture(one, NULL, tear_down);
	tcase_add_test(one, alone_it_keeps_everything);
	tcase_add_test(one, who_has_fewer_gets_it_whole);
	tcase_add_test(one, a_quarter_more_and_the_slack_are_kept);
	tcase_add_test(one, what_is_on_its_way_counts_for_who_gets_it);
	tcase_add_test(one, the_least_loaded_is_found_within_a_round);
	tcase_add_test(one, not_too_much_goes_to_one_that_does_not_take);
	tcase_add_test(one, parcels_come_back);
	tcase_add_test(one, who_has_closed_takes_only_what_is_on_its_way);
	tcase_add_test(one, what_never_came_is_closed);
	suite_add_tcase(s, one);

	tcase_add_checked_fixture(many, NULL, tear_down);
	tcase_add_test(many, each_is_served_once_whoever_ends_meanwhile);
	tcase_set_timeout(many, 60);
	suite_add_tcase(s, many);
	return run_suite(s);
}
