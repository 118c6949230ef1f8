#!/bin/sh
# railgauge compare: verdicts and exit codes on campaigns of known values; unlike, damaged and foreign ones.
. "$srcdir/tests/run-lib.sh"

# campaign DIR LAUNCHES PROGRAM...: launches of tests/stats/pilot.txt as records, with a journal.  Variables:
#	builds	names, "-" for the empty one	factor	times of the last build are so much longer
#	only	rows that it applies to, an awk pattern of "PROGRAM WAY BYTES"
#	steady	rows, an awk pattern		interleaved	true or false
#	from	the first launch of the pilot	window, commit, mpi, host	members of the run record
campaign() {
	dir=$1 launches=$2
	shift 2
	mkdir -p "$dir/records"
	# shellcheck disable=SC2154
	awk -v dir="$dir" -v launches="$launches" -v programs="$*" -v builds="${builds--}" \
		-v factor="${factor-1}" -v only="${only-.}" -v steady="${steady-.}" -v from="${from-0}" \
		-v interleaved="${interleaved-false}" -v window="${window-64}" -v commit="${commit-0123}" \
		-v mpi="${mpi-Open MPI}" -v host="${host-host1}" -v spread="${spread-1}" '
	function path(program, build, i) {
		return sprintf("records/%s%s.%03d.jsonl", build == "-" ? "" : build ".", program, i)
	}
	function run(file, program, metric, i, build) {
		printf "{\"schema\":2,\"type\":\"run\",\"program\":\"%s\",\"title\":\"t\",\"metric\":\"%s\"", program, metric >file
		printf ",\"ways\":[\"native\",\"single\",\"stripe\"],\"mpi\":\"%s\",\"options\":{\"window\":{\"value\":\"%s\"", mpi, window >file
		printf ",\"from\":\"default\"},\"json\":{\"value\":\"%s\"}},\"fabric\":{\"kind\":\"soft\",\"nodes\":2", file >file
		printf ",\"rails\":[{\"name\":\"soft0:1\"}]},\"ranks\":[{\"rank\":0,\"host\":\"%s\",\"node\":0}]", host >file
		printf ",\"provenance\":{\"utc\":\"%s %d\",\"software\":{\"commit\":\"%s\"}}}\n", build, i, commit >file
	}
	BEGIN {
		plan = dir "/campaign.jsonl"
		count = split(builds, build, " ")
		printf "{\"type\":\"campaign\",\"version\":1,\"launches\":%d,\"interleaved\":%s,\"builds\":[", launches, interleaved >plan
		for (b = 1; b <= count; b++)
			printf "%s{\"name\":\"%s\"}", (b > 1 ? "," : ""), build[b] == "-" ? "" : build[b] >plan
		printf "],\"programs\":[" >plan
		split(programs, program, " ")
		for (p = 1; p in program; p++) {
			printf "%s{\"name\":\"%s\"}", (p > 1 ? "," : ""), program[p] >plan
			wanted[program[p]] = 1
		}
		print "]}" >plan
	}
	/^#/ || !($1 in wanted) || $1 " " $3 " " $4 !~ steady { next }
	{
		for (b = 1; b <= count; b++)
			for (i = 0; i < launches; i++) {
				file = dir "/" path($1, build[b], i)
				if (!rows[file]++)
					run(file, $1, $2, i, build[b])
				# Builds take other launches of the pilot, the first as a campaign of one.
				value = $(5 + (from + i + (b - 1) * 20) % 40)
				if (b == count && $1 " " $3 " " $4 ~ only)
					value = $2 == "latency" ? value * factor : value / factor
				printf "{\"schema\":2,\"type\":\"row\",\"way\":\"%s\",\"bytes\":%d,\"mean\":1,", $3, $4 >file
				printf "\"median\":%.9g,\"n\":100,\"valid\":null,\"cut\":false}\n", value >file
			}
	}
	END {
		for (i = 0; i < launches; i++)
			for (p = 1; p in program; p++)
				for (b = 1; b <= count; b++) {
					file = path(program[p], build[b], i)
					printf "{\"schema\":2,\"type\":\"end\",\"status\":0,\"rows\":%d}\n", rows[dir "/" file] >(dir "/" file)
					printf "{\"type\":\"launch\",\"index\":%d,\"build\":\"%s\"", n++, build[b] == "-" ? "" : build[b] >plan
					printf ",\"program\":\"%s\",\"launch\":%d,\"record\":\"%s\",\"exit\":0}\n", program[p], i, file >plan
				}
	}' "$srcdir/tests/stats/pilot.txt"
}

compare() {
	src/cli/railgauge compare "$@" >"$out" 2>"$err"
	rc=$?
}

