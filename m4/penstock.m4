# SPDX-License-Identifier: BSD-2-Clause
# What configure.ac asks, and how a missing answer is told.

# PENSTOCK_MISSING(NAME, DEBIAN-PACKAGE)
# Note that something is not there; PENSTOCK_STOP_IF_MISSING tells.
AC_DEFUN([PENSTOCK_MISSING], [
	missing_names="${missing_names:+$missing_names, }$1"
	missing_packages="${missing_packages:+$missing_packages }$2"
])

# Everything that is missing is told at once, with the command that helps.
AC_DEFUN([PENSTOCK_STOP_IF_MISSING], [
	AS_CASE([$missing_names],
	    [""], [],
	    [*,*], [AC_MSG_ERROR([$missing_names were not found; dnl
on Debian: apt-get install $missing_packages])],
	    [AC_MSG_ERROR([$missing_names was not found; dnl
on Debian: apt-get install $missing_packages])])
])

# PENSTOCK_TRY_CFLAGS(VARIABLE, FLAGS, [PROGRAM])
# Append FLAGS to VARIABLE if the compiler takes them without a murmur.
AC_DEFUN([PENSTOCK_TRY_CFLAGS], [
	AC_MSG_CHECKING([whether $CC takes $2])
	penstock_saved=$CFLAGS
	CFLAGS="$CFLAGS -Werror $2"
	AC_COMPILE_IFELSE(
	    [m4_default([$3], [AC_LANG_PROGRAM([[#include <stdio.h>]], [[]])])],
	    [$1="${$1:+${$1} }$2"; penstock_taken=yes], [penstock_taken=no])
	CFLAGS=$penstock_saved
	AC_MSG_RESULT([$penstock_taken])
])

# PENSTOCK_TRY_LDFLAGS(VARIABLE, FLAGS)
# The same for the linker.
AC_DEFUN([PENSTOCK_TRY_LDFLAGS], [
	AC_MSG_CHECKING([whether the linker takes $2])
	penstock_saved_c=$CFLAGS
	penstock_saved_ld=$LDFLAGS
	CFLAGS="$CFLAGS $HARDENING_CFLAGS"
	LDFLAGS="$LDFLAGS -Werror $2"
	AC_LINK_IFELSE([AC_LANG_PROGRAM([[]], [[]])],
	    [$1="${$1:+${$1} }$2"; penstock_taken=yes], [penstock_taken=no])
	CFLAGS=$penstock_saved_c
	LDFLAGS=$penstock_saved_ld
	AC_MSG_RESULT([$penstock_taken])
])

# --enable-sanitizer=LIST: what goes after -fsanitize=.
AC_DEFUN([PENSTOCK_SANITIZER], [
	AC_ARG_ENABLE([sanitizer],
	    [AS_HELP_STRING([--enable-sanitizer=LIST],
		[build for tests, as with -fsanitize=LIST])],
	    [], [enable_sanitizer=no])
	AS_CASE([$enable_sanitizer],
	    [no], [],
	    [yes], [AC_MSG_ERROR([--enable-sanitizer needs a list, such as dnl
address,undefined])],
	    [PENSTOCK_TRY_LDFLAGS([SANITIZER_FLAGS],
		[-fsanitize=$enable_sanitizer])
	    AS_IF([test -z "$SANITIZER_FLAGS"],
		[AC_MSG_ERROR([$CC can't link with dnl
-fsanitize=$enable_sanitizer; its run-time library may be missing])])
	    SANITIZER_FLAGS="$SANITIZER_FLAGS -fno-omit-frame-pointer"
	    SANITIZER_FLAGS="$SANITIZER_FLAGS -fno-sanitize-recover=all"])
	AC_SUBST([SANITIZER_FLAGS])
])

# A program that compiles only where _FORTIFY_SOURCE has come to level $1.
m4_define([PENSTOCK_FORTIFIED], [AC_LANG_PROGRAM([[
#include <stdio.h>
#if !defined __USE_FORTIFY_LEVEL || __USE_FORTIFY_LEVEL < $1
#error not fortified
#endif]], [[]])])

# --disable-hardening: without what makes an attack harder.
AC_DEFUN([PENSTOCK_HARDENING], [
	AC_ARG_ENABLE([hardening],
	    [AS_HELP_STRING([--disable-hardening],
		[no PIE, RELRO, stack protector, _FORTIFY_SOURCE])],
	    [], [enable_hardening=yes])
	AS_IF([test "$enable_hardening" != no], [
		PENSTOCK_HARDENING_CFLAGS
		PENSTOCK_HARDENING_LDFLAGS
	])
	# A sanitized binary is for tests; its flags are nobody's to judge.
	AS_IF([test "$enable_sanitizer" != no], [enable_hardening=no])
	AC_SUBST([enable_hardening])
	AC_SUBST([HARDENING_CFLAGS])
	AC_SUBST([HARDENING_LDFLAGS])
])

# -ftrivial-auto-var-init is left out: it would clear the 64 KiB arrays on the
# stack that a read fills anyway.
# -fno-plt hardens nothing: as -z now binds all functions when the program
# starts, calls needn't go by way of where they would be bound later.
AC_DEFUN([PENSTOCK_HARDENING_CFLAGS], [
	PENSTOCK_TRY_CFLAGS([HARDENING_CFLAGS], [-fPIE])
	PENSTOCK_TRY_CFLAGS([HARDENING_CFLAGS], [-fno-plt])
	PENSTOCK_TRY_CFLAGS([HARDENING_CFLAGS], [-fstack-protector-strong])
	PENSTOCK_TRY_CFLAGS([HARDENING_CFLAGS], [-fstack-clash-protection])
	PENSTOCK_TRY_CFLAGS([HARDENING_CFLAGS], [-fcf-protection])
	PENSTOCK_TRY_CFLAGS([HARDENING_CFLAGS],
	    [-Wformat -Werror=format-security])
	# These two hide from the sanitizers what they look for.
	AS_IF([test "$enable_sanitizer" = no], [
		PENSTOCK_TRY_CFLAGS([HARDENING_CFLAGS], [-fno-strict-overflow])
		PENSTOCK_TRY_CFLAGS([HARDENING_CFLAGS],
		    [-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3],
		    [PENSTOCK_FORTIFIED([3])])
		AS_IF([test "$penstock_taken" = no],
		    [PENSTOCK_TRY_CFLAGS([HARDENING_CFLAGS],
			[-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2],
			[PENSTOCK_FORTIFIED([2])])])
	])
])

AC_DEFUN([PENSTOCK_HARDENING_LDFLAGS], [
	PENSTOCK_TRY_LDFLAGS([HARDENING_LDFLAGS], [-pie])
	PENSTOCK_TRY_LDFLAGS([HARDENING_LDFLAGS], [-Wl,-z,relro,-z,now])
	PENSTOCK_TRY_LDFLAGS([HARDENING_LDFLAGS], [-Wl,-z,noexecstack])
])

# The daemon is optimized as a whole when it is linked: small functions of one
# folder are inlined in another.  Objects have their usual code, too, which is
# what tests link, or each of them would take as long.  clang's can't have both.
AC_DEFUN([PENSTOCK_LTO], [
	AC_ARG_ENABLE([lto],
	    [AS_HELP_STRING([--disable-lto],
		[the daemon is not optimized as a whole when it is linked])],
	    [], [enable_lto=yes])
	AS_IF([test "$enable_lto" != no && test "$enable_sanitizer" = no], [
		PENSTOCK_TRY_CFLAGS([LTO_CFLAGS],
		    [-flto=auto -ffat-lto-objects])
		AS_IF([test -n "$LTO_CFLAGS"], [NO_LTO_LDFLAGS=-fno-lto])
	])
	AC_SUBST([LTO_CFLAGS])
	AC_SUBST([NO_LTO_LDFLAGS])
])

# libev brings no file for pkg-config.
AC_DEFUN([PENSTOCK_LIBEV], [
	AC_CHECK_HEADER([ev.h], [penstock_ev=yes], [penstock_ev=no])
	AS_IF([test "$penstock_ev" = yes],
	    [AC_CHECK_LIB([ev], [ev_run], [EV_LIBS=-lev], [penstock_ev=no])])
	AS_IF([test "$penstock_ev" = no],
	    [PENSTOCK_MISSING([libev], [libev-dev])])
	AC_SUBST([EV_LIBS])
])

# Reads and writes of many connections in one system call; or one by one.
AC_DEFUN([PENSTOCK_LIBURING], [
	AC_ARG_WITH([liburing], [AS_HELP_STRING([--without-liburing],
	    [each read and write is a system call of its own])])
	AS_IF([test "x$with_liburing" != xno],
	    [PKG_CHECK_MODULES([URING], [liburing >= 2.2],
		[AC_DEFINE([HAVE_LIBURING], [1], [Define if liburing is used.])],
		[PENSTOCK_MISSING([liburing], [liburing-dev])])])
])

# llhttp is a library where a system has one; Debian 12 has its C sources only,
# in the package node-llhttp, and they are compiled in.
AC_DEFUN([PENSTOCK_LLHTTP], [
	AC_ARG_WITH([llhttp],
	    [AS_HELP_STRING([--with-llhttp=DIR],
		[where llhttp is: its sources, or the prefix of a library])],
	    [], [with_llhttp=auto])
	LLHTTP_SRC=
	AS_CASE([$with_llhttp],
	    [yes|no], [AC_MSG_ERROR([--with-llhttp needs a folder])],
	    [auto], [PKG_CHECK_MODULES([LLHTTP], [libllhttp], [],
		[PENSTOCK_LLHTTP_IN([/usr])])],
	    [PENSTOCK_LLHTTP_IN([$with_llhttp])
	    WITH_LLHTTP="--with-llhttp='$with_llhttp'"])
	AM_CONDITIONAL([LLHTTP_FROM_SOURCE], [test -n "$LLHTTP_SRC"])
	PENSTOCK_LLHTTP_SSE42
	AC_SUBST([LLHTTP_SRC])
	AC_SUBST([LLHTTP_CFLAGS])
	AC_SUBST([LLHTTP_LIBS])
	AC_SUBST([WITH_LLHTTP])
])

# llhttp runs over values and long names sixteen bytes at a time, if it is
# compiled for SSE4.2, which not every x86 has.  So it is compiled both ways, and
# http/parse takes what the processor knows.
AC_DEFUN([PENSTOCK_LLHTTP_SSE42], [
	penstock_sse42=no
	AS_IF([test -n "$LLHTTP_SRC"], [
		AC_MSG_CHECKING([whether a file can be compiled for SSE4.2])
		AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#pragma GCC target("sse4.2")
#ifndef __SSE4_2__
#error "it can't"
#endif
#include <nmmintrin.h>
int main(void) { return __builtin_cpu_supports("sse4.2"); }
]])], [penstock_sse42=yes])
		AC_MSG_RESULT([$penstock_sse42])
	])
	AS_IF([test "$penstock_sse42" = yes],
	    [LLHTTP_CFLAGS="$LLHTTP_CFLAGS -DLLHTTP_SSE42=1"])
	AM_CONDITIONAL([LLHTTP_SSE42], [test "$penstock_sse42" = yes])
])

# PENSTOCK_LLHTTP_IN(DIR)
# A release of llhttp has src/ and include/; Debian has share/llhttp and
# share/include/llhttp; an installed library has include/ and lib/.
AC_DEFUN([PENSTOCK_LLHTTP_IN], [
	AC_MSG_CHECKING([for llhttp in $1])
	penstock_header=
	for d in "$1" "$1/include" "$1/include/llhttp" \
	    "$1/share/include/llhttp" "$1/../include/llhttp"; do
		AS_IF([test -z "$penstock_header" && test -f "$d/llhttp.h"],
		    [penstock_header=$d])
	done
	for d in "$1" "$1/src" "$1/share/llhttp"; do
		AS_IF([test -z "$LLHTTP_SRC" && test -f "$d/llhttp.c" &&
		    test -f "$d/api.c" && test -f "$d/http.c"],
		    [LLHTTP_SRC=$(cd "$d" && pwd)])
	done
	AS_IF([test -n "$penstock_header"],
	    [penstock_header=$(cd "$penstock_header" && pwd)
	    LLHTTP_CFLAGS="-isystem $penstock_header -DLLHTTP_STRICT_MODE=1"])
	AS_IF([test -z "$penstock_header"],
	    [AC_MSG_RESULT([no])
	    PENSTOCK_MISSING([llhttp], [node-llhttp])],
	    [test -n "$LLHTTP_SRC"],
	    [AC_MSG_RESULT([sources in $LLHTTP_SRC])],
	    [AC_MSG_RESULT([header in $penstock_header])
	    penstock_saved=$LDFLAGS
	    LDFLAGS="$LDFLAGS -L$1/lib"
	    AC_CHECK_LIB([llhttp], [llhttp_execute],
		[LLHTTP_LIBS="-L$1/lib -Wl,-rpath,$1/lib -lllhttp"],
		[PENSTOCK_MISSING([llhttp], [node-llhttp])])
	    LDFLAGS=$penstock_saved])
])
