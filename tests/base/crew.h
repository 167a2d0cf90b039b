/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crew.h - workers for tests: a mailbox each, read by hand or by a thread.
 *
 * With CREW the mails that a gate sends are put into the boxes of `crew`.  A
 * test of one thread reads them when it likes, with crew_read().  A test of
 * many has each worker's thread call crew_read() often, and crew_wait() when
 * there is nothing else to do; a lost wake-up then stands still for ever.
 */
#ifndef PENSTOCK_TESTS_CREW_H
#define PENSTOCK_TESTS_CREW_H

#include <check.h>
#include <pthread.h>

#include "base/mail.h"

enum { CREW = 8 };

/* ck_assert() writes to a file each time; this only when it fails. */
#define CREW_ASSERT(x) \
	((void)((x) || (ck_abort_msg("%s", #x), 0)))

static struct crew_member {
	struct mailbox	 box;
	pthread_mutex_t	 lock;
	pthread_cond_t	 news;
} crew[CREW];

static inline void
crew_setup(void)
{
	for (int i = 0; i < CREW; i++) {
		mailbox_init(&crew[i].box);
		pthread_mutex_init(&crew[i].lock, NULL);
		pthread_cond_init(&crew[i].news, NULL);
	}
}

/* A gate_wake_fn. */
static inline void
crew_wake(void *arg, unsigned worker, struct mail *m)
{
	(void)arg;
	CREW_ASSERT(worker < CREW);
	if (!mailbox_put(&crew[worker].box, m))
		return;
	pthread_mutex_lock(&crew[worker].lock);
	pthread_cond_signal(&crew[worker].news);
	pthread_mutex_unlock(&crew[worker].lock);
}

/* Deliver a worker's mail; the number. */
static inline size_t
crew_read(unsigned worker)
{
	return mailbox_run(&crew[worker].box);
}

/* Sleep until there is mail. */
static inline void
crew_wait(unsigned worker)
{
	struct crew_member *c = &crew[worker];

	pthread_mutex_lock(&c->lock);
	while (atomic_load(&c->box.last) == NULL)
		pthread_cond_wait(&c->news, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

/* Deliver everything, until nothing comes any more. */
static inline void
crew_settle(void)
{
	size_t n;

	do {
		n = 0;
		for (unsigned i = 0; i < CREW; i++)
			n += crew_read(i);
	} while (n != 0);
}

/* A fast random number below n; *state is the seed, never 0. */
static inline unsigned
crew_random(uint64_t *state, unsigned n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (unsigned)((*state >> 16) % n);
}

#endif