# refused_with WORDS A B...: exit code 3, one line with the words, no table
refused_with() {
	words=$1
	shift
	compare "$@"
	expect "$*: exit code 3" [ $rc -eq 3 ]
	expect "$*: one line" [ "$(wc -l <"$err")" -eq 1 ]
	expect "$*: says '$words'" grep -q "$words" "$err"
	expect "$*: nothing on standard output" [ ! -s "$out" ]
}

# ---- Verdicts: three programs, the rows that vary by less than 1 % ----------------------------
three="rg_latency rg_bw rg_allreduce"
steady="(rg_latency (single|stripe) (4096|8192)|rg_bw (single 65536|stripe 131072)|rg_allreduce (single|stripe) 2048)"
campaign "$work/a" 20 $three
from=20 campaign "$work/b" 20 $three
factor=1.03 campaign "$work/slow" 20 $three
factor=1.03 from=20 only="rg_bw stripe 131072" campaign "$work/one" 20 $three
factor=0.97 from=20 campaign "$work/fast" 20 $three
factor=1.0299999 campaign "$work/almost" 20 $three

compare "$work/a" "$work/b"
expect "equal: exit code 0" [ $rc -eq 0 ]
expect "equal: all rows" grep -q '^no row is worse: of 8 rows 0 worse, 0 better, 8 same, 0 undecided$' "$out"
expect "equal: not interleaved" grep -q "^# not interleaved: a difference may be the day's or the allocation's" "$out"
expect "equal: the smallest shift" grep -q '^# smallest shift found in 95 % of cases: [01]\.' "$out"
expect "equal: nothing on stderr" [ ! -s "$err" ]
compare "$work/a" "$work/a"
expect "itself: exit code 0" [ $rc -eq 0 ]
compare "$work/a" "$work/slow"
expect "times 1.03: exit code 1" [ $rc -eq 1 ]
expect "times 1.03: every row is worse" [ "$(grep -c '^worse: rg_.*: [+-][23]\.[0-9]* % ' "$out")" -eq 8 ]
expect "times 1.03: bandwidths fall" grep -q '^worse: rg_bw, single, 65536 bytes: -2.91 % (-' "$out"
expect "times 1.03: latencies rise" grep -q '^worse: rg_latency, stripe, 4096 bytes: +3.00 % (+' "$out"
compare "$work/slow" "$work/a"
expect "the other way: exit code 0" [ $rc -eq 0 ]
expect "the other way: every row is better" grep -q '^no row is worse: of 8 rows 0 worse, 8 better' "$out"
compare "$work/a" "$work/one"
expect "one row: exit code 1" [ $rc -eq 1 ]
expect "one row is named, alone" [ "$(grep '^worse: rg_' "$out" | cut -d: -f2)" = " rg_bw, stripe, 131072 bytes" ]
compare "$work/a" "$work/fast"
expect "all faster: exit code 0" [ $rc -eq 0 ]
expect "all faster: all better" grep -q ' 0 worse, 8 better' "$out"
compare "$work/a" "$work/slow" --effect 10%
expect "within 10 %: exit code 0" [ $rc -eq 0 ]
expect "within 10 %: same" grep -q ' 0 worse, 0 better, 8 same' "$out"
for effect in 3 0.03 % x% -3% 0% 101% nan% inf%; do
	refused_with '^railgauge: --effect .*accepted: 0.01% to 100%' "$work/a" "$work/b" --effect "$effect"
done

# ---- JSON ------------------------------------------------------------------------------------
compare "$work/a" "$work/one" --json
expect "JSON: exit code 1" [ $rc -eq 1 ]
expect "JSON: the verdicts" grep -q '"worse": 1,' "$out"
if command -v python3 >/dev/null; then
	expect "JSON: as printed" python3 - "$out" <<-END
		import json, sys
		c = json.load(open(sys.argv[1]))
		rows = [(p["program"], r) for p in c["programs"] for r in p["rows"]]
		assert c["exit"] == 1 and not c["interleaved"] and c["effect"] == 0.03 and len(rows) == 8
		worse = [(p, r) for p, r in rows if r["verdict"] == "worse"]
		assert [(p, r["way"], r["bytes"]) for p, r in worse] == [("rg_bw", "stripe", 131072)]
		r = worse[0][1]
		assert r["low"] < r["change"] < r["high"] < 0 and r["launches"] == [20, 20]
		assert all(r["found"] > 0 and r["launches_to_decide"] > 4 for p, r in rows)
	END
fi

