/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * date.h - the time of day as HTTP writes it: IMF-fixdate, RFC 9110 5.6.7.
 *
 * Owner:    the caller, who embeds the struct: one for each worker.
 * Threads:  one.
 */
#ifndef PENSTOCK_HTTP_DATE_H
#define PENSTOCK_HTTP_DATE_H

#include <time.h>

#include "base/defs.h"

enum { DATE_TEXT = 30 };		/* with the NUL */

struct date {
	time_t	second;			/* of the text */
	char	text[DATE_TEXT];
};

/* Make the text for `now`. */
void date_set(struct date *d, time_t now);

/* The text for `now`, made once a second; the struct starts as zero. */
static inline const char *
date_text(struct date *d, time_t now)
{
	if (UNLIKELY(d->second != now || d->text[0] == '\0'))
		date_set(d, now);
	return d->text;
}

#endif
