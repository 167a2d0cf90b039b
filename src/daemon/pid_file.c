/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pid_file.c - a file with the number of the process; see pid_file.h.
 */
#include "daemon/pid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_at(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && lstat(path, &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int
pid_file_open(struct pid_file *p, const char *path, int inherited)
{
	struct stat st;

	p->fd = -1;
	p->path = path;
	if (path[0] != '\0' && inherited != -1 && is_at(inherited, path)) {
		p->fd = inherited;
		return 0;
	}
	if (inherited != -1)
		close(inherited);
	if (path[0] == '\0')
		return 0;
	p->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
	    O_NONBLOCK | O_NOCTTY, 0644);
	if (p->fd == -1)
		return -errno;
	if (fstat(p->fd, &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	close(p->fd);
	p->fd = -1;
	return -EINVAL;
}

int
pid_file_write(const struct pid_file *p)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());

	if (p->fd == -1)
		return 0;
	/* In this order nobody ever reads a number that is none of ours. */
	if (ftruncate(p->fd, 0) == -1)
		return -errno;
	return pwrite(p->fd, text, (size_t)n, 0) == n ? 0 : -errno;
}

void
pid_file_close(struct pid_file *p, bool succeeded)
{
	if (p->fd == -1)
		return;
	if (!succeeded && is_at(p->fd, p->path) && unlink(p->path) == -1 &&
	    ftruncate(p->fd, 0) == -1)
		fprintf(stderr, "penstock: %s: %s\n", p->path,
		    strerror(errno));
	close(p->fd);
	p->fd = -1;
}
