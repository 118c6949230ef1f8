#!/bin/sh
# programs.sh - every program over Soft-RoCE with validation, over one rail and two; on
# shaped links two rails carry twice what one does.
. "$srcdir/tests/run-lib.sh"
limit=200

well() {
	[ "$rc" -eq 0 ] && grep -q '^# fabric: kernel software, RoCE' "$out" &&
		! grep -q Fail "$out" && grep -q Pass "$out"
}

for program in "rg_latency -m 1:64K" "rg_bw -m 1K:256K -W 8" "rg_bibw -m 1K:256K -W 8" \
	"rg_mr -m 8:1K"; do
	launch 2 pt2pt/$program --over single,bind,stripe -i 5 -x 1 -c
	expect "$program" well
done
launch 2 pt2pt/rg_bw --rails rxe1:1 -m 64K -i 5 -x 1 -W 8 -c
expect "one rail by name" well
launch 2 pt2pt/rg_bw --rails rxe9:1 -m 64K
expect "a rail that is not there" [ $rc -eq 4 -o $rc -eq 3 ]
expect "... in one line" [ "$(ours rg_bw)" -eq 1 ]

for node in $(seq 0 $((VC_NODES - 1))); do
	ssh "node$node" vc-shape tbf rate 50mbit burst 64kb limit 8mb
done
launch 2 pt2pt/rg_bw --over single,stripe -m 1M -i 4 -x 1 -W 4 --ledger
expect "1 MiB on shaped links" [ "$rc" -eq 0 ]
ratio=$(row 1048576 | awk '{ print $2 / $1 }')
echo "striped / single at 1 MiB, links shaped to 50 Mbit/s: $ratio"
expect "two rails carry more than one" holds "${ratio:-0} > 1.5"
share=$(sed -n 's/^# ledger stripe rxe0:1: .*(\([0-9.]*\) %).*/\1/p' "$out")
expect "both carry the same ($share %)" holds "${share:-0} >= 48 && ${share:-0} <= 52"
finish
