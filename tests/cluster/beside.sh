#!/bin/sh
# beside.sh - software devices and the kernel's in one process, under the softhca command.
set -u
program=$PWD/tests/cluster/beside softhca=$PWD/softhca
failed=0 port=21000
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

./softhca ibv_devices | tee "$work/list"
for device in rxe0 rxe1 soft0; do
	grep -q "^ *${device}[[:space:]]" "$work/list" || {
		echo "FAIL: ibv_devices does not show $device"
		failed=1
	}
done
for first in soft real; do
	port=$((port + 1))
	ssh node1 "cd '$PWD' && timeout 100 '$softhca' -- '$program' \
		rxe0 soft0 1 $first node0 $port 2>&1" >"$work/node1" &
	other=$!
	timeout 100 "$softhca" -- "$program" rxe0 soft0 1 $first - $port >"$work/node0" 2>&1
	rc=$?
	wait $other
	rs=$?
	[ $rc -eq 0 ] && [ $rs -eq 0 ] || {
		echo "FAIL: $first first: exit codes $rc and $rs"
		failed=1
	}
	cat "$work/node0" "$work/node1"
done
# The kernel's devices work under the command as they do without it.
./softhca -- ./tests/conformance/conformance -d rxe0 --only '*_imm' || failed=1
exit $failed
