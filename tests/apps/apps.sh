#!/bin/sh
# The NAS-style programs: they verify, natively and over rails; their times add up; what
# cannot be done is refused; what goes wrong is told.
. "$srcdir/tests/run-lib.sh"

# value NAME: what stands behind " NAME =" in the first block
value() {
	sed -n "s|^ $1 *= *||p" "$out" | head -1
}

# well WHAT WAYS: the launch ended well, and each way has its block
well() {
	expect "$1: ends well" [ $rc -eq 0 ]
	expect "$1: $2 blocks, verified" \
		[ "$(grep -c '^ Verification    =               SUCCESSFUL$' "$out")" -eq "$2" ]
	expect "$1: $2 numbers" [ "$(grep -c '^ Mop/s total     = *[0-9][0-9.]*$' "$out")" -eq "$2" ]
}

# ---- Verification -------------------------------------------------------------------------
for program in rg_is rg_ft; do
	for class in S $(long W); do
		for np in 1 2 4; do
			launch $np apps/$program -C $class --over native --json "$work/n.jsonl"
			well "$program $class on $np, native" 1
			expect "$program $class: processes" [ "$(value 'Total processes')" = $np ]
			launch $np apps/$program -C $class --over single,stripe --soft ports=2
			well "$program $class on $np, rails" 2
		done
	done
done
launch 8 apps/rg_is -C S --over native,bind,stripe --soft ports=2
well "rg_is on 8 ranks" 3
launch 8 apps/rg_ft -C S --over native,bind,stripe --soft ports=2
well "rg_ft on 8 ranks" 3
# More ranks than planes: pencils.  64 ranks on few cores need a library that lets others run.
if [ "$RG_MPI_FLAVOR" = openmpi -a "$RG_SANITIZE" = no ]; then
	launch 64 apps/rg_ft -C W --over native
	well "rg_ft in pencils" 1
	expect "rg_ft in pencils: many ranks are not listed" grep -q 'of each of 64 ranks' "$out"
fi

# ---- Output ---------------------------------------------------------------------------------
launch 4 apps/rg_is --over native,single,stripe --soft ports=2 --runs 3 --json "$work/r.jsonl"
well "three ways" 3
expect "class S by default" [ "$(value Class)" = S ]
expect "size" [ "$(value Size)" = 65536 ]
expect "iterations" [ "$(value Iterations)" = 10 ]
expect "operation" [ "$(value 'Operation type')" = 'keys ranked' ]
expect "whose problem, whose code" grep -q \
	"^# NAS-style, problem and verification as in NPB 3.4; not NASA's reference code$" "$out"
expect "the fabric" grep -q '^# fabric: .*software, not hardware' "$out"
expect "against the first way" grep -q '^# against native: ' "$out"
expect "nothing less than itself" grep -Eq '^# native .* 0\.0 % .* 0\.0 % ' "$out"
expect "runs" [ "$(grep -c '^# 3 runs, Mop/s: mean' "$out")" -eq 3 ]
expect "a run record, a row for each way, an end" [ "$(wc -l <"$work/r.jsonl")" -eq 5 ]
expect "rows are in order" [ "$(sed -n 's/.*"type":"row","way":"\([a-z]*\)".*/\1/p' \
	"$work/r.jsonl" | tr '\n' ' ')" = "native single stripe " ]
expect "times of each rank" [ "$(grep -c '"app":{"total_s":\[' "$work/r.jsonl")" -eq 3 ]
expect "the problem is in the record" grep -q '"app":{"class":"S","size":"65536"' "$work/r.jsonl"
cp "$out" "$work/text"
expect "the same text, from the file" sh -c \
	"src/cli/railgauge report --no-plot '$work/r.jsonl' | cmp - '$work/text'"
launch 2 apps/rg_ft --over native
expect "size of FT" [ "$(value Size)" = 64x64x64 ]
# Seven transpositions, of which half goes to the other rank, and six sums.
expect "bytes sent" grep -Eq '^# 0 .* 7340128$' "$out"

