#!/bin/sh
# everybody.sh - many ranks, each connected with every other: it works, and memory per
# peer keeps below what lets 1,024 peers fit into 1 GiB (rail.h has the arithmetic).
. "$srcdir/tests/run-lib.sh"
# MPICH never yields and pays dearly for more ranks than cores.
case $RG_MPI_FLAVOR in
openmpi) few=${RG_LONG:+64}; count=${few:-32} ;;
*) count=12 ;;
esac
# A sanitizer's shadow of memory is not ours.
most=1024
[ "$RG_SANITIZE" = no ] || { most=100000 count=12; }
few=${few:-$((count < 24 ? count : 24))}

passes() {
	[ "$rc" -eq 0 ] && grep -q " KiB per peer$" "$out"
}

launch $count tests/mpi/everybody $most
expect "$count ranks, rings" passes
cat "$out"
export RAILGAUGE_SOFT=ports=2,rate=2GB/s,latency=2us
launch $few tests/mpi/everybody $most
expect "$few ranks, shared receive buffers, and memory within a node" passes
cat "$out"
unset RAILGAUGE_SOFT
# Nothing has looked at the environment of a linked program before its ranks do.
export RAILGAUGE_OVER=sideways
launch 2 tests/mpi/everybody $most
judge_refusal everybody 1 255 "RAILGAUGE_OVER=sideways.*accepted: auto, native" "a linked program"
unset RAILGAUGE_OVER
expect "nothing in /dev/shm" shm_is_clean
finish
