#!/bin/sh
# rg_pairs accuses: a port that goes down, one that loses packets, one that is down at the start; each
# costs no other cell.  Ports fail by softhca port and loss, while the program measures.
. "$srcdir/tests/run-lib.sh"

# No pair is cut because it waits for a core, and only these faults are below half of the others.
few="--soft ports=2 --nodes 4 -m 64K -W 4 --patience 1000000"
softhca=$PWD/softhca

# The fabric of the program that writes $work/a.jsonl, by the process that a rank of it is.
fabric_of_job() {
	"$softhca" list | awk '/^fabric/ { f = $2; sub(":", "", f) }
		/^  process/ { print f, $2 }' | while read -r fabric pid; do
		tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF "$work/a.jsonl" &&
			echo "$fabric" && break
	done
}

# Wait until the program has measured some cells, for a minute at most.
measures() {
	for i in $(seq 1200); do
		[ "$(grep -c '"type":"row"' "$work/a.jsonl" 2>/dev/null)" -gt 24 ] 2>/dev/null && return
		sleep 0.05
	done
	return 1
}

# fails COMMAND... in the middle: softhca COMMAND
fails() {
	rm -f "$work/a.jsonl"
	(
		measures && SOFTHCA_FABRIC=$(fabric_of_job) "$softhca" "$@"
		echo $? >"$work/changed"
	) &
	launch 4 pt2pt/rg_pairs $few --rounds 400 --slow 50 --json "$work/a.jsonl"
	wait
	expect "$*: in the middle" [ "$(cat "$work/changed")" -eq 0 ]
	expect "$*: exit code 1" [ $rc -eq 1 ]
}

# last N: line N from the end of the output
last() {
	tail -n "$1" "$out" | head -n 1
}

# Rows of cells, without those of the bad port, that are not whole.
broken_elsewhere() {
	grep '"type":"row"' "$work/a.jsonl" | grep -v '"state":"ok"' |
		grep -vE '"way":"single:1".*"(from":1|to":1),"' | wc -l
}

fails port 1/soft0:2 down
expect "a port that goes down is accused" \
	[ "$(last 2 | sed 's/[1-9][0-9]* retries/N retries/')" = "cable or port: node1 soft0:2, down, N retries" ]
expect "and its node is to drain" [ "$(last 1)" = "drain: node1" ]
expect "and nothing else" [ "$(grep -c '^[a-z]' "$out")" -eq 2 ]
expect "it costs no other cell" [ "$(broken_elsewhere)" -eq 0 ]
expect "it leaves after three rounds" [ "$(grep '"type":"row"' "$work/a.jsonl" |
	grep '"state":"down"' | sed 's/.*"round":\([0-9]*\).*/\1/' | sort -u | wc -l)" -eq 3 ]
expect "the heat map has it" grep -q '^# node1  *[0-9.]*/[0-9.]*  *DOWN ' "$out"
expect "the record has it" grep -q '"name":"node1",.*"port":"soft0:2","state":"down","missing_at_start":false,"sending":0.0,"receiving":0.0,"failed_rounds":3,"left":true' \
	"$work/a.jsonl"
expect "the record has the drain list" grep -q '"drain":"node1"' "$work/a.jsonl"
src/cli/railgauge report --no-plot "$work/a.jsonl" >"$work/again" 2>/dev/null
expect "the same, from the file" cmp "$out" "$work/again"

fails loss 1/soft0:2 0.5
expect "a port that loses packets is accused" \
	grep -qE '^cable or port: node1 soft0:2, (down|[0-9]* % low), [1-9][0-9]* retries$' "$out"
expect "and its node is to drain" [ "$(last 1)" = "drain: node1" ]
expect "and nothing else" [ "$(grep -c '^[a-z]' "$out")" -eq 2 ]

launch 4 pt2pt/rg_pairs $few --rounds 5 --slow 100 -c --full --json "$work/a.jsonl"
expect "without a fault: exit code 0" [ $rc -eq 0 ]
expect "without a fault: accepted" [ "$(last 1)" = "accepted: 4 nodes, 2 rails" ]
expect "an estimate comes first" grep -q '^# estimate: 5 rounds, [0-9.]* s; suspects up to .* each bad port up to' "$out"
expect "rounds of random pairings" grep -q '5 random pairings of 4 nodes, both ways, 2 at once' "$out"
expect "two pairs, two rails, two directions a round" \
	[ "$(grep -c '"type":"row"' "$work/a.jsonl")" -eq 40 ]
expect "all bytes right" [ "$(grep -c '"type":"row".*"valid":true' "$work/a.jsonl")" -eq 40 ]
expect "--full: the cells" grep -q '^# over single:1 (soft0:2), 65536 bytes' "$out"
launch 4 pt2pt/rg_pairs $few --rounds 5
expect "else not" [ "$(grep -c '^# over single' "$out")" -eq 0 ]
expect "a heat map" [ "$(grep -c '^# node[0-3]  *[0-9.]*/[0-9.]*  *[0-9.]*/[0-9.]*' "$out")" -eq 4 ]

# Down as soon as a queue pair is made: before the first cell.
launch 5 pt2pt/rg_pairs --soft ports=2,down=2/soft0:1@0ms --nodes 5 -m 64K -W 4 --patience 1000000 \
	--json "$work/a.jsonl"
expect "down at the start: exit code 1" [ $rc -eq 1 ]
expect "down at the start: accused" grep -qE '^cable or port: node2 soft0:1, (missing or down at the start|down, [0-9]* retries)$' "$out"
expect "and nothing else" [ "$(grep -c '^[a-z]' "$out")" -eq 2 ]
expect "no fewer rails for the others" [ "$(grep -c '"type":"row".*"state":"ok"' "$work/a.jsonl")" -eq 32 ]
finish
