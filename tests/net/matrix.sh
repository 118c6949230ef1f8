#!/bin/sh
# matrix.sh - every program of perftest with its options and every ibv_*_pingpong between two hosts,
# either of which serves.  One of 48, drawn by RG_SEED, and fewer messages, unless RG_LONG=1 wants all.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"
. "$srcdir/tests/softhca/matrix-list.sh"
hosts 2 2
. "$srcdir/tests/net/between.sh"

# Both ends poll, and take each other's processor where there are too few.  Counts are multiples of the
# lists that a program posts at once (-l).
few="-n 128"
[ -z "${RG_LONG-}" ] || few=

# An interface has one GID.  Datagrams: so many as wait for a connection, since their sender does not, and
# a server of perftest waits for all.  The last of two options counts.
net_options() {
	case $* in
	ibv_*) echo -g 0 $few ;;
	ib_send_bw*" UD"*" -q 4"*) echo -x 0 -F -n 8 -s 500 ;;
	ib_send_bw*" UD"*) echo -x 0 -F -n 24 -s 1000 ;;
	*" -a "*) echo -x 0 -F ;;
	*) echo -x 0 -F $few ;;
	esac
}

# A message without a receive is lost: the server of perftest waits for it for ever.
loses() {
	case $* in
	ib_send_bw*" UC"*" -r 16" | ib_send_bw*" U"[CD]*" -q 4 --use-srq") return 0 ;;
	esac
	return 1
}

draw() {
	! loses "$@" || return 0
	command -v "$1" >/dev/null || hosts_lack "no $1"
	for serving in 0 1; do
		# shellcheck disable=SC2046 # words are meant
		! drawn 48 "$* $serving" || expect "$*, host $serving serves" between "$@" $(net_options "$@")
	done
}
each_program
each_size
finish
