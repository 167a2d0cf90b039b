/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hosts.c - the names of a file like /etc/hosts; see hosts.h.
 *
 * The file's own text is kept and names point into it.  Sorted by name, and
 * by their place in the file among equals, so that addresses keep its order.
 */
#include "net/hosts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/addr.h"
#include "net/names.h"

enum { HOSTS_BYTES = 1024 * 1024 };

struct host {
	const char	*name;		/* in `text`, lower case, no NUL */
	size_t		 length;
	struct addr	 addr;
};

struct hosts {
	char		*text;
	struct host	*all;
	size_t		 count;
	size_t		 room;
};

static size_t	read_text(const char *path, char *text);
static void	add_line(struct hosts *h, char *line, size_t n);
static char	*next_word(char **at, char *end, size_t *n);
static void	add_host(struct hosts *h, char *word, size_t n,
		    const struct addr *a);
static int	by_name(const void *a, const void *b);
static int	compare(const char *a, size_t n, const char *b, size_t m);

struct hosts *
hosts_read(const char *path)
{
	struct hosts *h = xcalloc(1, sizeof *h);

	h->text = xrealloc(NULL, HOSTS_BYTES);
	size_t n = read_text(path, h->text);
	h->text = xrealloc(h->text, n + 1);

	for (char *at = h->text, *end = at + n; at < end; ) {
		char *eol = memchr(at, '\n', (size_t)(end - at));

		/* A line cut by the limit would be another name. */
		if (eol == NULL && n == HOSTS_BYTES)
			break;
		if (eol == NULL)
			eol = end;
		add_line(h, at, (size_t)(eol - at));
		at = eol + 1;
	}
	if (h->count > 0)
		qsort(h->all, h->count, sizeof *h->all, by_name);
	return h;
}

void
hosts_free(struct hosts **hosts)
{
	struct hosts *h = *hosts;

	if (h == NULL)
		return;
	*hosts = NULL;
	free(h->all);
	free(h->text);
	free(h);
}

bool
hosts_find(const struct hosts *h, const char *key, size_t n,
    struct addr_set *out)
{
	size_t low = 0, high = h == NULL ? 0 : h->count;
	size_t count = high;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct host *at = &h->all[mid];

		if (compare(at->name, at->length, key, n) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	out->count = 0;
	for (; low < count; low++) {
		const struct host *at = &h->all[low];

		if (compare(at->name, at->length, key, n) != 0 ||
		    !addr_set_add(out, &at->addr))
			break;
	}
	return out->count > 0;
}

/* Up to HOSTS_BYTES of a regular file; 0 when it can't be read. */
static size_t
read_text(const char *path, char *text)
{
	size_t n = 0;
	ssize_t got = 0;
	struct stat st;

	/* Without O_NONBLOCK, opening a pipe would wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		do {
			got = read(fd, text + n, HOSTS_BYTES - n);
			n += got > 0 ? (size_t)got : 0;
		} while (got > 0);
	}
	close(fd);
	return got == -1 ? 0 : n;
}

static void
add_line(struct hosts *h, char *line, size_t n)
{
	char *comment = memchr(line, '#', n);
	char *end = comment != NULL ? comment : line + n;
	struct addr a;
	char *word;
	size_t length;

	word = next_word(&line, end, &length);
	if (word == NULL || !addr_parse_ip(&a, word, length, 0))
		return;
	while ((word = next_word(&line, end, &length)) != NULL)
		add_host(h, word, length, &a);
}

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static char *
next_word(char **at, char *end, size_t *n)
{
	char *word = *at;

	while (word < end && is_space(*word))
		word++;
	char *after = word;
	while (after < end && !is_space(*after))
		after++;
	*at = after;
	*n = (size_t)(after - word);
	return *n > 0 ? word : NULL;
}

static void
add_host(struct hosts *h, char *word, size_t n, const struct addr *a)
{
	char key[NAME_MAX_BYTES + 1];

	n = name_key(key, word, n);
	if (n == 0)
		return;
	memcpy(word, key, n);
	if (h->count == h->room) {
		h->room = h->room == 0 ? 16 : h->room * 2;
		h->all = xrealloc(h->all, h->room * sizeof *h->all);
	}
	h->all[h->count++] = (struct host){ word, n, *a };
}

static int
by_name(const void *a, const void *b)
{
	const struct host *x = a, *y = b;
	int order = compare(x->name, x->length, y->name, y->length);

	if (order != 0)
		return order;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int
compare(const char *a, size_t n, const char *b, size_t m)
{
	int order = memcmp(a, b, MIN(n, m));

	if (order != 0)
		return order;
	return n < m ? -1 : n > m;
}
