/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.c - what the daemon tells its operator; see log.h.
 *
 * A lock makes many threads one producer of the ring.  It is held while a line
 * is copied, never while one is written to the file.
 */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log_writer.h"
#include "base/str.h"

enum {
	KINDS = 64,			/* formats watched for repeats */
	RING_SIZE = 256 * 1024,
	SAMPLE = 160,			/* bytes of a repeated line to show */
	LINE_SIZE = 4 * LOG_TEXT_MAX + 80,	/* escaped, with its head */
};

/* One format, in the second that began with its first line. */
struct kind {
	const char	*fmt;
	nsec_t		 since;
	unsigned	 said;
	uint64_t	 held_back;
	enum log_level	 level;
	char		 sample[SAMPLE];	/* the last line said */
};

struct log {
	struct log_writer	*writer;
	log_clock_fn		*clock;
	_Atomic(enum log_level)	 level;
	bool			 to_journal;
	pthread_mutex_t		 lock;		/* of all below */
	struct log_ring		*ring;
	struct kind		 kinds[KINDS];
};

static const struct {
	const char	*word;
	const char	*prefix;	/* sd-daemon(3) */
} levels[] = {
	[SAY_ERROR]	= { "error",	"<3>" },
	[SAY_WARNING]	= { "warning",	"<4>" },
	[SAY_NOTICE]	= { "notice",	"<5>" },
	[SAY_INFO]	= { "info",	"<6>" },
	[SAY_DEBUG]	= { "debug",	"<7>" },
};

static log_failed_fn	on_failed;
static log_tick_fn	on_tick;

/* --- a line ------------------------------------------------------------- */

static void
put_time(struct out *o)
{
	struct timespec ts;
	struct tm tm;
	char text[32];

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.", &tm);
	out_put(o, text);
	out_padded(o, (uint64_t)ts.tv_nsec / 1000000, 3);
	out_put(o, "Z ");
}

/* Write a line of the bytes of `text`, after `head`; under the lock. */
static void
put_line(struct log *l, enum log_level level, const char *head,
    const char *text)
{
	char line[LINE_SIZE];
	struct out o;

	out_init(&o, line, sizeof line);
	if (l->to_journal) {
		out_put(&o, levels[level].prefix);
	} else {
		put_time(&o);
		out_put(&o, levels[level].word);
		out_put(&o, ": ");
	}
	out_put(&o, head);
	out_escaped(&o, str_of(text));
	log_put(l->ring, line, out_len(&o));
}

/* --- repeats ------------------------------------------------------------ */

static void
sum_up(struct log *l, struct kind *k)
{
	char head[64];

	if (k->held_back > 0) {
		snprintf(head, sizeof head, "repeated %llu times: ",
		    (unsigned long long)k->held_back);
		put_line(l, k->level, head, k->sample);
	}
	k->held_back = 0;
	k->said = 0;
}

static bool
is_over(const struct kind *k, nsec_t now)
{
	return now - k->since >= NSEC_PER_SEC;
}

/* The row of fmt; it takes one over from another format if need be. */
static struct kind *
kind_of(struct log *l, const char *fmt)
{
	struct kind *k = &l->kinds[(uintptr_t)fmt * UINT64_C(0x9e3779b97f4a7c15)
	    >> 58];

	if (k->fmt != fmt) {
		sum_up(l, k);
		k->fmt = fmt;
	}
	return k;
}

/* May another line of this kind be said? */
static bool
passes(struct log *l, struct kind *k, enum log_level level)
{
	nsec_t now = l->clock();

	if (k->said > 0 && is_over(k, now))
		sum_up(l, k);
	if (k->said >= LOG_BURST) {
		k->held_back++;
		return false;
	}
	if (k->said++ == 0)
		k->since = now;
	k->level = level;
	return true;
}

static void
keep_sample(struct kind *k, const char *text)
{
	size_t n = strnlen(text, SAMPLE - 1);

	memcpy(k->sample, text, n);
	k->sample[n] = '\0';
}

/* --- saying ------------------------------------------------------------- */

bool
log_hears(const struct log *l, enum log_level level)
{
	return l != NULL && level <= atomic_load_explicit(&l->level,
	    memory_order_relaxed);
}

