/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seeds.c - run a target's seeds without libFuzzer, or write them as files.
 *
 *	test_TARGET		run each line of seeds/TARGET
 *	test_TARGET DIR		write each to a file in DIR, for libFuzzer
 *
 * A line is one seed, with the escapes \r \n \t \\ and \xXX; a seed may be
 * told to be long by "\{N}", which repeats the byte before it N times.  Lines
 * that begin with "#" and empty ones are none.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

enum { SEED_MOST = 1 << 17 };

static char seed[SEED_MOST];

/* One escape at *rest. */
static void
take_escape(struct str *rest, struct out *o)
{
	uint64_t n;
	size_t end = str_find(*rest, '}');
	char c = rest->len < 2 ? '\0' : rest->at[1];

	*rest = str_skip(*rest, 2);
	switch (c) {
	case 'r':
		out_char(o, '\r');
		break;
	case 'n':
		out_char(o, '\n');
		break;
	case 't':
		out_char(o, '\t');
		break;
	case '\\':
		out_char(o, '\\');
		break;
	case 'x':
		HOLDS(str_hex(str_head(*rest, 2), &n));
		out_char(o, (char)n);
		*rest = str_skip(*rest, 2);
		break;
	case '{':
		HOLDS(str_number(str_head(*rest, end - 2), &n));
		HOLDS(out_len(o) > 0);
		for (c = o->mem[out_len(o) - 1]; n > 1; n--)
			out_char(o, c);
		*rest = str_skip(*rest, end - 1);
		break;
	default:
		HOLDS(!"a seed has such an escape");
	}
}

static struct str
read_seed(struct str line)
{
	struct out o;

	out_init(&o, seed, sizeof seed);
	while (line.len > 0) {
		if (line.at[0] == '\\') {
			take_escape(&line, &o);
			continue;
		}
		out_char(&o, line.at[0]);
		line = str_skip(line, 1);
	}
	HOLDS(!out_is_full(&o));
	return out_text(&o);
}

static void
write_seed(const char *dir, unsigned number, struct str bytes)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/seed-%03u", dir, number);
	FILE *to = fopen(path, "wb");
	HOLDS(to != NULL);
	HOLDS(fwrite(bytes.at, 1, bytes.len, to) == bytes.len);
	HOLDS(fclose(to) == 0);
}

static void
run(struct str bytes)
{
	void *copy = fuzz_copy(bytes);

	fuzz_one(str_make(copy, bytes.len));
	free(copy);
}

static void
each_seed(FILE *in, const char *dir)
{
	static char line[SEED_MOST];
	unsigned number = 0;

	while (fgets(line, sizeof line, in) != NULL) {
		struct str s = str_of(line);
		HOLDS(str_ends(s, STR("\n")));
		s.len--;
		if (s.len == 0 || s.at[0] == '#')
			continue;
		number++;
		if (dir != NULL)
			write_seed(dir, number, read_seed(s));
		else
			run(read_seed(s));
	}
	printf("%u seeds\n", number);
	HOLDS(number > 0);
}

/* Which target this is, it knows from its name. */
int
main(int argc, char **argv)
{
	const char *srcdir = getenv("srcdir"), *name;
	char path[4096];

	name = strrchr(argv[0], '_');
	HOLDS(name != NULL);
	snprintf(path, sizeof path, "%s/tests/fuzz/seeds/%s",
	    srcdir != NULL ? srcdir : ".", name + 1);
	FILE *in = fopen(path, "r");
	HOLDS(in != NULL);
	each_seed(in, argc > 1 ? argv[1] : NULL);
	fclose(in);
	return EXIT_SUCCESS;
}
