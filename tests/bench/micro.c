/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * micro.c - what the data structures cost, alone.
 *
 *	micro [PART]...		of timers, limits, http and pool
 *
 * Prints nanoseconds for each operation, the least of some passes, beside
 * what it may cost at most where there is such an aim.  It ends with 0
 * whatever they are: a busy machine proves nothing.
 */
#include "bench/micro.h"

#include <pthread.h>

#include "bench/bench.h"

enum { PASSES = 10, TIMERS_MOST = 1000000 };

static uint64_t rows_over;

/* Of this thread, while it has a core: what else runs doesn't count. */
static uint64_t
cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) +
	    (uint64_t)t.tv_nsec;
}

static double
least(micro_fn *fn, void *arg, uint64_t n, uint64_t (*clock_now)(void))
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < PASSES; i++) {
		uint64_t began = clock_now();

		fn(arg, n);

		uint64_t took = clock_now() - began;
		if (took < best)
			best = took;
	}
	return (double)best / (double)n;
}

double
micro_time(micro_fn *fn, void *arg, uint64_t n)
{
	return least(fn, arg, n, cpu_now);
}

struct two {
	micro_fn	*fn;
	void		*arg;
	uint64_t	 n;
};

static void *
run_one(void *arg)
{
	struct two *t = arg;

	t->fn(t->arg, t->n);
	return NULL;
}

static void
run_two(void *arg, uint64_t n)
{
	struct two *t = arg;
	pthread_t other;

	t->n = n;
	errno = pthread_create(&other, NULL, run_one, t);
	if (errno != 0)
		die("pthread_create");
	run_one(t);
	pthread_join(other, NULL);
}

double
micro_time_two(micro_fn *fn, void *arg, uint64_t n)
{
	struct two t = { .fn = fn, .arg = arg };

	return least(run_two, &t, n, nsec_now);
}

void
micro_row(const char *what, double nsec, double most)
{
	const char *verdict = "";

	if (most > 0 && nsec > most) {
		verdict = "  over";
		rows_over++;
	}
	if (most > 0)
		printf("%-52s %8.1f %8.1f%s\n", what, nsec, most, verdict);
	else
		printf("%-52s %8.1f\n", what, nsec);
	fflush(stdout);
}

static void
all_timers(void)
{
	for (uint64_t n = 1000; n <= TIMERS_MOST; n *= 10)
		micro_timers(n);
}

static const struct {
	const char	*name;
	void		(*run)(void);
} parts[] = {
	{ "timers", all_timers },
	{ "limits", micro_limits },
	{ "http", micro_http },
	{ "pool", micro_pool },
};

static bool
is_wanted(const char *name, char **names)
{
	if (*names == NULL)
		return true;
	for (; *names != NULL; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

int
main(int argc, char **argv)
{
	(void)argc;
	printf("%-52s %8s %8s\n", "", "ns", "at most");
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (is_wanted(parts[i].name, argv + 1))
			parts[i].run();
	printf("%ju over what they may cost\n", (uintmax_t)rows_over);
	return 0;
}
