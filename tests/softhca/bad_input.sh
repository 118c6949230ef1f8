#!/bin/sh
# Bad input and bad surroundings: one line that says what is wrong, a nonzero
# exit, no hang, nothing left behind.
set -u
softhca=./softhca
# A sanitized library can be preloaded only behind the sanitizer's own.
runtime=$(ldd .libs/libsofthca.so.0 2>/dev/null | sed -n 's/.*lib[at]san[^ ]* => \([^ ]*\).*/\1/p')
[ -z "$runtime" ] || softhca="env LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0:handle_segv=0 ./softhca"
member="./tests/conformance/conformance --only loopback"	# joins a fabric, if it can
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
SOFTHCA_FABRIC=bad.$$
export SOFTHCA_FABRIC
file=/dev/shm/softhca.$(id -u).$SOFTHCA_FABRIC
failed=0

fail() {
	echo "FAIL: $*"
	failed=1
}

# refused EXIT PATTERN COMMAND...: that exit code (or - for any but 0), and one
# line "softhca: ..." with the pattern.
refused() {
	code=$1
	pattern=$2
	shift 2
	timeout 60 "$@" >"$work/out" 2>"$work/err"
	rc=$?
	grep '^softhca: ' "$work/err" | sort -u >"$work/lines"
	if [ "$code" = - ]; then
		[ $rc -ne 0 ] && [ $rc -ne 124 ] || fail "$*: exit $rc"
	else
		[ $rc -eq "$code" ] || fail "$*: exit $rc, not $code"
	fi
	[ "$(wc -l <"$work/lines")" -eq 1 ] || fail "$*: not one line: $(cat "$work/err")"
	grep -q -e "$pattern" "$work/lines" || fail "$*: '$pattern' is not in: $(cat "$work/lines")"
	[ ! -e "$file" ] || fail "$*: left $file behind"
}

# Until the program in the background has said that it is ready.
wait_ready() {
	i=0
	until [ -s "$work/ready" ] || [ $i -ge 600 ]; do
		i=$((i + 1))
		sleep 0.1
	done
}

echo "== the command line"
refused 3 'ports=0.*accepted: 1 to 8' $softhca --soft ports=0 -- true
refused 3 'latency=5.*unit' $softhca --soft latency=5 -- true
refused 3 "unknown key.*accepted" $softhca --soft speed=1 -- true
refused 3 'ports: given twice' $softhca --soft ports=1,ports=2 -- true
refused 3 'loss=2.*accepted: 0 to 1' $softhca --soft loss=2 -- true
refused 3 'down=0/soft0:3: no such port.*accepted' $softhca --soft down=0/soft0:3@1ms -- true
refused 3 'accepted: port NODE/DEVICE:PORT up|down' $softhca port 0/soft0:1
refused 3 'sideways.*accepted: up, down' $softhca port 0/soft0:1 sideways
refused 3 '2.5.*accepted: 0 to 1' $softhca loss 0/soft0:1 2.5
refused 3 'no process is on fabric' $softhca port 0/soft0:1 down
refused 3 'node' $softhca --node -1 -- true
refused 3 'node' $softhca --node 1024 -- true
refused 3 'fabric' $softhca --fabric a/b -- true
refused 3 'speed' $softhca --speed 1 -- true
refused 3 'no program' $softhca
refused 127 'no-such-program' $softhca -- ./no-such-program

echo "== the environment"
expose="env SOFTHCA_EXPOSE=1"
refused - 'ports=9.*accepted: 1 to 8' $expose SOFTHCA_SPEC=ports=9 $member
refused - 'SOFTHCA_NODE.*accepted: 0 to 1023' $expose SOFTHCA_NODE=1024 $member
refused - 'SOFTHCA_NODE.*accepted' $expose SOFTHCA_NODE=one $member
refused - 'SOFTHCA_NODE.*accepted: 0 to 766' $expose SOFTHCA_SPEC=hcas=8,ports=8 SOFTHCA_NODE=767 $member
refused - 'fabric.*accepted' $expose SOFTHCA_FABRIC='a b' $member
refused - 'SOFTHCA_REMAP.*accepted: never, auto, always' $expose SOFTHCA_REMAP=maybe $member

refused - 'SOFTHCA_COPY.*accepted: auto, kernel, bounce' $expose SOFTHCA_COPY=maybe $member

