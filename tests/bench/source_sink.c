/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source_sink.c - both ends of a bulk transfer, each with a hash of it.
 *
 *	source_sink serve PORT FOLDER
 *	source_sink get|put PORT BYTES OWN_RATE SERVER_RATE NAME FOLDER [VIA]
 *
 * `get` asks the server for so many bytes, `put` sends them; a rate, in bytes
 * a second, holds back whoever reads, 0 doesn't.  With VIA, a host and port,
 * the request goes through CONNECT.  Both ends write how many bytes they have
 * moved so far to files in FOLDER, NAME.server and NAME.client: there they can
 * be read while one of them is stuck.
 *
 * The stream is numbers, all different, so bytes that are lost, doubled or
 * moved change its hash.  The server answers `put` with the hash of what it
 * got; the client ends with status 0 only if the stream, what was received
 * and what the server says agree, and prints the hash.
 */
#include <inttypes.h>
#include <signal.h>

#include "bench.h"

enum {
	CHUNK = 256 * 1024,
	SLOW_CHUNK = 32 * 1024,	/* of a reader with a rate */
	HEAD_MAX = 4096,
};

struct transfer {
	char		 method[8];
	uint64_t	 bytes;
	uint64_t	 rate;
	char		 name[64];
};

static uint64_t chunk[CHUNK / 8];

/* --- the stream -------------------------------------------------------- */

static uint64_t
mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* Fill the chunk with the stream from this byte on, a multiple of it. */
static void
fill(uint64_t at)
{
	for (size_t i = 0; i < CHUNK / 8; i++)
		chunk[i] = (at / 8 + i + 1) * UINT64_C(0xd6e8feb86659fd93);
}

/* A hash of bytes that come in pieces of any size, by whole words. */
struct hash {
	uint64_t	 value;
	uint64_t	 word;		/* incomplete */
	unsigned	 held;		/* bytes of it */
};

static void
hash_add(struct hash *h, const unsigned char *bytes, size_t n)
{
	while (n > 0) {
		if (h->held == 0 && n >= 8) {
			memcpy(&h->word, bytes, 8);
			h->held = 8;
			bytes += 8;
			n -= 8;
		} else {
			memcpy((unsigned char *)&h->word + h->held++,
			    bytes++, 1);
			n--;
		}
		if (h->held == 8) {
			h->value = mix(h->value, h->word);
			h->held = 0;
		}
	}
}

static uint64_t
hash_end(const struct hash *h)
{
	struct hash last = *h;
	static const unsigned char zero[8];

	if (last.held > 0)
		hash_add(&last, zero, 8 - last.held);
	return last.value;
}

/* --- moving it --------------------------------------------------------- */

static int
open_progress(const char *folder, const char *name, const char *end)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s.%s", folder, name, end);
	return must(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
	    0644), path);
}

static void
note(int progress, uint64_t bytes)
{
	char text[32];
	int n = snprintf(text, sizeof text, "%20" PRIu64 "\n", bytes);

	if (pwrite(progress, text, (size_t)n, 0) == -1)
		die("progress");
}

static void
send_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);

		if (sent == -1)
			die("send");
		at += sent;
		n -= (size_t)sent;
	}
}

/* Send the stream; its hash. */
static uint64_t
send_stream(int fd, uint64_t bytes, int progress)
{
	struct hash h = { 0 };

	note(progress, 0);
	for (uint64_t at = 0; at < bytes; at += CHUNK) {
		uint64_t n = bytes - at < CHUNK ? bytes - at : CHUNK;

		fill(at);
		hash_add(&h, (const unsigned char *)chunk, n);
		send_all(fd, chunk, n);
		note(progress, at + n);
	}
	return hash_end(&h);
}

/* Not before its time, when so many bytes may have been read. */
static void
hold_back(double began, uint64_t bytes, uint64_t rate)
{
	double ahead = (double)bytes / (double)rate -
	    (seconds_now() - began);
	struct timespec t = {
		.tv_sec = (time_t)ahead,
		.tv_nsec = (long)((ahead - (double)(time_t)ahead) * 1e9),
	};

	if (ahead > 0)
		nanosleep(&t, NULL);
}

/* Receive so many bytes, some of which are here; their hash. */
static uint64_t
receive_stream(int fd, const struct transfer *t, const char *here,
    size_t n_here, int progress)
{
	struct hash h = { 0 };
	uint64_t size = t->rate != 0 ? SLOW_CHUNK : CHUNK;
	uint64_t got = n_here;
	double began = seconds_now();

	hash_add(&h, (const unsigned char *)here, n_here);
	while (got < t->bytes) {
		uint64_t left = t->bytes - got;
		ssize_t n = recv(fd, chunk, left < size ? left : size, 0);

		if (n <= 0) {
			fprintf(stderr, "ended after %" PRIu64 " bytes\n",
			    got);
			exit(1);
		}
		hash_add(&h, (const unsigned char *)chunk, (size_t)n);
		got += (uint64_t)n;
		note(progress, got);
		if (t->rate != 0)
			hold_back(began, got, t->rate);
	}
	return hash_end(&h);
}

/* A head, and `*rest` bytes after it; false at an end before the first. */
static bool
read_head(int fd, char head[HEAD_MAX], char **body, size_t *rest)
{
	size_t have = 0;

	for (;;) {
		ssize_t n = recv(fd, head + have, HEAD_MAX - 1 - have, 0);

		if (n == 0 && have == 0)
			return false;
		if (n <= 0) {
			fprintf(stderr, "no head\n");
			exit(1);
		}
		have += (size_t)n;
		head[have] = '\0';

		char *end = memmem(head, have, "\r\n\r\n", 4);
		if (end != NULL) {
			*body = end + 4;
			*rest = have - (size_t)(*body - head);
			return true;
		}
	}
}

