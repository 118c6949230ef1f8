#!/bin/sh
# four.sh - on four nodes: every rank has three peers, over one rail and two.
# In CI with Open MPI.
. "$srcdir/tests/run-lib.sh"
limit=400

# Each of this node's devices has sent more than so many packets, by its own count.
sent() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"
}
sent_rxe0=$(sent rxe0) sent_rxe1=$(sent rxe1)
both_rails_sent() {
	for device in rxe0 rxe1; do
		eval "packets=\$(($(sent $device) - sent_$device))"
		echo "$device sent $packets packets"
		expect "$device was used" [ "$packets" -gt "$1" ]
	done
}

# shellcheck disable=SC2046,SC2043 # words are meant
for suite in $(long comm_suite); do
	launch 4 tests/mpi/$suite single stripe
	expect "$suite" grep -q 'cases passed$' "$out"
	expect "$suite: exit code" [ "$rc" -eq 0 ]
done
launch 4 tests/mpi/random_programs --seed "${RG_SEED:-1}" --programs 5 single stripe
expect "random programs, seed ${RG_SEED:-1}" grep -q 'programs passed, each over 2 ways$' "$out"
expect "random programs: exit code" [ "$rc" -eq 0 ]
launch 4 pt2pt/rg_bibw --over single,stripe -m 8K:64K -i 5 -x 1 -W 8 -c
expect "rg_bibw between two pairs" [ "$rc" -eq 0 ]
expect "rg_bibw: the kernel's devices" grep -q '^# fabric: kernel software, RoCE' "$out"
expect "rg_bibw: data" eval 'grep -q Pass "$out" && ! grep -q Fail "$out"'
both_rails_sent 1000

launch 4 pt2pt/rg_pairs -m 64K -W 2 -i 3 -x 1 -c --patience 1000000
expect "rg_pairs" [ "$rc" -eq 0 ]
expect "rg_pairs: every cell" grep -q '^# validation: Pass, 24 cells' "$out"
finish
