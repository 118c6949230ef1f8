#!/bin/sh
# Programs that nobody here wrote run on software devices, unmodified: Debian's
# ibverbs-utils and perftest.
set -u
softhca=./softhca
# A sanitized library can be preloaded only behind the sanitizer's own.
runtime=$(ldd .libs/libsofthca.so.0 2>/dev/null | sed -n 's/.*lib[at]san[^ ]* => \([^ ]*\).*/\1/p')
[ -z "$runtime" ] || softhca="env LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0 ./softhca"
for program in ibv_devices ibv_devinfo ibv_rc_pingpong ib_write_bw ib_send_lat; do
	command -v $program >/dev/null || {
		echo "skipped: $program is not installed (ibverbs-utils, perftest)"
		exit 77
	}
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fabric=perftest.$$
port=$((20000 + $$ % 10000))
failed=0

# pair PROGRAM OPTIONS...: as server on node 0 and client on node 1.
pair() {
	port=$((port + 1))
	timeout 100 $softhca --soft "$spec" --fabric $fabric --node 0 -- "$@" -p $port \
		>"$work/server" 2>&1 &
	server=$!
	i=0
	# The server listens once it has opened its device; the client does not retry.
	while ! grep -q "$(printf ':%04X 0' $port)" /proc/net/tcp /proc/net/tcp6 2>/dev/null; do
		i=$((i + 1))
		[ $i -lt 100 ] || break
		sleep 0.05
	done
	timeout 100 $softhca --soft "$spec" --fabric $fabric --node 1 -- "$@" -p $port localhost \
		>"$work/client" 2>&1
	rc=$?
	wait $server
	rs=$?
	if [ $rc -ne 0 ] || [ $rs -ne 0 ]; then
		echo "FAIL: $* on $spec: client $rc, server $rs"
		cat "$work/client" "$work/server"
		failed=1
	else
		echo "ok: $* on $spec: $(grep -E '^ *[0-9]+ +[0-9]+ ' "$work/client" | tail -1)"
	fi
}

spec=ideal
$softhca ibv_devices | grep -q soft0 || { echo "FAIL: ibv_devices"; failed=1; }
$softhca --soft hcas=2,ports=3 ibv_devinfo -v >"$work/out" || { echo "FAIL: ibv_devinfo"; failed=1; }
[ "$(grep -c 'PORT_ACTIVE' "$work/out")" -eq 6 ] || { echo "FAIL: ibv_devinfo ports"; failed=1; }
[ "$(grep -c 'RoCE v2' "$work/out")" -eq 12 ] || { echo "FAIL: ibv_devinfo GIDs"; failed=1; }

for spec in ideal rate=1GB/s,latency=2us; do
	pair ibv_rc_pingpong -c
	pair ibv_rc_pingpong -c -i 2 -g 1 -s 65536
	for what in write send read; do
		pair ib_${what}_lat -s 8 -n 1000
		pair ib_${what}_bw -s 65536 -n 500
	done
done
spec=ideal
# (perftest measures the processor's clock anew for each size: -a takes its time.)
pair ib_send_lat -a -n 20
pair ib_write_bw -a -n 200
for what in write send read; do
	pair ib_${what}_bw -b -s 4096 -n 2000
	pair ib_${what}_bw -q 4 -s 4096 -n 2000
done
pair ib_write_bw -s 32 -I 64 -n 2000
pair ib_send_lat -I 64 -n 1000
pair ib_write_bw -i 2 -l 4 -n 2000

if [ -e "/dev/shm/softhca.$(id -u).$fabric" ]; then
	echo "FAIL: the fabric's file is still there"
	failed=1
fi
exit $failed