# ---- Too few launches, noise ---------------------------------------------------------------------
campaign "$work/four" 4 rg_latency
from=9 campaign "$work/four-b" 4 rg_latency
compare "$work/four" "$work/four-b"
expect "4 launches: exit code 2" [ $rc -eq 2 ]
expect "4 launches: too few" grep -q '^# too few: 4 launches of rg_latency in A; an interval needs 5$' "$out"
expect "4 launches: undecided" grep -q '^undecided: of 4 rows 0 worse, 0 better, 0 same, 4 undecided$' "$out"
steady=.
campaign "$work/noise" 20 rg_latency
from=20 campaign "$work/noise-b" 20 rg_latency
compare "$work/noise" "$work/noise-b"
expect "noise: exit code 2" [ $rc -eq 2 ]
expect "noise: how many launches" grep -q '^# to decide all: about [0-9]* launches a side; most for rg_latency, native, ' "$out"
expect "noise: for each row" grep -q '^4096  *native .* undecided, about [0-9]* launches$' "$out"

# ---- Builds of one campaign ------------------------------------------------------------------------
steady='rg_bw (single|stripe)'
builds="- new" factor=1.03 interleaved=true campaign "$work/two" 20 rg_bw
compare "$work/two:" "$work/two:new"
expect "builds: exit code 1" [ $rc -eq 1 ]
expect "builds: interleaved" [ "$(grep -c 'not interleaved' "$out")" -eq 0 ]
refused_with "several builds (accepted: $work/two:, $work/two:new)" "$work/two" "$work/two:new"
refused_with "no build 'old' (accepted: $work/two:, $work/two:new)" "$work/two:old" "$work/two:new"

sed -i 's/"window":{"value":"64"/"window":{"value":"16"/' "$work"/two/records/new.*
compare "$work/two:" "$work/two:new"
expect "builds with settings of their own: compares" [ $rc -eq 1 ]
expect "builds with settings of their own: named" grep -q '^# unlike window: 64 in A, 16 in B$' "$out"

# ---- Unlike settings ---------------------------------------------------------------------------------
window=16 campaign "$work/window" 20 rg_bw
mpi=MPICH window=16 campaign "$work/mpi" 20 rg_bw
campaign "$work/bw" 20 rg_bw
commit=4567 host=host2 from=20 campaign "$work/commit" 20 rg_bw
refused_with 'unlike settings: window of rg_bw: 64, 16 (accepted: --force)$' "$work/bw" "$work/window"
refused_with 'window of rg_bw: 64, 16; MPI library of rg_bw: Open MPI, MPICH' "$work/bw" "$work/mpi"
compare "$work/bw" "$work/window" --force
expect "forced: compares" [ $rc -eq 0 ]
expect "forced: named" grep -q '^# unlike window: 64 in A, 16 in B$' "$out"
compare "$work/bw" "$work/commit"
expect "commits: exit code 0 or 2" [ $rc -eq 0 -o $rc -eq 2 ]
expect "commits: named" grep -q '^# unlike commit: 0123 in A, 4567 in B$' "$out"
expect "hosts: named" grep -q '^# unlike hosts: ' "$out"
refused_with 'rows in .*/a alone' "$work/a" "$work/bw"
compare "$work/a" "$work/bw" --force
expect "rows of both: exit code 0" [ $rc -eq 0 ]
expect "rows of one: counted" grep -q '^# in A alone: 6 rows$' "$out"
refused_with 'have no row in common' "$work/four" "$work/bw" --force

