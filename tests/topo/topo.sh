#!/bin/sh
# railgauge topo: saved machines against what was written out by hand (tests/topo/*.txt; the
# machines are drawn in test_topo.c), damaged files, this machine, the software HCA.
. "$srcdir/tests/run-lib.sh"

machines=$srcdir/tests/topo
railgauge=$PWD/src/cli/railgauge
topo() {
	"$railgauge" topo "$@" >"$out" 2>"$err"
	rc=$?
}
silent() {
	[ ! -s "$err" ]
}
one_line() {
	[ "$(wc -l <"$err")" -eq 1 ]
}

# ---- Saved machines ----
for machine in dual slot far none; do
	cp "$machines/$machine.xml" "$work"
	cd "$work" || exit 99
	topo --xml $machine.xml
	cd "$OLDPWD" || exit 99
	expect "$machine: exit code 0" [ $rc -eq 0 ]
	expect "$machine: nothing on stderr" silent
	diff "$machines/$machine.txt" "$out" >"$work/diff"
	expect "$machine: as expected: $(cat "$work/diff")" [ ! -s "$work/diff" ]
done

topo --xml "$machines/dual.xml" --ranks 2
expect "two ranks" [ "$(grep -c '^[0-9]  *[0-9]-[0-9] ' "$out")" -eq 2 ]
expect "the second has cores 4-7 and a near rail" \
	grep -q '^1     4-7    1     mlx5_1:1 SYS  mlx4_0:1 PHB$' "$out"
expect "the second is far from its rail by rank" \
	grep -q '^by local rank, rank 1 uses rails of another package (SYS)' "$out"

# A package without a rail of its own.
sed '/mlx5_9/s/osdev_type="3"/osdev_type="2"/' "$machines/far.xml" >"$work/one.xml"
topo --xml "$work/one.xml"
expect "no rail is near ranks 0 and 1" \
	grep -q '^no rail is on the package of ranks 0-1: every path' "$out"
expect "which no way to bind could change" [ "$(grep -c 'by local rank' "$out")" -eq 0 ]

# Some devices that hwloc calls OpenFabrics have no verbs.
sed 's/name="mlx5_9"/name="cxi0"/' "$machines/far.xml" >"$work/cxi.xml"
topo --xml "$work/cxi.xml"
expect "a device without verbs is no rail" [ $rc -eq 0 -a "$(grep -c cxi0 "$out")" -eq 0 ]

# Wider slots: nothing to warn about, but what has another reason.
sed -e 's/16.0 GT\/s x16/32.0 GT\/s x16/; s/"8.0 GT\/s x16/"16.0 GT\/s x16/g' \
	"$machines/slot.xml" >"$work/wide.xml"
topo --xml "$work/wide.xml"
expect "no slot is a limit" [ "$(grep -c 'the slot is the limit' "$out")" -eq 0 ]
expect "no link is slow" [ "$(grep -c 'its PCIe link' "$out")" -eq 0 ]
expect "the rates are unequal as before" grep -q '^unequal rates: ' "$out"

# ---- Values of a file that make no sense are not known ----
sed -e 's/Port1Rate" value="25GB/Port1Rate" value="25XB/' -e 's/Port1MTU" value="4096"/Port1MTU" value="-1"/' \
	-e 's/Port1State" value="4"/Port1State" value="9"/' "$machines/slot.xml" >"$work/odd.xml"
topo --xml "$work/odd.xml"
expect "odd values: exit code 0" [ $rc -eq 0 ]
expect "odd values: a warning each" [ "$(ours 'railgauge: warning')" -eq 10 ]
expect "odd values: named" grep -q "mlx5_0: Port1Rate '25XB/s' makes no sense" "$err"
expect "odd values: shown as not known" \
	grep -q '^1     mlx5_0:1  InfiniBand  -      -         -    0 ' "$out"
expect "odd values: no verdict on the slot without rates" \
	grep -q 'mlx5_0:1 and mlx5_1:1 share one PCIe link .*is not known' "$out"
