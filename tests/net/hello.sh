#!/bin/sh
# hello.sh - hosts as namespaces are hosts: rails, rates, offloads; mpirun over them, with ranks
# that share memory on one host alone; all of it ends with the script.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"

# reaches I ADDRESS: a connection to a listener of host 1
reaches() {
	on "$1" "$PWD/tests/net/reach" "$2" 7777
}
hosts 2 2 mtu=9000 rate=1000+250 offload=no
out=$work/out err=$work/err
: >"$out" >"$err"
start 1 tests/net/reach --listen 7777
for address in 10.0.0.2 10.0.1.2 10.0.2.2 fd00:0:0:1::2 fd00:0:0:2::2; do
	expect "host 0 reaches $address" reaches 0 $address
done
expect "the MTU is as asked" [ "$(on 1 cat /sys/class/net/eth1/mtu)" = 9000 ]
expect "rates are as asked" eval \
	'on 0 tc qdisc show dev eth0 | grep -q 1Gbit && on 1 tc qdisc show dev eth1 | grep -q 250Mbit'
expect "no segmentation offload" eval \
	'on 1 ethtool -k eth1 | grep -q "^tcp-segmentation-offload: off"'
expect "sent bytes are counted where they are sent" \
	[ "$(on 0 cat /sys/class/net/eth0/statistics/tx_bytes)" -gt 0 ]
expect "a host has its own memory" eval \
	'on 0 touch /dev/shm/h && ! on 1 test -e /dev/shm/h'
expect "a host has its own processes" eval '! on 0 test -e /proc/100000 && [ "$(on 0 sh -c "echo \$PPID")" = 0 ]'
expect "a host has its own name" [ "$(on 1 hostname)" = host1 ]

launch 4 tests/net/hello
expect "4 ranks on 2 hosts: exit code" [ "$rc" -eq 0 ]
for rank in 0 1 2 3; do
	expect "rank $rank" grep -qx "host$((rank / 2)): rank $rank of 4, 2 on this host, sum 6" "$out"
done
launch 2 tests/net/hello
expect "one rank on each host" eval '
	grep -qx "host0: rank 0 of 2, 1 on this host, sum 1" "$out" &&
	grep -qx "host1: rank 1 of 2, 1 on this host, sum 1" "$out"'
launch 2 sh -c 'test "$(hostname)" = host0 || exit 7'
expect "an exit code is told" eval '[ "$rc" -eq 7 ] || loses_exit_codes'

start 0 sleep 1000
ends=$(host_pid 0)
# nsenter stops with its child, and may stay so after the child goes on.
start 1 sleep 1000
until on 1 sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -q "[s]leep 1000 "'; do sleep 0.05; done 2>"$err"
kill -STOP $started
hosts_end
expect "a host ends" [ ! -e "/proc/$ends" ]
expect "what has entered it ends, too" eval '! grep -qs "^State:.*stopped" /proc/$started/status'
kill -KILL $started 2>/dev/null
wait $started
finish
