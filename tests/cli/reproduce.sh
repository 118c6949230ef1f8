#!/bin/sh
# railgauge reproduce, --experiment: what papers did, as presets that the command line overrides.
. "$srcdir/tests/run-lib.sh"

reproduce() {
	src/cli/railgauge reproduce "$@" >"$out" 2>"$err"
	rc=$?
}

# says WORDS WHAT: exit code 3, one line with WORDS, nothing else.
says() {
	expect "$2: exit code 3" [ $rc -eq 3 ]
	expect "$2: one line" [ "$(wc -l <"$err")" -eq 1 ]
	expect "$2: says '$1'" grep -q -e "^railgauge: .*$1" "$err"
	expect "$2: nothing else" [ ! -s "$out" ]
}

program_at() {
	for room in pt2pt collective apps; do
		[ ! -x "$room/$1" ] || echo "$room/$1"
	done
}

reproduce
says 'no paper (accepted: p1, p3, p4, p5)' 'no paper'
reproduce p9 --list
says 'p9: unknown paper (accepted: p1, p3, p4, p5)' 'another paper'
reproduce p1 --time 20 --out "$work/none"
says 'time 20s: too short for 34 launches (accepted: [0-9]*s and more)' 'too little time'
reproduce p1 --out /dev/null
says 'out /dev/null: .*(accepted: a directory, or' 'no directory'
reproduce p1 p1-fig20-pcie
says 'p1-fig20-pcie: unknown experiment (accepted: --list, or p1-fig2-pcie, ' 'an unknown id'
reproduce p1 p1-fig12-pcie more
says 'more: unexpected' 'three words'

reproduce p1 p1-fig14-pcie
expect "one in full" [ $rc -eq 0 ]
expect "its command" grep -q '^command: mpirun -np 2 rg_bibw --experiment p1-fig14-pcie$' "$out"
expect "its options" grep -q '^option: --threshold 8192$' "$out"
expect "its values" grep -q '^quoted: one port 1927 MB/s .*two ports 2721 MB/s' "$out"

reproduce p1 --list
cp "$out" "$work/list"
expect "38 ids" [ "$(cut -d' ' -f1 "$work/list" | sort -u | wc -l)" -eq 38 ]
for figure in 2 6 9 12 13 19; do
	expect "figure $figure twice" [ "$(grep -c " figure $figure " "$work/list")" -eq 2 ]
done

# Every command that is listed, made shorter.
# An experiment of each kind, with RG_LONG=1 all, except where ranks never yield.
case $RG_MPI_FLAVOR:${RG_LONG-} in
openmpi:?*) these=p1- all=16 ;;
*) these='p1-fig1[38]-pcie ' all=2 ;;
esac
grep "^$these" "$work/list" >"$work/these"
runs=0
while read -r id _ figure command; do
	set -- ${command%%#*}
	case $figure in
	18 | 19) less='-C S' ;;
	*) less='-i 2 -x 1 -m 8:64 --time-cap 0.1' ;;
	esac
	# The launcher would read the rest of the list.
	launch "$3" "$(program_at "$4")" "$5" "$6" --threshold 16K $less </dev/null
	runs=$((runs + 1))
	expect "$id runs" [ $rc -eq 0 ]
	expect "$id is named" grep -q "^# experiment: $id, P1 figure $figure, " "$out"
	expect "$id quotes" grep -q '^# quoted: ' "$out"
	expect "$id says what is changed" \
		grep -q '^# not as preset: .*threshold 16K (8192)' "$out"
	expect "$id compares" grep -q '^# stripe: .*threshold=16K.*completion=control' "$out"
done <"$work/these"
expect "all of them were run" [ "$runs" -eq $all ]

# In the record, and again from it.
launch 2 pt2pt/rg_bw --experiment p1-fig13-pcie -i 2 -m 8:16 --threshold 4K --json "$work/x.jsonl"
expect "with a record" [ $rc -eq 0 ]
expect "quoted as the paper's" grep -q \
	'^# quoted: one port 971 MB/s .*two ports 1497 MB/s.*on the paper.s hardware' "$out"
expect "the command line wins" grep -q '^# stripe: .*(threshold=4K' "$out"
expect "... and is told" grep -q '^# not as preset: .*threshold 4K (8192)' "$out"
expect "recorded apart" grep -q '"experiment": *{.*"quoted_from_paper": *\[' "$work/x.jsonl"
expect "recorded origin" grep -q \
	'"window": *{"value": *"64", *"from": *"experiment"}' "$work/x.jsonl"
cp "$out" "$work/first"
src/cli/railgauge report --no-plot "$work/x.jsonl" >"$out" 2>"$err"
expect "the same table from it" cmp -s "$work/first" "$out"

