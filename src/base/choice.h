/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * choice.h - the enumerations of choices.def, which several layers name.
 *
 * Threads:  any; everything here is constant.
 */
#ifndef PENSTOCK_BASE_CHOICE_H
#define PENSTOCK_BASE_CHOICE_H

#define CHOICES(list)			enum list {
#define CHOICE(LIST, NAME, word)	LIST##_##NAME,
#define END_CHOICES(list)		};
#include "base/choices.def"

#endif
