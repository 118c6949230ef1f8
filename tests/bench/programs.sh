#!/bin/sh
# Every point-to-point program, natively, with every byte validated.
. "$srcdir/tests/run-lib.sh"

for program in $(more rg_latency rg_bw rg_bibw) rg_mr; do
	for np in 2 $(more 4); do
		launch $np pt2pt/$program --over native -c -m 1:64K -i 10 -x 2 --time-cap 0.3 \
			--json "$work/$program.jsonl"
		expect "$program on $np ranks ends well" [ $rc -eq 0 ]
		expect "$program on $np ranks passes at 8" grep -q '^8 .*Pass' "$out"
		expect "$program on $np ranks has 17 rows" [ "$(grep -c '^[0-9]' "$out")" -eq 17 ]
		expect "$program on $np ranks has no failure" [ "$(grep -c Fail "$out")" -eq 0 ]
		expect "$program names its fabric" grep -q '^# fabric: no rails' "$out"
		expect "$program wrote 19 records" [ "$(wc -l <"$work/$program.jsonl")" -eq 19 ]
	done
done
expect "rows are in size order" sh -c "grep -v '^#' '$out' | sort -n -c"

# The layout that other suites' users parse, one way.
launch 2 pt2pt/rg_latency --over native -m 8 -i 10 --layout osu
expect "OSU layout" grep -Eq '^8 {9} *[0-9]+\.[0-9]{2}$' "$out"
launch 2 pt2pt/rg_latency --over native -m 8 -i 10
expect "the same columns first, then median and interval" \
	grep -Eq '^8 {9} *[0-9]+\.[0-9]{2}( +[0-9]+\.[0-9]{4}){3}$' "$out"
expect "what native messages go through" grep -q '^# native: .* through shared memory$' "$out"
launch 2 env UCX_TLS=posix,self pt2pt/rg_latency --over native -m 8 -i 10
expect "... is not known where the environment tells the library" \
	grep -q '^# native: .* through what the environment told the library to use$' "$out"
launch 2 pt2pt/rg_latency --over native -m 0:8 -i 10
expect "an empty message has a latency" grep -q '^0 ' "$out"

# Defaults, and the options that steer counts, reach the record.
launch 2 pt2pt/rg_bw --over native -m 8K:16K -x 3 --time-cap 60 --json "$work/d.jsonl"
expect "100 samples up to 8K" grep -q '"bytes":8192,.*"n":100,' "$work/d.jsonl"
expect "20 samples above" grep -q '"bytes":16384,.*"n":20,' "$work/d.jsonl"
expect "origin of an option" grep -q '"warmup":{"value":"3","from":"command line"}' "$work/d.jsonl"
expect "default of an option" grep -q '"window":{"value":"64","from":"default"}' "$work/d.jsonl"
RAILGAUGE_WINDOW=7 RAILGAUGE_ITERATIONS=5
export RAILGAUGE_WINDOW RAILGAUGE_ITERATIONS
launch 2 pt2pt/rg_bw --over native -m 8 --time-cap 60 --json "$work/e.jsonl" --samples "$work/s.csv"
unset RAILGAUGE_WINDOW RAILGAUGE_ITERATIONS
expect "environment" grep -q '"window":{"value":"7","from":"environment"}' "$work/e.jsonl"
expect "5 samples" grep -q '"n":5,' "$work/e.jsonl"
expect "samples file has a head and 5 lines" [ "$(wc -l <"$work/s.csv")" -eq 6 ]

# Fewer pairs; three nodes, of which the last has no partner.
launch 6 pt2pt/rg_latency --over native -m 8 -i 5 --nodes 3
expect "k-th of node 0 with k-th of node 1" grep -q '2 pairs at once: 0-2 1-3$' "$out"
launch 4 pt2pt/rg_latency --over native -m 8 -i 5 --pairs 1
expect "one pair" grep -q '1 pair at once: 0-2$' "$out"
launch 4 pt2pt/rg_latency --over native -m 8 -i 5 --nodes 1
expect "one node" grep -q '2 pairs at once: 0-2 1-3$' "$out"

# A cap cuts rows and says so.
launch 2 pt2pt/rg_bw --over native -m 4M -i 100000 --time-cap 0.2
expect "a capped run ends well" [ $rc -eq 0 ]
expect "a cut row is marked" grep -q '^4194304 .* cut$' "$out"
expect "the mark is explained" grep -q '^# cut: ' "$out"

launch 2 pt2pt/rg_bw --help
expect "help from one rank only" [ "$(grep -c '^Usage' "$out")" -eq 1 ]
expect "help ends well" [ $rc -eq 0 ]
finish
