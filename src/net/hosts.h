/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hosts.h - the names of a file like /etc/hosts; read once, then constant.
 *
 * hosts_read() and hosts_free() are in resolver.h, where users need them;
 * this is what the resolver asks.
 *
 * Threads:  any; nothing is written after hosts_read().
 * Limits:   the first MiB of the file, RESOLVER_ADDRS a name.
 */
#ifndef PENSTOCK_NET_HOSTS_H
#define PENSTOCK_NET_HOSTS_H

#include "net/resolver.h"

/* The addresses of a name, by its key (see names.h); h may be NULL. */
bool hosts_find(const struct hosts *h, const char *key, size_t n,
    struct addr_set *out);

#endif
