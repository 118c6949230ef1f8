#!/bin/sh
# The figures of railgauge report: values, intervals, marks, colours and texts in scripts and data; failures
# of gnuplot.  No test compares pixels.
. "$srcdir/tests/run-lib.sh"
gnuplot --version >/dev/null 2>&1 || { echo "SKIP: no gnuplot"; exit 77; }
. "$srcdir/tests/cli/known_records.sh"

rc=0
caption="a caption of $(printf 'wörter %.0s' $(seq 40))$(printf 'x%.0s' $(seq 250)) it''s an end"
fig=$work/fig
mkdir "$fig"
report() {
	src/cli/railgauge report "$@" >"$out" 2>"$err"
	rc=$?
}
draw() {
	report --out "$fig" "$1"
	expect "$1 is drawn" [ $rc -eq 0 -a ! -s "$err" ]
}
# curve NAME: WAY BYTES VALUE LOW HIGH MARK of the data
curve() {
	awk '/^# way / { way = substr($0, 7); next } /^#/ || !NF { next } { print way, $1, $3, $4, $5, $6 }' \
		"$fig/$1.dat"
}
# same WHAT: $work/a and $work/b have equal words, numbers to 7 digits
same() {
	awk '{ for (i = 1; i <= NF; i++) printf "%s ", $i ~ /^[0-9.]+$/ ? sprintf("%.7g", $i) : $i; print "" }' \
		"$work/a" | sort >"$work/a.sorted"
	awk '{ for (i = 1; i <= NF; i++) printf "%s ", $i ~ /^[0-9.]+$/ ? sprintf("%.7g", $i) : $i; print "" }' \
		"$work/b" | sort >"$work/b.sorted"
	expect "$1" [ -s "$work/a.sorted" ]
	expect "$1" cmp "$work/a.sorted" "$work/b.sorted"
}
# colour NAME WAY: in the legend of a figure
colour() {
	sed -n "s/.*lc rgb '\(#[0-9a-f]*\)' title '$2[ ']*.*/\1/p" "$fig/$1.gp" | head -n 1
}

# ---- Curves ------------------------------------------------------------------------------------

records "$work/bw.jsonl"
records_latency "$work/latency.jsonl"
draw "$work/bw.jsonl"
for suffix in png svg dat gp; do
	expect "the name of .$suffix is printed" grep -q "^# written: .*$fig/bw\.$suffix" "$out"
	expect ".$suffix has contents" [ -s "$fig/bw.$suffix" ]
