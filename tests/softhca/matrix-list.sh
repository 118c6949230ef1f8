# matrix-list.sh - every program of perftest over every transport that it knows and the device has, with
# its options; every ibv_*_pingpong.  Sourced; calls draw PROGRAM OPTION... for each.
#
#	each_program	with messages of one size
#	each_size	of all sizes
#
# 400 messages: a multiple of 100.  perftest counts each completion of bandwidth for 100 messages, the
# last as well; of 4 x 512 it believes all done when one queue pair lags, and polls no more.
each_program() {
	for kind in rc uc ud srq; do
		for flags in "" -e -c "-e -c" "-s 1000 -n 300" "-i 2 -g 1 -c"; do
			draw ibv_${kind}_pingpong $flags
		done
	done
	draw ibv_rc_pingpong -t
	draw ibv_rc_pingpong -N
	draw ibv_rc_pingpong -N -t -c

	for transport in RC UC; do
		draw ib_write_lat -c $transport -n 400
		draw ib_write_lat -c $transport -I 64 -s 32 -n 400
		for flags in "" -b "-q 4" "-I 64 -s 32" "-l 8" "-q 4 -l 4 -b" "-x 1" "-Q 1 -t 16"; do
			draw ib_write_bw -c $transport -n 400 $flags
		done
	done
	for transport in RC UC UD; do
		for flags in "" -e --use-srq "-I 64 -s 32" "-x 1"; do
			draw ib_send_lat -c $transport -n 400 $flags
		done
		for flags in "" -b -e "-b -e" "-q 4" --use-srq "-q 4 --use-srq" "-I 64 -s 32" "-l 8" \
			"-q 4 -b -l 4" "-r 16"; do
			draw ib_send_bw -c $transport -n 400 $flags
		done
	done
	for flags in "" -e "-o 1"; do
		draw ib_read_lat -n 400 $flags
		draw ib_atomic_lat -n 400 $flags
		draw ib_atomic_lat -n 400 -A CMP_AND_SWAP $flags
	done
	for flags in "" -b -e "-q 4" "-l 8" "-q 4 -b -e"; do
		draw ib_read_bw -n 400 $flags
		draw ib_atomic_bw -n 400 $flags
		draw ib_atomic_bw -n 400 -A CMP_AND_SWAP $flags
	done
}

# perftest measures the processor's clock anew for each: most of the time.
each_size() {
	for transport in RC UC; do
		draw ib_write_lat -c $transport -a -n 20
		draw ib_write_bw -c $transport -a -n 20 -b
	done
	for transport in RC UC UD; do
		draw ib_send_lat -c $transport -a -n 20
		draw ib_send_bw -c $transport -a -n 20
	done
	draw ib_read_lat -a -n 20
	draw ib_read_bw -a -n 20
}
