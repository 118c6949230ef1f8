#!/bin/sh
# long.sh - of make check-long: lives of buffers by chance, half an hour of them or LONG_SECONDS,
# each launch with another seed, which it says.
. "$srcdir/tests/run-lib.sh"
rounds=400
. "$srcdir/tests/memory/lib.sh"
export RAILGAUGE_SOFT=ports=2

# The control: a kind that the MPI library itself gets wrong is a wrong kind.
lifecycle native --rounds 24
began=$(date +%s) seed=$(date +%s)
while [ $(($(date +%s) - began)) -lt "${LONG_SECONDS:-1800}" ]; do
	for remap in never auto; do
		export SOFTHCA_REMAP=$remap
		for how in exec linked late; do
			seed=$((seed + 1))
			lifecycle $how --random
			lifecycle $how --random --multiple
		done
		with_allocators --random
	done
done
finish
