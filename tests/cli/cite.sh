#!/bin/sh
# railgauge cite: sentence, method, BibTeX; CITATION.cff.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/cli/known_records.sh"

rc=0 caption=none
cite() {
	src/cli/railgauge cite "$@" >"$out" 2>"$err"
	rc=$?
	grep -v '^WARNING\|^Method' "$out" | sed '/^@/,$d; /^$/d' >"$work/sentence"
}
says() {
	expect "says: $1" grep -qF -- "$1" "$out"
}
# refused_cite WHAT WORDS: exit code 3, one line with the words, no output
refused_cite() {
	expect "$1: exit code 3" [ $rc -eq 3 ]
	expect "$1: one line" [ "$(wc -l <"$err")" -eq 1 ]
	expect "$1: says $2" grep -q -- "$2" "$err"
	expect "$1: no output" [ ! -s "$out" ]
}
# field NAME: of the first entry with it
field() {
	sed '1,/^@/{/^@/!d}' "$out" | awk -f "$srcdir/tests/cli/bibtex.awk" | awk -F'\t' -v name="$1" '$2 == name { print $3; exit }'
}

records "$work/bw.jsonl"
records_latency "$work/latency.jsonl"
records_pairs "$work/pairs.jsonl"
records_app "$work/is.jsonl"
records_old "$work/old.jsonl"

# ---- The sentence: every number is in the records ---------------------------------------------------

# numbers FILE SIZE: each number of the sentence is one of the file, rounded; sizes in KiB are sizes
numbers() {
	grep '"type":"run"\|"bytes":'"$2"',' "$1" | grep -oE '[0-9]+(\.[0-9]+)?' >"$work/known"
	sed 's/95 %//g; s/([0-9]* [KMG]iB)//; s/with 2 ranks on 2 hosts//; s/commit [0-9a-f]*//; s/0\.1\.0//; s/-/ /g' \
		"$work/sentence" | grep -oE '[0-9]+(\.[0-9]+)?' >"$work/said"
	awk 'FNR == NR { known[n++] = $1; next }
		{
			said++
			digits = index($1, ".") ? length($1) - index($1, ".") : 0
			for (i = 0; i < n; i++)
				if (sprintf("%." digits "f", known[i]) + 0 == $1 + 0)
					next
			print "not in the record: " $1
			unknown = 1
		}
		END { exit unknown || said < 3 }' "$work/known" "$work/said"
}

cite "$work/bw.jsonl"
expect "a citation" [ $rc -eq 0 -a ! -s "$err" ]
expect "the numbers of bw are recorded" numbers "$work/bw.jsonl" 4194304
says 'rg_bw (Railgauge 0.1.0, commit 0123456789ab) measured a median bandwidth, for messages of 4194304 bytes (4 MiB), of'
says '999.1 MB/s over native (95 % interval 949.2 to 1049.1; another fabric, such as shared memory)'
says 'with 2 ranks on 2 hosts'
says 'a model in software, not hardware), on 2026-03-04.'
expect "not citable: the first line has the reasons" \
	[ "$(head -n 1 "$out")" = 'WARNING: not citable as it is: 1 launch, fewer than 6; noise in 2 of 39 rows.' ]
says 'Method: 1 launch; 100 samples a value in 20 batches; the ways take turns.'
says 'from order statistics of 20 batches of the launch.'
says 'Timing: local (each pair of ranks times itself).'
says 'Clock: CLOCK_MONOTONIC, clock source tsc'
says 'Options given: iterations=100;'
says 'MB/s are 10^6 bytes per second'
for size in 1K 1024; do
	cite --size $size "$work/bw.jsonl"
	expect "--size $size" grep -q 'messages of 1024 bytes (1 KiB), of .*stripe (95 % interval [0-9. to]*; validation failed)' "$out"
	expect "the numbers of 1K are recorded" numbers "$work/bw.jsonl" 1024
done
cite --size 64 "$work/bw.jsonl"
says 'over single (95 % interval 29.35 to 32.44; not converged)'
cite "$work/latency.jsonl"
says 'a median latency, for messages of 0 bytes, of 2.500 us over stripe (no interval)'
expect "citable: no warning" [ "$(grep -c WARNING "$out")" -eq 0 ]
says 'Interval: none is recorded.'
says 'Timing: not recorded.'
cite "$work/old.jsonl"
says 'a mean bandwidth, for messages of 4096 bytes (4 KiB), of 4096 MB/s over single (no interval)'
expect "no verdict: it follows from the records" \
	[ "$(head -n 1 "$out" | grep -c '^WARNING: not citable as it is: .*1 launch, fewer than 6; not recorded: .*intervals')" -eq 1 ]
