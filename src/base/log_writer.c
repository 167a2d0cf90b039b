/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log_writer.c - rings of lines, and the thread that writes them; see
 * log_writer.h.
 */
#include "base/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log_ring.h"

/* Where to go on. */
struct move {
	char	*path;			/* NULL: stderr */
	int	 fd;
};

struct log_writer {
	struct log_ring		*rings;
	unsigned		 n_rings;
	char			*path;		/* NULL: stderr */
	int			 fd;
	int			 wake_fd;
	bool			 is_pipe;	/* or another that may block */
	bool			 within;	/* the file ends in a line */
	bool			 torn;		/* whose rest was dropped */
	bool			 skip;		/* a dropped line goes on */
	bool			 failing;	/* and it has been reported */
	nsec_t			 interval;
	nsec_t			 patience;
	nsec_t			 deadline;	/* once it is stopping */
	log_failed_fn		*failed;
	log_tick_fn		*tick;
	void			*arg;
	pthread_t		 thread;
	_Atomic uint64_t	 lost;		/* refused by the file */
	atomic_bool		 reopen;
	_Atomic(struct move *)	 move;
	atomic_bool		 stopping;
};

/* Held while lines of a ring are written to stderr, which others have too. */
static pthread_mutex_t stderr_turn = PTHREAD_MUTEX_INITIALIZER;

/*
 * What we open doesn't block, but stderr belongs to others too and must stay
 * as it is.  When poll() says it can be written, a pipe takes this much.
 */
enum { PIECE = 4096 };

/* How soon to ask again whether stderr is free. */
#define TURN	(5 * NSEC_PER_MSEC)

void
log_writer_wake(struct log_writer *w)
{
	uint64_t one = 1;

	/* The counter can't overflow, so this neither blocks nor fails. */
	ssize_t n = write(w->wake_fd, &one, sizeof one);
	(void)n;
}

/* --- the file ----------------------------------------------------------- */

/*
 * A named pipe is opened for both ways: that needs no reader, and once there
 * is one that leaves, writing waits for the next instead of failing.
 */
static int
open_path(const char *path)
{
	struct stat st;
	bool is_fifo = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
	int fd = open(path, (is_fifo ? O_RDWR : O_WRONLY) | O_APPEND | O_CREAT |
	    O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);

	return fd == -1 ? -errno : fd;
}

int
log_writer_open(const char *path, int *fd)
{
	*fd = path == NULL ? STDERR_FILENO : open_path(path);
	return *fd < 0 ? *fd : 0;
}

/* Go on with this one, of w->path. */
static void
use_file(struct log_writer *w, int fd)
{
	struct stat st;

	w->fd = fd;
	w->is_pipe = fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
	w->within = w->torn = false;
}

static void
close_file(struct log_writer *w)
{
	if (w->path != NULL && w->fd != -1)
		close(w->fd);
}

static int
open_file(struct log_writer *w)
{
	int fd;
	int err = log_writer_open(w->path, &fd);

	if (err != 0)
		return err;
	close_file(w);
	use_file(w, fd);
	return 0;
}

static void
free_move(struct move *m)
{
	if (m == NULL)
		return;
	if (m->path != NULL)
		close(m->fd);
	free(m->path);
	free(m);
}

static void
report(struct log_writer *w, bool opening, int err)
{
	if (w->failing)
		return;
	w->failing = true;
	if (w->failed != NULL)
		w->failed(w->arg, w->path == NULL ? "stderr" : w->path,
		    opening, err);
}

/* The old file gets no line more: whoever moved it away may read it all. */
static void
move_on(struct log_writer *w)
{
	struct move *m = atomic_exchange(&w->move, NULL);

	if (m == NULL)
		return;
	close_file(w);
	free(w->path);
	w->path = m->path;
	w->failing = false;
	use_file(w, m->fd);
	free(m);
}

static bool
wants_other_file(struct log_writer *w)
{
	return atomic_load(&w->reopen) || atomic_load(&w->move) != NULL;
}

static void
open_again(struct log_writer *w)
{
	move_on(w);
	if (!atomic_exchange(&w->reopen, false) || w->path == NULL)
		return;
	w->failing = false;
	int err = open_file(w);
	if (err != 0)
		report(w, true, -err);
}

/* --- writing ------------------------------------------------------------ */

static nsec_t
monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec;
}

static bool
is_stopping(struct log_writer *w)
{
	if (!atomic_load(&w->stopping))
		return false;
	if (w->deadline == 0)
		w->deadline = monotonic() + w->patience;
	return true;
}

