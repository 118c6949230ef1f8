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
says 'no paper (accepted: p1)' 'no paper'
reproduce p9 --list
says 'p9: unknown paper (accepted: p1)' 'another paper'
reproduce p1
says 'no experiment (accepted: --list, or p1-fig12-pcie, ' 'nothing of a paper'
reproduce p1 p1-fig20-pcie
says 'p1-fig20-pcie: unknown experiment (accepted: --list, or p1-fig12-pcie, ' 'an unknown id'
reproduce p1 p1-fig12-pcie more
says 'more: unexpected' 'three words'

reproduce p1 p1-fig14-pcie
expect "one in full" [ $rc -eq 0 ]
expect "its command" grep -q '^command: mpirun -np 2 rg_bibw --experiment p1-fig14-pcie$' "$out"
expect "its options" grep -q '^option: --threshold 8192$' "$out"
expect "its values" grep -q '^quoted: one port 1927 MB/s .*two ports 2721 MB/s' "$out"

reproduce p1 --list
cp "$out" "$work/list"
expect "16 ids" [ "$(cut -d' ' -f1 "$work/list" | sort -u | wc -l)" -eq 16 ]
for figure in 12 13 14 15 16 17 18 19; do
	expect "figure $figure twice" [ "$(grep -c " figure $figure " "$work/list")" -eq 2 ]
done

# Every command that is listed, made shorter.
# One of each kind, or with RG_LONG=1 all of them, but not where ranks never yield.
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

refused pt2pt/rg_bw 2 '--experiment x: unknown (accepted: p1-fig13-pcie, p1-fig13-pcix)' \
	--experiment x
refused apps/rg_is 4 '--experiment ../p1: unknown (accepted: p1-fig18' --experiment ../p1
refused pt2pt/rg_bw 2 '--experiment p1-fig18-pcie: one of rg_is (accepted: p1-fig13-pcie' \
	--experiment p1-fig18-pcie
refused pt2pt/rg_mr 2 'one of rg_bw (accepted: none' --experiment p1-fig13-pcie

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
damage 's/"value": 971/"value": "much"/' 'experiment 2: quoted 0: '
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
