#!/bin/sh
# rg_pairs: every pair of nodes once on each rail and in both directions, on queue pairs and by MPI,
# every byte right, and what is slow is named.  (What is accused: tests/bench/accept.sh.)
. "$srcdir/tests/run-lib.sh"

# cells FILE: "way from to" of every row
cells() {
	sed -n 's/.*"type":"row","way":"\([^"]*\)".*"from":\([0-9]*\),"to":\([0-9]*\),.*/\1 \2 \3/p' "$1"
}

# complete FILE NODES WAYS: each cell of the matrix once, none twice, none to itself
complete() {
	cells "$1" | sort | uniq -c | awk -v n="$2" -v ways="$3" '
		{ if ($1 != 1 || $3 == $4 || $3 >= n || $4 >= n) bad = 1 }
		END { exit bad || NR != ways * n * (n - 1) }'
}

# No pair is cut, however long it waits for a core.
patient="--patience 1000000"

for nodes in 2 4 5; do
	launch $nodes pt2pt/rg_pairs --soft ports=2 --nodes $nodes -m 256K -W 8 -i 4 -x 1 -c $patient \
		--json "$work/p.jsonl"
	expect "$nodes nodes: ends well" [ $rc -eq 0 ]
	expect "$nodes nodes: each pair once, over each rail, both ways" complete "$work/p.jsonl" $nodes 2
	cells=$((2 * nodes * (nodes - 1)))
	expect "$nodes nodes: validated" grep -q "^# validation: Pass, $cells cells" "$out"
	expect "$nodes nodes: a line of the matrix for each, twice" \
		[ "$(grep -c "^ *[0-9]* .*[0-9]\.[0-9][0-9]" "$out")" -eq $((2 * nodes)) ]
done
launch 4 pt2pt/rg_pairs --over single:0,single:1 --soft ports=2 --nodes 4 -m 256K -W 8 -i 4 -x 1 -c \
	--ledger --json "$work/p.jsonl"
expect "by MPI: each pair once, over each rail, both ways" complete "$work/p.jsonl" 4 2
expect "by MPI: validated" grep -q "^# validation: Pass, 24 cells" "$out"
expect "by MPI: alone is alone" \
	grep -q '^# ledger single:1 soft0:2: [0-9]* bytes (100.0 %), 0 eager messages' "$out"
launch 5 pt2pt/rg_pairs --soft ports=1 --nodes 2 -m 64K -W 4 -i 3 -c $patient \
	--json "$work/q.jsonl" --samples "$work/q.csv"
expect "two nodes of several ranks: the first ones play" grep -q '"ranks":\[0,3\]' "$work/q.jsonl"
expect "samples are those of cells" [ "$(sed 1d "$work/q.csv" | cut -d, -f2,3,5 | sort | uniq -c |
	tr -s " " | tr "\n" ";")" = " 3 single:0,65536,0-1; 3 single:0,65536,1-0;" ]
expect "two nodes: two cells" complete "$work/q.jsonl" 2 1
expect "the table again, from the file" sh -c \
	"src/cli/railgauge report --no-plot '$work/q.jsonl' | grep -v '^# slow' >'$work/again' &&
	grep -v '^# slow' '$out' | cmp - '$work/again'"

# Other ways, in the same matrix.
launch 4 pt2pt/rg_pairs --over native,stripe --soft ports=2 --nodes 4 -m 64K -W 4 -i 3 -c \
	--json "$work/n.jsonl"
expect "native and stripe, if asked for" complete "$work/n.jsonl" 4 2
expect "ways that are not alike are not compared" [ "$(grep -c 'as a whole' "$out")" -eq 0 ]

# Cells that are known, by a clock of their own: one direction of one pair, one node.  (What makes a
# rail slow as a whole: tests/report/test_matrix.c.)
line() {
	sed -n "s/^ *$1  *\([-0-9].*[0-9-]\)$/\1/p" "$out" | tail -n 1 | tr -s ' '
}
launch 4 tests/bench/rg_limp --over native --nodes 4 -i 3 -x 0 --from 1 --to 3
expect "1 MiB in 2 ms, and in 60 ms" [ "$(line 1)" = "524.29 - 524.29 17.48" ]
expect "and not the other way" [ "$(line 3)" = "524.29 524.29 524.29 -" ]
expect "one slow cell is named" grep -q \
	'^# slow: 1 to 3 (virtual node 1 of .* to virtual node 3 of .*) over native: 17.48, 0.03 of the median 524.29$' \
	"$out"
expect "and no other" [ "$(grep -c '^# slow: ' "$out")" -eq 1 ]
launch 6 tests/bench/rg_limp --over native --nodes 6 -i 3 -x 0 --from 4
expect "a slow node is named once, not by its ten cells" \
	grep -q '^# slow: all to and from 4 (virtual node 4 of .*) over native' "$out"
expect "and no cell of it, and no other" [ "$(grep -c '^# slow: ' "$out")" -eq 1 ]

# bad RANKS WORDS ARG...
bad() {
	refused pt2pt/rg_pairs "$@"
}
bad 2 '--sizes: a matrix is of one message size' --soft ports=2 -m 64K:1M
bad 2 '--sizes 4096: rails carry only messages above --eager alone' --over single:0 --soft ports=2 -m 4K
bad 4 '--pairs 2: each round joins all nodes' --soft ports=2 --pairs 2
bad 2 '1 node: a matrix needs 2 to' --soft ports=2 --nodes 1
bad 1 '1 rank: too few' --soft ports=2
bad 2 '--rounds 0' --soft ports=2 --rounds 0
bad 2 '--slow 101' --soft ports=2 --slow 101
bad 2 '--patience 1:' --soft ports=2 --patience 1
finish
