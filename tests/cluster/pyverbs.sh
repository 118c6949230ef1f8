#!/bin/sh
# pyverbs.sh - rdma-core's own Python tests on the kernel's Soft-RoCE: those that passed when
# tests/pyverbs/rxe.txt was written pass still, since libsofthca is measured by them.
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
. "$srcdir/tests/pyverbs/unpack.sh"
# rxe of Linux 6.1 completes atomic writes with a local QP operation error.
$python "$srcdir/tests/pyverbs/run.py" --required "$srcdir/tests/pyverbs/rxe.txt" \
	--fails tests.test_qpex.QpExTestCase.test_qp_ex_rc_atomic_write \
	"$work/tests" -- --dev rxe0