# ---- Known times --------------------------------------------------------------------------------
# By the program's own clock (tests/bench/known_clock.h).  Of two turns of 80 ms and three of 40:
# rank 1 talks for 10 ms of the 40.
launch 2 tests/apps/rg_dud --over native --runs 5 --json "$work/d.jsonl"
well "known times" 1
expect "the median is a short turn" [ "$(value 'Time in seconds')" = 0.040000 ]
for words in "0 0.040000 0.005000 0.035000 100" "1 0.040000 0.010000 0.030000 100" \
	"sum 0.080000 0.015000 0.065000 200"; do
	expect "rank, total, communication, computation, bytes: $words" [ "$(sed -n \
		"s/^# ${words%% *} /${words%% *} /p" "$out" | tr -s ' ')" = "$words" ]
done
expect "4e4 operations" [ "$(value 'Mop/s total')" = 1.00 ]
expect "of all runs" grep -q '^# 5 runs, Mop/s: mean 0.71, median 1.00, 95 % interval none below 6 runs, min 0.50, max 1.00; shown: the one of' "$out"

launch 2 tests/apps/rg_dud --over native --runs 6 --json "$work/d.jsonl"
expect "six runs have an interval" grep -q ', 95 % interval 0.50 to 1.00, ' "$out"
expect "... in the record" grep -q '"ci_low":0.5,"ci_high":1.0,"ci_n":6,' "$work/d.jsonl"

# Of two turns the slower one, in the text and in the record.
launch 2 tests/apps/rg_dud --over native --runs 2 --json "$work/e.jsonl"
well "two runs" 1
expect "the slower of two" [ "$(value 'Time in seconds')" = 0.080000 ]
expect "Mop/s" [ "$(value 'Mop/s total')" = 0.50 ]
expect "... are the record's median" \
	grep -q '"type":"row".*"mean":0\.66[0-9]*,"median":0\.5,' "$work/e.jsonl"

# ---- What goes wrong ---------------------------------------------------------------------------
for wrong in 0 1; do
	launch 2 tests/apps/rg_dud --over native --wrong $wrong --json "$work/w.jsonl"
	expect "wrong on rank $wrong: exit code 1" [ $rc -eq 1 ]
	expect "wrong on rank $wrong: UNSUCCESSFUL" \
		grep -q '^ Verification    =             UNSUCCESSFUL$' "$out"
	expect "wrong on rank $wrong: one line" [ "$(ours rg_dud)" -eq 1 ]
	expect "wrong on rank $wrong: named" grep -q \
		"^rg_dud: verification failed: native, rank $wrong: so it was told" "$err"
	expect "wrong on rank $wrong: recorded" grep -q '"valid":false' "$work/w.jsonl"
	expect "wrong on rank $wrong: end record" grep -q '"type":"end","status":1,' "$work/w.jsonl"
done
# A way that delivers nothing is not saved by what the one before it has left in the buffer.
launch 2 tests/apps/rg_is_lossy --over native,stripe --soft ports=2
expect "nothing delivered: exit code 1" [ $rc -eq 1 ]
expect "nothing delivered: found" grep -q '^rg_is_lossy: verification failed: stripe, ' "$err"
expect "nothing delivered: the other way is well" \
	[ "$(grep -c '^ Verification    =               SUCCESSFUL$' "$out")" -eq 1 ]
launch 2 tests/apps/rg_dud --over native --greedy
judge_refusal rg_dud 4 4 'no memory' 'memory that one rank does not get'

# ---- Refusals ------------------------------------------------------------------------------------
for kernel in rg_is rg_ft; do
	refused apps/$kernel 3 '3 ranks: .* is defined for powers of two.*(accepted: 2 or 4)' \
		--over native
	refused apps/$kernel 2 '--class X: .*accepted: S, W, A, B or C' -C X --over native
	refused apps/$kernel 2 '--sizes: unknown option' --sizes 8 --over native
	refused apps/$kernel 2 '--runs 0: out of range' --runs 0 --over native
	expect "$kernel: nothing computed" [ "$(grep -c Verification "$out")" -eq 0 ]
done
refused tests/apps/rg_dud 9 '9 ranks of' --over native
# Less memory than class C needs; a sanitizer needs more than any limit.
if [ "$RG_SANITIZE" = no ]; then
	cat >"$work/little.sh" <<-'END'
		ulimit -v 3000000
		exec "$@"
	END
	launch 2 sh "$work/little.sh" apps/rg_ft -C C --over native
	judge_refusal rg_ft 3 3 '--class C: each of 2 ranks needs 3073.3 MiB .*(accepted here: S, W' \
		'less memory than class C needs'
fi
finish
