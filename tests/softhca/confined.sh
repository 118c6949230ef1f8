#!/bin/sh
# confined.sh - members in containers, without an MPI library: no /proc, file systems and kernels
# without a feature, members of another namespace, segments of another kind.
set -u
work=$(mktemp -d) || exit 1
holder=
trap '[ -z "$holder" ] || kill -9 "$holder" 2>/dev/null; rm -rf "$work"' EXIT
failed=0
SOFTHCA_EXPOSE=1
SOFTHCA_FABRIC=confined.$$
# A leak sanitizer sees no process of another namespace.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export SOFTHCA_EXPOSE SOFTHCA_FABRIC ASAN_OPTIONS
confine=./tests/softhca/confine
conformance=./tests/conformance/conformance

fail() {
	echo "FAIL: $*"
	[ ! -s "$work/out" ] || tail -n 10 "$work/out"
	failed=1
}

# confined "WORDS" COMMAND...: passes, if the system permits the words.
confined() {
	words=$1
	shift
	# shellcheck disable=SC2086 # words are meant
	if ! "$confine" $words -- true >"$work/out" 2>&1; then
		echo "not tried: $words ($(cat "$work/out"))"
		return
	fi
	echo "== $words: $*"
	# shellcheck disable=SC2086
	"$confine" $words -- "$@" >"$work/out" 2>&1 || fail "$words: $*"
}

# hold "WORDS" ARGUMENT...: a member, until it ends; sets holder.
hold() {
	words=$1
	shift
	: >"$work/held"
	# shellcheck disable=SC2086
	"$confine" $words -- ./tests/softhca/hold "$@" >"$work/held" 2>&1 &
	holder=$!
	for i in $(seq 1200); do
		[ ! -s "$work/held" ] || break
		sleep 0.05
	done
	grep -q ready "$work/held" || { cat "$work/held"; fail "a member, confined by '$words', cannot join"; }
}

end_holder() {
	kill -9 "$holder" 2>/dev/null
	wait "$holder" 2>/dev/null
	holder=
}

# Wake-ups are sockets; without /proc only memory of the arena can be registered.  A
# sanitizer reads its options from there.
[ "${RG_SANITIZE:-no}" != no ] || confined noproc $conformance --arena --only 'channel*'
mkdir "$work/files"
SOFTHCA_DIR=$work/files
export SOFTHCA_DIR
confined "old=tmpfile deny=memfd_create" $conformance --only loopback
[ -z "$(ls -A "$work/files")" ] || fail "files are left: $(ls -A "$work/files")"
unset SOFTHCA_DIR
[ ! -x tests/softhca/test_remap_fork ] || confined old=populate ./tests/softhca/test_remap_fork

# A program stands in for the kernel: a line, instead of waiting for a peer that looks dead.
if "$confine" old=robust -- true >"$work/out" 2>&1; then
	"$confine" old=robust -- $conformance --only loopback >"$work/out" 2>&1 && fail "under an emulation"
	[ "$(grep -c 'emulation of system calls' "$work/out")" -eq 1 ] ||
		fail "no line, or several, about an emulation: $(cat "$work/out")"
fi

# A command of the host reaches a member whose files /proc does not show.
if "$confine" user pid proc -- true >"$work/out" 2>&1; then
	hold "user pid proc" event
	./softhca list >"$work/out" 2>&1 || fail "softhca list"
	grep -q "$SOFTHCA_FABRIC" "$work/out" || fail "softhca list does not show the fabric"
	./softhca port 0/soft0:1 down >"$work/out" 2>&1 || fail "softhca port"
	wait "$holder" || fail "the member ends with $?"
	holder=
	grep -q "event 10" "$work/held" || fail "IBV_EVENT_PORT_ERR is not heard: $(cat "$work/held")"
else
	echo "not tried: another namespace ($(cat "$work/out"))"
fi

# A process accepts segments of its own kind alone, and says so.
hold ""
SOFTHCA_MEMORY=file $conformance --only loopback >"$work/out" 2>&1 && fail "segments of another kind"
grep -q "shares memory by memfd_create and this process by files" "$work/out" ||
	fail "no line names the kinds of segments"
end_holder
./softhca reap >/dev/null
rm -f "/dev/shm/softhca.$(id -u).$SOFTHCA_FABRIC"
exit $failed
