#!/bin/sh
# The machine's noise in rows, and the verdict that follows: two ranks that share a core wait for it.
# Times are lower bounds: a machine with other work makes them longer.
. "$srcdir/tests/run-lib.sh"

# noise MEMBER: of all rows of the record, one a line
noise() {
	grep '"type":"row"' "$work/n.jsonl" | sed -n "s/.*\"noise\":{[^}]*\"$1\":\([^,}]*\).*/\1/p"
}
# each LEAST MEMBER COUNT: all COUNT rows have at least LEAST
each() {
	noise "$2" | awk -v least="$1" -v count="$3" '
		$1 !~ /^[0-9]+$/ || $1 < least { bad = 1 }
		END { exit bad || NR != count }'
}
# on_one_core N PROGRAM ARG...: all ranks on the first core that this test may use
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
on_one_core() {
	n=$1
	shift
	launch "$n" taskset -c "$core" "$@" --json "$work/n.jsonl"
}

# unknown: the last launch says so, and no number
unknown() {
	expect "not known" grep -q '^# noise: not known in 1 of 1 rows' "$out"
	expect "... is no number" [ "$(noise wait_ns) $(noise wait_ns_most) $(noise rank)" = "null null null" ]
	expect "... and a reason" grep -q '^# citable: no, .*not recorded: .*noise' "$out"
}
if [ ! -r /proc/self/schedstat ]; then
	echo "no /proc/self/schedstat"
	on_one_core 2 pt2pt/rg_latency --over native -m 8 -i 4 -x 0
	unknown
	finish
fi
# MPICH itself wants /proc.
if [ "$RG_MPI_FLAVOR" = openmpi ] && tests/softhca/confine noproc -- true 2>/dev/null; then
	launch 2 "$PWD/tests/softhca/confine" noproc -- pt2pt/rg_latency --over native -m 8 -i 4 -x 0 \
		--json "$work/n.jsonl"
	expect "without /proc" [ $rc -eq 0 ]
	unknown
fi

on_one_core 2 pt2pt/rg_latency --over native -m 8:16 -i 20 -x 0
expect "two ranks on a core" [ $rc -eq 0 ]
expect "each row has a wait" each 1 wait_ns 2
expect "... and its duration" each 1 wall_ns 2
expect "... and slices, one at least" each 1 slices 2
expect "... and switches, which may be none" each 0 switches 2
expect "a rank is the one that waited most" each 0 rank 2
expect "the most is one rank's share" [ "$(noise wait_ns | head -n 1)" -ge "$(noise wait_ns_most | head -n 1)" ]
expect "the run names the core" [ "$(grep -o '"cores":\[[0-9]*\]' "$work/n.jsonl" | sort -u | wc -l)" -eq 1 ]
expect "the last line is the verdict" sh -c "tail -n 1 '$out' | grep -q '^# citable: no, '"
expect "... of more ranks than cores" grep -q '^# citable: no, more ranks than cores; ' "$out"
expect "... that share a core" grep -q '^# citable: .*; ranks 0 and 1 share a core; ' "$out"
expect "the end record has the verdict" grep -q '"type":"end".*"citable":false.*"why":\["more ranks' "$work/n.jsonl"
cp "$out" "$work/first"
src/cli/railgauge report --no-plot "$work/n.jsonl" >"$out" 2>"$err"
expect "the record has the same lines" cmp -s "$work/first" "$out"
grep -v '"type":"end"' "$work/n.jsonl" >"$work/killed.jsonl"
src/cli/railgauge report --no-plot "$work/killed.jsonl" >"$out" 2>"$err"
expect "a job that did not finish has a verdict" grep -q '^# citable: .*; the job did not finish' "$out"

# Several ways, a matrix and a program that is timed as a whole.
on_one_core 2 collective/rg_bcast --over native,single -m 64 -i 10 -x 0
expect "a collective" [ $rc -eq 0 ]
expect "each way has its noise" each 1 wait_ns 2
on_one_core 2 pt2pt/rg_pairs --over native -m 64 -i 10 -x 0
expect "a matrix" [ $rc -eq 0 ]
expect "both cells have noise" each 1 wait_ns 2
on_one_core 2 apps/rg_is -C S --over native
expect "an application" [ $rc -eq 0 ]
expect "its row has noise" each 1 wait_ns 1
expect "its last line is the verdict" sh -c "tail -n 1 '$out' | grep -q '^# citable: no, more ranks'"

expect "nothing is left in /dev/shm" shm_is_clean
finish
