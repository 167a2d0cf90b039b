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

/* NULL, said on `errors`, if there is none. */
static const struct passwd *
find_user(const char *user, FILE *errors)
{
	errno = 0;

	const struct passwd *p = getpwnam(user);
	if (p == NULL)
		fprintf(errors, "user %s: %s\n", user,
		    errno != 0 ? strerror(errno) : "no such user");
	return p;
}

static bool
is_asked_for(const char *user)
{
	return user[0] != '\0' && geteuid() == 0;
}

bool
privs_check(const char *user, FILE *errors)
{
	return !is_asked_for(user) || find_user(user, errors) != NULL;
}

uid_t
privs_uid(const char *user)
{
	const struct passwd *p = is_asked_for(user) ? getpwnam(user) : NULL;

	return p == NULL ? geteuid() : p->pw_uid;
}

bool
privs_drop(const char *user, FILE *errors)
{
	const struct passwd *p;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1) {
		fprintf(errors, "can't give up new privileges: %s\n",
		    strerror(errno));
		return false;
	}
	if (!is_asked_for(user))
		return true;
	p = find_user(user, errors);
	return p != NULL && become(p, errors);
}