cite "$work/pairs.jsonl"
says "502.0 MB/s from node 'c' to node a over single:1"
expect "the numbers of pairs are recorded" numbers "$work/pairs.jsonl" 1048576
cite "$work/is.jsonl"
says 'for class S (65536), of 0.2500 Mop/s over native (no interval) and'

# ---- Fabrics ----------------------------------------------------------------------------------------

change() {
	sed "$1" "$work/bw.jsonl" >"$work/x.jsonl"
	cite "$work/x.jsonl"
}
change '1s/"modelled":true/"modelled":false/; 1s/software HCA (libsofthca), 2 ports, 1 GB.s"/ConnectX hardware"/'
says '(fabric: ConnectX hardware - software, not hardware)'
change '1s/"hardware":false/"hardware":true/; 1s/software HCA (libsofthca), 2 ports, 1 GB.s"/mlx5_0:1"/'
says '(fabric: mlx5_0:1), on'
change '1s/"fabric":{/"other":{/'
says '(fabric: not recorded)'
change '1s/"rails":\[[^]]*\]/"rails":[]/; 1s/fabric: software[^"]*/fabric: no rails: native messages/'
says '(fabric: no rails: native messages)'

# ---- BibTeX -----------------------------------------------------------------------------------------

cite "$work/bw.jsonl" "$work/latency.jsonl"
sed '/^WARNING/d; /^rg_/d; /^Method/d' "$out" >"$work/bib"
expect "BibTeX is well formed" sh -c "awk -f '$srcdir/tests/cli/bibtex.awk' '$work/bib' >'$work/fields'"
expect "two runs, one software" [ "$(cut -f 1 "$work/fields" | sort -u | wc -l)" -eq 3 ]
for name in title howpublished year date version commit fabric host note; do
	expect "a run has $name" [ "$(awk -F'\t' -v name=$name '$1 ~ /-rg_bw-/ && $2 == name' "$work/fields" | wc -l)" -eq 1 ]
done
for name in author title version year note; do
	expect "the software has $name" \
		[ "$(awk -F'\t' -v name=$name '$1 == "railgauge-0.1.0-0123456789ab" && $2 == name' "$work/fields" | wc -l)" -eq 1 ]
done
expect "the host is escaped" grep -qF 'host         = {node\_1\&2}' "$out"
grep -o '^@misc{railgauge-rg_bw[^,]*' "$out" >"$work/key"
mkdir "$work/copy"
cp "$work/bw.jsonl" "$work/copy/other.jsonl"
cite "$work/copy"
expect "a directory; a copy has the same key" [ "$(grep -o '^@misc{railgauge-rg_bw[^,]*' "$out")" = "$(cat "$work/key")" ]
change '1s/05:06:07/05:06:08/'
expect "another run has another key" [ "$(grep -o '^@misc{railgauge-rg_bw[^,]*' "$out")" != "$(cat "$work/key")" ]
change '1s/"host":"node_1&2"/"host":"a\\\\b{c}d}$1 #2 50% x_y ~z ^ \\u001b[31m \\"q\\" é"/; 1s/"commit":"[0-9a-f]*"/"commit":"{\\n%\\u0007"/'
expect "special characters: a citation" [ $rc -eq 0 ]
sed '/^WARNING/d; /^rg_/d; /^Method/d' "$out" >"$work/bib"
expect "special characters are escaped" sh -c "awk -f '$srcdir/tests/cli/bibtex.awk' '$work/bib' >'$work/fields'"
expect "a backslash, a brace" grep -qF 'a\textbackslash{}b\textbraceleft{}c\textbraceright{}d\textbraceright{}\$1 \#2 50\% x\_y \textasciitilde{}z \textasciicircum{}' "$out"
expect "no control characters" [ "$(tr -d '\n' <"$out" | LC_ALL=C tr -dc '\001-\037' | wc -c)" -eq 0 ]

# ---- Launches --------------------------------------------------------------------------------------

