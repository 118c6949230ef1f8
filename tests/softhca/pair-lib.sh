# pair-lib.sh - two programs as server and client on two nodes of one software fabric.
# Sourced; sets $work, $fabric; the caller sets $spec, reads $failed and ends with finish_pairs.
. "$srcdir/tests/listens.sh"
softhca=./softhca
# A sanitized library can be preloaded only behind the sanitizer's own.
runtime=$(ldd .libs/libsofthca.so.0 2>/dev/null | sed -n 's/.*lib[at]san[^ ]* => \([^ ]*\).*/\1/p')
[ -z "$runtime" ] || softhca="env LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0 ./softhca"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fabric=pair.$$
port=$((20000 + $$ % 10000))
spec=ideal
failed=0

# need PROGRAM...: skip the test when one is absent
need() {
	for program; do
		command -v "$program" >/dev/null || {
			echo "skipped: $program is not installed"
			exit 77
		}
	done
}

# pair PROGRAM OPTION...: as server on node 0 and client on node 1.
pair() {
	for attempt in 1 2 3 4 5; do
		pair_once "$@" && break
		# perftest reads the processor's clock for its report, and refuses to print one when
		# the host took the processor away meanwhile: it says nothing of the device then.
		grep -qs "^Can't produce a report" "$work/client" "$work/server" || break
		echo "again: perftest could not read the processor's clock ($attempt): $*"
	done
	if [ $rc -ne 0 ] || [ $rs -ne 0 ]; then
		echo "FAIL: $* on $spec: client $rc, server $rs"
		cat "$work/client" "$work/server"
		failed=$((failed + 1))
	else
		echo "ok: $* on $spec: $(grep -E '^ *[0-9]+ +[0-9]+ ' "$work/client" | tail -1)"
	fi
}

# pair_once PROGRAM OPTION...: sets $rc and $rs, what client and server returned
pair_once() {
	port=$((port + 1))
	timeout 100 $softhca --soft "$spec" --fabric $fabric --node 0 -- "$@" -p $port \
		>"$work/server" 2>&1 &
	server=$!
	listens $port $server
	timeout 100 $softhca --soft "$spec" --fabric $fabric --node 1 -- "$@" -p $port localhost \
		>"$work/client" 2>&1
	rc=$?
	wait $server
	rs=$?
	[ $rc -eq 0 ] && [ $rs -eq 0 ]
}

finish_pairs() {
	if [ -e "/dev/shm/softhca.$(id -u).$fabric" ]; then
		echo "FAIL: the fabric's file is still there"
		failed=$((failed + 1))
	fi
	[ $failed -eq 0 ]
	exit
}
