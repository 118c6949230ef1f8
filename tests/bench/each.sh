#!/bin/sh
# each.sh - every program once, over the MPI library and over rails, with every byte validated,
# and one refusal: for a second MPI library; with sanitizers one program of each kind, since what
# they share is the harness.  All else about the programs is asked in the first build.
# RG_CASE=PATTERN runs the programs that match alone: RG_CASE=pt2pt/rg_bw.
# RG_ON_HOSTS (run-lib.sh) with RG_SOFT runs the programs on hosts of their own (tests/net/each.sh).
. "$srcdir/tests/run-lib.sh"
soft=${RG_SOFT:-ports=2}
on_hosts=${RG_ON_HOSTS:+--soft $soft}

# A new program is run here by the rule of its kind; a name here has a rule of its own.
validates() {
	program=$1 rows=5
	case $program in
	pt2pt/rg_pairs)
		# shellcheck disable=SC2046 # words are meant
		launch 3 $program --soft $soft $([ -n "${RG_ON_HOSTS-}" ] || echo --nodes 3) -m 64K -W 4 -i 3 -x 1 -c \
			--patience 1000000
		expect "$program" grep -Eq '^# validation: Pass, [1-9][0-9]* cells' "$out"
		return
		;;
	pt2pt/rg_verbs_b*bw) launch 4 $program --over single,stripe --soft $soft -c -m 4K:64K -W 8 -i 4 -x 1 --qps 2 ;;
	pt2pt/rg_verbs_overhead | pt2pt/rg_verbs_reuse)
		launch 2 $program --soft $soft -c -m 4K -i 4 -x 1 --time-cap 0.2
		rows=2
		;;
	pt2pt/rg_verbs_hotspot)
		launch 3 $program --soft $soft -c -m 4K -i 4 -x 1
		rows=2
		;;
	pt2pt/rg_verbs_*) launch 2 $program --soft $soft -c -m 4K:64K -i 4 -x 1 ;;
	pt2pt/rg_latency) launch 2 $program --over native,single,bind,stripe --soft $soft -c -m 4K:64K -i 4 -x 1 --time-cap 0.2 ;;
	pt2pt/*) launch 2 $program --over native,single,bind,stripe --soft $soft -c -m 4K:64K -W 8 -i 4 -x 1 --time-cap 0.2 ;;
	collective/rg_barrier)
		launch 3 $program --over native,stripe --soft $soft -i 10 -x 1
		rows=0
		;;
	collective/rg_tune)
		launch 2 $program $on_hosts --over stripe --collectives bcast,alltoall -m 1K:4K -i 4 -x 1
		expect "$program" grep -q '^alltoall ' "$out"
		rows=0
		;;
	collective/*) launch 3 $program --over native,stripe --soft $soft -c -m 4K:64K -i 4 -x 1 --time-cap 0.2 ;;
	apps/*)
		launch 4 $program -C S --over native,stripe --soft $soft
		expect "$program verifies" \
			[ "$(grep -c '^ Verification    =               SUCCESSFUL$' "$out")" -eq 2 ]
		rows=0
		;;
	esac
	expect "$program" [ $rc -eq 0 ]
	[ $rows -eq 0 ] ||
		expect "$program: at least $rows rows pass" [ "$(grep -c '^[0-9].*Pass' "$out")" -ge $rows ]
}

# A program of each kind; all programs if the code is not sanitized.
kinds='pt2pt/rg_bw pt2pt/rg_verbs_lat pt2pt/rg_verbs_bw pt2pt/rg_pairs collective/rg_alltoall
	collective/rg_reduce collective/rg_barrier collective/rg_tune apps/rg_is'
others=$(cd "$srcdir" && for source in pt2pt/rg_*.c collective/rg_*.c apps/rg_*.c; do
	program=${source%.c}
	echo "$kinds" | tr -s ' \t\n' '\n' | grep -qx "$program" || echo "$program"
done)
for program in $kinds $(more $others); do
	# shellcheck disable=SC2254 # a pattern is meant
	case $program in ${RG_CASE:-*}) validates "$program" ;; esac
done
[ -z "${RG_CASE-}" ] || finish
launch 2 tests/bench/rg_broken --over native -c -i 10 -x 1 --damage flip
expect "what is wrong is found" grep -q '^rg_broken: validation failed: ' "$err"
refused pt2pt/rg_bw 2 '--window 0: out of range (accepted: 1 to 65536)' -W 0
killed 4 pt2pt/rg_bw --over stripe --soft $soft -m 1M
finish