void
log_say(struct log *l, enum log_level level, const char *fmt, ...)
{
	char text[LOG_TEXT_MAX + 1] = "";
	struct kind *k = NULL;
	va_list ap;

	if (!log_hears(l, level))
		return;
	pthread_mutex_lock(&l->lock);
	if (level != SAY_DEBUG) {
		k = kind_of(l, fmt);
		if (!passes(l, k, level))
			goto unlock;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	put_line(l, level, "", text);
	if (k != NULL)
		keep_sample(k, text);
unlock:
	pthread_mutex_unlock(&l->lock);
	if (k != NULL && level <= SAY_WARNING)
		log_writer_wake(l->writer);
}

void
log_lines(struct log *l, enum log_level level, const char *text)
{
	char line[LOG_TEXT_MAX + 1];

	if (!log_hears(l, level))
		return;
	pthread_mutex_lock(&l->lock);
	while (*text != '\0') {
		size_t n = strcspn(text, "\n");

		snprintf(line, sizeof line, "%.*s", (int)MIN(n,
		    (size_t)LOG_TEXT_MAX), text);
		put_line(l, level, "", line);
		text += n + (text[n] == '\n');
	}
	pthread_mutex_unlock(&l->lock);
	log_writer_wake(l->writer);
}

/* What was held back is summed up even if nothing of its kind follows. */
static void
on_tick(void *arg)
{
	struct log *l = arg;

	pthread_mutex_lock(&l->lock);
	nsec_t now = l->clock();
	for (int i = 0; i < KINDS; i++)
		if (l->ring != NULL && l->kinds[i].held_back > 0 &&
		    is_over(&l->kinds[i], now))
			sum_up(l, &l->kinds[i]);
	pthread_mutex_unlock(&l->lock);
}

/* For a file that can't be opened again; the old one still takes lines. */
static void
on_failed(void *arg, const char *path, bool opening, int err)
{
	struct log *l = arg;

	log_say(l, SAY_ERROR, "%s: cannot %s: %s", path,
	    opening ? "open" : "write", strerror(err));
}

/* --- the handle --------------------------------------------------------- */

static nsec_t
monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec;
}

/* JOURNAL_STREAM is "device:inode"; it may be inherited with another stderr. */
static bool
is_journal(const char *path)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	char want[64];

	if (path != NULL || stream == NULL || fstat(STDERR_FILENO, &st) != 0)
		return false;
	snprintf(want, sizeof want, "%llu:%llu",
	    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	return strcmp(stream, want) == 0;
}

int
log_new(struct log **out, const struct log_opts *opts)
{
	struct log *l = xcalloc(1, sizeof *l);

	*out = NULL;
	l->clock = opts->clock != NULL ? opts->clock : monotonic;
	l->to_journal = is_journal(opts->path);
	atomic_init(&l->level, opts->level);
	pthread_mutex_init(&l->lock, NULL);
	int err = log_writer_start(&l->writer, &(struct log_writer_opts){
		.path = opts->path,
		.rings = 1,
		.ring_size = RING_SIZE,
		.failed = on_failed,
		.tick = on_tick,
		.arg = l,
	});
	if (err != 0) {
		pthread_mutex_destroy(&l->lock);
		free(l);
		return err;
	}
	pthread_mutex_lock(&l->lock);
	l->ring = log_writer_ring(l->writer, 0);
	pthread_mutex_unlock(&l->lock);
	*out = l;
	return 0;
}

void
log_free(struct log **l)
{
	struct log *log = *l;

	if (log == NULL)
		return;
	*l = NULL;
	pthread_mutex_lock(&log->lock);
	for (int i = 0; i < KINDS; i++)
		sum_up(log, &log->kinds[i]);
	pthread_mutex_unlock(&log->lock);
	log_writer_stop(&log->writer);
	pthread_mutex_destroy(&log->lock);
	free(log);
}

void
log_set_level(struct log *l, enum log_level level)
{
	atomic_store_explicit(&l->level, level, memory_order_relaxed);
}

void
log_reopen(struct log *l)
{
	log_writer_reopen(l->writer);
}

uint64_t
log_dropped(const struct log *l)
{
	return log_writer_dropped(l->writer);
}
