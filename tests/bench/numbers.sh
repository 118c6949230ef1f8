#!/bin/sh
# Rows of known samples: 4 ms (pair 0) and 12 ms (pair 1), every tenth three times as long, by the
# programs' own clock (known_clock.h), so that every number is known to the last digit.
. "$srcdir/tests/run-lib.sh"

# row_is SIZE WORDS: mean, median, min, max, P99, deviation, number of samples; other columns may come
# between them.  The heading has the names of all but the mean, whose name has several words.
row_is() {
	found=$(awk -v size="$1" '
		$1 == "#" && $2 == "Size" {
			for (i = 3; i <= NF; i++)
				at[$i] = i
		}
		$1 == size {
			line = $2
			n = split("Median Min Max P99 SD N", name)
			for (i = 1; i <= n; i++)
				line = line " " $(3 + at[name[i]] - at["Median"])
			print line ($NF == "cut" ? " cut" : "")
		}' "$out")
	echo "$found"
	[ "$found" = "$2" ]
}
# samples FILE: how many of which time, "PAIR NS" each
samples() {
	sed 1d "$1" | cut -d, -f5,9 | sort | uniq -c | awk '{ printf "%s x %s; ", $1, $2 }'
}
# recomputes MESSAGES RATE: every value of every row follows from the samples, of so many messages
recomputes() {
	[ "$(grep '"type":"row"' "$work/s.jsonl" | grep -vc "\"messages\":$1,")" -eq 0 ] &&
		awk -f "$srcdir/tests/bench/recompute.awk" -v rate="$2" "$work/s.csv" "$work/s.jsonl"
}
kept="--samples $work/s.csv --json $work/s.jsonl"

# A batch is an untimed run and 10 timed ones.  Runs whose number ends in 9 are long: ten of the
# 100 timed ones.  (90 x 4 + 10 x 12) / 100 ms over 4 messages.
launch 2 tests/bench/rg_clockwork --over native -m 8 -W 4 -i 100 -x 0 -f $kept
expect "latency: 100 samples have no P99" \
	row_is 8 "1200.00 1000.0000 1000.0000 3000.0000 - 603.0227 100"
expect "latency: samples" [ "$(samples "$work/s.csv")" = "10 x 0,12000000; 90 x 0,4000000; " ]
expect "latency: samples make the row" recomputes 4 ""

# Two pairs: the row is the median pair's, of two the slower one; four of its 40 samples are long.
launch 4 tests/bench/rg_clockwork --over native -m 8 -W 4 -i 40 -x 0 -f $kept
expect "two pairs: the median pair" row_is 8 "3600.00 3000.0000 3000.0000 9000.0000 - 1822.9309 40"
expect "two pairs: all samples are kept" [ "$(samples "$work/s.csv")" = \
	"4 x 0,12000000; 36 x 0,4000000; 36 x 1,12000000; 4 x 1,36000000; " ]
expect "two pairs: samples make the row" recomputes 4 ""
expect "the slowest pair is named" grep -q \
	'^# slowest pair, 8 bytes over native: ranks 1 and 3, median 3000.0000$' "$out"
expect "... in the record" grep -q '"slowest_pair":{"ranks":\[1,3\],"median":3000.0}' "$work/s.jsonl"

# Aggregate: a sample is a batch, of an untimed window and two timed ones, but one in the first and in
# the last.  Two windows of the slower pair take 24 ms, in four of the 21 batches 12 + 36: 2 x 4 MiB in
# 12 or 24 ms each, 300 / 21 ms at the mean.
launch 4 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 40 -x 0 -f $kept
expect "aggregate" row_is 1048576 "587.20 699.0507 349.5253 699.0507 - 198.4710 21"
expect "aggregate: all 80 samples are kept, and 21 batches" [ "$(samples "$work/s.csv")" = \
	"4 x 0,12000000; 36 x 0,4000000; 36 x 1,12000000; 4 x 1,36000000; 2 x all,12000000; \
15 x all,24000000; 4 x all,48000000; " ]
expect "aggregate: samples make the row" recomputes 4 MB

# Pairs that take turns, as on one port or one core: two windows in 8 ms, no more than one resource
# gives.
launch 4 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 40 -x 0 -f --shared
expect "a shared resource is not counted twice" \
	row_is 1048576 "1048.58 1048.5760 1048.5760 1048.5760 - 0.0000 21"

# A single pair: 4 MiB in (18 x 4 + 2 x 12) / 20 ms.
launch 2 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 20 -x 0 -f $kept
expect "one pair" row_is 1048576 "873.81 1048.5760 349.5253 1048.5760 - 448.2568 20"
expect "one pair: samples make the row" recomputes 4 MB
# A cap of 0.1 s: after the first two runs, 8 ms, 92 ms are left for an untimed one and 22.
launch 2 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 1000 -x 0 -f --time-cap 0.1
expect "a cap" row_is 1048576 "893.23 1048.5760 349.5253 1048.5760 - 438.4372 23 cut"

# Without -i and -x.  Ten of the 20 samples that the counts give have one long window, so that the
# interval of their median reaches to it; of 20 and of 40 it does not.
launch 2 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -f $kept
expect "converged with twice the counts" grep -q '"n":40,.*"converged":true' "$work/s.jsonl"
expect "... recomputes" recomputes 4 MB
expect "... and nothing is said below the table" [ "$(grep -c '^# not converged' "$out")" -eq 0 ]
# The counts take 0.11 s, 26 runs and two long ones.
launch 2 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 --time-cap 0.13 $kept
expect "not converged" grep -q '"n":20,.*"converged":false' "$work/s.jsonl"
expect "... below the table" grep -q '^# not converged: 1 of 1 rows' "$out"
expect "... not cut" [ "$(grep -c cut "$out")" -eq 0 ]
# Two pairs: 20 batches of two windows take 0.6 s, 40 more than 1 s.
launch 4 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -f --time-cap 1 $kept
expect "two pairs: 1 s ends the row" grep -q '"ci_n":2[0-9],.*"converged":false' "$work/s.jsonl"
expect "... recomputes" recomputes 4 MB
# Without a given limit, samples beyond the counts take no longer than the counts of the job so far.
launch 2 tests/bench/rg_clockwork_rate --over native,single --soft ports=1 -m 1M:4M -W 4 $kept
expect "the time of the counts ends a row" grep -q '"converged":false' "$work/s.jsonl"
# Both ways go on until both have converged, and have as many samples.
launch 2 tests/bench/rg_clockwork_rate --over native,single --soft ports=1 -m 1M:4M -W 4 --time-cap 10 $kept
expect "ways stop together" [ "$(grep -o '"bytes":[0-9]*\|"n":[0-9]*\|"converged":[a-z]*' "$work/s.jsonl" |
	paste -d' ' - - - | sort | uniq -c | awk '$1 != 2' | wc -l)" -eq 0 ]
expect "... recompute" recomputes 4 MB
launch 4 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -x 2 $kept
expect "-x turns it off" grep -q '"converged":null.*"iterations":20,' "$work/s.jsonl"

# Real times: every value recomputes, for collectives, for latencies of pairs, for several ways, for
# rates, along an axis, in a tournament, and with percentiles of choice.
launch 3 collective/rg_bcast --over native -m 8:64 -i 200 -x 1 -z 10,50,94.5,99.9 $kept
expect "a collective recomputes" recomputes 1 ""
expect "... with four percentiles" [ "$(grep -c '"percentiles":{"10":[0-9.]*,"50":[0-9.]*,"94.5":[0-9.]*,"99.9":null}' \
	"$work/s.jsonl")" -eq 4 ]
launch 2 pt2pt/rg_latency --over native,single --soft ports=1 -m 8:64 $kept -i 60 -x 1
expect "latencies of two ways recompute" recomputes 2 ""
launch 4 pt2pt/rg_bw --over native,single --soft ports=1 -m 8:64 -i 50 -x 1 $kept
expect "bandwidths of two ways recompute" recomputes 64 MB
launch 2 pt2pt/rg_mr --over native,single --soft ports=1 -m 8:64 -W 16 -i 50 -x 1 -z 80 $kept
expect "message rates of a pair recompute" recomputes 16 messages
launch 4 pt2pt/rg_mr --over native -m 8:64 -W 16 -i 50 -x 1 $kept
expect "message rates of two pairs recompute" recomputes 16 messages
launch 2 pt2pt/rg_verbs_rate --soft ports=1 -m 8:64 -W 16 -i 50 -x 1 $kept
expect "message rates of queue pairs recompute" recomputes 64 messages
launch 2 pt2pt/rg_verbs_bw --soft ports=1 --sweep queue --queue 4 -m 4K -W 16 -i 50 -x 1 $kept
expect "bandwidths by the length of the queue recompute" recomputes '[12]' MB
launch 2 pt2pt/rg_verbs_reuse --soft ports=1 --buffer-count 4 -m 4K -W 16 -i 50 -x 1 $kept
expect "bandwidths by the number of buffers recompute" recomputes 16 MB
launch 3 pt2pt/rg_verbs_hotspot --soft ports=1 -m 4K -W 16 -i 50 -x 1 $kept
expect "bandwidths by the number of slaves recompute" recomputes '\(16\|32\)' MB
launch 4 pt2pt/rg_pairs --nodes 4 --soft ports=2 --patience 1000000 -m 64K -W 4 -i 20 -x 1 -z 50 $kept
expect "pairs of nodes recompute" recomputes 4 MB
expect "... in 24 rows" [ "$(grep -c '"type":"row"' "$work/s.jsonl")" -eq 24 ]

launch 2 tests/bench/rg_clockwork --over native -m 8 -W 4 -i 20 -x 0 --layout osu
expect "--layout osu: two columns" [ "$(grep '^8 ' "$out" | wc -w)" -eq 2 ]
finish