# An option that only a later version has is no difference at its default.
cp -r "$work/commit" "$work/later"
sed -i '1s/"options":{/&"fresh":{"value":"no","from":"default"},/' "$work"/later/records/*
compare "$work/bw" "$work/later"
expect "a new option at its default: compares" [ $rc -eq 0 -o $rc -eq 2 ]
expect "a new option at its default: not named" [ "$(grep -c fresh "$out")" -eq 0 ]
sed -i '1s/"no","from":"default"/"yes","from":"command line"/' "$work"/later/records/*
refused_with 'unlike settings: fresh of rg_bw: none, yes (accepted: --force)$' "$work/bw" "$work/later"

# ---- Directories of records --------------------------------------------------------------------------
compare "$work/bw/records" "$work/commit/records"
expect "directories of records: judged" [ $rc -eq 0 -o $rc -eq 2 ]
compare "$work/bw/records/rg_bw.000.jsonl" "$work/commit/records"
expect "a file: too few" [ $rc -eq 2 ]
mkdir "$work/mixed" "$work/empty"
cp "$work/bw/records/rg_bw.000.jsonl" "$work/mixed/0.jsonl"
cp "$work/window/records/rg_bw.001.jsonl" "$work/mixed/1.jsonl"
refused_with 'mixed/1.jsonl: mixed: launches of rg_bw with unlike window' "$work/mixed" "$work/bw"

# A campaign against its launches, some of them drawn several times: they count, and are named.
campaign "$work/drawn" 20 rg_bw
for i in 0 1 2 3 4; do
	cp "$work/drawn/records/rg_bw.01$i.jsonl" "$work/drawn/records/rg_bw.00$i.jsonl"
done
compare "$work/bw" "$work/drawn"
expect "a resample: exit code 0" [ $rc -eq 0 ]
expect "a resample: copies are named" grep -q '^# B: 5 launches are equal to others' "$out"

# ---- Damaged and foreign ones -------------------------------------------------------------------------
refused_with 'compare: 1 campaigns (accepted: railgauge compare A B)' "$work/bw"
refused_with 'none: No such file' "$work/none" "$work/bw"
refused_with 'none:x: No such file' "$work/none:x" "$work/bw"
refused_with 'empty: no launch' "$work/bw" "$work/empty"
refused_with 'pilot.txt:1: damaged: not a Railgauge result file' "$work/bw" "$srcdir/tests/stats/pilot.txt"
# damaged WORDS FILE COMMAND...: the copy of a campaign, with its FILE edited by COMMAND
damaged() {
	damaged_words=$1 damaged_file=$work/damaged/$2
	shift 2
	rm -rf "$work/damaged"
	cp -r "$work/bw" "$work/damaged"
	"$@" "$damaged_file"
	refused_with "$damaged_words" "$work/bw" "$work/damaged"
}
record=records/rg_bw.003.jsonl
damaged 'campaign.jsonl:1: damaged: empty' campaign.jsonl truncate -s 0
damaged 'campaign.jsonl:1: damaged: the plan is torn' campaign.jsonl truncate -s 40
damaged 'campaign.jsonl:3: damaged: not a record' campaign.jsonl sed -i '3s/.*/x/'
damaged 'campaign.jsonl:1: a campaign of a newer version' campaign.jsonl sed -i '1s/"version":1/"version":9/'
damaged 'campaign.jsonl:4: damaged: a launch without a record below' campaign.jsonl sed -i '4s#records/#../records/#'
damaged 'rg_bw.003.jsonl: No such file' $record rm
damaged 'rg_bw.003.jsonl: damaged: empty, no run record' $record truncate -s 0
damaged 'rg_bw.003.jsonl:2: damaged: not a record' $record sed -i '2s/.*/x/'
damaged 'rg_bw.003.jsonl: a record of rg_bcast, and of rg_bw by the journal' $record sed -i 's/"program":"rg_bw"/"program":"rg_bcast"/'
damaged 'rg_bw.003.jsonl: mixed: launches of rg_bw with unlike window' $record sed -i '1s/"64"/"1"/'

# Bytes that were changed, files that were cut: a verdict, or one error line.
echo "RG_SEED=${RG_SEED:-1}"
awk -v seed="${RG_SEED:-1}" 'BEGIN {
	srand(seed)
	for (i = 0; i < 40; i++)
		print rand() < 0.3 ? "campaign.jsonl" : sprintf("records/rg_bw.%03d.jsonl", 20 * rand()), int(1800 * rand()), \
			rand() < 0.3 ? "cut" : substr("x0}\"\\,\001\377", 1 + int(8 * rand()), 1)
}' >"$work/changes"
while read -r file at byte; do
	rm -rf "$work/damaged"
	cp -r "$work/bw" "$work/damaged"
	case $byte in
	cut) truncate -s "$at" "$work/damaged/$file" ;;
	*) printf '%s' "$byte" | dd of="$work/damaged/$file" bs=1 seek="$at" conv=notrunc 2>"$work/dd" ;;
	esac
	compare "$work/bw" "$work/damaged"
	errors=$(grep -v 'warning: ' "$err" | wc -l)
	expect "$file, byte $at, $byte: exit code $rc, $errors error lines" \
		[ $rc -le 2 -a "$errors" -eq 0 -o $rc -eq 3 -a "$errors" -eq 1 ]
done <"$work/changes"

# What was killed counts as far as it got.
rm -rf "$work/torn"
cp -r "$work/bw" "$work/torn"
truncate -s -5 "$work/torn/campaign.jsonl"
sed -i '3s/"exit":0/"exit":9/' "$work/torn/campaign.jsonl"
compare "$work/torn" "$work/bw"
expect "a torn journal, a failed launch: compares" [ $rc -eq 0 ]
expect "a torn journal: 18 launches" grep -q '^# A: .*: 18 launches of rg_bw$' "$out"
expect "a failed launch is counted" grep -q '^# A: 1 launch left out, which failed' "$out"
if [ -w /dev/full ]; then
	src/cli/railgauge compare "$work/a" "$work/b" >/dev/full 2>"$err"
	rc=$?
	expect "a full disk: exit code 4, one line" [ $rc -eq 4 -a "$(wc -l <"$err")" -eq 1 ]
fi
finish
