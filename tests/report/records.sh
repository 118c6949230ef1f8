#!/bin/sh
# Result files of real programs: valid by the installed JSON Schema, with names redacted, shown and
# merged; files of another origin, one file under two names, full disks and long files.
. "$srcdir/tests/run-lib.sh"

python=
for candidate in python3 /usr/bin/python3; do
	"$candidate" -c 'import jsonschema' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || { echo "skipped: no jsonschema for Python (Debian: python3-jsonschema)"; exit 77; }
py() {
	"$python" "$srcdir/tests/report/records.py" "$@"
}
show() {
	src/cli/railgauge show "$@" >"$out" 2>"$err"
	rc=$?
}
schema=$srcdir/data/railgauge-result.schema.json

# ---- Records of every kind ----
launch 2 pt2pt/rg_bw --over native,single -m 8:32 -i 20 -c --percentiles 50,90 --ledger --json "$work/bw.jsonl" \
	--samples "$work/bw.csv"
expect "rg_bw" [ $rc -eq 0 ]
launch 2 collective/rg_allreduce --over native,stripe -m 8:16 -i 20 --redact --json "$work/all.jsonl"
expect "rg_allreduce" [ $rc -eq 0 ]
launch 2 pt2pt/rg_pairs --over single -m 64K -i 5 --json "$work/pairs.jsonl"
expect "rg_pairs" [ $rc -eq 0 ]
more_files=
if [ -n "$(more apps)" ]; then
	launch 2 apps/rg_is --class S --over native --json "$work/is.jsonl"
	expect "rg_is" [ $rc -eq 0 ]
	more_files=$work/is.jsonl
fi
if [ -n "$(long latency hotspot)" ]; then
	launch 4 pt2pt/rg_latency --over native -m 8 -i 20 -x 0 --json "$work/latency.jsonl"
	expect "rg_latency" [ $rc -eq 0 ]
	launch 2 pt2pt/rg_verbs_hotspot -m 4K -i 5 --json "$work/hotspot.jsonl"
	expect "rg_verbs_hotspot" [ $rc -eq 0 ]
	more_files="$more_files $work/latency.jsonl $work/hotspot.jsonl"
fi
py validate "$schema" "$work/bw.jsonl" "$work/all.jsonl" "$work/pairs.jsonl" $more_files >"$out"
rc=$?
expect "records are valid by the schema" [ $rc -eq 0 ]

# ---- Interfaces of native messages: Open MPI's TCP between ranks of one host takes lo ----
if [ "$RG_MPI_FLAVOR" = openmpi ]; then
	OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self
	export OMPI_MCA_pml OMPI_MCA_btl
	launch 2 pt2pt/rg_bw --over native -m 1K -i 20 --json "$work/tcp.jsonl"
	unset OMPI_MCA_pml OMPI_MCA_btl
	[ $rc -ne 0 ] || expect "native messages through lo" \
		grep -q '"native":{"alone":true,"interfaces":\[.*"name":"lo","kind":"net","hosts":1' "$work/tcp.jsonl"
fi

# ---- Names ----
expect "a name is in a file without --redact" grep -q "\"$(uname -n)\"" "$work/bw.jsonl"
expect "a path is in a file without --redact" grep -qF "$work" "$work/bw.jsonl"
expect "no host, no path with --redact" py hosts "$work/all.jsonl" "\"$(uname -n)\"" "$work" "$PWD"
expect "placeholders" grep -q '"names":\["host1"\].*/path1' "$work/all.jsonl"

# Three hosts by name, of which the last has another processor: two groups.
if unshare -um sh -c 'mount --bind /dev/null /proc/cpuinfo && hostname other' 2>/dev/null; then
	cat >"$work/host" <<'END'
rank=${OMPI_COMM_WORLD_RANK-$PMI_RANK}
exec unshare -um sh -c 'hostname "rg-node$0" && { [ "$0" -ne 2 ] || mount --bind "$1" /proc/cpuinfo; } &&
	shift && exec "$@"' "$rank" "$@"
END
	echo 'model name : Another' >"$work/cpuinfo"
	for redact in '' --redact; do
		launch 3 sh "$work/host" "$work/cpuinfo" collective/rg_allreduce --over native -m 8 -i 5 \
			--json "$work/hosts$redact.jsonl" $redact
		expect "three hosts $redact" [ $rc -eq 0 ]
	done
	py validate "$schema" "$work/hosts.jsonl" "$work/hosts--redact.jsonl" >"$out"
	rc=$?
	expect "records of three hosts are valid" [ $rc -eq 0 ]
	expect "identical hosts are grouped" py groups "$work/hosts.jsonl" rg-node0,rg-node1 rg-node2
	expect "placeholders are grouped" py groups "$work/hosts--redact.jsonl" host1,host2 host3
	expect "no host has its name" py hosts "$work/hosts--redact.jsonl" rg-node "$work"
