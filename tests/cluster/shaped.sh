#!/bin/sh
# shaped.sh - on shaped links: two rails carry twice what one does, by the clock, by the ledger
# and by what the kernel counted; of 3:1, most goes over the fast one.
. "$srcdir/tests/run-lib.sh"
limit=200

on_all_nodes() {
	for node in $(seq 0 $((VC_NODES - 1))); do
		ssh "node$node" "$@"
	done
}

on_all_nodes vc-shape tbf rate 50mbit burst 64kb limit 8mb
launch 2 pt2pt/rg_bw --over single,stripe -m 1M -i 3 -x 1 -W 2 --ledger \
	--json "$work/ledger.jsonl"
expect "1 MiB on shaped links" [ "$rc" -eq 0 ]
ratio=$(row 1048576 | awk '{ print $2 / $1 }')
echo "striped / single at 1 MiB, links shaped to 50 Mbit/s: $ratio"
expect "two rails carry more than one" holds "${ratio:-0} > 1.5"
share=$(sed -n 's/^# ledger stripe rxe0:1: .*(\([0-9.]*\) %).*/\1/p' "$out")
expect "both carry the same ($share %)" holds "${share:-0} >= 48 && ${share:-0} <= 52"
# What the kernel counted: on both hosts packets left either device, and who had to send
# something again is known, as a number.
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
expect "each rail alone, and the links" grep -q '^# stripe: aggregate .* of the sum of single rails' "$out"

# 3:1, and no port that says so: what is measured, and what is taken.
on_all_nodes vc-shape off
on_all_nodes vc-shape -r 0 tbf rate 90mbit burst 64kb limit 8mb
on_all_nodes vc-shape -r 1 tbf rate 30mbit burst 64kb limit 8mb
launch 2 pt2pt/rg_bw --over stripe,weighted,pull -m 1M -i 5 -x 2 -W 4 --ledger --time-cap 30
expect "1 MiB on links of 3:1" [ "$rc" -eq 0 ]
row 1048576
for way in weighted pull; do
	share=$(sed -n "s/^# ledger $way rxe0:1: .*(\([0-9.]*\) %).*/\1/p" "$out")
	expect "$way: the fast one carries most ($share %)" holds "${share:-0} >= 65 && ${share:-0} <= 85"
done
on_all_nodes vc-shape off
finish
