#!/bin/sh
# pyverbs.sh - rdma-core's own Python tests, unmodified, on software devices.
#
# They are what Debian's python3-pyverbs carries under its doc directory.  None may fail,
# and those that the kernel's Soft-RoCE passes (rxe.txt) must pass here too.
#
# Measured with rdma-core 44, 273 tests:
#	Soft-RoCE, Linux 6.1.192	86 passed, 186 skipped, 1 error
#	libsofthca			107 passed, 166 skipped
# With rdma-core 56, 321 tests: 114 passed, 206 skipped, 1 error.
# What is skipped is in the log with its reason: other vendors' verbs (62 mlx5, 16 EFA), and
# what a device says that it has not (on-demand paging, XRC, raw packets, ...).
set -u
softhca=./softhca
runtime=$(ldd .libs/libsofthca.so.0 2>/dev/null | sed -n 's/.*lib[at]san[^ ]* => \([^ ]*\).*/\1/p')
[ -z "$runtime" ] || softhca="env LD_PRELOAD=$runtime \
	ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 ./softhca"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
. "$srcdir/tests/pyverbs/unpack.sh"
fabric=pyverbs.$$
failed=0
# tests OPTION...: on the device of these options; test_get_pkey_index (rdma-core 56) reads the kernel's files
# about a device.
tests() {
	timeout -k 10 400 $softhca "$@" --fabric $fabric -- $python "$srcdir/tests/pyverbs/run.py" --limit 60 \
		--fails tests.test_device.DeviceTest.test_get_pkey_index \
		--required "$srcdir/tests/pyverbs/rxe.txt" "$work/tests" -- --dev soft0
	rc=$?
	[ $rc -ne 124 ] || echo "FAIL: no end within 400 s"
	if [ -e "/dev/shm/softhca.$(id -u).$fabric" ]; then
		echo "FAIL: the fabric's file is still there"
		rc=1
	fi
	[ $rc -eq 0 ] || failed=$rc
}
tests
# All of it over TCP, even within a process.  An interface whose rate is unknown has no width that these tests know.
HOME=$work SOFTHCA_LINK=tcp
export HOME SOFTHCA_LINK
tests --soft net=lo,rate=1GB/s
exit $failed