fi

# ---- Files of another origin ----
echo "my notes" >"$work/notes"
cp "$work/notes" "$work/notes.kept"
for option in json samples; do
	refused pt2pt/rg_bw 2 "--$option .*notes: exists and is no file" --over native -m 8 -i 5 --$option "$work/notes"
	expect "--$option leaves it" cmp -s "$work/notes" "$work/notes.kept"
done
refused pt2pt/rg_bw 2 "--json .*bw.csv: exists" --over native -m 8 -i 5 --json "$work/bw.csv"
refused pt2pt/rg_bw 2 'one file (accepted: two)' --over native -m 8 -i 5 --json "$work/new" --samples "$work/./new"
expect "none is made" [ ! -e "$work/new" ]
launch 2 pt2pt/rg_bw --over native -m 8 -i 5 --json "$work/notes" --samples "$work/bw.csv" --overwrite
expect "--overwrite" [ $rc -eq 0 -a "$(grep -c '"type":"end"' "$work/notes")" -eq 1 ]
expect "samples are replaced" [ "$(grep -c '^0,native,8,' "$work/bw.csv")" -eq 5 -a "$(wc -l <"$work/bw.csv")" -eq 6 ]

# ---- A run that was ended goes on ----
go_on() {
	launch 2 pt2pt/rg_bw --over native,single --sizes 8:32 -i 5 -x 1 --json "$work/on.jsonl" \
		--samples "$work/on.csv" "$@"
}
rows() {
	grep -c '"type":"row"' "$work/on.jsonl"
}
go_on
# A torn row of the second size.
head -n 5 "$work/on.jsonl" | head -c -9 >"$work/ended"
cp "$work/ended" "$work/on.jsonl"
cp "$work/on.csv" "$work/ended.csv"
go_on --continue
expect "--continue" [ $rc -eq 0 -a "$(rows)" -eq 6 ]
expect "... rows that were finished stay as they are" \
	[ "$(sed -n 2,3p "$work/on.jsonl")" = "$(sed -n 2,3p "$work/ended")" ]
expect "... the end counts them" grep -q '"type":"end".*"rows":6' "$work/on.jsonl"
expect "... their samples, too" \
	[ "$(grep '^0,[a-z]*,8,' "$work/on.csv")" = "$(grep '^0,[a-z]*,8,' "$work/ended.csv")" ]
expect "... samples of others once" [ "$(grep -c '^0,[a-z]*,\(16\|32\),' "$work/on.csv")" -eq 20 ]
expect "... the table has all" [ "$(grep -c '^ *\(8\|16\|32\) ' "$out")" -eq 3 ]
expect "... a line and the record" [ "$(grep -c '^# continued: 2 rows are of a run that was ended$' "$out")" -eq 1 \
	-a "$(grep -c '"continued":{"rows":2,"times":1}' "$work/on.jsonl")" -eq 1 ]
cp "$work/ended" "$work/on.jsonl"
go_on --continue -W 32
expect "--continue, other options" grep -q \
	"^# measured from the start: another job's rows were there (window)\$" "$out"
expect "... all rows" [ $rc -eq 0 -a "$(rows)" -eq 6 ]
go_on --continue -W 32
expect "--continue of a run that has finished" [ $rc -eq 0 -a "$(rows)" -eq 6 ]
expect "... measures anew" [ "$(grep -c 'continued' "$out")" -eq 0 ]
cp "$work/ended" "$work/on.jsonl"
echo damage >>"$work/on.jsonl"
go_on --continue
expect "--continue of a damaged file" [ $rc -eq 0 -a "$(rows)" -eq 6 ]

# ---- Full disks ----
if [ -w /dev/full ]; then
	for option in json samples; do
		launch 2 pt2pt/rg_bw --over native -m 8 -i 5 --$option /dev/full
		expect "--$option /dev/full: an error" [ $rc -ne 0 ]
		expect "--$option /dev/full: its reason" grep -q '^rg_bw: /dev/full: cannot be written: No space' "$err"
	done
