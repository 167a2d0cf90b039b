/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ring.c - many reads or writes of sockets in one system call.
 */
#include <stdio.h>

#include "net/rig.h"
#include "net/ring.h"

START_TEST(each_operation_fails_by_itself)
{
	uint8_t bytes[4][8];
	struct ring_op ops[4], *list[4];
	int fds[4][2], err;
	struct ring *r = ring_new(4, &err);

	ck_assert_ptr_nonnull(r);
	for (unsigned i = 0; i < 4; i++) {
		rig_pair(fds[i]);
		ops[i] = (struct ring_op){ fds[i][0], 8, bytes[i], 77 };
		list[i] = &ops[i];
	}
	rig_write(fds[0][1], "hello");
	close(fds[2][1]);
	rig_reset(fds[3][1]);
	ring_recv(r, list, 4);
	ck_assert_int_eq(ops[0].n, 5);
	ck_assert_int_eq(memcmp(bytes[0], "hello", 5), 0);
	ck_assert_int_eq(ops[1].n, -EAGAIN);
	ck_assert_int_eq(ops[2].n, 0);
	ck_assert_int_eq(ops[3].n, -ECONNRESET);
	ops[0].size = 5;
	ops[1].fd = -1;
	ring_send(r, list, 4);
	ck_assert_int_eq(ops[0].n, 5);
	ck_assert_int_eq(ops[1].n, -EBADF);
	ck_assert_int_eq(ops[3].n, -EPIPE);
	ck_assert(ring_works(r));
	for (unsigned i = 0; i < 4; i++)
		close(fds[i][0]);
	close(fds[0][1]);
	close(fds[1][1]);
	ring_free(&r);
	ck_assert_ptr_null(r);
	ring_free(&r);
}
END_TEST

/* More than once around, so that nothing is left of what was before. */
START_TEST(it_goes_on_for_long)
{
	struct ring_op ops[3], *list[3];
	uint8_t bytes[3];
	int fds[3][2], err;
	struct ring *r = ring_new(3, &err);

	ck_assert_ptr_nonnull(r);
	for (unsigned i = 0; i < 3; i++) {
		rig_pair(fds[i]);
		list[i] = &ops[i];
	}
	for (unsigned round = 0; round < 100; round++) {
		unsigned n = 1 + round % 3;

		for (unsigned i = 0; i < n; i++) {
			bytes[i] = (uint8_t)(round + i);
			ops[i] = (struct ring_op){ fds[i][0], 1, &bytes[i],
			    77 };
		}
		ring_send(r, list, n);
		for (unsigned i = 0; i < n; i++) {
			ck_assert_int_eq(ops[i].n, 1);
			ops[i].fd = fds[i][1];
			bytes[i] = 0;
		}
		ring_recv(r, list, n);
		for (unsigned i = 0; i < n; i++)
			ck_assert_uint_eq(bytes[i], (uint8_t)(round + i));
	}
	for (unsigned i = 0; i < 3; i++) {
		close(fds[i][0]);
		close(fds[i][1]);
	}
	ring_free(&r);
}
END_TEST

int
main(void)
{
	int err;
	struct ring *ring = ring_new(4, &err);

	if (ring == NULL) {
		printf("SKIP: the kernel has no ring: %s\n", strerror(err));
		return 77;
	}
	ring_free(&ring);

	Suite *s = suite_create("net/ring");
	TCase *t = tcase_create("ring");

	suite_add_tcase(s, t);
	tcase_add_test(t, each_operation_fails_by_itself);
	tcase_add_test(t, it_goes_on_for_long);
	return run_suite(s);
}