# The environment wins over the preset, and may name it.
RAILGAUGE_WINDOW=7 RAILGAUGE_EXPERIMENT=p1-fig14-pcix
export RAILGAUGE_WINDOW RAILGAUGE_EXPERIMENT
launch 2 pt2pt/rg_bibw -i 2 -x 1 -m 8
expect "from the environment" grep -q '^# experiment: p1-fig14-pcix' "$out"
expect "the environment wins" grep -q '^# window: 7 messages' "$out"
expect "nothing is invented" grep -q '^# quoted: no value of this adapter' "$out"
unset RAILGAUGE_WINDOW RAILGAUGE_EXPERIMENT
launch 2 pt2pt/rg_bw -i 2 -x 1 -m 8
expect "without it no word of it" [ "$(grep -c 'experiment\|quoted' "$out")" -eq 0 ]

# Not on as many ranks.
launch 2 collective/rg_bcast --experiment p1-fig16-pcie -i 2 -x 1 -m 8 --nodes 2
expect "other ranks are told" grep -q '^# not as preset: 2 ranks (4), nodes 2 (4)' "$out"

refused pt2pt/rg_bw 2 '--experiment x: unknown (accepted: p1-fig13-pcie, p1-fig13-pcix, p4-window-64-1400, p4-window-128-1400, p4-window-256-1400, p4-window-64-8600, p4-window-128-8600, p4-window-256-8600)' \
	--experiment x
refused apps/rg_is 4 '--experiment ../p1: unknown (accepted: p1-fig18' --experiment ../p1
refused pt2pt/rg_bw 2 '--experiment p1-fig18-pcie: one of rg_is (accepted: p1-fig13-pcie' \
	--experiment p1-fig18-pcie
refused pt2pt/rg_mr 2 'one of rg_bw (accepted: none' --experiment p1-fig13-pcie

# All of a paper: one that has all kinds of experiments.
mkdir "$work/papers"
some() {
	echo "{\"id\": \"t1-$1\", \"figure\": 1, \"program\": \"$2\", \"ranks\": [2], \"cells\": 6,"
	echo "\"adapter\": \"an adapter\", \"shows\": \"this\", \"options\": {$3}, \"quoted\": [$4]}$5"
}
small='"sizes": "64:256", "iterations": "4", "warmup": "1", "soft": "ports=2"'
{
	echo '{"paper": "t1", "title": "A paper", "source": "of nobody", "experiments": ['
	some a rg_bw "$small, \"over\": \"single,stripe\"" '
		{"what": "one port", "value": 50, "unit": "MB/s", "way": "single", "x": 256,
		 "calibrated": "rate"},
		{"what": "two ports", "value": 2, "unit": "MiB/s", "way": "stripe", "x": 64},
		{"what": "of no row", "value": 1, "unit": "MB/s", "way": "single", "x": 300},
		{"what": "a relation", "value": 47, "unit": "%"},
		{"what": "a gain", "value": 8, "unit": "%", "better": "t1-a stripe", "than": "single"},
		{"what": "over another", "value": 8, "unit": "%", "better": "t1-z stripe", "than": "single"}' ,
	some b rg_verbs_lat "$small" '' , | sed 's/"shows": "this"/&, "differs": "so and so"/'
	some c rg_bw '"windows": "1"' '' ,
	some d rg_is '"class": "S"' ''
	echo ']}'
} >"$work/papers/t1.json"
in_turn env RAILGAUGE_DATA="$work/papers" timeout 120 src/cli/railgauge reproduce t1 --out "$work/t1" \
	--launcher "$MPIRUN" --time 60 >"$out" 2>"$err"
