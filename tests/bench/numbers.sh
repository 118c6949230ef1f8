#!/bin/sh
# Rows of known samples: 4 ms (pair 0) and 12 ms (pair 1), every tenth three
# times as long.  Sleeping overshoots, the more the busier the machine, so each
# number has a range.
. "$srcdir/tests/run-lib.sh"

between() {
	holds "$2 >= $1 && $2 <= $3"
}

# Of 100 runs in a row, batches of 10 and an untimed one before each, about ten are
# long, wherever they fall.
launch 2 tests/bench/rg_clockwork --over native -m 8 -W 4 -i 100 -x 0 -f
set -- $(row 8)
expect "mean latency: between all short and all long" between 1000 "$1" 4000
expect "median: 4 ms over 4 messages" between 1000 "$2" 1300
expect "min" between 1000 "$3" 1200
expect "max: 12 ms over 4 messages, or a straggler" holds "$4 >= 3000"
expect "100 samples have no P99" [ "$5" = - ]
expect "n" [ "$7" -eq 100 ]

# Two pairs: samples pooled.  Half are near 1 ms, half near 3 ms.
launch 4 tests/bench/rg_clockwork --over native -m 8 -W 4 -i 40 -x 0 -f
set -- $(row 8)
expect "pooled n" [ "$7" -eq 80 ]
expect "pooled min" between 1000 "$3" 1300
expect "pooled mean" between 2000 "$1" 4000

# Aggregate: two pairs of as many windows each; the slower one's 12 ms decide.
launch 4 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 40 -x 0 -f \
	--samples "$work/s.csv"
set -- $(row 1048576)
mean=$(awk "BEGIN { print 2 * 4 * 1048576 / 12e3 }")
# (every tenth window takes three times as long)
expect "mean bandwidth: 2 x 4 MiB in 12 to 16 ms" between 200 "$1" "$mean"
expect "aggregate n" [ "$7" -eq 40 ]
expect "min <= median <= max" holds "$3 <= $2 && $2 <= $4"
expect "all 80 samples are kept" [ "$(wc -l <"$work/s.csv")" -eq 81 ]

# Pairs that take turns, as on one port or one core: never more than one resource gives.
launch 4 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 40 -x 0 -f \
	--shared "$work/lock"
set -- $(row 1048576)
expect "a shared resource is not counted twice: 4 MiB in 4 ms" between 200 "$1" 1060

# One pair: the row's mean follows from the samples that were kept.
launch 2 tests/bench/rg_clockwork_rate --over native -m 1M -W 4 -i 20 -x 0 -f \
	--samples "$work/t.csv"
set -- $(row 1048576)
mean=$(awk -F, 'NR > 1 { t += $5; n++ } END { printf "%.2f", 4 * 1048576e3 / (t / n) }' \
	"$work/t.csv")
expect "mean = what the samples say ($mean)" between "$mean - 0.02" "$1" "$mean + 0.02"
expect "max: 4 MiB in 4 ms" between 850 "$4" 1049
# Exactly what the longest sample says; how long that is beyond 12 ms, the machine decides.
min=$(awk -F, 'NR > 1 && $5 > t { t = $5 } END { printf "%.2f", 4 * 1048576e3 / t }' "$work/t.csv")
expect "min = the longest sample ($min)" between "$min - 0.02" "$3" "$min + 0.02"
expect "min: 4 MiB in 12 ms or more" holds "$3 <= 350"
finish
