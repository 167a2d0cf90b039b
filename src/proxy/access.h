/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access.h - who may use a forward listener, and where to.
 *
 * Of all rules that fit, the most specific decides: the longer block of
 * addresses, the longer name; a rule with a port before one without; and, where
 * two are alike, the one that denies.  A name is checked first, and every
 * address that it resolves to after that: an allowed name opens no address
 * that is denied.
 *
 * What no rule fits: a client is denied.  A destination's address is allowed
 * if it is public, and there is no allow_destination or its name was allowed.
 * Without any access section (a listener on loopback) loopback clients may go
 * everywhere.
 *
 * Owner:    access_new() gives a handle.  The configuration outlives it.
 * Threads:  any, once made.
 */
#ifndef PENSTOCK_PROXY_ACCESS_H
#define PENSTOCK_PROXY_ACCESS_H

#include "base/addr.h"
#include "base/failure.h"
#include "base/str.h"
#include "config/config.h"

struct access;
struct own_addrs;

enum access_name { ACCESS_UNLISTED, ACCESS_LISTED, ACCESS_DENIED };

/* NULL for a listener without an access section. */
struct access *access_new(const struct conf_access *conf);
void access_free(struct access **a);

bool access_client(const struct access *a, const struct addr *client);

/* May CONNECT name this port? */
bool access_connect_port(const struct access *a, uint16_t port);

/* What the rules for names say of this one, in any case of letters. */
enum access_name access_name(const struct access *a, struct str host,
    uint16_t port);

/* FAIL_NONE or FAIL_DESTINATION_DENIED; `listed`: its name is ACCESS_LISTED. */
enum failure access_addr(const struct access *a, const struct addr *to,
    bool listed);

/*
 * Would a connection there come back to one of our own listeners, by any
 * address of this machine?
 */
bool access_is_own(const struct own_addrs *all, const struct addr *to);

/* Is a in one of these ranges? */
bool access_ranges_have(const struct conf_rules *rules, const struct addr *a);

#endif
