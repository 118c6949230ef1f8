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
# samples FILE: how many of which time, "SERIES NS" each
samples() {
	sed 1d "$1" | cut -d, -f3,5 | sort | uniq -c | awk '{ printf "%s x %s; ", $1, $2 }'
}

# A batch is an untimed run and 10 timed ones.  Runs whose number ends in 9 are long: ten of the
# 100 timed ones.  (90 x 4 + 10 x 12) / 100 ms over 4 messages.
launch 2 tests/bench/rg_clockwork --over native -m 8 -W 4 -i 100 -x 0 -f --samples "$work/l.csv"
expect "latency: 100 samples have no P99" row_is 8 "1200.00 1000.00 1000.00 3000.00 - 603.02 100"
expect "latency: samples" [ "$(samples "$work/l.csv")" = "10 x 0,12000000; 90 x 0,4000000; " ]

# Two pairs: samples pooled, four long ones of each.
launch 4 tests/bench/rg_clockwork --over native -m 8 -W 4 -i 40 -x 0 -f
expect "two pairs: pooled" row_is 8 "2400.00 3000.00 1000.00 9000.00 - 1811.36 80"

# Aggregate: two pairs of as many windows each; the slower one's time by run decides.  Of the five
# batches 12 ms (1 sample), three times (10 x 12 + 36) / 11 (10), (9 x 12 + 36) / 10 (9): 14.176 ms
# for 2 x 4 MiB.
launch 4 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 40 -x 0 -f \
	--samples "$work/s.csv"
expect "aggregate" row_is 1048576 "591.73 709.81 236.60 712.00 - 299.45 40"
expect "aggregate: all 80 samples are kept" [ "$(samples "$work/s.csv")" = \
	"4 x 0,12000000; 36 x 0,4000000; 36 x 1,12000000; 4 x 1,36000000; " ]

# Pairs that take turns, as on one port or one core: two windows in 8 ms, no more than one resource
# gives.
launch 4 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 40 -x 0 -f --shared
expect "a shared resource is not counted twice" \
	row_is 1048576 "1048.58 1048.58 1048.58 1048.58 - 0.00 40"

# A single pair: 4 MiB in (18 x 4 + 2 x 12) / 20 ms.
launch 2 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 20 -x 0 -f
expect "one pair" row_is 1048576 "873.81 1048.58 349.53 1048.58 - 448.26 20"
# A cap of 0.1 s: after the first two runs, 8 ms, 92 ms are left for an untimed one and 22.
launch 2 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 1000 -x 0 -f --time-cap 0.1
expect "a cap" row_is 1048576 "893.23 1048.58 349.53 1048.58 - 438.44 23 cut"
finish
