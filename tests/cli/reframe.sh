#!/bin/sh
# The test classes for ReFrame (data/reframe/railgauge.py), by a stand-in for ReFrame: their programs run,
# and their patterns find in the real output what the records have.
. "$srcdir/tests/run-lib.sh"

command -v python3 >/dev/null || {
	echo "skipped: no python3"
	exit 77
}
classes=$(cd "$srcdir/data/reframe" && pwd)/railgauge.py
standin=$(cd "$srcdir/tests/cli" && pwd)/reframe.py
build=$PWD
# run CLASS: its program, small and with two rails, in $work/CLASS
run() {
	mkdir -p "$work/$1"
	# shellcheck disable=SC2046 # words are meant
	set -- "$1" $(python3 "$standin" "$classes" "$1" command)
	expect "$1: starts a program of two tasks" [ "$2" = 2 -a -x "pt2pt/${3-none}" ]
	class=$1 np=$2 program=$3
	shift 3
	# shellcheck disable=SC2016 # of the rank
	launch "$np" sh -c 'cd "$1" && shift && exec "$@"' sh "$work/$class" "$build/pt2pt/$program" "$@" \
		--soft ports=2,rate=1GB/s -m 64K -i 10 -x 2
	expect "$class: the program's exit code" [ $rc -eq 0 ]
	cp "$out" "$work/$class/stdout"
}
# judge CLASS: $out has what its functions say
judge() {
	(cd "$work/$1" && python3 "$standin" "$classes" "$1" judge stdout) >"$out" 2>"$err"
	rc=$?
}
# of CLASS PYTHON: an expression of the medians by way
of() {
	python3 -c 'import json, sys
m = {}
for line in open(sys.argv[1]):
    r = json.loads(line)
    if r["type"] == "row":
        m.setdefault(r["way"], []).append(r["median"])
a = sum(m.values(), [])
print(f"{eval(sys.argv[2]):.6g}")' "$work/$1/rails.jsonl" "$2"
}

run rail_bandwidth
judge rail_bandwidth
expect "rail_bandwidth: sane" grep -qx 'sanity: True' "$out"
expect "rail_bandwidth: single" grep -qx "single: $(of rail_bandwidth 'm["single"][0]') MB/s" "$out"
expect "rail_bandwidth: stripe" grep -qx "stripe: $(of rail_bandwidth 'm["stripe"][0]') MB/s" "$out"
expect "rail_bandwidth: gain" \
	grep -qx "gain: $(of rail_bandwidth 'm["stripe"][0] / m["single"][0]')" "$out"
run rail_pairs
judge rail_pairs
expect "rail_pairs: sane" grep -qx 'sanity: True' "$out"
expect "rail_pairs: four cells" [ "$(of rail_pairs 'len(a)')" = 4 ]
expect "rail_pairs: the slowest" grep -qx "slowest: $(of rail_pairs 'min(a)') MB/s" "$out"
expect "rail_pairs: its share of the mean" \
	grep -qx "share: $(of rail_pairs 'min(a) / (sum(a) / len(a))')" "$out"

# ---- What is not sane ----
# spoilt WHAT CLASS FILE SED-SCRIPT
spoilt() {
	cp "$work/$2/$3" "$work/kept"
	sed "$4" "$work/kept" >"$work/$2/$3"
	judge "$2"
	expect "$1: exit code 1" [ $rc -eq 1 ]
	expect "$1: no sanity" grep -qx 'sanity: False' "$out"
	cp "$work/kept" "$work/$2/$3"
}
spoilt "wrong data" rail_bandwidth stdout 's/Pass$/Fail/'
spoilt "one row of two is wrong" rail_bandwidth stdout 's/^65536 .*/&\n&/; s/Pass$/Fail/'
spoilt "no row" rail_bandwidth stdout '/^65536/d'
spoilt "a program that failed" rail_bandwidth rails.jsonl 's/"type":"end","status":0/"type":"end","status":1/'
spoilt "a program that was killed" rail_bandwidth rails.jsonl '/"type":"end"/d'
spoilt "cells with wrong data" rail_pairs stdout 's/^# validation: Pass.*/# validation: Fail: 0 to 1/'
finish
