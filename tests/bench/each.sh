#!/bin/sh
# each.sh - every program once, over the MPI library and over rails, with every byte validated,
# and one refusal: for a second MPI library; with sanitizers one program of each kind, since what
# they share is the harness.  All else about the programs is asked in the first build.
. "$srcdir/tests/run-lib.sh"

for program in pt2pt/rg_bw $(more pt2pt/rg_latency pt2pt/rg_bibw pt2pt/rg_mr); do
	launch 2 $program --over native,single,bind,stripe --soft ports=2 -c -m 4K:64K -W 8 -i 4 -x 1 \
		--time-cap 0.2
	expect "$program" [ $rc -eq 0 ]
	expect "$program: 5 rows pass" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq 5 ]
done
launch 2 pt2pt/rg_verbs_lat --soft ports=2 -c -m 4K:64K -i 4 -x 1
expect "rg_verbs_lat: 5 rows pass" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq 5 ]
for program in rg_verbs_bw $(more rg_verbs_bibw); do
	launch 4 pt2pt/$program --over single,stripe --soft ports=2 -c -m 4K:64K -W 8 -i 4 -x 1 --qps 2
	expect "$program: 5 rows pass" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq 5 ]
done
launch 3 pt2pt/rg_pairs --soft ports=2 --nodes 3 -m 64K -W 4 -i 3 -x 1 -c
expect "rg_pairs" grep -q '^# validation: Pass, 12 cells' "$out"
for name in alltoall reduce $(more allgather allgatherv allreduce alltoallv bcast gather \
	reduce_scatter scatter); do
	launch 3 collective/rg_$name --over native,stripe --soft ports=2 -c -m 4K:64K -i 4 -x 1 \
		--time-cap 0.2
	expect "rg_$name" [ $rc -eq 0 ]
	expect "rg_$name: 5 rows pass" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq 5 ]
done
launch 3 collective/rg_barrier --over native,stripe --soft ports=2 -i 10 -x 1
expect "rg_barrier" [ $rc -eq 0 ]
launch 2 collective/rg_tune --over stripe --collectives bcast,alltoall -m 1K:4K -i 4 -x 1
expect "rg_tune" grep -q '^alltoall ' "$out"
for name in is $(more ft); do
	launch 4 apps/rg_$name -C S --over native,stripe --soft ports=2
	expect "rg_$name" [ $rc -eq 0 ]
	expect "rg_$name verifies" \
		[ "$(grep -c '^ Verification    =               SUCCESSFUL$' "$out")" -eq 2 ]
done
launch 2 tests/bench/rg_broken --over native -c --damage flip
expect "what is wrong is found" grep -q '^rg_broken: validation failed: ' "$err"
refused pt2pt/rg_bw 2 '--window 0: out of range (accepted: 1 to 65536)' -W 0
killed 4 pt2pt/rg_bw --over stripe --soft ports=2 -m 1M
finish
