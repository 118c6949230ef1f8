#!/bin/sh
# conformance.sh - the conformance list on every port found, on all nodes at the same time;
# or on RG_HW_PORTS of the first.  Soft-RoCE differs as tests/conformance/rxe.txt says.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/hw/rails.sh"
limit=${RG_HW_SECONDS:-1200}

[ -z "${RG_HW_PORTS-}" ] || nodes=1
# Emulated machines are slow: a quarter of the list at each change.
share=1
[ "${RG_HW_SOFTWARE-}" != 1 ] || [ -n "${RG_LONG-}" ] || share=4
launch "$nodes" sh "$srcdir/tests/hw/conformance-here.sh" "$srcdir" "${RG_HW_SOFTWARE-}" \
	"$share" "${RG_SEED:-1}" ${RG_HW_PORTS-}
cat "$out"
expect "every case" [ "$rc" -eq 0 ]
ports=$(echo "${RG_HW_PORTS-}" | wc -w)
[ "$ports" -gt 0 ] || ports=$(grep -c '^found ' tests/hw/found)
expect "on $ports ports" [ "$(grep -c '^conformance of ' "$out")" -eq "$ports" ]
finish
