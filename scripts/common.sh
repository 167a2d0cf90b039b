# SPDX-License-Identifier: BSD-2-Clause
# common.sh: what scripts/run and scripts/test share.  Sourced, in the top
# folder of the source.

BUILD_PACKAGES="autoconf automake gcc make pkg-config libc6-dev libev-dev
libc-ares-dev libinih-dev liburing-dev node-llhttp"

say()
{
	echo "== $*"
}

# The packages of those named that are not installed.
missing_packages()
{
	for p in "$@"; do
		case $(dpkg-query -W -f '${db:Status-Abbrev}' "$p" \
		    2>/dev/null) in
		ii*) ;;
		*) echo "$p" ;;
		esac
	done
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "neither root nor sudo is here to run: $*" >&2
		return 1
	fi
}

# Some packages bring services.  Only their programs are wanted: nothing may
# be started now, nor at the next boot.
POLICY=/usr/sbin/policy-rc.d
SERVICES="nginx prometheus prometheus-node-exporter lighttpd"

hold_services()
{
	[ -e $POLICY ] && return
	as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$POLICY &&
	    chmod 755 $POLICY" && policy_is_ours=yes
}

release_services()
{
	[ "${policy_is_ours:-no}" = yes ] && as_root rm -f $POLICY
	policy_is_ours=no
	[ -d /run/systemd/system ] || return 0
	for s in $SERVICES; do
		case " $* " in
		*" $s "*|*" $s-light "*)
			as_root systemctl --quiet disable "$s" ;;
		esac
	done 2>/dev/null
	return 0
}

# Install what is not there of the packages named; says what.
install_packages()
{
	lacking=$(missing_packages "$@" | xargs)
	[ -z "$lacking" ] && return 0
	if ! command -v apt-get >/dev/null; then
		echo "not installed, and there is no apt-get: $lacking" >&2
		return 1
	fi
	say "installing $lacking"
	hold_services
	trap 'release_services $lacking' EXIT
	trap 'exit 130' INT TERM
	as_root apt-get -q update >/dev/null &&
	    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
	    --no-install-recommends -o Dpkg::Use-Pty=0 install $lacking \
	    </dev/null
	installed=$?
	release_services $lacking
	trap - EXIT INT TERM
	return $installed
}

# configure is made once; after that, make itself notices what has changed.
make_configure()
{
	[ -x configure ] && [ -e Makefile.in ] && [ -e autoconf.h.in ] &&
	    return 0
	say "making configure"
	autoreconf -fi
}

# A build of its own in a folder: configured once, and again when the options
# are others.
configure_in()	# folder option...
{
	dir=$1
	shift
	make_configure || return 1
	if [ -e config.status ]; then
		say "cleaning the build in the source tree, to build in $dir"
		make -s distclean || return 1
	fi
	if [ -e "$dir/config.status" ] && [ -e "$dir/Makefile" ] &&
	    [ "$(cat "$dir/options" 2>/dev/null)" = "$*" ]; then
		return 0
	fi
	say "configuring $dir${*:+ with $*}"
	mkdir -p "$dir" && rm -f "$dir/options" || return 1
	(top=$PWD && cd "$dir" && "$top/configure" -q "$@") || return 1
	# What was built with other options is no longer true.
	make -s -C "$dir" clean && echo "$*" >"$dir/options"
}

cores()
{
	getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2
}
