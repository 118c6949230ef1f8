#!/bin/sh
# nodes.sh - railgauge topo and railgauge check on hosts that are hosts: interfaces as ports, one report of
# all, the odd one, error counters of a host's own interfaces.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"

railgauge=$PWD/src/cli/railgauge
hosts 3 2
out=$work/out err=$work/err
: >"$out" >"$err"

launch 6 "$railgauge" topo --soft net=eth0+eth1
expect "alike: exit code" [ "$rc" -eq 0 ]
expect "alike: six ranks are three nodes" grep -qx '3 nodes, all alike: host\[0-2\]' "$out"
expect "alike: the tables of the first" grep -q '^host0: ' "$out"
expect "alike: its ports" [ "$(grep -c '^[01]  *[^ ]*  *Ethernet  *ACTIVE ' "$out")" -eq 2 ]
printf 'ports up\nnodes equal\nnodes >= 3\n' >"$work/rules"
launch 3 "$railgauge" check --soft net=eth0+eth1 --rules "$work/rules"
expect "alike: the rules" [ "$rc" -eq 0 ]
expect "alike: the verdict" grep -qx 'host\[0-2\]: pass' "$out"

# health: of host 1
health() {
	on 1 "$railgauge" check --node --soft net=eth0+eth1 --state "$work/state" >"$out" 2>"$err"
	rc=$?
}
health
expect "a node's health: exit code" [ "$rc" -eq 0 ]
health
expect "a node's health: counters of both interfaces" grep -q '^pass     errors <= 0 ([68] judged)$' "$out"

on 1 ip link set eth1 down
launch 3 "$railgauge" topo --soft net=eth0+eth1
expect "a rail that is down: exit code" [ "$rc" -eq 3 ]
expect "a rail that is down: its host says so" grep -q '^railgauge: host1: .*interface eth1 is down' "$err"
expect "a rail that is down: the others" grep -qx '3 nodes, 2 alike: host\[0,2\]' "$out"
expect "a rail that is down: the odd host" grep -qx 'host1: unlike host\[0,2\] in' "$out"
launch 3 pt2pt/rg_pairs --soft net=eth0+eth1 -m 64K -W 4 --patience 1000000 --rounds 3 --slow 50 \
	--json "$work/a.jsonl"
expect "a rail that is down: accused" \
	grep -qx 'cable or port: host1 soft0:2, missing or down at the start' "$out"
expect "a rail that is down: no fewer rails for the others" \
	[ "$(grep -c '"type":"row".*"way":"single:1".*"state":"ok"' "$work/a.jsonl")" -gt 0 ]
# The management network is the first rail.
launch 3 pt2pt/rg_pairs -m 64K -W 4 --patience 1000000 --rounds 3 --slow 50 --json "$work/b.jsonl"
expect "found by themselves, one is down: accused" \
	grep -qx 'cable or port: host1 soft0:3, missing or down at the start' "$out"
expect "found by themselves, one is down: no fewer rails for the others" \
	[ "$(grep -c '"type":"row".*"way":"single:2".*"state":"ok"' "$work/b.jsonl")" -gt 0 ]
launch 3 "$railgauge" check --soft net=eth0+eth1 --rules "$work/rules"
expect "a rail that is down: the rules" eval '[ "$rc" -eq 1 ] || loses_exit_codes'
expect "a rail that is down: the verdict" \
	grep -qx 'host\[0-2\]: fail: host1: cannot be read, and 1 more' "$out"
on 1 ip link set eth1 up
health
expect "a rail that was down: exit code" [ "$rc" -eq 1 ]
expect "a rail that was down: its interface has counted it" \
	grep -q '^           host1 soft0:2: carrier_down_count has grown by [1-9]' "$out"
health
expect "the next time" [ "$rc" -eq 0 ]
finish