# Numbers of rails that cannot be: the order of addresses.
sed 's/Port1Rail" value="3"/Port1Rail" value="2"/' "$machines/slot.xml" >"$work/twice.xml"
topo --xml "$work/twice.xml"
expect "a rail number twice: none is believed" grep -q '^0     mlx5_0:1 .*' "$out"
expect "a rail number twice: the order is said to be assumed" \
	grep -q '^(rails in the order of their addresses: ' "$out"
sed '/Port1Rail" value="3"/d' "$machines/slot.xml" >"$work/unused.xml"
topo --xml "$work/unused.xml"
expect "a port that was no rail" grep -q '^mlx5_3:1 is no rail: ' "$out"
expect "a port that was no rail: no number" grep -q '^-     mlx5_3:1  Ethernet    ACTIVE ' "$out"
printf '%s\n' 's/name="mlx5_9"/name="mlx\&#x1b;[2J"/' >"$work/escape.sed"
sed -f "$work/escape.sed" "$machines/far.xml" >"$work/escape.xml"
topo --xml "$work/escape.xml"
expect "no control character of a file reaches the terminal" \
	[ "$(tr -d '\n' <"$out" | tr -d ' -~' | wc -c)" -eq 0 ]

# ---- Damaged files, wrong use ----
head -c 3000 "$machines/dual.xml" >"$work/torn.xml"
topo --xml "$work/torn.xml"
expect "a torn file: exit code 3" [ $rc -eq 3 ]
expect "a torn file: one line" one_line
expect "a torn file: is named" grep -q 'torn.xml: damaged' "$err"
expect "a torn file: nothing is shown" [ ! -s "$out" ]
topo --xml "$work/torn.xml" --json
expect "a torn file: no JSON either" [ $rc -eq 3 -a ! -s "$out" ]
# A later format than the installed hwloc reads.
sed 's/topology version="2.0"/topology version="99.0"/' "$machines/dual.xml" >"$work/later.xml"
topo --xml "$work/later.xml"
expect "a later format: exit code 3" [ $rc -eq 3 ]
expect "a later format: one line" one_line
expect "a later format: is called that" grep -q 'later.xml: in the format of hwloc 99; hwloc [0-9]' "$err"
topo --xml "$work/nothing.xml"
expect "a missing file: exit code 3" [ $rc -eq 3 ]
expect "a missing file: one line" one_line
for wrong in "--ranks 0" "--ranks 5000" "--ranks some" "--soft banana=1" "--xml x --soft ideal" \
	"--xml x --save y" "--rank 3" "operand"; do
	# shellcheck disable=SC2086 # words are meant
	topo $wrong
	expect "$wrong: exit code 3" [ $rc -eq 3 ]
	expect "$wrong: one line" one_line
	expect "$wrong: nothing is shown" [ ! -s "$out" ]
done
topo --save "$work/no/such.xml"
expect "--save below nothing: exit code 3" [ $rc -eq 3 ]
expect "--save below nothing: one line" one_line
mkfifo "$work/fifo"
topo --save "$work/fifo"
expect "--save onto what is no file: exit code 3" [ $rc -eq 3 ]
expect "--save onto what is no file: one line" one_line
expect "--save onto what is no file: it is still there" [ -p "$work/fifo" ]
if [ -w /dev/full ]; then
	"$railgauge" topo >/dev/full 2>"$err"
	rc=$?
	expect "a full disk is a fault" [ $rc -eq 4 ]
	expect "a full disk: one line" one_line
fi

# ---- This machine ----
topo --save "$work/here.xml"
expect "this machine: exit code 0" [ $rc -eq 0 ]
head -n 1 "$out" | sed 's/.*: //' >"$work/here"
expect "this machine: its size" grep -Eq '^[0-9]+ packages?, [0-9]+ NUMA nodes?, [0-9]+ cores?, ' \
	"$work/here"
