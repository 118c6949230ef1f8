#!/bin/sh
# yama.sh - software devices under a kernel with Yama, which keeps processes from each
# other's memory: as an ordinary user, whom it binds, and as root, whom scope 2 spares.
set -u
scope_file=/proc/sys/kernel/yama/ptrace_scope
[ -e $scope_file ] || {
	echo "skipped: the kernel has no Yama"
	exit 77
}
# An ordinary user may not be able to look into the build directory.
place=$(mktemp -d) || exit 99
before=$(cat $scope_file)
trap 'rm -rf "$place" "$place".*; echo "$before" >$scope_file' EXIT
cp -L softhca .libs/libsofthca.so.0 tests/conformance/conformance "$place/" &&
	chmod -R a+rX "$place" || exit 99
cd "$place" || exit 99
failed=0 port=20000
ordinary="setpriv --reuid=1000 --regid=1000 --clear-groups"

# as USER COMMAND...
as() {
	who=$1
	shift
	if [ "$who" = root ]; then
		"$@"
	else
		HOME=/tmp $ordinary "$@"
	fi
}

# conformance USER OPTION...
conformance() {
	who=$1
	shift
	echo "-- scope $scope, $who, remap ${SOFTHCA_REMAP-default}: conformance $*"
	as "$who" env SOFTHCA_EXPOSE=1 SOFTHCA_FABRIC=yama ./conformance "$@" \
		>"$place.out" 2>&1 || {
		failed=1
		grep -v -e '^ok' -e 'passed,' "$place.out"
	}
	tail -n 1 "$place.out"
}

. "$srcdir/tests/listens.sh"

# pair USER PROGRAM OPTION...: both ends on this machine, on two virtual nodes
pair() {
	who=$1
	shift
	port=$((port + 1))
	as "$who" timeout 100 ./softhca --fabric yama --node 0 -- "$@" -p $port >"$place.server" 2>&1 &
	server=$!
	listens $port $server
	as "$who" timeout 100 ./softhca --fabric yama --node 1 -- "$@" -p $port localhost \
		>"$place.client" 2>&1
	rc=$?
	wait $server
	rs=$?
	if [ $rc -eq 0 ] && [ $rs -eq 0 ]; then
		echo "ok: scope $scope, $who: $*"
	else
		echo "FAIL: scope $scope, $who: $*: client $rc, server $rs"
		cat "$place.client" "$place.server"
		failed=1
	fi
}

for scope in 1 2; do
	echo $scope >$scope_file && [ "$(cat $scope_file)" = $scope ] || {
		echo "FAIL: scope $scope cannot be set"
		failed=1
	}
	# Either scope denies the same to an ordinary user: one whole list is enough.
	if [ $scope = 2 ]; then
		# Machines are emulated, and tests/softhca has the list by the owner's hands as well.
		conformance ordinary $([ -n "${RG_LONG-}" ] || echo --share 12)
	else
		export SOFTHCA_REMAP=never
		conformance ordinary --only '*write*'
		unset SOFTHCA_REMAP
	fi
	pair ordinary ib_write_lat -F -s 8 -n 500
	pair ordinary ib_send_bw -F -s 65536 -n 200
done
conformance ordinary --arena --only '*write*'
pair root ib_write_lat -F -s 8 -n 500
# Look at this job's own fabric only: other jobs may run at the same time.
for left in /dev/shm/softhca.*yama*; do
	[ ! -e "$left" ] || {
		echo "FAIL: $left is still there"
		failed=1
	}
done
exit $failed