/* Sleep until someone wakes us, time is up, or fd (or -1) can be written. */
static bool
pause_for(struct log_writer *w, nsec_t time, int fd)
{
	struct pollfd fds[] = {
		{ .fd = w->wake_fd, .events = POLLIN },
		{ .fd = fd, .events = POLLOUT },
	};
	uint64_t count;

	time = MIN(time / NSEC_PER_MSEC + 1, INT_MAX);
	if (poll(fds, fd == -1 ? 1 : 2, (int)time) < 1)
		return false;
	if (fds[0].revents != 0) {
		ssize_t n = read(w->wake_fd, &count, sizeof count);
		(void)n;
	}
	return fd != -1 && fds[1].revents != 0;
}

/*
 * How long to wait for a reader now: 0 when the time for that is over, or when
 * another file is to be opened.
 */
static nsec_t
time_to_wait(struct log_writer *w)
{
	nsec_t t;

	if (wants_other_file(w))
		return 0;
	if (!is_stopping(w))
		return w->interval;
	t = monotonic();
	return t >= w->deadline ? 0 : MIN(w->interval, w->deadline - t);
}

static bool
wait_writable(struct log_writer *w)
{
	struct pollfd now = { .fd = w->fd, .events = POLLOUT };

	if (!w->is_pipe || poll(&now, 1, 0) == 1)
		return true;

	/* Asked before each sleep: whoever woke us may have done so earlier. */
	for (;;) {
		nsec_t time = time_to_wait(w);

		if (time == 0)
			return false;
		if (pause_for(w, time, w->fd))
			return true;
		if (w->tick != NULL)
			w->tick(w->arg);
	}
}

/* Write all of them: how many were written before it failed. */
static size_t
write_bytes(struct log_writer *w, const char *bytes, size_t n)
{
	size_t done = 0;

	while (done < n && wait_writable(w)) {
		bool may_block = w->is_pipe && w->path == NULL;
		size_t piece = may_block ? MIN(n - done, PIECE) : n - done;
		ssize_t got = write(w->fd, bytes + done, piece);

		if (got > 0) {
			done += (size_t)got;
		} else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
			report(w, false, got == 0 ? ENOSPC : errno);
			break;
		}
	}
	if (done > 0)
		w->within = bytes[done - 1] != '\n';
	return done;
}

static uint64_t
count_lines(const char *bytes, size_t n)
{
	uint64_t lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += bytes[i] == '\n';
	return lines;
}

static void
lose(struct log_writer *w, const char *bytes, size_t n)
{
	w->torn = w->within;
	w->skip = bytes[n - 1] != '\n';
	atomic_fetch_add(&w->lost, count_lines(bytes, n));
}

/*
 * Write n bytes of lines, or drop what the file refuses of them.  A line that
 * got broken off is ended first, so that the next one stands alone; and if
 * the end of a ring cut the dropped line in two, its other half goes as well.
 */
static void
write_lines(struct log_writer *w, const char *bytes, size_t n)
{
	if (w->skip) {
		const char *end = memchr(bytes, '\n', n);
		size_t rest = end == NULL ? n : (size_t)(end - bytes) + 1;

		lose(w, bytes, rest);
		bytes += rest;
		n -= rest;
	}
	if (n == 0)
		return;
	if (w->torn && write_bytes(w, "\n", 1) == 0) {
		lose(w, bytes, n);
		return;
	}
	w->torn = false;
	size_t done = write_bytes(w, bytes, n);
	if (done < n)
		lose(w, bytes + done, n - done);
	else
		w->failing = false;
}

/*
 * Wait until no other writes to stderr, who may wait for a reader itself;
 * false when the time for that is over.
 */
static bool
take_turn(struct log_writer *w)
{
	while (pthread_mutex_trylock(&stderr_turn) != 0) {
		nsec_t time = time_to_wait(w);

		if (time == 0)
			return false;
		pause_for(w, MIN(time, TURN), -1);
	}
	return true;
}

static void	write_ring(struct log_writer *w, struct log_ring *r,
    uint64_t head, bool may);

/* What is in the ring now. */
static void
drain(struct log_writer *w, struct log_ring *r)
{
	uint64_t head = atomic_load(&r->head);
	bool shared = w->path == NULL;

	if (head == atomic_load_explicit(&r->tail, memory_order_relaxed))
		return;
	bool may = !shared || take_turn(w);
	write_ring(w, r, head, may);
	if (shared && may)
		pthread_mutex_unlock(&stderr_turn);
}

/* A line may go on from the ring's end to its start. */
static void
write_ring(struct log_writer *w, struct log_ring *r, uint64_t head, bool may)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	while (tail != head) {
		size_t start = tail & (r->size - 1);
		size_t n = MIN(head - tail, r->size - start);

		if (may)
			write_lines(w, r->bytes + start, n);
		else
			lose(w, r->bytes + start, n);
		tail += n;
		atomic_store(&r->tail, tail);
	}
}