rc=$?
# median WAY SIZE: of the record
median() {
	sed -n "/\"way\": *\"$1\"/{/\"bytes\": *$2,/s/.*\"median\": *\([0-9.e+]*\).*/\1/p}" "$work/t1/t1-a.jsonl"
}
# near PRINTED VALUE: it is the value, to the last of the digits that reproduce prints
near() {
	holds "($1 - ($2)) ^ 2 <= \
		(0.51 * (($2) < 10 ? 1e-3 : ($2) < 100 ? 1e-2 : ($2) < 1000 ? 0.1 : 1)) ^ 2"
}
# compared WHAT FACTOR WAY SIZE PAPER: the line has the record's median, times the factor
compared() {
	line=$(sed -n "s/^1 *t1-a *$1  *//p" "$out")
	set -- "$(median "$3" "$4")" "$2" "$5" $line
	near "$5" "$1 * $2" &&
		holds "$4 == $3 && ($7 - $1 * $2 / $3) ^ 2 < (2e-3 + 1e-3 * $7) ^ 2"
}
expect "a paper with one that fails" [ $rc -eq 4 ]
expect "the estimate" grep -q '^# 3 of 4 experiments, about [0-9]* s: 18 cells of 1.00 s' "$out"
expect "no hardware" grep -q '^# fabric: models .* not hardware' "$out"
expect "beside the paper" compared 'one port' 1 single 256 50
expect "... calibrated" grep -q '^1 .* one port .* MB/s .*  calibrated: rate\(; doubtful\)\?$' "$out"
expect "in its unit" compared 'two ports' 0.95367431640625 stripe 64 2
expect "... predicted" grep -q '^1 .* two ports .* MiB/s .*  predicted\(; doubtful\)\?$' "$out"
expect "no row" grep -q '^1 .* of no row  *1  *-  *MB/s  *-  no such row was measured$' "$out"
expect "no number" grep -q '^1 .* a relation  *47  *-  *%  *-  not compared$' "$out"
gain=$(for size in 64 128 256; do echo "$(median stripe $size) $(median single $size)"; done |
	awk '{ share = ($1 / $2 - 1) * 100; if (NR == 1 || share > most) most = share } END { printf "%.10g\n", most }')
expect "the most by which a way is ahead ($gain %)" near "$(sed -n \
	's/^1 .* a gain  *8  *\([-0-9.]*\)  *%.*predicted\(; doubtful\)\{0,1\}$/\1/p' "$out")" "$gain"
expect "another table" grep -q '^1 .* over another  *8  *-  *%  *-  no such row was measured$' "$out"
expect "no paper's value" grep -q '^1 *t1-b  *single at 64  *-  *[0-9.]* *us .*no value' "$out"
expect "a wrong number of cells" [ "$(grep -c '^# t1-b: its table has 3 cells, .* says 6$' "$out")" -eq 1 ]
expect "... and no other" [ "$(grep -c ': its table has ' "$out")" -eq 1 ]
expect "what differs" grep -q '^# t1-b: differs: so and so$' "$out"
expect "what failed" grep -q "^railgauge: t1-c: exit code [0-9]*; .* $work/t1/t1-c.txt" "$err"
expect "... in one line" [ "$(wc -l <"$err")" -eq 1 ]
expect "... with its words" grep -q 'option windows is none' "$work/t1/t1-c.txt"
expect "what was left out" grep -q '^# left out: t1-d: .*: mpirun -np 2 rg_is --experiment t1-d' "$out"
expect "the tables" grep -q '^# experiment: t1-a, T1 figure 1' "$work/t1/t1-a.txt"
src/cli/railgauge report --no-plot "$work/t1/t1-a.jsonl" >"$work/again" 2>"$err"
expect "records" grep -q '^# experiment: t1-a' "$work/again"
# The paper's values in the figure, in its unit: 2 MiB/s are 2.097152 MB/s.
src/cli/railgauge report "$work/t1/t1-a.jsonl" >"$out" 2>"$err"
rc=$?
case $rc in
0) ;;
*) expect "no more is missing than gnuplot" grep -q 'gnuplot not found\|is written but not drawn' "$err" ;;
esac
expect "open circles" [ "$(grep -c 'pt 6 .*in the paper' "$work/t1/t1-a.gp")" -eq 2 ]
expect "their place" grep -q '^64 2.097152$' "$work/t1/t1-a.dat"
expect "... and another" grep -q '^256 50$' "$work/t1/t1-a.dat"
RAILGAUGE_DATA=$work/papers src/cli/railgauge reproduce t1 --out "$work/t2" --launcher /nowhere/mpirun \
	--time 60 >"$out" 2>"$err"
expect "no launcher: told once" [ "$(grep -c '^railgauge: --launcher /nowhere/mpirun: cannot' "$err")" -eq 1 ]
expect "no launcher: nothing else" [ "$(wc -l <"$err")" -eq 1 ]
# A launcher that leaves a record, of a machine that cannot keep the model.
mkdir "$work/slow"
{
	echo '{"paper": "t3", "title": "A paper", "source": "of nobody", "experiments": ['
	some a rg_bw "$small" '{"what": "one port", "value": 50, "unit": "MB/s", "way": "single", "x": 64},
		{"what": "of no row", "value": 1, "unit": "MB/s", "way": "single", "x": 300}' |
		sed 's/"t1-/"t3-/; s/"cells": 6/"cells": 1/'
	echo ']}'
} >"$work/slow/t3.json"
cat >"$work/mpirun" <<END
#!/bin/sh
until [ "\$1" = --json ]; do
	shift
