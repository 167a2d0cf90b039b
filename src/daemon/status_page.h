/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_page.h - status.html, as make has put it into the program.
 *
 * Threads:  any; it is constant.
 */
#ifndef PENSTOCK_DAEMON_STATUS_PAGE_H
#define PENSTOCK_DAEMON_STATUS_PAGE_H

#include <stddef.h>

extern const char	status_page[];
extern const size_t	status_page_size;

/* Stands in it wherever a nonce has to. */
#define STATUS_PAGE_NONCE	"@NONCE@"

#endif
