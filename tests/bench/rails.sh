#!/bin/sh
# The programs over rails of the software HCA: every way, every byte, the labels
# that keep a reader from taking a model for hardware, and bad input.
. "$srcdir/tests/run-lib.sh"

# Ways side by side, sizes around the threshold and the eager limit.
for program in rg_bibw $(more rg_latency rg_bw rg_mr); do
	case $program in rg_bibw | rg_bw) pairs=4 ;; *) pairs=2 ;; esac
	[ -z "${RG_LONG-}" ] || pairs="2 4"
	for np in $pairs; do
		launch $np pt2pt/$program --over native,single,bind,stripe --soft ports=2 -c \
			-m 1:64K -W 16 -i 8 -x 1 --time-cap 0.1 --json "$work/r.jsonl"
		expect "$program on $np ranks ends well" [ $rc -eq 0 ]
		expect "$program on $np ranks: 17 rows pass" \
			[ "$(grep -c '^[0-9].*Pass' "$out")" -eq 17 ]
		expect "$program on $np ranks: 68 row records" \
			[ "$(grep -c '"type":"row"' "$work/r.jsonl")" -eq 68 ]
	done
done
expect "columns are named" grep -q '^# Size  *native  *single  *bind  *stripe' "$out"
expect "several ways: four places" grep -Eq '^8 .*[0-9]\.[0-9]{4} ' "$out"
launch 2 pt2pt/rg_bw --over single,stripe --soft ports=2 -c -m 3:200K -W 8 -i 4 --time-cap 0.1
expect "odd sizes" [ $rc -eq 0 ]
launch 2 pt2pt/rg_bibw --over stripe --soft ports=3 -c -m 1M:4M -W 4 -i 4 --time-cap 0.2
expect "three rails, large messages" [ $rc -eq 0 ]
launch 2 pt2pt/rg_bibw --over stripe --soft ports=8 --threshold 1K -c -m 512:64K -W 4 -i 4
expect "eight rails, low threshold" [ $rc -eq 0 ]

# Whatever memory the messages are in.
for kind in malloc arena near; do
	launch 2 pt2pt/rg_bw --over native,stripe --soft ports=2 -c -m 3:3M -W 4 -i 2 -x 0 --time-cap 0.1 \
		--buffers $kind --json "$work/b.jsonl"
	expect "--buffers $kind" [ $rc -eq 0 ]
	expect "--buffers $kind in the records" grep -q "\"buffers\":{\"value\":\"$kind\"" "$work/b.jsonl"
done

# Honesty.
launch 2 pt2pt/rg_latency --over native,single --soft rate=1GB/s,latency=2us -m 8 -i 20 \
	--json "$work/m.jsonl"
expect "a model is called one" grep -q '^# fabric: .*a model in software, not hardware' "$out"
expect "native is called another fabric" grep -q '^# native: .*shared memory: not this fabric' "$out"
expect "the record says so too" grep -q '"foreign_ways":\["native"\]' "$work/m.jsonl"
expect "the model is in the record" grep -q '"modelled":true,.*"spec":".*rate=1GB/s' "$work/m.jsonl"
launch 2 pt2pt/rg_latency --over native,single --soft ports=2 -m 8 -i 20 --json "$work/m.jsonl"
expect "an untimed software HCA is software" grep -q '^# fabric: .*software, not hardware' "$out"
expect "native beside it is as good as it" grep -q '"foreign_ways":\[\]' "$work/m.jsonl"
expect "no rail is hardware" grep -q '"hardware":false' "$work/m.jsonl"

# Without --over: stripe with two rails, else single.
launch 2 pt2pt/rg_latency --soft ports=2 -m 8 -i 5 --layout osu --json "$work/o.jsonl"
expect "two rails: stripe" grep -q '"ways":\["stripe"\]' "$work/o.jsonl"
expect "one way: OSU layout" grep -Eq '^8 {9} *[0-9]+\.[0-9]{2}$' "$out"
launch 2 pt2pt/rg_latency --soft ports=1 -m 8 -i 5 --json "$work/o.jsonl"
expect "one rail: single" grep -q '"ways":\["single"\]' "$work/o.jsonl"

# The ledger: two equal rails carry the same when large messages are striped.
launch 2 pt2pt/rg_bw --over single,stripe --soft ports=2 -m 1M -W 8 -i 10 --ledger \
	--json "$work/l.jsonl"
expect "ledger: single uses one rail" grep -q '^# ledger single soft0:1: .* (100.0 %)' "$out"
share=$(sed -n 's/^# ledger stripe soft0:1: .*(\([0-9.]*\) %).*/\1/p' "$out")
expect "ledger: stripe uses both alike ($share %)" holds "${share:-0} >= 48 && ${share:-0} <= 52"
expect "ledger in the records" grep -q '"ledger":\[{"rail":"soft0:1"' "$work/l.jsonl"

# Each rail alone: what is large goes over the rail that is named.
launch 2 pt2pt/rg_bw --over single:0,single:1 --soft ports=2 -c -m 1M -W 8 -i 10 --ledger
expect "single:N ends well" [ $rc -eq 0 ]
expect "single:0 uses the first" grep -q '^# ledger single:0 soft0:1: .* (100.0 %)' "$out"
expect "single:1 uses the second" grep -q '^# ledger single:1 soft0:2: .* (100.0 %)' "$out"

# --threshold auto says what it found and uses it: what is above is striped.
launch 2 pt2pt/rg_bw --threshold auto --over stripe --soft ports=2,rate=100MB/s,latency=20us -m 1M \
	-W 2 -i 3 --ledger --json "$work/t.jsonl"
expect "threshold auto" grep -Eq \
	'^# threshold auto found [0-9]+ bytes: striped|^# threshold auto: nothing is striped' "$out"
expect "threshold auto in the records" grep -q '"threshold":"auto' "$work/t.jsonl"
share=$(sed -n 's/^# ledger stripe soft0:1: .*(\([0-9.]*\) %).*/\1/p' "$out")
if grep -q '^# threshold auto found' "$out"; then
	expect "it is used ($share %)" holds "${share:-0} >= 48 && ${share:-0} <= 52"
fi
launch 2 pt2pt/rg_bw --threshold auto --over stripe --soft ports=1 -m 1M -W 2 -i 3
expect "threshold auto with one rail" grep -q '^# threshold auto: 8192 bytes, not measured' "$out"

# bad WORDS ARG...
bad() {
	words=$1
	shift
	launch_beside 2 pt2pt/rg_bw -m 8 "$@"
	judge_refusal rg_bw 3 4 "$words" "$*"
}
bad 'soft0:9' --rails soft0:9
bad 'mlx5_77:1' --rails mlx5_77:1
bad 'soft0:1' --soft ports=2 --rails soft0:1,soft0:1
bad 'ports' --soft ports=0
bad '--over single:2: .*accepted: single:0, which is soft0:1, to single:1' --soft ports=2 \
	--over stripe,single:2
bad '--over single:8: .*single\[:N\], bind' --over single:8
bad 'rate' --soft rate=fast
bad 'colour' --soft colour=red
expect "nothing of ours in /dev/shm" shm_is_clean

# A rank killed while messages are on their way over rails: who notices first, the launcher or the
# other rank, is open.
killed 4 pt2pt/rg_bw --over stripe --soft ports=2 -m 1M
finish
