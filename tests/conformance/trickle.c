/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trickle.c - preloaded into the daemon: streams arrive in small pieces.
 *
 * What a peer writes byte by byte is put together again by the kernel, so the
 * pieces that a program reads can be made small only where it reads.  The
 * file that TRICKLE_FILE names says how, and the tests may change it while the
 * daemon runs; it counts what came of that, so that a program which reads in
 * another way is found out.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the file has. */
struct trickle {
	int32_t piece;		/* bytes a call gives at most, or: */
	uint32_t cuts;		/* calls that gave all that they might */
};

enum {
	LINE = -1,		/* to the end of the first line that is there */
	AS_IT_COMES = 0,
	LONGEST_LINE = 4096,	/* each look at more copies it again */
};

static struct trickle nothing;
static volatile struct trickle *trickle = &nothing;

static __attribute__((constructor)) void
map_the_file(void)
{
	const char *name = getenv("TRICKLE_FILE");
	void *map;
	int fd;

	if (name == NULL || (fd = open(name, O_RDWR | O_CLOEXEC)) == -1)
		return;
	map = mmap(NULL, sizeof(*trickle), PROT_READ | PROT_WRITE, MAP_SHARED,
	    fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		trickle = map;
}

/* Datagrams would lose what is not read of them. */
static int
is_stream(int fd)
{
	int type;
	socklen_t n = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
	    type == SOCK_STREAM;
}

static ssize_t
real_recv(int fd, void *to, size_t n, int flags)
{
	static ssize_t (*next)(int, void *, size_t, int);

	if (next == NULL)
		next = (ssize_t (*)(int, void *, size_t, int))
		    dlsym(RTLD_NEXT, "recv");
	return next(fd, to, n, flags);
}

/* The caller has room for more than n. */
static ssize_t
cut_recv(int fd, void *to, size_t n, int flags)
{
	ssize_t got = real_recv(fd, to, n, flags);

	if (got == (ssize_t)n)
		__atomic_fetch_add(&trickle->cuts, 1, __ATOMIC_RELAXED);
	return got;
}

ssize_t
recv(int fd, void *to, size_t n, int flags)
{
	int32_t most = trickle->piece;
	ssize_t there;
	size_t line;
	void *end;

	if (most == AS_IT_COMES || (flags & MSG_PEEK) || !is_stream(fd))
		return real_recv(fd, to, n, flags);
	if (most != LINE)
		return n <= (size_t)most ? real_recv(fd, to, n, flags) :
		    cut_recv(fd, to, (size_t)most, flags);
	if (n > LONGEST_LINE)
		n = LONGEST_LINE;
	/* A look at an error takes it away. */
	there = real_recv(fd, to, n, flags | MSG_PEEK);
	if (there <= 0)
		return there;
	if ((end = memchr(to, '\n', (size_t)there)) == NULL)
		return real_recv(fd, to, n, flags);
	line = (size_t)((char *)end - (char *)to) + 1;
	return line == (size_t)there ? real_recv(fd, to, line, flags) :
	    cut_recv(fd, to, line, flags);
}

/* The same for who calls the kernel without libc's recv(). */
long
syscall(long number, ...)
{
	static long (*next)(long, ...);
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_recvfrom)
		return recv((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3]);
	if (next == NULL)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
