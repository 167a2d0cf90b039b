/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keys.c - the key of a limit; see keys.h.
 */
#include "proxy/keys.h"

#include "http/credentials.h"
#include "proxy/worker.h"

enum { HOST_MAX = 255 };		/* DNS has no longer name */

/* Of several lines of a header the first counts. */
static uint64_t
key_of_header(const struct limits *registry, const struct head *h,
    const char *name)
{
	for (unsigned i = 0; i < h->count; i++) {
		const struct field *f = &h->fields[i];

		if (str_equal_nocase(field_name(h, f), str_of(name)))
			return limit_key_of_text(registry, field_value(h, f));
	}
	return LIMIT_KEY_ABSENT;
}

/* A forward proxy is told who asks in a field of its own. */
static uint64_t
key_of_user(const struct limits *registry, const struct exchange *x)
{
	bool forward = x->service->conf->mode == MODE_FORWARD;
	const struct field *f = head_first(&x->request, forward ?
	    FIELD_PROXY_AUTHORIZATION : FIELD_AUTHORIZATION);
	char decoded[CREDENTIALS_USER_MAX];

	if (f == NULL)
		return LIMIT_KEY_ABSENT;
	return limit_key_of_text(registry, credentials_user(
	    field_value(&x->request, f), decoded));
}

/* Without a port, and whatever letters are large. */
static uint64_t
key_of_host(const struct limits *registry, const struct exchange *x)
{
	struct str host = str_head(x->host.host,
	    MIN(x->host.host.len, (size_t)HOST_MAX));
	char lower[HOST_MAX];

	if (host.len == 0)
		return LIMIT_KEY_ABSENT;
	for (size_t i = 0; i < host.len; i++)
		lower[i] = str_fold(host.at[i]);
	return limit_key_of_text(registry, str_make(lower, host.len));
}

HOT uint64_t
key_of_exchange(const struct exchange *x, const struct limit_by *by)
{
	const struct limits *registry = x->worker->shared->limits;

	switch (by->what) {
	case LIMIT_KEY_NONE:
		return 0;
	case LIMIT_KEY_CLIENT_ADDRESS:
		return limit_key_of_addr(registry, by, x->from);
	case LIMIT_KEY_USER:
		return key_of_user(registry, x);
	case LIMIT_KEY_HOST:
		return key_of_host(registry, x);
	case LIMIT_KEY_HEADER:
		return key_of_header(registry, &x->request, by->header);
	}
	return 0;
}
