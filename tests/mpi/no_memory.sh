#!/bin/sh
# no_memory.sh - allocations of the layer that fail: an error where the call can return one, else
# one line and the end of the job.
. "$srcdir/tests/run-lib.sh"
[ "$RG_SANITIZE" = no ] || {
	echo "skipped: a sanitizer has an allocator of its own"
	exit 77
}
export RAILGAUGE_OVER=stripe RAILGAUGE_SOFT=ports=2 RAILGAUGE_EAGER=16K
for mode in copy requests; do
	launch 2 tests/mpi/no_memory $mode
	expect "$mode: an error, and the program goes on" grep -qx "$mode holds" "$out"
	expect "$mode: it ends well" [ "$rc" -eq 0 ]
done
# ends MODE WORDS
ends() {
	launch 2 tests/mpi/no_memory "$1"
	! loses_exit_codes || [ "$rc" -ne 0 ] || rc=9
	expect "$1: the job ends" [ "$rc" -ne 0 -a "$rc" -ne 124 ]
	expect "$1: one line" [ "$(ours no_memory)" -eq 1 ]
	expect "$1: says '$2'" grep -q "^no_memory: .*$2" "$err"
}
ends type 'out of memory for the description of a datatype'
ends unexpected 'out of memory for an unexpected message of 5000 bytes'
expect "nothing in /dev/shm" shm_is_clean
finish
