#!/bin/sh
# railgauge report: the table again, figures, damaged files.
. "$srcdir/tests/run-lib.sh"

launch 2 pt2pt/rg_bw --over native -m 1:4K -i 10 -c --json "$work/bw.jsonl"
expect "a result" [ $rc -eq 0 ]
cp "$out" "$work/first"

report() {
	src/cli/railgauge report "$@" >"$out" 2>"$err"
	rc=$?
}

report --no-plot "$work/bw.jsonl"
expect "exit code 0" [ $rc -eq 0 ]
expect "the same table" cmp -s "$work/first" "$out"
expect "no figure was asked for" [ ! -e "$work/bw.gp" ]

if gnuplot --version >/dev/null 2>&1; then
	report "$work/bw.jsonl" --out "$work/figures"
	expect "figures" [ $rc -eq 0 ]
	for suffix in dat gp svg png; do
		expect "bw.$suffix" [ -s "$work/figures/bw.$suffix" ]
	done
	expect "they are named" grep -q "^# written: $work/figures/bw.png, .*bw.gp$" "$out"
	expect "log scale" grep -q 'set logscale x 2' "$work/figures/bw.gp"
fi

report
expect "no file: exit code 3" [ $rc -eq 3 ]
report "$work/none.jsonl"
expect "a missing file: exit code 3" [ $rc -eq 3 ]
expect "a missing file: one line" [ "$(wc -l <"$err")" -eq 1 ]
mkdir "$work/empty" "$work/some"
report "$work/empty"
expect "a directory without results: exit code 3" [ $rc -eq 3 ]
expect "a directory without results: one line" [ "$(wc -l <"$err")" -eq 1 ]
cp "$work/bw.jsonl" "$work/some"
head -c 300 "$work/bw.jsonl" >"$work/some/torn.jsonl"
report --no-plot "$work/some"
expect "a directory with a torn file: exit code 3" [ $rc -eq 3 ]
expect "a directory: the same table" cmp -s "$work/first" "$out"
head -c 300 "$work/bw.jsonl" >"$work/torn-run.jsonl"
report --no-plot "$work/torn-run.jsonl" "$work/bw.jsonl"
expect "a torn run record: exit code 3" [ $rc -eq 3 ]
expect "a torn run record is named" grep -q 'torn-run.jsonl:1: damaged: the run record is torn' "$err"
expect "the other file is still shown" grep -q '^4096 ' "$out"
head -n 5 "$work/bw.jsonl" | head -c -9 >"$work/torn-row.jsonl"
report --no-plot "$work/torn-row.jsonl"
expect "a torn last row: exit code 0" [ $rc -eq 0 ]
expect "a torn last row: a warning" grep -q 'warning: .*torn last record dropped' "$err"
expect "a torn last row: the rows before" [ "$(grep -c '^[0-9]' "$out")" -eq 3 ]
report --out "$work/bw.jsonl/x" "$work/bw.jsonl"
expect "--out below a file: exit code 3" [ $rc -eq 3 ]

# Output that cannot be written is a fault with one line, in every command.
if [ -w /dev/full ]; then
	for command in "src/cli/railgauge report --no-plot $work/bw.jsonl" \
		"src/cli/railgauge report --no-plot $work/bw.jsonl $work/bw.jsonl" \
		"src/cli/railgauge --help" "src/cli/railgauge --version" "src/cli/railgauge reproduce p1 --list" \
		"src/cli/railgauge topo" "src/cli/railgauge topo --json" "src/cli/railgauge report --help" \
		"pt2pt/rg_bw --help" "./softhca list" "./softhca profiles" "./softhca reap" \
		"./softhca --help"; do
		$command >/dev/full 2>"$err"
		rc=$?
		expect "$command >/dev/full: exit code 4" [ $rc -eq 4 ]
		expect "$command >/dev/full: one line" [ "$(wc -l <"$err")" -eq 1 ]
		expect "$command >/dev/full: names it" \
			grep -q '^[a-z_]*: standard output: ' "$err"
	done
fi
src/cli/railgauge --version >&- 2>"$err"
rc=$?
expect "no standard output: exit code 4" [ $rc -eq 4 -a "$(wc -l <"$err")" -eq 1 ]

src/cli/railgauge >"$out" 2>"$err"
rc=$?
expect "no command: exit code 3" [ $rc -eq 3 ]
src/cli/railgauge dance >"$out" 2>"$err"
rc=$?
expect "an unknown command names the known" grep -q 'accepted: check, cite, compare, exec, report, reproduce, run' "$err"
src/cli/railgauge --help >"$out"
rc=$?
expect "help" grep -q '^  report ' "$out"
finish
