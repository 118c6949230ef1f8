#!/bin/sh
# Messages that an unmodified program has sent leave although it then waits in a
# collective, ours or the MPI library's: over an untimed and over a paced software HCA.
. "$srcdir/tests/run-lib.sh"

for coll in auto native; do
	for soft in ports=2 ports=2,rate=1GB/s,latency=2us; do
		for over in single stripe; do
			launch 2 src/cli/railgauge exec --over $over --soft $soft --coll $coll -- \
				tests/cli/send_then_wait
			expect "$over, $soft, collectives $coll: ends" grep -q '^done$' "$out"
		done
	done
	for how in isend sendrecv start; do
		launch 2 src/cli/railgauge exec --over stripe --soft ports=2 --coll $coll -- \
			tests/cli/send_then_wait $how
		expect "first words by $how, collectives $coll: ends" grep -q '^done$' "$out"
	done
done
expect "nothing of ours in /dev/shm" shm_is_clean
finish
