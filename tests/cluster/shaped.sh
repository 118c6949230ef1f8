#!/bin/sh
# shaped.sh - on links of 3:1, which packets wait for: data, what the ledger and what the kernel
# counted.  (How much the rails carry in how much time: `make bench-cluster`.)
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/bench/ledger-lib.sh"
limit=200

on_all_nodes() {
	for node in $(seq 0 $((VC_NODES - 1))); do
		ssh "node$node" "$@"
	done
}

on_all_nodes vc-shape -r 0 tbf rate 90mbit burst 64kb limit 8mb
on_all_nodes vc-shape -r 1 tbf rate 30mbit burst 64kb limit 8mb
launch 2 pt2pt/rg_bw --over single,stripe,weighted,pull -m 1M -i 3 -x 1 -W 2 -c --ledger \
	--time-cap 60 --json "$work/ledger.jsonl"
expect "1 MiB on shaped links" [ "$rc" -eq 0 ]
expect "data" grep -q '^1048576 .*Pass' "$out"
row 1048576
for way in single stripe weighted pull; do
	expect "$way: bytes add up" sum "$work/ledger.jsonl" $way 2 1 4
done
share=$(share "$work/ledger.jsonl" stripe 1)
expect "stripe: both carry the same ($share %)" holds "${share:-0} > 49.9 && ${share:-0} < 50.1"
# Counters of the kernel: on both hosts packets left either device, and the number of packets
# sent again is known.
for node in 0 1; do
	for rail in 0 1; do
		port=$(tr '{' '\n' <"$work/ledger.jsonl" | sed -n \
			"/\"host\":\"node$node\",\"rail\":\"rxe$rail:1\",\"state\":\"ACTIVE\"/{N;s/\n/ /;p;}")
		sent=$(echo "$port" | sed -n 's/.*"sent_pkts":\([0-9]*\).*/\1/p')
		expect "node$node: rxe$rail has sent ($sent packets)" [ "${sent:-0}" -gt 20 ]
		expect "node$node: rxe$rail counts retries" \
			sh -c "echo '$port' | grep -q '\"retries\":[0-9]'"
	done
done
expect "people are told" grep -q '^# port rxe0:1 of node1: ACTIVE; counters of all its users: ' "$out"
for way in stripe weighted pull; do
	expect "$way: each rail alone, and the links" \
		grep -q "^# $way: aggregate .* of the sum of single rails" "$out"
done
on_all_nodes vc-shape off
finish