echo "== the directory of the member registry"
refused - 'No such file' $expose SOFTHCA_DIR=/no/such $member
refused - 'Not a directory' $expose SOFTHCA_DIR=/dev/null $member
mkdir "$work/shm"
if unshare -m true 2>/dev/null; then
	refused - 'No space left' unshare -m sh -c "mount -t tmpfs -o size=4k none $work/shm &&
		SOFTHCA_EXPOSE=1 SOFTHCA_DIR=$work/shm $member; rc=\$?;
		[ -z \"\$(ls $work/shm)\" ] || echo 'softhca: something left behind' >&2; exit \$rc"
	refused - 'Read-only' unshare -m sh -c "mount -t tmpfs -o ro none $work/shm &&
		SOFTHCA_EXPOSE=1 SOFTHCA_DIR=$work/shm $member"
else
	echo "skipped: a full and a read-only directory (may not mount)"
fi
refused - 'RLIMIT_FSIZE' sh -c "ulimit -f 4; $expose $member"
refused - 'no descriptor left (RLIMIT_NOFILE is 6; accepted: more, ulimit -Hn)' sh -c "ulimit -n 6; $expose $member"
# Where the sanitizers' own mappings fit into nothing, this is not for them.
[ -n "$runtime" ] || refused - 'RLIMIT_AS.*ulimit -v' sh -c "ulimit -v 6000000; $expose $member"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	mkdir -m 0555 "$work/readonly"
	cp ./tests/conformance/conformance "$work/member"
	chmod 0755 "$work" "$work/member"
	refused - 'Permission denied' setpriv --reuid 65534 --regid 65534 --clear-groups \
		$expose SOFTHCA_DIR="$work/readonly" "$work/member" --only loopback
fi

echo "== what is already there"
name=softhca.$(id -u).$SOFTHCA_FABRIC
echo garbage >"$work/shm/$name"
refused - 'not a member registry.*softhca reap' $expose SOFTHCA_DIR="$work/shm" $member
SOFTHCA_DIR=$work/shm $softhca reap >/dev/null || fail "reap"
[ ! -e "$work/shm/$name" ] || fail "reap left a damaged file"
ln -s "$work/elsewhere" "$work/shm/$name"
refused - 'symbolic links' $expose SOFTHCA_DIR="$work/shm" $member
rm "$work/shm/$name"
if [ "$(id -u)" -eq 0 ]; then
	: >"$work/shm/$name"
	chown 65534 "$work/shm/$name"
	refused - 'belongs to another user' $expose SOFTHCA_DIR="$work/shm" $member
	rm -f "$work/shm/$name"
fi
: >"$work/shm/$name"		# as a maker leaves it who was killed at once
env SOFTHCA_EXPOSE=1 SOFTHCA_DIR="$work/shm" $member >/dev/null 2>&1 || fail "an empty file is in the way"
[ ! -e "$work/shm/$name" ] || fail "a file was left behind"

echo "== another spec on a living fabric"
SOFTHCA_EXPOSE=1 SOFTHCA_SPEC=ports=3 ./tests/softhca/hold >"$work/ready" &
holder=$!
wait_ready
timeout 60 env SOFTHCA_EXPOSE=1 SOFTHCA_SPEC=ports=4 $member >"$work/out" 2>"$work/err" &&
	fail "two specs on one fabric"
grep -q '^softhca: .*ports=3.*ports=4' "$work/err" || fail "does not name both: $(cat "$work/err")"
$softhca list >"$work/out" || fail "softhca list"
grep -q "^fabric $SOFTHCA_FABRIC: 3 ports" "$work/out" || fail "list: $(cat "$work/out")"
grep -q "process $holder " "$work/out" || fail "list: $(cat "$work/out")"
$softhca reap >/dev/null
[ -e "$file" ] || fail "reap took a living fabric"

echo "== ports of a living fabric"
mv "$file" "$work/kept"		# refused() wants none, and a fabric needs none
refused 3 'x.*is not a port (accepted' $softhca port x down
refused 3 'no such port (accepted: 0/soft0:1 to 1023/soft0:3)' $softhca port 0/soft0:4 down
refused 3 'no such port' $softhca loss 0/soft1:1 0.5
$softhca port 2/soft0:3 down && $softhca loss 0/soft0:2 0.125 || fail "port, loss"
$softhca list >"$work/out" || fail "softhca list"
grep -q "port 2/soft0:3: down for" "$work/out" || fail "list: $(cat "$work/out")"
grep -q "port 0/soft0:2: active, loses 0.125 of" "$work/out" || fail "list: $(cat "$work/out")"
grep -q "process $holder " "$work/out" || fail "list: $(cat "$work/out")"
$softhca port 2/soft0:3 up && $softhca loss 0/soft0:2 off || fail "port, loss"
$softhca list >"$work/out" || fail "softhca list"
# Fabrics of others may have ports that are down.
sed -n "/^fabric $SOFTHCA_FABRIC:/,/^fabric /p" "$work/out" | grep -q '^  port .*: active$' &&
	! sed -n "/^fabric $SOFTHCA_FABRIC:/,/^fabric /p" "$work/out" | grep -q ': down\|loses' || fail "list: $(cat "$work/out")"
mv "$work/kept" "$file"

echo "== a directory of files that is full"
if unshare -m true 2>/dev/null; then
	mkdir "$work/small"
	# shellcheck disable=SC2016 # the inner shell expands
	small='mount -t tmpfs -o size=64k small "$0" && SOFTHCA_DIR=$0 SOFTHCA_MEMORY=file SOFTHCA_FABRIC=small.$$ exec "$@"'
	timeout 60 unshare -m sh -c "$small" "$work/small" $expose $member >"$work/out" 2>"$work/err" &&
		fail "joined in a directory that is full"
	grep -q "^softhca: .*no memory for the .* segment, a file: its directory is full (accepted: .*SOFTHCA_DIR" \
		"$work/err" || fail "a full directory: $(cat "$work/err")"
else
	echo "skipped: a directory that is full (may not mount)"
fi

echo "== what keeps others from joining leaves a living fabric alone"
# lives_on PATTERN COMMAND...: refused with that line, and the file is still there
lives_on() {
	pattern=$1
	shift
	timeout 60 "$@" >"$work/out" 2>"$work/err" && fail "$*: joined"
	grep -q "^softhca: .*$pattern" "$work/err" || fail "$*: no '$pattern': $(cat "$work/err")"
	[ -e "$file" ] || fail "$*: took the file of a living fabric"
}
lives_on 'Too many open files' env SOFTHCA_SPEC=ports=3 \
	sh -c "exec 3>&-; ulimit -n 4; $expose $member"	# 3: make's, the loader needs it
[ -n "$runtime" ] ||
	lives_on 'RLIMIT_AS.*ulimit -v' env SOFTHCA_SPEC=ports=3 sh -c "ulimit -v 6000000; $expose $member"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	ordinary="setpriv --reuid 65534 --regid 65534 --clear-groups"
	mkdir -m 1777 "$work/open"
	cp ./tests/softhca/hold "$work/hold"
	chmod 0755 "$work/hold"
	$ordinary env HOLD_HIDDEN=1 SOFTHCA_EXPOSE=1 SOFTHCA_DIR="$work/open" "$work/hold" \
		>"$work/hidden" &
	hidden=$!
	i=0
	until [ -s "$work/hidden" ] || [ $i -ge 600 ]; do
		i=$((i + 1))
		sleep 0.1
	done
	root_file=$file
	file=$work/open/softhca.65534.$SOFTHCA_FABRIC
	# Its descriptors are handed over, where it can be asked for them.
	$ordinary $expose SOFTHCA_DIR="$work/open" "$work/member" --only loopback >"$work/out" 2>&1 ||
		fail "a member that is not dumpable: $(cat "$work/out")"
	[ -e "$file" ] || fail "took the file of a living fabric"
	if unshare -n true 2>/dev/null; then
		lives_on 'not dumpable.*network namespace' unshare -n $ordinary $expose \
			SOFTHCA_DIR="$work/open" "$work/member" --only loopback
	else
		echo "skipped: another network namespace (may not unshare)"
	fi
	file=$root_file
	kill $hidden
	wait $hidden 2>/dev/null
fi

echo "== a member is killed"
kill -KILL $holder
wait $holder 2>/dev/null
[ -e "$file" ] || fail "who removed the file of a killed member?"
$softhca list >"$work/out" || fail "softhca list"
grep -q "process $holder .*dead" "$work/out" || fail "list: $(cat "$work/out")"
# The next one starts afresh, whatever its spec, and leaves nothing.
env SOFTHCA_EXPOSE=1 SOFTHCA_SPEC=ports=4 $member >/dev/null 2>&1 || fail "cannot start afresh"
[ ! -e "$file" ] || fail "left $file behind"

echo "== the command passes on exit codes and signals, and cleans up"
$softhca -- sh -c 'exit 42'
[ $? -eq 42 ] || fail "exit code"
$softhca -- sh -c 'kill -SEGV $$' 2>/dev/null
[ $? -eq 139 ] || fail "signal"
rm "$work/ready"
$softhca -- ./tests/softhca/hold >"$work/ready" &
command=$!
wait_ready
[ -e "$file" ] || fail "no fabric under the command"
kill -TERM $command
wait $command
[ $? -eq 143 ] || fail "SIGTERM was not passed on"
[ ! -e "$file" ] || fail "the command left $file behind"
$softhca -- sh -c "$member >/dev/null 2>&1; exit 7" || [ $? -eq 7 ] || fail "exit code"
[ ! -e "$file" ] || fail "the command left $file behind"

exit $failed
