/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_keygate_steps.c - src/base/keygate.c and keytable.c: three workers in
 * every step of each other.
 */
#include <check.h>
#include <sched.h>

#include "base/steps.h"

#include "../../src/base/keytable.c"	/* with the accesses of steps.h */
#include "../../src/base/keygate.c"

#include "harness.h"

enum {
	HISTORIES = 50000, BEFORE = 8, DURING = 3, WORKERS = 3, EACH = 4,
	KEYS = 9,
};

/* Of one worker, with one key at a time. */
static struct guest {
	struct keygate_waiter	 w;
	uint64_t		 key;
	bool			 inside;
} guests[WORKERS][EACH];

static struct keygate *g;
static struct gate_spec spec;
static uint64_t seed;
static uint64_t inside[KEYS + 1];
static uint64_t most;			/* that may be inside with a key */

static void
enter(struct guest *v)
{
	CREW_ASSERT(!v->inside);
	v->inside = true;
	inside[v->key]++;
}

static void
on_served(struct gate_waiter *w, enum failure why)
{
	CREW_ASSERT(why == FAIL_NONE);
	enter(container_of(w, struct guest, w.gate));
}

/* Most often one of two keys; else one of so many that rows change hands. */
static void
take(struct guest *v, unsigned worker)
{
	enum failure why;
	enum gate_result r;

	v->key = 1 + crew_random(&seed, crew_random(&seed, 3) ? 2 : KEYS);
	struct keygate_call call = { v->key << 40, worker, 1 };
	r = keygate_take(g, &call, &v->w, &why);
	if (r == GATE_TAKEN || (r == GATE_REFUSED && keygate_is_dry(g) &&
	    keygate_take_dry(g, &call, &v->w.row)))
		enter(v);
}

static void
change(void)
{
	spec.limit = crew_random(&seed, 4);
	spec.dry = crew_random(&seed, 4) == 0;
	most = MAX(most, spec.limit != 0 && !spec.dry ? spec.limit :
	    WORKERS * EACH);
	keygate_set(g, &spec, 1);
}

static void
release(struct guest *v, unsigned worker)
{
	v->inside = false;
	inside[v->key]--;
	keygate_release(g, worker, v->w.row, 1);
}

static void
move(unsigned worker)
{
	struct guest *v = &guests[worker][crew_random(&seed, EACH)];

	switch (crew_random(&seed, 16)) {
	case 0:
		if (worker == 0)
			change();
		break;
	case 1: case 2: case 3: case 4: case 5: case 6:
		crew_read(worker);
		break;
	case 7: case 8:
		keygate_leave(g, worker, &v->w, 1);
		break;
	default:
		if (v->inside)
			release(v, worker);
		else if (!gate_is_waiting(&v->w.gate))
			take(v, worker);
	}
}

static void
act(unsigned worker)
{
	for (int i = 0; i < DURING; i++)
		move(worker);
}

static void
close_gate(void)
{
	for (unsigned i = 0; i < WORKERS; i++)
		for (int j = 0; j < EACH; j++)
			keygate_leave(g, i, &guests[i][j].w, 1);
	crew_settle();
	keygate_free(&g);
}

static void
open_gate(void)
{
	if (g != NULL)
		close_gate();
	spec = (struct gate_spec){
		.limit = 1 + crew_random(&seed, 2), .queue = 5,
	};
	g = keygate_new(&spec, ROWS, WORKERS, crew_wake, NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		for (int j = 0; j < EACH; j++) {
			guests[i][j] = (struct guest){ .inside = false };
			keygate_waiter_init(&guests[i][j].w, on_served);
		}
	memset(inside, 0, sizeof inside);
}

/* Each key has one row, with the right number in use. */
static void
check_rows(void)
{
	uint64_t sum = 0;

	for (uint64_t key = 1; key <= KEYS; key++) {
		uint64_t in_use = 0;

		for (int i = 0; i < ROWS; i++) {
			uint64_t word = g->table->lines[0].rows[i];

			if (tag_of(word) == key << 40)
				in_use += count_of(word).in_use;
		}
		CREW_ASSERT(in_use == inside[key]);
		sum += in_use;
	}
	keygate_validate(g, sum);
}

START_TEST(nobody_is_forgotten_in_any_order_of_steps)
{
	seed = (uint64_t)_i + 1;
	crew_setup();
	for (int n = 0; n < HISTORIES; n++) {
		if (n % 64 == 0)
			open_gate();
		for (int i = 0; i < BEFORE; i++)
			move(crew_random(&seed, WORKERS));
		most = spec.limit != 0 && !spec.dry ? spec.limit :
		    WORKERS * EACH;
		for (int i = 0; i <= KEYS; i++)
			most = MAX(most, inside[i]);
		steps_run(WORKERS, act, &seed);
		for (int i = 0; i <= KEYS; i++)
			CREW_ASSERT(inside[i] <= most);
		crew_settle();
		check_rows();
	}
	close_gate();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("keygate steps");
	TCase *t = tcase_create("keygate steps");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, nobody_is_forgotten_in_any_order_of_steps, 0,
	    2);
	suite_add_tcase(s, t);
	return run_suite(s);
}
