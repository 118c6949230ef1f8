#!/bin/sh
# loopback.sh - librail without MPI over this node's ports, a process to itself and to another:
# every size around every edge, truncated ones, connections made before and on demand.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/hw/rails.sh"

for test in test_traffic:test_self test_traffic:test_truncated test_demand:test_one_pair; do
	launch 1 env RAIL_TEST_REAL=1 "tests/rail/${test%:*}" "${test#*:}"
	expect "$test" eval '[ "$rc" -eq 0 ] && cat "$out" "$err" | grep -q "PASSED  *. 1 test"'
done
finish
