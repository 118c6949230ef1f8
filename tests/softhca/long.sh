#!/bin/sh
# make check-long: what make check tries for some seconds, for as long as it takes
# to be believed (an hour or two).  LONG_SECONDS=N: in about so many seconds.
set -u
failed=0
seconds=${LONG_SECONDS:-}
SOFTHCA_FABRIC=long.$$
SOFTHCA_EXPOSE=1
export SOFTHCA_FABRIC SOFTHCA_EXPOSE
work=$(mktemp -d) || exit 1
load=
trap '[ -z "$load" ] || kill $load 2>/dev/null; rm -rf "$work"' EXIT

# some FULL SECONDS-PER-ONE: so many, or what fits into a fifth of the time.
some() {
	[ -n "$seconds" ] || { echo "$1"; return; }
	awk -v s="$seconds" -v per="$2" 'BEGIN { n = int(s / 5 / per); print n < 1 ? 1 : n }'
}

part() {
	echo "== $*"
	began=$(date +%s)
	"$@" >"$work/out" 2>&1
	rc=$?
	tail -n 13 "$work/out" | cut -c -120
	echo "-- $(($(date +%s) - began)) s"
	[ $rc -eq 0 ] || [ $rc -eq 77 ] || { echo "FAIL ($rc): $*"; failed=1; }
}

part tests/softhca/kill "$(some 5000 0.25)"
part tests/softhca/step "$(some 0 1)"
part tests/softhca/cut "$(some 0 1)"
part tests/softhca/hostile "$(some 500 1)"
# Between real processes on the machine's clock: late on a busy machine.
part tests/softhca/turns
part tests/softhca/faults
part tests/softhca/paced
part tests/softhca/scribble "$(some 300 1)"

fuzz_seconds=$(some 300 3)
targets='fuzz_spec fuzz_registry fuzz_segment fuzz_frame fuzz_handshake fuzz_handover fuzz_wire'
if command -v clang >/dev/null && make fuzz >"$work/out" 2>&1; then
	for target in $targets; do
		mkdir "$work/$target"
		tests/fuzz/$target --seeds "$work/$target" || failed=1
		ASAN_OPTIONS=detect_leaks=0 part ./$target.libfuzzer -max_len=65536 -len_control=0 \
			-max_total_time="$fuzz_seconds" "$work/$target"
	done
else
	echo "no clang with libFuzzer: mutated seeds only"
	for target in $targets; do
		part tests/fuzz/$target
	done
fi

# With ASan and UBSan.  Each input of fuzz_frame has 256 frames: 10^8 in all.
if make fuzz-sanitized >"$work/out" 2>&1; then
	part ./fuzz_frame.sanitized --rounds "$(some 400000 0.0001)"
	part ./fuzz_handshake.sanitized --rounds "$(some 10000000 0.00002)"
	part ./fuzz_handover.sanitized --rounds "$(some 1000000 0.0001)"
	part ./fuzz_wire.sanitized --rounds "$(some 10000000 0.0002)"
else
	tail -n 3 "$work/out"
	echo "FAIL: make fuzz-sanitized"
	failed=1
fi
part tests/fuzz/fuzz_campaign --rounds "$(some 10000000 0.0003)"
part tests/fuzz/fuzz_result --rounds "$(some 10000000 0.0003)"

# random_spec SEED: a device and a wire like nobody thought of.
random_spec() {
	awk -v seed="$1" 'BEGIN {
		srand(seed)
		split("256 512 1024 2048 4096", mtu)
		s = "ports=" 1 + int(rand() * 3) ",hcas=" 1 + int(rand() * 2) ",mtu=" mtu[1 + int(rand() * 5)]
		if (rand() < 0.7)
			s = s ",rate=" 100 + int(rand() * 9900) "MB/s,latency=" int(rand() * 20000) "ns"
		if (rand() < 0.4)
			s = s ",bus=" 500 + int(rand() * 3000) "MB/s/" 500 + int(rand() * 3000) "MB/s" \
				(rand() < 0.5 ? ":half" : "")
		if (rand() < 0.3)
			s = s ",msg=" int(rand() * 2000) "ns,pkt=" int(rand() * 200) "ns"
		if (rand() < 0.3)
			s = s ",window=" 4 + int(rand() * 60) ",outstanding=" 2 + int(rand() * 30)
		print s
	}'
}

# The whole list again and again, on two busy processors.
echo "== conformance under load"
(while :; do :; done) & load=$!
(while :; do :; done) & load="$load $!"
until=$(($(date +%s) + $(some 1200 1)))
seed=${RG_SEED:-$$} runs=0
while [ "$(date +%s)" -lt $until ] || [ $runs -eq 0 ]; do
	seed=$((seed + 1)) runs=$((runs + 1))
	SOFTHCA_SPEC=$(random_spec $seed)
	export SOFTHCA_SPEC
	tests/conformance/conformance >"$work/out" 2>&1 && continue
	echo "FAIL: conformance with $SOFTHCA_SPEC"
	grep -v '^ok' "$work/out"
	failed=1
done
echo "$runs times the list"
[ ! -e "/dev/shm/softhca.$(id -u).$SOFTHCA_FABRIC" ] || { echo "FAIL: a name was left"; failed=1; }
exit $failed
