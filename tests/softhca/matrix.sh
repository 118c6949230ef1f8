#!/bin/sh
# Every program of perftest over every transport that it knows and the device has, with its
# options; every ibv_*_pingpong.
. "$srcdir/tests/softhca/pair-lib.sh"
need ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ib_write_lat ib_write_bw \
	ib_send_lat ib_send_bw ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw

for spec in ideal rate=2GB/s,latency=1us; do
	for kind in rc uc ud srq; do
		for flags in "" -e -c "-e -c" "-s 1000 -n 300" "-i 2 -g 1 -c"; do
			pair ibv_${kind}_pingpong $flags
		done
	done
	pair ibv_rc_pingpong -t
	pair ibv_rc_pingpong -N
	pair ibv_rc_pingpong -N -t -c

	for transport in RC UC; do
		pair ib_write_lat -c $transport -n 512
		pair ib_write_lat -c $transport -I 64 -s 32 -n 512
		for flags in "" -b "-q 4" "-I 64 -s 32" "-l 8" "-q 4 -l 4 -b" "-x 1" "-Q 1 -t 16"; do
			pair ib_write_bw -c $transport -n 512 $flags
		done
	done
	for transport in RC UC UD; do
		for flags in "" -e --use-srq "-I 64 -s 32" "-x 1"; do
			pair ib_send_lat -c $transport -n 512 $flags
		done
		for flags in "" -b -e "-b -e" "-q 4" --use-srq "-q 4 --use-srq" "-I 64 -s 32" "-l 8" \
			"-q 4 -b -l 4" "-r 16"; do
			pair ib_send_bw -c $transport -n 512 $flags
		done
	done
	for flags in "" -e "-o 1"; do
		pair ib_read_lat -n 512 $flags
		pair ib_atomic_lat -n 512 $flags
		pair ib_atomic_lat -n 512 -A CMP_AND_SWAP $flags
	done
	for flags in "" -b -e "-q 4" "-l 8" "-q 4 -b -e"; do
		pair ib_read_bw -n 512 $flags
		pair ib_atomic_bw -n 512 $flags
		pair ib_atomic_bw -n 512 -A CMP_AND_SWAP $flags
	done
done

# All sizes.  (perftest measures the processor's clock anew for each: most of the time.)
spec=ideal
for transport in RC UC; do
	pair ib_write_lat -c $transport -a -n 20
	pair ib_write_bw -c $transport -a -n 20 -b
done
for transport in RC UC UD; do
	pair ib_send_lat -c $transport -a -n 20
	pair ib_send_bw -c $transport -a -n 20
done
pair ib_read_lat -a -n 20
pair ib_read_bw -a -n 20
finish_pairs
