#!/bin/sh
# mapping.sh - receive buffers that peers map (--map-buffers): when, which, and that the program
# sees no difference.
. "$srcdir/tests/run-lib.sh"
limit=120

right() {
	[ "$rc" -eq 0 ] && grep -qx 'wrong: 0' "$out"
}

mapping() {
	launch 2 src/cli/railgauge exec --map-buffers "$@" -- tests/mpi/mapping
	grep -E 'failed|skipped' "$out"
	expect "mapping $*" right
}

# Nothing can be watched beside a sanitizer.
[ "$RG_SANITIZE" = no ] || skip "beside a sanitizer nothing is mapped"
mapping --over single --soft ideal
mapping --over stripe --soft ports=2 --rendezvous both
mapping --over stripe --soft ports=2,rate=20GB/s,latency=1us --nodes 2
expect "nothing in /dev/shm" shm_is_clean
finish
