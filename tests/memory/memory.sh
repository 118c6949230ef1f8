#!/bin/sh
# memory.sh - messages from and into memory that changes in between, over software devices that
# leave memory alone, and over those that map it: every way into a program, every allocator.
# long.sh has the control: a kind that the MPI library itself gets wrong is a wrong kind.
#
#	LIFECYCLE_SEED=N	other draws than RG_SEED gives
. "$srcdir/tests/run-lib.sh"
rounds=8
. "$srcdir/tests/memory/lib.sh"
export RAILGAUGE_SOFT=ports=2

# A thread that changes its memory without pause holds up the others wherever it is preempted.
randomly=25
[ -z "${RG_LONG-}" ] || randomly=100
for remap in never auto; do
	export SOFTHCA_REMAP=$remap
	lifecycle exec
	lifecycle late --random --rounds $randomly
done
unset SOFTHCA_REMAP
export RAILGAUGE_MAP_BUFFERS=1
lifecycle exec
unset RAILGAUGE_MAP_BUFFERS
lifecycle linked --multiple --rounds 4
# shellcheck disable=SC2086 # words are meant
with_allocators $heap_kinds
expect "nothing in /dev/shm" shm_is_clean
finish