static void
drain_all(struct log_writer *w)
{
	for (unsigned i = 0; i < w->n_rings; i++)
		drain(w, &w->rings[i]);
}

/* Asked before it sleeps, since waiting for a pipe may have eaten a wake. */
static bool
has_work(struct log_writer *w)
{
	if (atomic_load(&w->stopping) || wants_other_file(w))
		return true;
	for (unsigned i = 0; i < w->n_rings; i++) {
		struct log_ring *r = &w->rings[i];

		if (atomic_load(&r->head) - atomic_load(&r->tail) >=
		    r->size / 2)
			return true;
	}
	return false;
}

static void *
run(void *arg)
{
	struct log_writer *w = arg;
	bool last;

	do {
		last = is_stopping(w);
		/* What is there is for the old file, if it surely takes it. */
		if (atomic_load(&w->move) != NULL && !w->is_pipe)
			drain_all(w);
		open_again(w);
		if (w->tick != NULL)
			w->tick(w->arg);
		drain_all(w);
		if (!last && !has_work(w))
			pause_for(w, w->interval, -1);
	} while (!last);
	return NULL;
}

/* --- the handle --------------------------------------------------------- */

/* Signals are for the main thread; SIGPIPE becomes EPIPE. */
static int
start_thread(struct log_writer *w)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

static void
init_rings(struct log_writer *w, size_t size)
{
	w->rings = aligned_alloc(_Alignof(struct log_ring),
	    w->n_rings * sizeof *w->rings);
	ASSERT(w->rings != NULL);
	memset(w->rings, 0, w->n_rings * sizeof *w->rings);
	for (unsigned i = 0; i < w->n_rings; i++) {
		w->rings[i].bytes = xcalloc(1, size);
		w->rings[i].size = size;
		w->rings[i].writer = w;
	}
}

static void
free_writer(struct log_writer *w)
{
	for (unsigned i = 0; i < w->n_rings; i++)
		free(w->rings[i].bytes);
	free(w->rings);
	close_file(w);
	free_move(atomic_load(&w->move));
	if (w->wake_fd != -1)
		close(w->wake_fd);
	free(w->path);
	free(w);
}

int
log_writer_start(struct log_writer **out, const struct log_writer_opts *opts)
{
	struct log_writer *w = xcalloc(1, sizeof *w);
	int err;

	ASSERT(opts->rings >= 1 && opts->ring_size >= 2 * LOG_LINE_MAX);
	ASSERT((opts->ring_size & (opts->ring_size - 1)) == 0);
	*out = NULL;
	w->n_rings = opts->rings;
	w->path = opts->path == NULL ? NULL : xstrdup(opts->path);
	w->interval = opts->interval != 0 ? opts->interval : LOG_INTERVAL;
	w->patience = opts->patience != 0 ? opts->patience : LOG_PATIENCE;
	w->failed = opts->failed;
	w->tick = opts->tick;
	w->arg = opts->arg;
	w->fd = -1;
	init_rings(w, opts->ring_size);

	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = w->wake_fd == -1 ? -errno : open_file(w);
	if (err == 0)
		err = start_thread(w);
	if (err != 0) {
		free_writer(w);
		return err;
	}
	*out = w;
	return 0;
}

void
log_writer_stop(struct log_writer **w)
{
	struct log_writer *writer = *w;

	if (writer == NULL)
		return;
	*w = NULL;
	atomic_store(&writer->stopping, true);
	log_writer_wake(writer);
	pthread_join(writer->thread, NULL);
	free_writer(writer);
}

struct log_ring *
log_writer_ring(struct log_writer *w, unsigned i)
{
	ASSERT(i < w->n_rings);
	return &w->rings[i];
}

void
log_writer_reopen(struct log_writer *w)
{
	atomic_store(&w->reopen, true);
	log_writer_wake(w);
}

void
log_writer_move(struct log_writer *w, const char *path, int fd)
{
	struct move *m = xcalloc(1, sizeof *m);

	m->path = path == NULL ? NULL : xstrdup(path);
	m->fd = fd;
	free_move(atomic_exchange(&w->move, m));
	log_writer_wake(w);
}

void
log_writer_give(struct log_writer *w, uid_t uid)
{
	struct stat st;

	/* A second name may be one that somebody else has put there. */
	if (w->path == NULL || fstat(w->fd, &st) != 0 ||
	    !S_ISREG(st.st_mode) || st.st_uid != 0 || st.st_nlink != 1)
		return;
	int err = fchown(w->fd, uid, (gid_t)-1);
	(void)err;
}

uint64_t
log_writer_dropped(const struct log_writer *w)
{
	uint64_t n = atomic_load(&w->lost);

	for (unsigned i = 0; i < w->n_rings; i++)
		n += atomic_load_explicit(&w->rings[i].dropped,
		    memory_order_relaxed);
	return n;
}
