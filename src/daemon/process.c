/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.c - what the kernel says of this process; see process.h.
 */
#include "daemon/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t
open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (d == NULL)
		return 0;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n >= 3 ? n - 3 : 0;	/* ".", "..", and the folder's own */
}

/* Pages, from the second number of /proc/self/statm. */
static uint64_t
resident_bytes(void)
{
	unsigned long long total, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double
cpu_seconds(void)
{
	struct rusage r;

	if (getrusage(RUSAGE_SELF, &r) == -1)
		return 0;
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	    (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

void
process_look(struct process_figures *out)
{
	struct rlimit r = { 0 };

	(void)getrlimit(RLIMIT_NOFILE, &r);
	*out = (struct process_figures){
		.descriptors = open_descriptors(),
		.descriptors_max = r.rlim_cur,
		.resident = resident_bytes(),
		.cpu = cpu_seconds(),
	};
}
