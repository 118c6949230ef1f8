#!/bin/sh
# collectives.sh - collectives over real ports: the suites that compare them with the library's,
# every program with validation, and the NAS-style ones, which verify.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/hw/rails.sh"

export SUITE_ROUNDS=20
for suite in coll_suite reduce_suite; do
	drawn 2 $suite || continue
	launch 2 tests/mpi/$suite stripe
	expect "$suite" eval '[ "$rc" -eq 0 ] && grep -q "cases passed\$" "$out"'
done
export RAILGAUGE_COLL=allgather=ring-rails,alltoall=pairwise-rails
launch "$nodes" tests/mpi/coll_suite stripe
expect "coll_suite, $RAILGAUGE_COLL" eval '[ "$rc" -eq 0 ] && grep -q "cases passed\$" "$out"'
unset RAILGAUGE_COLL SUITE_ROUNDS
for name in allgather allgatherv allreduce alltoall alltoallv bcast gather reduce \
	reduce_scatter scatter; do
	drawn 2 $name || continue
	launch 2 collective/rg_$name --over single,stripe -c -m 16K:32K -i 2 -x 1 --time-cap 1
	expect "rg_$name" well
done
launch 2 collective/rg_barrier --over stripe -i 5 -x 1
expect "rg_barrier" [ "$rc" -eq 0 ]
for name in is ft; do
	launch 2 apps/rg_$name -C S --over single,stripe
	expect "rg_$name verifies" \
		[ "$(grep -c '^ Verification    =               SUCCESSFUL$' "$out")" -eq 2 ]
	expect "rg_$name: exit code" [ "$rc" -eq 0 ]
done
finish
