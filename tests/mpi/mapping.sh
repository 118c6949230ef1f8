#!/bin/sh
# mapping.sh - receive buffers that peers map (--map-buffers): when, which, and that the program
# sees no difference.
. "$srcdir/tests/run-lib.sh"
[ "$RG_SANITIZE" = no ] || {
	echo "skipped: beside a sanitizer no memory can be watched, so none is mapped"
	exit 77
}

right() {
	[ "$rc" -eq 0 ] && grep -qx 'wrong: 0' "$out"
}

mapping() {
	launch 2 src/cli/railgauge exec --map-buffers --ledger "$@" -- tests/mpi/mapping
	grep -E 'failed|skipped' "$out"
	expect "mapping $*" right
	expect "... the ledger: all bytes over rails, some buffers mapped" counted
}

# The rails' rows have bytes sent in the fourth column and bytes received in the seventh.
counted() {
	grep -q 'receive buffers mapped (--map-buffers): [1-9]' "$err" &&
		awk '/^  all functions/ { all = $3 } /^  soft/ { sent += $4; got += $7 }
		     END { exit !(all > 0 && sent == all && got == all) }' "$err"
}

mapping --over single --soft ideal
mapping --over stripe --soft ports=2 --rendezvous both
mapping --over stripe --soft ports=2,rate=20GB/s,latency=1us --nodes 2
expect "nothing in /dev/shm" shm_is_clean
finish
