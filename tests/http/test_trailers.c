/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_trailers.c - who wants trailers, and which of them go on.
 */
#include "http/trailers.h"

#include "http/frame.h"
#include "http/heads.h"

static const struct {
	const char	*fields;
	bool		 wanted;
} requests[] = {
	{ "TE: trailers\r\n", true },
	{ "te: gzip;q=0.5 ,\ttRAILERS\r\n", true },
	{ "TE: gzip\r\nTE:\r\nTE: trailers\r\n", true },
	{ "TE: gzip\r\n", false },
	{ "TE:\r\n", false },
	{ "TE: trailers;q=0.5\r\n", false },
	{ "TE: chunked, trailers;q=0.5\r\n", false },
	{ "TE: \"trailers\"\r\n", false },
	{ "TE: xtrailers, trailersx\r\n", false },
	{ "Trailer: trailers\r\n", false },
	{ "", false },
};

START_TEST(trailers_are_for_those_who_ask)
{
	char text[200];
	struct head h;

	snprintf(text, sizeof text, GET "%s\r\n", requests[_i].fields);
	good_request(text, &h);
	ck_assert_msg(trailers_wanted(&h) == requests[_i].wanted, "%s", text);
	snprintf(text, sizeof text, "GET / HTTP/1.0\r\n%s\r\n",
	    requests[_i].fields);
	good_request(text, &h);
	ck_assert(!trailers_wanted(&h));
}
END_TEST

static const struct {
	int		 row;
	const char	*in;
	const char	*named;
	const char	*out;
} cases[] = {
	{ 165, "", "", "" },
	{ 165, "X: y\r\n", "", "X: y\r\n" },
	{ 165, "X:\t y \t\r\nY:\r\nX:z\r\n", "", "X:\t y \t\r\nY:\r\nX:z\r\n" },
	{ 165, "Digest: a:b, c\r\nETag: \"x\"\r\nServer-Timing: z\r\n", "",
	    "Digest: a:b, c\r\nETag: \"x\"\r\nServer-Timing: z\r\n" },
	{ 58, "Host: evil\r\n", "", "" },
	{ 124, "Content-Length: 5\r\nAuthorization: x\r\nX-Ok: y\r\n", "",
	    "X-Ok: y\r\n" },
	{ 124, "A: 1\r\nTRANSFER-ENCODING: chunked\r\nB: 2\r\nhOST:\r\n"
	    "cache-control: z\r\nC: 3\r\n", "", "A: 1\r\nB: 2\r\nC: 3\r\n" },
	{ 124, "X: Content-Length: 5\r\nHos: t\r\nHostt: x\r\n", "",
	    "X: Content-Length: 5\r\nHos: t\r\nHostt: x\r\n" },
	{ 126, "X-T: 1\r\nX-U: 2\r\n", "x-t", "X-U: 2\r\n" },
	{ 126, "X-T: 1\r\nX-U: 2\r\nX: 3\r\nx-t: 4\r\n",
	    "close ,,X-T,\tX-U ,", "X: 3\r\n" },
	{ 126, "X-T: 1\r\n", "X, \"X-T\", X-TT,", "X-T: 1\r\n" },
};

/* The lines of `in`, with the empty line, in memory of just that size. */
static void
filtered(const char *in, const char *named, struct out *o)
{
	size_t n = strlen(in) + 2;
	char *lines = malloc(n);

	MUST(lines != NULL);
	memcpy(lines, in, n - 2);
	memcpy(lines + n - 2, "\r\n", 2);
	out_add(o, lines, trailers_filter(lines, n, str_of(named)));
	free(lines);
}

START_TEST(trailers_go_on_or_not)
{
	char is[500], must[500];
	struct out o;

	out_init(&o, is, sizeof is);
	filtered(cases[_i].in, cases[_i].named, &o);
	snprintf(must, sizeof must, "%s\r\n", cases[_i].out);
	same_text(out_text(&o), must);
}
END_TEST

/* Whatever the table comes to have. */
START_TEST(no_header_of_the_table_goes_on)
{
	static const char *const names[] = {
#define FIELD(ID, name, ...)	name,
#define HEADER(name)		name,
#include "http/fields.def"
	};
	char line[200], is[500];
	struct out o;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(line, sizeof line, "%s: x\r\nX-%s: y\r\n", names[i],
		    names[i]);
		out_init(&o, is, sizeof is);
		filtered(line, "", &o);
		snprintf(line, sizeof line, "X-%s: y\r\n\r\n", names[i]);
		same_text(out_text(&o), line);
	}
}
END_TEST

START_TEST(a_message_ends_with_its_trailers)
{
	struct iovec content = { "ab", 2 };
	char text[100];
	struct frame f;
	struct out o;

	frame_init(&f);
	frame_head(&f, STR("head "));
	frame_content(&f, FRAMING_CHUNKED, &content, 1, false);
	frame_trailers(&f, STR("X: y\r\n\r\n"));
	out_init(&o, text, sizeof text);
	for (int i = 0; i < f.count; i++)
		out_add(&o, f.iov[i].iov_base, f.iov[i].iov_len);
	same_text(out_text(&o), "head 2\r\nab\r\n0\r\nX: y\r\n\r\n");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/trailers");
	TCase *t = tcase_create("trailers");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, trailers_are_for_those_who_ask, 0,
	    ARRAY_LEN(requests));
	tcase_add_loop_test(t, trailers_go_on_or_not, 0, ARRAY_LEN(cases));
	tcase_add_test(t, no_header_of_the_table_goes_on);
	tcase_add_test(t, a_message_ends_with_its_trailers);
	return run_suite(s);
}
