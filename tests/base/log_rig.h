/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log_rig.h - a log's writer in a folder of its own, for tests.
 *
 * Nothing here sleeps: a thread waits for the writer by its ticks, or by
 * reading from a pipe.
 */
#ifndef PENSTOCK_TESTS_BASE_LOG_RIG_H
#define PENSTOCK_TESTS_BASE_LOG_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

#include "base/log_writer.h"

enum { RING = 32768 };

#define AN_HOUR		(3600 * NSEC_PER_SEC)

static char dir[] = "/tmp/test_log_writer.XXXXXX";
static char path[64], moved[64];
static sem_t ticked;
static _Atomic int failures, last_error;
static struct log_writer *w;

static inline void
a_directory(void)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/log", dir);
	snprintf(moved, sizeof moved, "%s/log.1", dir);
	sem_init(&ticked, 0, 0);
	failures = last_error = 0;
}

static inline void
no_directory(void)
{
	log_writer_stop(&w);
	unlink(path);
	unlink(moved);
	rmdir(dir);
	sem_destroy(&ticked);
}

static inline void
on_tick(void *arg)
{
	(void)arg;
	sem_post(&ticked);
}

static inline void
on_failed(void *arg, const char *where, bool opening, int err)
{
	(void)arg;
	(void)where;
	(void)opening;
	failures++;
	last_error = err;
}

static inline void
start(const char *where, unsigned rings, nsec_t interval)
{
	int err = log_writer_start(&w, &(struct log_writer_opts){
		.path = where,
		.rings = rings,
		.ring_size = RING,
		.interval = interval,
		.patience = NSEC_PER_MSEC,
		.failed = on_failed,
		.tick = on_tick,
	});

	ck_assert_int_eq(err, 0);
}

static inline bool
put(const char *line)
{
	return log_put(log_writer_ring(w, 0), line, strlen(line));
}

/*
 * Return when whatever was put before has been written: the first tick from
 * now on comes before that is done, and the second after it.
 */
static inline void
wait_written(void)
{
	while (sem_trywait(&ticked) == 0)
		continue;
	for (int i = 0; i < 2; i++) {
		log_writer_wake(w);
		while (sem_wait(&ticked) != 0)
			continue;
	}
}

static inline void
wait_ticks(int n)
{
	while (n-- > 0)
		while (sem_wait(&ticked) != 0)
			continue;
}

/* The file holds this, and nothing more. */
static inline void
check_contents(const char *where, const char *want)
{
	FILE *f = fopen(where, "re");
	char text[256];

	ck_assert_ptr_nonnull(f);
	size_t n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	fclose(f);
	ck_assert_str_eq(text, want);
}

static inline unsigned
count_newlines(const char *bytes, size_t n)
{
	unsigned lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += bytes[i] == '\n';
	return lines;
}

/* Fill a pipe but for so many of its pages. */
static inline void
fill_pipe(int fd, int pages)
{
	static const char page[4096];
	int size = fcntl(fd, F_GETPIPE_SZ);

	for (int i = 0; i < size / (int)sizeof page - pages; i++)
		ck_assert_int_eq(write(fd, page, sizeof page), sizeof page);
}

#endif