mkdir "$work/launches"
for i in 1 2 3 4 5 6 7; do
	sed "s/05:06:07/05:06:0$i/; s/\"median\":2.5/\"median\":2$i.5/" "$work/latency.jsonl" >"$work/launches/$i.jsonl"
done
cite "$work/launches"
expect "launches: one citation" [ "$(grep -c '^Method' "$out")" -eq 1 ]
says 'Method: 7 launches, whose medians count as one value each'
says 'of 24.50 us over stripe (95 % interval 21.50 to 27.50)'
says 'from order statistics of 7 launches.'
expect "launches: a verdict of all of them" [ "$(head -n 1 "$out" | grep -c '^WARNING: not citable as it is: .*not recorded: ')" -eq 1 ]
expect "launches: they are enough" [ "$(grep -c 'launch.*, fewer than' "$out")" -eq 0 ]

# ---- Refusals ----------------------------------------------------------------------------------------

cite
refused_cite "no file" 'accepted: railgauge cite DIR|FILE'
cite "$work/none.jsonl"
refused_cite "a missing file" 'none.jsonl: No such file'
cite "$work/launches/1.jsonl" --size 3
refused_cite "a size without a row" 'accepted: 0, 8, 64'
cite --size huge "$work/latency.jsonl"
refused_cite "a size that is none" 'accepted: 0, 8, 64'
head -c 500 "$work/bw.jsonl" >"$work/torn.jsonl"
cite "$work/latency.jsonl" "$work/torn.jsonl"
refused_cite "a damaged file after a good one" 'torn.jsonl:1: damaged'
sed 's/"schema":2/"schema":99/' "$work/bw.jsonl" >"$work/newer.jsonl"
cite "$work/newer.jsonl" "$work/latency.jsonl"
refused_cite "a newer file" 'newer.jsonl:1: .*schema'
echo '{"tool":"other"}' >"$work/foreign.jsonl"
cite "$work/foreign.jsonl"
refused_cite "a foreign file" 'not a Railgauge result file'
sed '/"type":"row"/d; s/"rows":39/"rows":0/' "$work/bw.jsonl" >"$work/empty.jsonl"
cite "$work/empty.jsonl"
refused_cite "no rows" 'nothing to cite'
if [ -w /dev/full ]; then
	src/cli/railgauge cite "$work/bw.jsonl" >/dev/full 2>"$err"
	rc=$?
	expect "a full standard output: exit code 4, one line" [ $rc -eq 4 -a "$(wc -l <"$err")" -eq 1 ]
fi

# ---- CITATION.cff ------------------------------------------------------------------------------------

cff=$srcdir/CITATION.cff
for key in cff-version message title authors type version license abstract; do
	expect "CITATION.cff has $key" [ "$(grep -c "^$key:" "$cff")" -eq 1 ]
done
expect "CITATION.cff: cff-version" grep -qx 'cff-version: 1\.2\.0' "$cff"
expect "CITATION.cff: a name of each author" grep -qE '^  - (name|family-names): .' "$cff"
expect "CITATION.cff: version of configure.ac" \
	[ "$(sed -n 's/^version: //p' "$cff")" = "$(sed -n 's/^AC_INIT(\[railgauge\], \[\([^]]*\)\].*/\1/p' "$srcdir/configure.ac")" ]
# A version has a date when it is released: both files say so, with the same date.
released=$(sed -n '3s/^[0-9.]* (\(.*\))$/\1/p' "$srcdir/NEWS")
expect "NEWS: a date, or 'not released'" \
	sh -c "echo '$released' | grep -qxE 'not released|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])'"
expect "CITATION.cff: the date of NEWS, or none" \
	[ "$(sed -n 's/^date-released: //p' "$cff")" = "$(echo "$released" | sed 's/^not released$//')" ]
url=$(sed -n 's/^AC_INIT(\[[^]]*\], \[[^]]*\], \[[^]]*\], \[[^]]*\], \[\([^]]*\)\].*/\1/p' "$srcdir/configure.ac")
expect "CITATION.cff: the address of configure.ac" [ "$(sed -n 's/^repository-code: //p' "$cff" | tr -d '"')" = "$url" ]
expect "CITATION.cff: no tabs, known keys" sh -c "! grep -vE '^([a-z-]+:|  |#|\$)' '$cff' && ! grep -q '	' '$cff'"
finish
