/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * date.c - put together by hand: strftime() would follow the locale.
 */
#include "http/date.h"

#include "base/str.h"

void
date_set(struct date *d, time_t now)
{
	static const char days[7][4] = {
		"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat",
	};
	static const char months[12][4] = {
		"Jan", "Feb", "Mar", "Apr", "May", "Jun",
		"Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
	};
	struct tm t;
	struct out o;

	/* The form has four digits for the year. */
	if (gmtime_r(&now, &t) == NULL || t.tm_year + 1900 > 9999 ||
	    t.tm_year + 1900 < 0)
		t = (struct tm){ .tm_mday = 1, .tm_year = 70, .tm_wday = 4 };
	out_init(&o, d->text, sizeof d->text - 1);
	out_put(&o, days[t.tm_wday]);
	out_put(&o, ", ");
	out_padded(&o, (uint64_t)t.tm_mday, 2);
	out_char(&o, ' ');
	out_put(&o, months[t.tm_mon]);
	out_char(&o, ' ');
	out_padded(&o, (uint64_t)(t.tm_year + 1900), 4);
	out_char(&o, ' ');
	out_padded(&o, (uint64_t)t.tm_hour, 2);
	out_char(&o, ':');
	out_padded(&o, (uint64_t)t.tm_min, 2);
	out_char(&o, ':');
	out_padded(&o, (uint64_t)t.tm_sec, 2);
	out_put(&o, " GMT");
	ASSERT(out_len(&o) == DATE_TEXT - 1);
	d->text[DATE_TEXT - 1] = '\0';
	d->second = now;
}
