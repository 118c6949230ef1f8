#!/bin/sh
# timing.sh - --timing of collectives: data, the '#' line and the records of each method; rows of known
# times; clocks that differ.  No time is judged: where ranks do not start together, sync is a barrier
# that says so.
. "$srcdir/tests/run-lib.sh"

# rows METHOD ASKED WHY: rows of the last records with these; WHY is null or the begin of a text.
rows() {
	grep '"type":"row"' "$work/t.jsonl" |
		grep -c "\"timing\":{\"method\":\"$1\",\"asked\":\"$2\",\"why\":$3"
}
# Where a machine is busy, sync may be none.
sync_rows() {
	expr "$(rows sync sync null)" + "$(rows barrier sync '"ranks d')" + "$(rows barrier sync '"clocks')"
}

for name in bcast $(more allreduce); do
	for timing in sync barrier osu; do
		launch 2 collective/rg_$name --over native,single -c -m 8:64 -i 20 -x 2 \
			--timing $timing --json "$work/t.jsonl"
		expect "rg_$name, $timing, ends well" [ $rc -eq 0 ]
		expect "rg_$name, $timing: 4 rows" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq 4 ]
		expect "rg_$name, $timing: a line says so" [ "$(grep -c '^# timing: ' "$out")" -ge 1 ]
		if [ $timing = sync ] && [ "$(nproc)" -ge 2 ]; then
			expect "rg_$name: sync, or why not" [ "$(sync_rows)" -eq 8 ]
		elif [ $timing != sync ]; then
			expect "rg_$name: $timing" [ "$(rows $timing $timing null)" -eq 8 ]
		fi
	done
done

# Two ranks on a core.
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
launch 2 taskset -c "$core" collective/rg_bcast --over native -m 8:16 -i 20 -x 2 --json "$work/t.jsonl"
expect "oversubscribed: rows" [ "$(rows barrier sync '"oversubscribed"')" -eq 2 ]
expect "oversubscribed: a line" [ "$(grep -c '^# timing: barrier, not sync (oversub' "$out")" -eq 1 ]

# 1, 2 and 3 ms.
for timing in barrier osu; do
	launch 3 tests/bench/rg_together --over native -m 8 -i 40 -x 2 --timing $timing \
		--samples "$work/s.csv"
	[ $timing = osu ] && us=2000 || us=3000
	expect "$timing: $us us" [ "$(row 8 | sed 's/ .*//')" = $us.00 ]
	expect "$timing: 40 samples" [ "$(grep -c ",${us}000,ns\$" "$work/s.csv")" -eq 40 ]
done

# Clocks an hour apart: two of them, and no hour in a row.
launch 2 tests/bench/rg_shifted --over native -c -m 8:64 -i 50 -x 2 --json "$work/t.jsonl"
expect "clocks that differ: 4 rows" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq 4 ]
if [ "$(nproc)" -ge 2 ]; then
	expect "clocks that differ: two" [ "$(grep -c '"clocks":2,' "$work/t.jsonl")" -eq 4 ]
	expect "clocks that differ: sync, or why not" [ "$(sync_rows)" -eq 4 ]
	for us in $(sed -n 's/^[0-9][0-9]*  *\([0-9.]*\).*/\1/p' "$out"); do
		expect "clocks that differ: $us us" holds "$us < 60e6"
	done
fi

# Clocks that jump: no row is sync's.
launch 2 tests/bench/rg_shifted --wander --over native -m 8:64 -i 1000 -x 2 --json "$work/t.jsonl"
expect "clocks that jump: 4 rows" [ "$(grep -c '^[0-9]' "$out")" -eq 4 ]
expect "clocks that jump: barriers" [ "$(grep -c '"timing":{"method":"barrier","asked":"sync","why":"' \
	"$work/t.jsonl")" -eq 4 ]

# A clock that is set: the next row has new clocks.  A row whose ranks do not start together tries none.
launch 2 tests/bench/rg_shifted --set --over native -m 8:128 -i 1000 -x 2 --json "$work/t.jsonl"
expect "a clock that is set: 5 rows" [ "$(grep -c '^[0-9]' "$out")" -eq 5 ]
expect "a clock that is set: new clocks after a row of doubt" awk '
	/"type":"row"/ {
		match($0, /"renewed":[0-9]+/)
		renewed = substr($0, RSTART + 10, RLENGTH - 10) + 0
		tried = $0 !~ /"why":"(ranks|oversub)/
		if (doubted && tried && renewed <= before) wrong = 1
		if (tried) { doubted = $0 ~ /"why":"clocks/ && renewed == before; before = renewed }
		rows++
	}
	END { exit wrong || rows != 5 }' "$work/t.jsonl"

launch 4 collective/rg_bcast --experiment p1-fig16-pcie -m 64 -i 4 -x 1 --json "$work/t.jsonl"
expect "a paper's experiment: a barrier" [ "$(rows barrier barrier null)" -eq 2 ]

launch 2 pt2pt/rg_latency --over native -m 8 -i 10 -x 2 --json "$work/t.jsonl"
expect "a pair has its own clock" grep -q '"timing":{"method":"local"}' "$work/t.jsonl"

refused collective/rg_bcast 2 '--timing window: unknown (accepted: sync, barrier or osu)' --timing window
refused pt2pt/rg_bw 2 'timing: unknown option' --timing sync
finish