done
cp "$work/cell.jsonl" "\$2"
END
chmod +x "$work/mpirun"
# leaves DOUBT OVERSUBSCRIBED WAIT: reproduce, with a record that has these
leaves() {
	cat >"$work/cell.jsonl" <<-END
		{"schema":1,"type":"run","program":"rg_bw","title":"a test","metric":"bandwidth","unit":"MB/s","ways":["single"],"oversubscribed":$2,"fabric":{"hardware":false,"modelled":true,"text":"x","rails":[{}],"doubt":"$1"}}
		{"schema":1,"type":"row","way":"single","bytes":64,"n":9,"mean":25.0,"median":25.0,"noise":{"wait_ns":$3,"wait_ns_most":$3,"rank":1,"wall_ns":1000000000}}
		{"schema":1,"type":"end","status":0,"rows":1}
	END
	RAILGAUGE_DATA=$work/slow reproduce t3 --out "$work/t4" --launcher "$work/mpirun" --time 60
	expect "a record that was left" [ $rc -eq 0 ]
}
leaves 'its rate is too high' true 120000000
expect "a doubtful ratio is marked" grep -q '^1 .* one port  *50  *25.00  *MB/s  *0.500  predicted; doubtful$' "$out"
expect "... and says why" grep -qFx \
	'# t3-a: doubtful: more ranks than cores; model: its rate is too high; noise in 1 of 1 rows' "$out"
expect "what has no ratio is not marked" grep -q '^1 .* of no row .*  no such row was measured$' "$out"
leaves '' false 0
expect "no doubt: no mark" grep -q '^1 .* one port  *50  *25.00  *MB/s  *0.500  predicted$' "$out"
expect "... and no line" [ "$(grep -c '^# t3-a: ' "$out")" -eq 0 ]

# Memory of another NUMA node, on machines with one and with two.
mkdir "$work/far"
{
	echo '{"paper": "t2", "title": "A paper", "source": "of nobody", "experiments": ['
	some a rg_bw "$small, \"buffers\": \"far\"" '' '' | sed 's/"t1-/"t2-/'
	echo ']}'
} >"$work/far/t2.json"
far() {
	HWLOC_XMLFILE=$srcdir/tests/topo/$1.xml RAILGAUGE_DATA=$work/far src/cli/railgauge reproduce t2 \
		--out "$work/t3" --launcher /nowhere/mpirun --time 60 >"$out" 2>"$err"
}
far none
expect "one NUMA node: left out" grep -q '^# left out: t2-a: this machine has one NUMA node: ' "$out"
expect "one NUMA node: nothing is started" [ "$(grep -c 'launcher' "$err")" -eq 0 ]
far far
expect "two NUMA nodes: not left out" [ "$(grep -c '^# left out' "$out")" -eq 0 ]
expect "two NUMA nodes: started" grep -q '^railgauge: --launcher /nowhere/mpirun: cannot' "$err"

# Damaged and missing files: named, with what is wrong.
good=$RAILGAUGE_DATA/p1.json
RAILGAUGE_DATA=$work/data
mkdir "$RAILGAUGE_DATA"
refused pt2pt/rg_bw 2 "$work/data: no papers' experiments" --experiment p1-fig13-pcie
damage() {
	sed "$1" "$good" >"$work/data/p1.json"
	refused pt2pt/rg_bw 2 "$work/data/p1.json:*[0-9]*: damaged: $2" --experiment p1-fig13-pcie
	reproduce p1 --list
}
damage '20q' ''
says 'p1.json:2[0-9]: damaged: ' 'a torn file'
damage 's/"ranks": \[2\]/"ranks": []/' 'experiment 0: ranks is not'
says 'p1.json: damaged: experiment 0: ranks is not' 'a wrong type'
damage 's/"value": 971/"value": "much"/' 'experiment 24: quoted 0: '
# Options are the program's to judge.
damage 's/"threshold": "8192"/"threshold": "0"/' 'p1-fig13-pcie: threshold 0: out of range'
damage 's/"window": "64"/"windows": "64"/' 'p1-fig13-pcie: option windows is none of rg_bw'
damage 's/"window": "64"/"json": "f"/' 'p1-fig13-pcie: option json is none of rg_bw'
expect "a preset writes no file" [ ! -e f ]
rm -r "$work/data"
refused pt2pt/rg_bw 2 "$work/data: experiments cannot be read: No such" --experiment p1-fig13-pcie
reproduce p1 --list
says "$work/data: experiments cannot be read: No such" 'no directory'

expect "nothing is left in /dev/shm" shm_is_clean
finish
