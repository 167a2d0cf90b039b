/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * credentials.h - whom a request says that it comes from.
 *
 * Nothing is verified: what is told here may only decide with whom a client
 * shares its turns and limits, never what it may do.
 *
 * Threads:  any; pure functions.
 */
#ifndef PENSTOCK_HTTP_CREDENTIALS_H
#define PENSTOCK_HTTP_CREDENTIALS_H

#include "http/head.h"

enum { CREDENTIALS_USER_MAX = 255 };

/*
 * The user of Basic credentials (RFC 7617): what stands before the first colon.
 * Of other schemes, of what can't be decoded and of what is longer than
 * CREDENTIALS_USER_MAX, all of the text.  `decoded` is where a user is put.
 */
struct str credentials_user(struct str text,
    char decoded[CREDENTIALS_USER_MAX]);

#endif
