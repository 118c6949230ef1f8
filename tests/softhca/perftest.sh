#!/bin/sh
# Programs that nobody here wrote run on software devices, unmodified: Debian's
# ibverbs-utils and perftest.  A short list; all of them with all their options:
# `make check-verbs`.
. "$srcdir/tests/softhca/pair-lib.sh"
need ibv_devices ibv_devinfo ibv_rc_pingpong ib_write_bw ib_send_lat

$softhca ibv_devices | grep -q soft0 || { echo "FAIL: ibv_devices"; failed=1; }
$softhca --soft hcas=2,ports=3 ibv_devinfo -v >"$work/out" || { echo "FAIL: ibv_devinfo"; failed=1; }
[ "$(grep -c 'PORT_ACTIVE' "$work/out")" -eq 6 ] || { echo "FAIL: ibv_devinfo ports"; failed=1; }
[ "$(grep -c 'RoCE v2' "$work/out")" -eq 12 ] || { echo "FAIL: ibv_devinfo GIDs"; failed=1; }

for spec in ideal rate=1GB/s,latency=2us; do
	pair ibv_rc_pingpong -c -e
	pair ibv_rc_pingpong -c -i 2 -g 1 -s 65536
	pair ibv_uc_pingpong -c
	pair ibv_ud_pingpong -c -e
	pair ibv_srq_pingpong -c -e
	for what in write send read atomic; do
		pair ib_${what}_lat -n 1000
		pair ib_${what}_bw -n 1000
	done
done
spec=ideal
pair ib_send_bw -c UD -q 4 --use-srq -n 1000
pair ib_write_bw -c UC -b -l 4 -I 64 -s 32 -n 1000
finish_pairs
