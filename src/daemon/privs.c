/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * privs.c - what the process may do; see privs.h.
 */
#include "daemon/privs.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t
privs_raise_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == -1)
		return 1024;		/* what POSIX systems have at least */
	if (r.rlim_cur < r.rlim_max) {
		rlim_t was = r.rlim_cur;

		r.rlim_cur = r.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &r) == -1)
			r.rlim_cur = was;
	}
	return r.rlim_cur;
}

static bool
become(const struct passwd *p, FILE *errors)
{
	if (initgroups(p->pw_name, p->pw_gid) == -1 ||
	    setresgid(p->pw_gid, p->pw_gid, p->pw_gid) == -1 ||
	    setresuid(p->pw_uid, p->pw_uid, p->pw_uid) == -1) {
		fprintf(errors, "can't become user %s: %s\n", p->pw_name,
		    strerror(errno));
		return false;
	}
	/* Gone for good, or else not gone at all. */
	if (p->pw_uid != 0 && setuid(0) == 0) {
		fprintf(errors, "user %s can still become root\n",
		    p->pw_name);
		return false;
	}
	return true;
}

bool
privs_drop(const char *user, FILE *errors)
{
	struct passwd *p;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1) {
		fprintf(errors, "can't give up new privileges: %s\n",
		    strerror(errno));
		return false;
	}
	if (user[0] == '\0' || geteuid() != 0)
		return true;
	errno = 0;
	p = getpwnam(user);
	if (p == NULL) {
		fprintf(errors, "user %s: %s\n", user,
		    errno != 0 ? strerror(errno) : "no such user");
		return false;
	}
	return become(p, errors);
}
