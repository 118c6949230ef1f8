#!/bin/sh
# collectives.sh - every collective program, natively and over rails, with every byte
# validated; what it refuses.
. "$srcdir/tests/run-lib.sh"

for name in allgatherv alltoall bcast reduce_scatter \
	$(more allgather allreduce alltoallv gather reduce scatter); do
	for np in $(long 2) 3; do
		launch $np collective/rg_$name --over native,single,stripe -c -m 4K:64K -i 4 -x 1 \
			--time-cap 0.2
		expect "rg_$name on $np ranks ends well" [ $rc -eq 0 ]
		expect "rg_$name on $np ranks has 5 rows" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq 5 ]
		expect "rg_$name on $np ranks has no failure" [ "$(grep -c Fail "$out")" -eq 0 ]
	done
done
launch 3 collective/rg_barrier --over native,single,stripe -i 10 -x 1
expect "rg_barrier ends well" [ $rc -eq 0 ]
expect "rg_barrier has one row, of size 0" [ "$(grep '^[0-9]' "$out" | sed 's/ .*//')" = 0 ]

# The smallest sizes, and one that is no whole number of elements.
launch 2 collective/rg_alltoallv --over stripe -c -m 0:64 -i 4 -x 1 --time-cap 0.2
expect "rg_alltoallv from size 0" [ $rc -eq 0 ]
launch 2 collective/rg_allreduce --over stripe -c -m 12:48 -i 4 -x 1 --time-cap 0.2
expect "rg_allreduce of three words" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq 3 ]
refused collective/rg_allreduce 2 '--sizes 6: not a whole number of elements' -m 6:24
refused collective/rg_reduce 2 '--sizes 1:8: out of range' -m 1:8

# The ledger has the data of a collective over rails: no collective is the library's.
launch 2 collective/rg_alltoall --over stripe -m 64K -i 10 -x 1 --ledger
expect "an alltoall goes over rails" grep -q '^# ledger stripe soft0:1: [1-9]' "$out"
launch 2 collective/rg_alltoall --over stripe --coll native -m 64K -i 10 -x 1 --ledger
expect "or not, with --coll native" grep -q '^# ledger stripe soft0:1: 0 bytes' "$out"
finish