done
expect "nothing else is left" [ "$(ls -A "$fig" | wc -l)" -eq 4 ]
values "$work/bw.jsonl" >"$work/a"
curve bw | awk '{ NF = 5; print }' >"$work/b"
same "the values are medians, with their intervals"
expect "a band of each way" [ "$(grep -c 'using 2:4:5 with filledcurves' "$fig/bw.gp")" -eq 3 ]
expect "the band is explained" grep -q "95 % interval, within the launch" "$fig/bw.gp"
expect "the axis names median and unit" grep -q "set ylabel 'Bandwidth (MB/s), median'" "$fig/bw.gp"
expect "the legend is below the graph" grep -q "^set key below" "$fig/bw.gp"
expect "sizes are readable" grep -q "'0' 0.25, '1' 1, '8' 8, '64' 64, '512' 512, '4K' 4096, '32K' 32768, '256K' 262144, '2M' 2097152" "$fig/bw.gp"
expect "no power of ten at a tick" sh -c "! grep -q '>10<tspan' '$fig/bw.svg'"
expect "size 0 has a place, left of 1" [ "$(awk '$1 == 0 && $2 == 0.25' "$fig/bw.dat" | wc -l)" -eq 3 ]
expect "the place is marked" grep -q "set label 1000 '//' at 0.5, graph 0" "$fig/bw.gp"
curve bw | awk '$6 != 0 { print $1, $2, $6 }' >"$work/b"
printf 'single 64 1\nsingle 256 1\nstripe 1024 2\nnative 16384 1\n' >"$work/a"
same "doubtful rows and failed ones are marked"
expect "hollow symbols are explained" grep -q "title 'hollow: cut short, not converged, disturbed'" "$fig/bw.gp"
expect "crosses are explained" grep -q "title 'crossed: validation failed'" "$fig/bw.gp"
expect "another fabric is named, with the value that the axis does not show" \
	[ -n "$(grep "title 'native (other fabric" "$fig/bw.gp")" ]

# ---- Texts --------------------------------------------------------------------------------------

sed -n "s/^caption[0-9]* = '\(.*\)'$/\1/p" "$fig/bw.gp" | sed "s/'\\.\"'\"\\.'/'/g" >"$work/lines"
longest=$(while read -r line; do printf %s "$line" | LC_ALL=C.UTF-8 wc -m; done <"$work/lines" | sort -n | tail -n 1)
expect "a caption's lines have at most 108 characters, not $longest" [ "$longest" -le 108 -a "$longest" -gt 90 ]
expect "a caption is whole" [ "$(tr -d ' \n' <"$work/lines")" = "$(printf %s "$caption" | tr -d ' ')" ]
expect "SVG: role" grep -q 'role="img" aria-labelledby="title desc"' "$fig/bw.svg"
expect "SVG: title" grep -q '<title id="title">Railgauge rg_bw: Uni-directional bandwidth</title>' "$fig/bw.svg"
expect "SVG: description" grep -q '<desc id="desc">Bandwidth (MB/s), medians of rows, by way: native .*stripe ' "$fig/bw.svg"
expect "SVG: no name of gnuplot's" [ "$(grep -c '<title>Gnuplot\|Produced by GNUPLOT' "$fig/bw.svg")" -eq 0 ]
expect "SVG has an end" grep -q '^</svg>' "$fig/bw.svg"
expect "PNG is PNG" [ "$(head -c 4 "$fig/bw.png" | tail -c 3)" = PNG ]

# ---- Colours, other figures -----------------------------------------------------------------------

draw "$work/latency.jsonl"
for way in native stripe; do
	expect "$way: a colour in bw" [ -n "$(colour bw $way)" ]
	expect "$way has one colour: $(colour bw $way) $(colour latency $way)" \
		[ "$(colour bw $way)" = "$(colour latency $way)" ]
done
expect "ways have two colours" [ "$(colour bw native)" != "$(colour bw stripe)" ]
expect "a way of no table has a colour" [ -n "$(colour latency ring)" ]
expect "no interval: no band" [ "$(grep -c filledcurves "$fig/latency.gp")" -eq 0 ]
expect "times have ticks 1, 2, 5" grep -q "set ytics (.*'2' 2.*'5' 5" "$fig/latency.gp"

records_old "$work/old.jsonl"
draw "$work/old.jsonl"
expect "no median: the axis says mean" grep -q "set ylabel 'Bandwidth (MB/s), mean'" "$fig/old.gp"
printf 'single 1024 1024.5\nsingle 4096 4096.5\n' >"$work/a"
curve old | awk '{ NF = 3; print }' >"$work/b"
same "no median: means"
expect "no median: no band" [ "$(grep -c filledcurves "$fig/old.gp")" -eq 0 ]

records_pairs "$work/pairs.jsonl"
draw "$work/pairs.jsonl"
for axis in x y; do
	expect "names of nodes on both axes" grep -q "^set ${axis}tics .*'node a' 0, 'node b' 1, 'node '.*'c'.* 2)" "$fig/pairs.gp"
done
expect "a map for each way" [ "$(grep -c 'with image' "$fig/pairs.gp")" -eq 2 ]
expect "cells without a value are empty" [ "$(grep -c ' NaN ' "$fig/pairs.dat")" -eq 6 ]
expect "the slow cell, alone, is framed" \
	[ "$(awk '/^# way/ { way = $3 } !/^#/ && $7 == 1 { print way, $1, $2, $3 }' "$fig/pairs.dat")" = "single:1 2 0 502" ]
records_app "$work/is.jsonl"
draw "$work/is.jsonl"
expect "bars: total, communication, computation, Mop/s" \
	[ "$(sed -n 's/ # .*//; /^[0-9]/p' "$fig/is.dat" | tr '\n' ';')" = "0 3.25 1.125 2.125 0.25 ? ? 0;1 2.25 1.125 1.125 0.25 ? ? 0;" ]
for way in native stripe; do
	expect "bars: $way has its colour" grep -q "fc rgb '$(colour bw $way)'" "$fig/is.gp"
done
sed '/"bytes":0,/!{/"type":"row"/d}; s/"rows":9/"rows":3/' "$work/latency.jsonl" >"$work/zero.jsonl"
draw "$work/zero.jsonl"
expect "size 0 alone" grep -q "set xtics ('0' 0.25)" "$fig/zero.gp"

# ---- Launches of a job ------------------------------------------------------------------------------

# launches DIR FILE: six, with medians of 100 to 105 % of those of the file
launches() {
	mkdir "$1"
	for k in 0 1 2 3 4 5; do
		sed "s/05:06:07/05:06:0$k/" "$2" | awk -v k=$k '
			match($0, /"median":[0-9.]+/) {
				$0 = substr($0, 1, RSTART + 8) sprintf("%.6f", substr($0, RSTART + 9,
					RLENGTH - 9) * (1 + k / 100)) substr($0, RSTART + RLENGTH)
			}
			{ print }' >"$1/l$k.jsonl"
	done
}
launches "$work/launches" "$work/bw.jsonl"
records_latency "$work/launches/other.jsonl"
draw "$work/launches"
expect "a table of the launches, and one of the other job" [ "$(grep -c '^# Railgauge rg_' "$out")" -eq 2 ]
expect "the launches are said" grep -q '^# launches: 6; a value is the median' "$out"
expect "their figure has a name of its own" grep -q "^# written: $fig/l0-launches.png, " "$out"
expect "so has that of the other job" grep -q "^# written: $fig/other.png, " "$out"
values "$work/bw.jsonl" | awk '{ printf "%s %s %.5g %.5g %.5g\n", $1, $2, $3 * 1.025, $3, $3 * 1.05 }' >"$work/a"
curve l0-launches | awk '{ printf "%s %s %.5g %.5g %.5g\n", $1, $2, $3, $4, $5 }' >"$work/b"
same "medians over launches, with their interval"
expect "the band says so" grep -q "95 % interval, over launches" "$fig/l0-launches.gp"
curve l0-launches | awk '$6 != 0 { print $1, $2, $6 }' >"$work/a"
curve bw | awk '$6 != 0 { print $1, $2, $6 }' >"$work/b"
same "doubts of launches are marked"
for name in pairs is; do
	launches "$work/$name" "$work/$name.jsonl"
	draw "$work/$name"
	mv "$fig/l0-launches.dat" "$fig/$name-launches.dat"
done
expect "maps of launches" [ "$(grep -c ' NaN ' "$fig/pairs-launches.dat")" -eq 6 ]
expect "bars of launches" grep -q '^1 ' "$fig/is-launches.dat"

# A script is drawn again by hand.
(cd "$fig" && rm bw.png && gnuplot bw.gp) >"$out" 2>"$err"
expect "the script is whole" [ -s "$fig/bw.png" ]

# ---- Failures -------------------------------------------------------------------------------------

# check WHAT: no file of the earlier figure has changed; one line tells
check() {
	expect "$1: exit code $2, not $rc" [ $rc -eq "$2" ]
	expect "$1: one line" [ "$(wc -l <"$err")" -eq 1 ]
	expect "$1: earlier files are as before" sh -c "cd '$fig' && cksum bw.* | cmp -s - '$work/sums'"
	expect "$1: nothing is left" [ -z "$(find "$fig" -name '.*' -type d | grep -v '^'"$fig"'$')" ]
}
(cd "$fig" && cksum bw.* >"$work/sums")
# A limit of the file size, in units of 512 bytes, with the signal ignored: a write fails, as on a full disk.
(trap '' XFSZ; ulimit -f 40; src/cli/railgauge report --out "$fig" "$work/bw.jsonl" >/dev/null 2>"$err")
rc=$?
check "a picture that cannot be written" 4
(ulimit -f 40; src/cli/railgauge report --out "$fig" "$work/bw.jsonl" >/dev/null 2>"$err")
rc=$?
check "gnuplot that is killed" 4
report --out /proc "$work/bw.jsonl"
check "a directory without files" 3
mkdir "$work/taken" "$work/taken/bw.png"
report --out "$work/taken" "$work/bw.jsonl"
expect "a directory in the place of a picture: exit code 4" [ $rc -eq 4 -a "$(wc -l <"$err")" -eq 1 ]
# A full file system, where a user may mount one.
if unshare -rm true 2>/dev/null; then
	unshare -rm sh -c 'mount -t tmpfs -o size=32k none "$1" && src/cli/railgauge report --out "$1" "$2" >/dev/null 2>"$3"
		echo $? >"$4"; ls -A "$1" >"$5"' sh "$work/taken/bw.png" "$work/bw.jsonl" "$err" "$work/code" "$work/left"
	rc=$(cat "$work/code")
	expect "a full file system: exit code 4" [ "$rc" -eq 4 ]
	expect "a full file system: one line" [ "$(wc -l <"$err")" -eq 1 ]
	expect "a full file system: the reason" grep -q 'No space left' "$err"
	expect "a full file system: nothing is left" [ ! -s "$work/left" ]
fi
finish
