/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_hangup.c - the other end goes, though a stream isn't read; see
 * stream.h.
 */
#include <sys/ioctl.h>

#include "net/hangup.h"
#include "net/sock.h"
#include "net/stream_own.h"

void
stream_mind(struct stream *s, struct hangup *h)
{
	struct hangups *hs = stream_pool_of(s)->hangups;

	ASSERT(!s->minded);
	if (hs == NULL)
		return;
	s->minded = true;
	hangups_add(hs, watch_fd(&s->watch), h);
}

void
stream_mind_no_more(struct stream *s)
{
	if (!s->minded)
		return;
	s->minded = false;
	hangups_remove(stream_pool_of(s)->hangups, watch_fd(&s->watch));
}

/* The kernel tells it once: a write may have been told already. */
bool
stream_is_broken(struct stream *s)
{
	int err = (int)s->read_err;

	if (err == 0)
		err = (int)s->write_err;
	if (err == 0 && s->in != 0)
		err = batch_error(stream_pool_of(s)->batch, s);
	if (err == 0)
		err = sock_error(watch_fd(&s->watch));
	if (err != 0 && s->read_err == 0)
		(void)stream_read_failed(s, err);
	return err != 0;
}

bool
stream_unread(const struct stream *s, size_t *n)
{
	int bytes;

	if (ioctl(watch_fd(&s->watch), FIONREAD, &bytes) == -1)
		return false;
	*n = (size_t)bytes + (s->in == 0 ? 0 :
	    batch_left(stream_pool_of(s)->batch, s));
	return true;
}

nsec_t
stream_silence(const struct stream *s)
{
	return sock_silence(watch_fd(&s->watch));
}
