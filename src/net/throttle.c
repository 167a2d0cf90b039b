/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * throttle.c - what may be read from a stream; see throttle.h.
 *
 * Bytes are taken when they are read, never ahead: a timer may be late, and
 * what had been reserved for several times would pass at once.
 */
#include "net/throttle.h"

static wheel_fn	on_due;

void
throttle_init(struct throttle *t)
{
	t->stream = NULL;
	t->loop = NULL;
	t->since = t->held = t->waited = 0;
	t->shown = 0;
	t->early = t->latest = 0;
	t->count = 0;
	t->holds = NULL;
	t->waits = t->counts_late = t->peeks = false;
	wheel_timer_init(&t->timer, on_due);
}

struct pace_use *
throttle_add(struct throttle *t, struct pace *p, uint64_t key)
{
	struct pace_use *u = &t->uses[t->count];

	ASSERT(t->count < THROTTLE_PACES);
	t->count++;
	pace_use_init(u, p, key);
	return u;
}

/* --- what passes -------------------------------------------------------- */

static void
give_back(struct throttle *t, unsigned count, uint64_t n)
{
	for (unsigned i = 0; i < count; i++)
		pace_give_back(&t->uses[i], n);
}

static void
count_passed(struct throttle *t, uint64_t n, nsec_t now)
{
	for (unsigned i = 0; i < t->count && n > 0; i++)
		pace_count(&t->uses[i], n, now);
}

/* Only when more comes: until then, some of it may be given back. */
static void
count_latest(struct throttle *t)
{
	count_passed(t, t->latest, loop_now(t->loop));
	t->latest = 0;
}

/* All are asked, so that it is known which of them takes longest. */
bool
throttle_charge(struct throttle *t, uint64_t n, nsec_t max_wait, nsec_t now,
    nsec_t waits[THROTTLE_PACES])
{
	bool fits = true;

	for (unsigned i = 0; i < t->count; i++) {
		waits[i] = pace_charge(&t->uses[i], n, max_wait, now);
		fits = fits && waits[i] <= max_wait;
	}
	if (fits) {
		t->early += n;
		return true;
	}
	for (unsigned i = 0; i < t->count; i++)
		if (waits[i] <= max_wait)
			pace_give_back(&t->uses[i], n);
	return false;
}

void
throttle_early_passes(struct throttle *t, nsec_t now)
{
	count_passed(t, t->early, now);
	t->early = 0;
}

void
throttle_early_dropped(struct throttle *t)
{
	give_back(t, t->count, t->early);
	t->early = 0;
}

/* They may have come with what was charged as early, and is counted. */
void
throttle_give_back(struct throttle *t, uint64_t n)
{
	t->latest -= MIN(t->latest, n);
	give_back(t, t->count, n);
}

/* --- waiting ------------------------------------------------------------ */

/* For the pace of that number. */
static void
wait_for(struct throttle *t, unsigned at)
{
	t->waits = true;
	t->at = at;
	t->since = loop_now(t->loop);
	stat_increment(t->waiting);
	loop_arm_at(t->loop, &t->timer,
	    pace_wait_begin(&t->uses[at], t->since));
	if (t->holds != NULL)
		t->holds(t);
}

static void
stop_waiting(struct throttle *t)
{
	if (!t->waits)
		return;
	t->waits = false;
	t->held = loop_now(t->loop);
	t->waited += t->held - MIN(t->held, t->since);
	stat_decrement(t->waiting);
	pace_wait_end(&t->uses[t->at], t->held);
}

static void
on_due(struct wheel_timer *timer)
{
	struct throttle *t = container_of(timer, struct throttle, timer);

	stop_waiting(t);
	t->due(t);
}

nsec_t
throttle_held(const struct throttle *t)
{
	return t->waits ? loop_now(t->loop) : t->held;
}

/* --- a stream's --------------------------------------------------------- */

void
throttle_begin(struct throttle *t, struct loop *loop)
{
	ASSERT(!t->waits);
	t->loop = loop;
}

void
throttle_end(struct throttle *t)
{
	stop_waiting(t);
	loop_cancel(t->loop, &t->timer);
	count_latest(t);
	t->stream = NULL;
}

/* Looked at before anything is taken, so that no turn is used in vain. */
APART bool
throttle_is_open(struct throttle *t)
{
	nsec_t now = loop_now(t->loop);

	if (t->peeks)
		return true;
	if (t->waits)
		return false;
	for (unsigned i = 0; i < t->count; i++)
		if (!pace_is_open(&t->uses[i], now)) {
			wait_for(t, i);
			return false;
		}
	return true;
}

size_t
throttle_take(struct throttle *t, size_t want)
{
	nsec_t now = loop_now(t->loop);
	uint64_t n = want;

	ASSERT(!t->peeks);
	if (t->waits)
		return 0;
	for (unsigned i = 0; i < t->count; i++) {
		uint64_t got = pace_take(&t->uses[i], n, now);

		give_back(t, i, n - got);
		n = got;
		if (n == 0) {
			wait_for(t, i);
			break;
		}
	}
	return (size_t)n;
}

void
throttle_came(struct throttle *t, size_t allowed, ssize_t came)
{
	size_t n = came > 0 ? (size_t)came : 0;

	give_back(t, t->count, allowed - n);
	if (n > 0)
		count_latest(t);
	t->latest += n;
	if (!t->counts_late)
		count_latest(t);
}
