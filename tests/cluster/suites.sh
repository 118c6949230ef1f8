#!/bin/sh
# suites.sh - the MPI layer's suites over Soft-RoCE, natively first.
. "$srcdir/tests/run-lib.sh"
limit=240

for suite in p2p_suite type_suite comm_suite thread_suite random_suite; do
	launch 2 tests/mpi/$suite native single stripe
	expect "$suite" grep -q 'cases passed$' "$out"
	expect "$suite: exit code" [ "$rc" -eq 0 ]
done
finish