/* --- the server -------------------------------------------------------- */

static void
send_answer(int fd, uint64_t hash)
{
	char answer[256];
	int n = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\n"
	    "Content-Length: 16\r\n\r\n%016" PRIx64, hash);

	send_all(fd, answer, (size_t)n);
}

/* One connection, its requests one after another. */
static void
serve(int fd, const char *folder)
{
	struct transfer t;
	char head[HEAD_MAX], *body;
	size_t rest;

	while (read_head(fd, head, &body, &rest)) {
		if (sscanf(head, "%7s /%" SCNu64 "/%" SCNu64 "/%63[a-z-] ",
		    t.method, &t.bytes, &t.rate, t.name) != 4) {
			fprintf(stderr, "not a request: %s\n", head);
			exit(1);
		}

		int progress = open_progress(folder, t.name, "server");
		if (strcmp(t.method, "PUT") == 0) {
			send_answer(fd, receive_stream(fd, &t, body, rest,
			    progress));
		} else {
			int n = snprintf(head, sizeof head, "HTTP/1.1 200 OK"
			    "\r\nContent-Length: %" PRIu64 "\r\n\r\n",
			    t.bytes);

			send_all(fd, head, (size_t)n);
			send_stream(fd, t.bytes, progress);
		}
		close(progress);
	}
}

static void
serve_all(uint64_t port, const char *folder)
{
	int listener = listen_on(port);

	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = must(accept(listener, NULL, NULL), "accept");

		if (fork() == 0) {
			serve(fd, folder);
			exit(0);
		}
		close(fd);
	}
}

/* --- the client -------------------------------------------------------- */

static void
expect_200(int fd, char head[HEAD_MAX], char **body, size_t *rest)
{
	if (read_head(fd, head, body, rest) &&
	    strncmp(head, "HTTP/1.1 200 ", 13) == 0)
		return;
	fprintf(stderr, "not a 200: %.60s\n", head);
	exit(1);
}

static void
open_tunnel(int fd, const char *via)
{
	char head[HEAD_MAX], *body;
	size_t rest;
	int n = snprintf(head, sizeof head,
	    "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", via, via);

	send_all(fd, head, (size_t)n);
	expect_200(fd, head, &body, &rest);
	if (rest > 0) {
		fprintf(stderr, "bytes nobody asked for\n");
		exit(1);
	}
}

static void
send_request(int fd, const struct transfer *t, const char *server_rate)
{
	char head[HEAD_MAX];
	bool put = strcmp(t->method, "put") == 0;
	int n = snprintf(head, sizeof head, "%s /%" PRIu64 "/%s/%s HTTP/1.1"
	    "\r\nHost: bulk.test\r\nContent-Length: %" PRIu64 "\r\n\r\n",
	    put ? "PUT" : "GET", t->bytes, server_rate, t->name,
	    put ? t->bytes : 0);

	send_all(fd, head, (size_t)n);
}

/* What the stream's hash has to be. */
static uint64_t
hash_of_stream(uint64_t bytes)
{
	struct hash h = { 0 };

	for (uint64_t at = 0; at < bytes; at += CHUNK) {
		fill(at);
		hash_add(&h, (const unsigned char *)chunk,
		    bytes - at < CHUNK ? bytes - at : CHUNK);
	}
	return hash_end(&h);
}

static int
transfer(int fd, const struct transfer *t, int progress)
{
	char head[HEAD_MAX], *body;
	uint64_t sent, received;
	size_t rest;

	if (strcmp(t->method, "put") == 0) {
		sent = send_stream(fd, t->bytes, progress);
		expect_200(fd, head, &body, &rest);
		while (rest < 16) {
			ssize_t n = recv(fd, body + rest, 16 - rest, 0);

			if (n <= 0)
				die("answer");
			rest += (size_t)n;
		}
		received = strtoull(body, NULL, 16);
	} else {
		expect_200(fd, head, &body, &rest);
		received = receive_stream(fd, t, body, rest, progress);
		sent = hash_of_stream(t->bytes);
	}
	printf("sent %016" PRIx64 ", received %016" PRIx64 "\n", sent,
	    received);
	return sent == received ? 0 : 1;
}

int
main(int argc, char **argv)
{
	struct transfer t = { .bytes = 0 };

	if (argc == 4 && strcmp(argv[1], "serve") == 0)
		serve_all(number(argv[2]), argv[3]);
	if (argc < 8 || argc > 9) {
		fprintf(stderr, "usage: source_sink serve PORT FOLDER\n"
		    "       source_sink get|put PORT BYTES OWN_RATE "
		    "SERVER_RATE NAME FOLDER [VIA]\n");
		return 2;
	}
	snprintf(t.method, sizeof t.method, "%s", argv[1]);
	snprintf(t.name, sizeof t.name, "%s", argv[6]);
	t.bytes = number(argv[3]);
	t.rate = number(argv[4]);

	int fd = connect_to(number(argv[2]));
	int progress = open_progress(argv[7], t.name, "client");

	if (argc == 9)
		open_tunnel(fd, argv[8]);
	send_request(fd, &t, argv[5]);
	return transfer(fd, &t, progress);
}
