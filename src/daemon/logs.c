/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * logs.c - the two logs; see logs.h.
 */
#include "daemon/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { LOG_RING = 1024 * 1024 };	/* of the access log, each worker */

static log_failed_fn	on_access_failed;

/* --- where they go ------------------------------------------------------ */

static bool
is_off(const char *place)
{
	return strcmp(place, "off") == 0;
}

/* What a log's writer calls it: NULL is stderr. */
static const char *
path_of(const char *place)
{
	if (strcmp(place, "stderr") == 0)
		return NULL;
	return is_off(place) ? "/dev/null" : place;
}

uint64_t
logs_memory(const struct conf_log *conf, unsigned workers)
{
	return is_off(conf->access) ? 0 : (uint64_t)LOG_RING * workers;
}

static bool
complain(FILE *errors, const char *place, int err)
{
	fprintf(errors, "penstock: cannot open %s: %s\n", place,
	    strerror(-err));
	return false;
}

/* --- opening ------------------------------------------------------------ */

bool
logs_open_error(struct logs *l, const struct conf_log *conf, FILE *errors)
{
	int err = log_new(&l->error, &(struct log_opts){
		.path = path_of(conf->error),
		.level = (enum log_level)conf->level,
	});

	return err == 0 || complain(errors, conf->error, err);
}

bool
logs_open_access(struct logs *l, const struct conf_log *conf, unsigned workers,
    FILE *errors)
{
	int err = log_writer_start(&l->access, &(struct log_writer_opts){
		.path = path_of(conf->access),
		.rings = workers,
		.ring_size = LOG_RING,
		.failed = on_access_failed,
		.arg = l->error,
	});

	return err == 0 || complain(errors, conf->access, err);
}

/* Once for a row of failures; lines lost are counted. */
static void
on_access_failed(void *arg, const char *path, bool opening, int err)
{
	log_say(arg, SAY_ERROR, "access log %s: cannot %s: %s", path,
	    opening ? "open it again, so the old file stays" : "write",
	    strerror(err));
}

void
logs_give(struct logs *l, uid_t uid)
{
	if (uid == 0)
		return;
	log_give(l->error, uid);
	log_writer_give(l->access, uid);
}

/* 0, or -errno of what opening it would meet. */
static int
try_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[4096];
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY |
	    O_NONBLOCK);

	if (fd != -1)
		close(fd);
	/* ENXIO: a pipe that nobody reads yet. */
	if (fd != -1 || errno == ENXIO)
		return 0;
	if (errno != ENOENT || slash == NULL)
		return -errno;
	snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path);
	return access(folder, W_OK | X_OK) == 0 ? 0 : -errno;
}

bool
logs_check(const struct conf_log *conf, FILE *errors)
{
	const char *places[] = { conf->error, conf->access };
	bool ok = true;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const char *path = path_of(places[i]);
		int err = path == NULL ? 0 : try_path(path);

		if (err != 0)
			ok = complain(errors, path, err);
	}
	return ok;
}

void
logs_close(struct logs *l)
{
	log_writer_stop(&l->access);
	log_free(&l->error);
}

/* --- others ------------------------------------------------------------- */

void
logs_reopen(struct logs *l)
{
	log_reopen(l->error);
	log_writer_reopen(l->access);
}

/* Open `to` unless it is what there is already; -1 in *fd then. */
static bool
prepare(int *fd, const char *from, const char *to, FILE *errors)
{
	int err = 0;

	*fd = -1;
	if (strcmp(from, to) != 0)
		err = log_writer_open(path_of(to), fd);
	return err == 0 || complain(errors, to, err);
}

static void
abandon(int *fd)
{
	if (*fd != -1 && *fd != STDERR_FILENO)
		close(*fd);
	*fd = -1;
}

bool
logs_prepare(struct logs_change *change, const struct conf_log *from,
    const struct conf_log *to, FILE *errors)
{
	change->conf = to;
	bool ok = prepare(&change->error, from->error, to->error, errors);

	/* Both are tried, so that both are said. */
	ok = prepare(&change->access, from->access, to->access, errors) && ok;
	if (!ok)
		logs_abandon(change);
	return ok;
}

void
logs_abandon(struct logs_change *change)
{
	abandon(&change->error);
	abandon(&change->access);
}

void
logs_commit(struct logs *l, const struct logs_change *change)
{
	const struct conf_log *conf = change->conf;

	if (change->error != -1)
		log_move(l->error, path_of(conf->error), change->error);
	if (change->access != -1)
		log_writer_move(l->access, path_of(conf->access),
		    change->access);
	log_set_level(l->error, (enum log_level)conf->level);
}

uint64_t
logs_dropped_errors(const struct logs *l)
{
	return log_dropped(l->error);
}

uint64_t
logs_dropped_access(const struct logs *l)
{
	return log_writer_dropped(l->access);
}
