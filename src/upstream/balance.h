/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * balance.h - the order in which an upstream's servers take their turns.
 *
 * Threads:  balance_init() main's, before anybody else sees the upstream.
 */
#ifndef PENSTOCK_UPSTREAM_BALANCE_H
#define PENSTOCK_UPSTREAM_BALANCE_H

struct upstream;

/* Lay out u->wheel: each server as often as its weight, evenly spread. */
void balance_init(struct upstream *u);

#endif