topo --xml "$work/here.xml"
expect "saved: exit code 0" [ $rc -eq 0 ]
expect "saved: the same size" [ "$(head -n 1 "$out" | sed 's/.*: //')" = "$(cat "$work/here")" ]
RAILGAUGE_JSON=$work/elsewhere.jsonl topo
expect "RAILGAUGE_JSON of the benchmarks means nothing here" [ $rc -eq 0 -a -s "$out" ]
RAILGAUGE_SOFT=ideal topo --xml "$machines/none.xml"
expect "RAILGAUGE_SOFT of the transport does not contradict --xml" [ $rc -eq 0 ]

# ---- The software HCA ----
RAILGAUGE_SOFT=ports=3 topo
expect "RAILGAUGE_SOFT: its ports" grep -q '^2 .*soft0:3 ' "$out"
before=$(find /dev/shm -name 'softhca.*look-*' 2>/dev/null | sort)
topo --soft ports=2,rate=3GB/s,latency=2us --ranks 3
expect "--soft: exit code 0" [ $rc -eq 0 ]
expect "--soft: nothing on stderr" silent
expect "--soft: the first port" \
	grep -Eq '^0 +soft0:1 +Ethernet +ACTIVE +3GB/s +[0-9]+ +- +- +- +softhca-[^ ]* +RoCE v2 ::ffff:' "$out"
expect "--soft: the second" grep -Eq '^1 +soft0:2 +Ethernet +ACTIVE +3GB/s ' "$out"
expect "--soft: no place on a bus" grep -Eq '^soft0:2 +- +X( +-)+$' "$out"
topo --soft ports=2 --ranks 128 --job 1024
expect "the needs of a job" grep -q '^Needs of 1024 ranks, 128 a node, ' "$out"
expect "a peer" grep -Eq '^ring  +a peer +4 +0 +520 +33280 +41216$' "$out"
expect "a rank" grep -Eq '^  +a rank +3584 ' "$out"
expect "a node" grep -Eq '^  +a node +458752 +0 +59637760 +3894411264 +4726980608 +4.4 GiB$' "$out"
expect "by SEND" grep -Eq '^SEND  +a peer +4 +32 +550 +35200 +133376$' "$out"
topo --soft ports=2 --ranks 1
expect "a rank that is alone on its node: itself, too" grep -q '^Needs of 8 ranks, 1 a node, when all have met, each also itself' "$out"
expect "... eight connections" grep -Eq '^  +a rank +32 ' "$out"
topo --soft ports=2 --ranks 128 --json
expect "in JSON, of eight nodes" grep -q '"job_ranks": *1024,' "$out"
expect "... a rank's peers" grep -q '"peers_of_rank": *896,' "$out"
expect "... and bytes" grep -q '"pinned_bytes": *41216' "$out"
topo --soft ports=2
expect "no needs without --ranks" [ "$(grep -c '^Needs' "$out")" -eq 0 ]
topo --soft ports=2,rate=3GB/s,latency=2us --ranks 3
expect "--soft: ranks by turns" grep -Eq '^2 .* soft0:1 - +soft0:1 -$' "$out"
expect "--soft: nothing to warn about" [ "$(grep -c '^Warnings' "$out")" -eq 0 ]
expect "--soft: nothing is left behind" \
	[ "$(find /dev/shm -name 'softhca.*look-*' 2>/dev/null | sort)" = "$before" ]
topo --soft hcas=3,ports=4
expect "--soft: twelve ports, eight rails" [ "$(grep -Ec '^[0-7] +soft.:. +Eth' "$out")" -eq 8 ]
expect "--soft: who is left out" grep -q '^soft2:4 is left out: ' "$out"
./softhca -- "$railgauge" topo >"$out" 2>"$err"
rc=$?
expect "under the softhca command: exit code 0" [ $rc -eq 0 ]
expect "under the softhca command: its ports" grep -q '^0 .*soft0:1 ' "$out"

"$railgauge" topo --help >"$out" 2>"$err"
rc=$?
expect "help" grep -q -- '--xml=FILE\|--xml FILE' "$out"
finish