fi
# A file system of 64 KiB.  on_disk LEFT OLD: the launch finds so many blocks of 4 KiB, and a file OLD.
tiny=$work/tiny
mkdir "$tiny"
on_disk() {
	in_turn unshare -rm sh -c 'tiny=$1 left=$2 old=$3
		shift 3
		mount -t tmpfs -o size=64k none "$tiny" || exit 99
		[ -z "$old" ] || cp "$old" "$tiny/r.jsonl"
		head -c 64K /dev/zero >"$tiny/fill" 2>/dev/null
		truncate -s "-$((left * 4096))" "$tiny/fill"
		"$@" --json "$tiny/r.jsonl"
		rc=$?
		rm -f "$tiny.jsonl"
		cp "$tiny/r.jsonl" "$tiny.jsonl"
		ls "$tiny" >"$tiny.ls"
		exit $rc' sh "$tiny" "$1" "$2" $launcher 2 pt2pt/rg_bw --over native,single -m 1:1M -i 5 >"$out" 2>"$err"
	rc=$?
}
if unshare -rm mount -t tmpfs -o size=16k none "$tiny" 2>/dev/null; then
	on_disk 1 "$work/all.jsonl"
	expect "no room for the run record: exit code 3" grep -q 'r.jsonl: cannot be written: No space' "$err"
	expect "no room for the run record: an error" [ $rc -ne 0 -a $rc -ne 99 ]
	expect "the old file is whole" cmp -s "$tiny.jsonl" "$work/all.jsonl"
	expect "nothing half-written" [ "$(tr '\n' ' ' <"$tiny.ls")" = "fill r.jsonl " ]
	on_disk $(($(head -n 1 "$work/bw.jsonl" | wc -c) / 4096 + 1)) ""
	expect "no room for all rows: an error" [ $rc -ne 0 -a $rc -ne 99 ]
	expect "no room for all rows: a line" grep -q 'r.jsonl: cannot be written: No space left on device (rows' "$err"
	show "$tiny.jsonl"
	expect "the rows before are read" [ $rc -eq 0 ]
	expect "a job that did not finish" grep -q 'no end record: the job did not finish' "$err"
fi

# ---- Tables ----
mkdir "$work/launches"
py launches "$work/bw.jsonl" "$work/launches"
show "$work/launches" --csv
expect "show --csv" [ $rc -eq 0 ]
cp "$out" "$work/merged.csv"
expect "medians over launches" py merged "$work/merged.csv" "$work"/launches/*.jsonl
show "$work/launches"
expect "show says launches" grep -q ', 7 launches$' "$out"
expect "show has a line per size" [ "$(grep -c '^[0-9]' "$out")" -eq 3 ]
show "$work/launches" --full
expect "show --full says what intervals are of" \
	grep -q '7 launches; Low and High: 95 % interval of the median over launches$' "$out"
show "$work/launches" "$work/bw.jsonl" "$work/notes" --latex
expect "files of other options are columns" grep -q '^Size & launch0:native (MB/s) & .* & notes:native (MB/s) ' "$out"
expect "LaTeX is whole" grep -q '^\\end{tabular}' "$out"
show "$work/pairs.jsonl"
expect "a matrix" grep -q '^# over single' "$out"
show "$work/pairs.jsonl" --latex
expect "no matrix for LaTeX" [ $rc -eq 3 -a "$(wc -l <"$err")" -eq 1 ]
show --csv --latex "$work/bw.jsonl"
expect "--csv and --latex" [ $rc -eq 3 -a "$(wc -l <"$err")" -eq 1 ]
show
expect "no file: exit code 3" [ $rc -eq 3 -a "$(wc -l <"$err")" -eq 1 ]
show "$work/none.jsonl"
expect "a missing file" [ $rc -eq 3 -a "$(wc -l <"$err")" -eq 1 ]
mkdir "$work/empty"
show "$work/empty"
expect "an empty directory" grep -q 'no result file (accepted: a directory with \*.jsonl)' "$err"
sed -i 2d "$work/launches/launch0.jsonl"
show "$work/launches/launch0.jsonl"
expect "a missing row" grep -q 'damaged: 5 rows, and the end record counts 6' "$err"
show "$work/launches/launch0.jsonl" "$work/bw.jsonl"
expect "the other file is shown" [ $rc -eq 3 -a "$(grep -c '^[0-9]' "$out")" -eq 3 ]
src/cli/railgauge show "$work/bw.jsonl" >/dev/full 2>"$err"
rc=$?
expect "show >/dev/full" [ $rc -eq 4 -a "$(wc -l <"$err")" -eq 1 ]
show "$srcdir/tests/report/schema1.jsonl"
expect "a file of schema 1" grep -q '^8  *' "$out"
expect "a file of schema 1: no complaint" [ $rc -eq 0 -a ! -s "$err" ]

# ---- A long file: memory is limited, time is not judged ----
[ -n "${RG_LONG-}" ] && count=1000000 || count=20000
py rows "$work/long.jsonl" $count
if [ "$RG_SANITIZE" = no ]; then
	(ulimit -v 1000000 && exec src/cli/railgauge show --csv "$work/long.jsonl") >"$out" 2>"$err"
	rc=$?
	expect "$count rows" [ $rc -eq 0 ]
	expect "each is shown" [ "$(wc -l <"$out")" -eq $((count + 1)) ]
	(ulimit -v 1000000 && exec src/cli/railgauge report --no-plot "$work/long.jsonl") >"$out" 2>"$err"
	rc=$?
	expect "report: $count rows" [ $rc -eq 0 -a "$(grep -c '^[0-9]' "$out")" -eq $((count / 2)) ]
fi
finish
