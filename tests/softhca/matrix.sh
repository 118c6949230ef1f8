#!/bin/sh
# Every program of perftest over every transport that it knows and the device has, with its
# options; every ibv_*_pingpong.  A quarter of them, drawn by RG_SEED, unless RG_LONG=1 wants all.
. "$srcdir/tests/softhca/pair-lib.sh"
. "$srcdir/tests/softhca/matrix-list.sh"
seed=${RG_SEED:-1} drawn=0 all=0
need ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ib_write_lat ib_write_bw \
	ib_send_lat ib_send_bw ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw

# draw PROGRAM OPTION...: a pair, or not this time; what is drawn depends on the seed and these
# words alone, and no option is left out for long.
draw() {
	all=$((all + 1))
	[ -n "${RG_LONG-}" ] || [ $(($(echo "$seed $spec $*" | cksum | cut -d' ' -f1) % 4)) -eq 0 ] || return 0
	drawn=$((drawn + 1))
	pair "$@"
}

for spec in ideal rate=2GB/s,latency=1us; do
	each_program
done
spec=ideal
each_size
echo "$drawn of $all pairs, RG_SEED=$seed"
[ $drawn -gt 0 ] || failed=1
finish_pairs
