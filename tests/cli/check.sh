#!/bin/sh
# railgauge check: saved machines, counters below a directory of this test, records of known values.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/cli/known_records.sh"

railgauge=$PWD/src/cli/railgauge
cp "$srcdir/tests/topo/slot.xml" "$work/slot.xml"
# machine HOST [SED-SCRIPT]: four ports of equal rates, with all lanes
machine() {
	sed -e "s/name=\"HostName\" value=\"slot\"/name=\"HostName\" value=\"$1\"/" \
		-e 's/PCIeLinkMax" value="32.0 GT/PCIeLinkMax" value="16.0 GT/' \
		-e 's/Rate" value="25GB/Rate" value="12.5GB/' -e "${2-}" "$srcdir/tests/topo/slot.xml" \
		>"$work/$1.xml"
}
machine n1
machine n2
machine n3 '79s/x8/x4/; 82s/x8/x4/; 26s/value="4"/value="1"/'
check() {
	(cd "$work" && exec "$railgauge" check "$@") >"$out" 2>"$err"
	rc=$?
}
# check_of "HOST..." OPTION...: in a job, each rank its host
check_of() {
	hosts=$1
	shift
	# shellcheck disable=SC2016 # of the rank
	launch "$(echo "$hosts" | wc -w)" sh -c 'cd "$1" && railgauge=$2 hosts=$3 && shift 3
		host=$(echo "$hosts" | cut -d" " -f$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} + 1)))
		exec "$railgauge" check --xml "$host.xml" "$@"' sh "$work" "$railgauge" "$hosts" "$@"
}
is_output() {
	cat >"$work/expected"
	cmp -s "$work/expected" "$out" || {
		diff "$work/expected" "$out"
		false
	}
}
one_line() {
	[ "$(ours railgauge)" -eq 1 ] && [ ! -s "$out" ]
}
refuses() {
	words=$1
	shift
	check "$@"
	expect "$words: exit code 3" [ $rc -eq 3 ]
	expect "$words: one line" one_line
	expect "$words: says so" grep -q "$words" "$err"
}

# ---- The nodes of a job ----
cat >"$work/nodes" <<-END
	ports up
	rates equal
	pcie full
	nodes equal	# as railgauge topo groups them
	nodes >= 2
END
check_of "n1 n2" --rules nodes
expect "good nodes: exit code 0" [ $rc -eq 0 ]
expect "good nodes: each rule" is_output <<-END
	pass     ports up (8 judged)
	pass     rates equal (8 judged)
	pass     pcie full (8 judged)
	pass     nodes equal (2 judged)
	pass     nodes >= 2 (2 judged)
	n[1-2]: pass
END
check_of "n1 n3 n2" --rules nodes
expect "a bad node: exit code 1" [ $rc -eq 1 ]
expect "a bad node: its port, its link" is_output <<-END
	FAIL     ports up (12 judged)
	           n3 mlx5_0:1: is DOWN
	pass     rates equal (11 judged)
	FAIL     pcie full (12 judged)
	           n3 mlx5_2:1: PCIe link has 16 GT/s x4 of 16 GT/s x8
	FAIL     nodes equal (3 judged)
	           n3: mlx5_0:1 state: DOWN instead of ACTIVE
	           n3: mlx5_2:1 pcie lanes: 4 instead of 8
	pass     nodes >= 2 (3 judged)
	n[1-3]: fail: n3 mlx5_0:1: is DOWN, and 3 more
END
check --rules nodes --xml n1.xml
expect "fewer nodes than asked: exit code 1" [ $rc -eq 1 ]
expect "fewer nodes than asked: how many" grep -q '^           1 node$' "$out"

# ---- A node's health ----
sysfs=$work/sys
counters=$sysfs/class/infiniband/mlx5_0/ports/1
mkdir -p "$counters/counters" "$counters/hw_counters" "$counters/gid_attrs/ndevs" \
	"$sysfs/class/net/ib0/statistics"
count() {
	echo "$2" >"$counters/$1"
}
count counters/symbol_error 5
count counters/link_downed 0
count counters/port_xmit_data 123
count hw_counters/out_of_sequence 7
echo ib0 >"$counters/gid_attrs/ndevs/0"
echo 3 >"$sysfs/class/net/ib0/statistics/rx_errors"
echo 9 >"$sysfs/class/net/ib0/statistics/rx_packets"
health() {
	check --node --xml n1.xml --sysfs sys --state new/state.json "$@"
}
health
expect "first time: exit code 0" [ $rc -eq 0 ]
expect "first time: errors have no earlier values" is_output <<-END
	pass     ports up (4 judged)
	pass     rates equal (4 judged)
	pass     pcie full (4 judged)
	unknown  errors <= 0 (nothing to judge by, 3 not known)
	n1: pass
END
expect "first time: a state, in a new directory" [ -s "$work/new/state.json" ]
health
expect "no new errors: exit code 0" [ $rc -eq 0 ]
expect "no new errors: three counters" grep -q '^pass     errors <= 0 (3 judged)$' "$out"
count counters/symbol_error 7
count counters/port_xmit_data 999
count hw_counters/out_of_sequence 99
health
expect "new errors: exit code 1" [ $rc -eq 1 ]
expect "new errors: the counter, and a reason as the last line" is_output <<-END
	pass     ports up (4 judged)
	pass     rates equal (4 judged)
	pass     pcie full (4 judged)
	FAIL     errors <= 0 (3 judged)
	           n1 mlx5_0:1: symbol_error has grown by 2
	n1: fail: mlx5_0:1: symbol_error has grown by 2
END
health
expect "the next time: since the last time alone" [ $rc -eq 0 ]
count counters/symbol_error 65535
echo 4 >"$sysfs/class/net/ib0/statistics/rx_errors"
printf 'errors <= 0\nerrors rx_errors <= 1\n' >"$work/loose"
health --rules loose
expect "a counter at its end: exit code 1" [ $rc -eq 1 ]
expect "a counter at its end: and one with a rule of its own" is_output <<-END
	FAIL     errors <= 0 (2 judged)
	           n1 mlx5_0:1: symbol_error has stopped at its end
	pass     errors rx_errors <= 1 (1 judged)
	n1: fail: mlx5_0:1: symbol_error has stopped at its end
END
check --node --soft ports=2,rate=1GB/s --state s
expect "the software HCA: exit code 0" [ $rc -eq 0 ]
expect "the software HCA: no PCIe link is known" \
	grep -q '^unknown  pcie full (nothing to judge by, 1 not known)$' "$out"
check --node --xml n3.xml --sysfs sys --state s --json
expect "JSON: exit code 1" [ $rc -eq 1 ]
if command -v python3 >/dev/null; then
	expect "JSON: verdict, rules, findings" [ "$(python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(d["type"], d["verdict"], d["nodes"], [r["verdict"] for r in d["rules"]], d["rules"][0]["findings"])' "$out")" = \
		"check fail n3 ['fail', 'pass', 'fail', 'unknown'] [{'node': 'n3', 'port': 'mlx5_0:1', 'text': 'is DOWN'}]" ]
fi
expect "nothing is left beside the state" [ "$(find "$work/new" -type f | wc -l)" -eq 1 ]

# ---- The state: damaged, foreign, unwritable ----
cp "$work/new/state.json" "$work/torn"
truncate -s 20 "$work/torn"
cp "$work/torn" "$work/torn.before"
refuses "torn: damaged" --node --xml n1.xml --state torn
expect "a damaged state stays as it was" cmp -s "$work/torn" "$work/torn.before"
echo '{"type": "topo"}' >"$work/foreign"
refuses "foreign: damaged, or no state" --node --xml n1.xml --state foreign
check --node --xml n1.xml --state no/such/dir/state
expect "an unwritable state: exit code 3" [ $rc -eq 3 ]
expect "an unwritable state: the verdict all the same" grep -q '^n1: pass$' "$out"
expect "an unwritable state: one line" \
	grep -q '^railgauge: no/such/dir/state: cannot be written: No such file or directory ' "$err"

# ---- Records ----
# bandwidths FILE SINGLE STRIPE: of 4 KiB and 4 MiB, on two rails
bandwidths() {
	{
		run_record 2 rg_bw 'Uni-directional bandwidth' bandwidth MB/s '"single","stripe"' |
			sed 's/"rails":\[{"name":"soft0:1"}\]/"rails":[{"name":"soft0:1"},{"name":"soft0:2"}]/'
		for row in "single 4096 500" "stripe 4096 500" "single 4194304 $2" "stripe 4194304 $3"; do
			echo "$row" | {
				read -r way bytes median
				printf '{"schema":2,"type":"row","way":"%s","bytes":%s,"mean":1,"median":%s,' \
					"$way" "$bytes" "$median"
				printf '"min":1,"max":1,"n":7,"valid":null,"cut":false}\n'
			}
		done
		end_record 4
	} >"$1"
}
mkdir "$work/good" "$work/bad" "$work/pairs"
bandwidths "$work/good/bw.jsonl" 1000 1850
bandwidths "$work/bad/bw.jsonl" 1000 1700
records_pairs "$work/pairs/pairs.jsonl"
echo 'stripe/single >= 0.9 x rails' >"$work/stripe"
echo 'rail >= 0.95 x median' >"$work/rail"
check --rules stripe good
expect "striping that pays: exit code 0" [ $rc -eq 0 ]
expect "striping that pays: the largest size decides" is_output <<-END
	pass     stripe/single >= 0.9 x rails (1 judged)
	pass
END
check --rules stripe bad/bw.jsonl
expect "striping that does not pay: exit code 1" [ $rc -eq 1 ]
expect "striping that does not pay: how much it brings" is_output <<-END
	FAIL     stripe/single >= 0.9 x rails (1 judged)
	           rg_bw, 4194304 bytes: 1.70 of one rail, with 2 rails: 0.85 of them
	fail: rg_bw, 4194304 bytes: 1.70 of one rail, with 2 rails: 0.85 of them
END
# Of three nodes, one cell of eight values a node is half as fast: two medians move.
check --rules rail pairs
expect "a slow cell: exit code 1" [ $rc -eq 1 ]
expect "a slow cell: both of its ends, in their directions" is_output <<-END
	FAIL     rail >= 0.95 x median (12 judged)
	           node a r1: receives 751.50 MB/s, 0.75 of the median 1000.75
	           node 'c' r1: sends 752.00 MB/s, 0.75 of the median 1000.75
	fail: node a r1: receives 751.50 MB/s, 0.75 of the median 1000.75, and 1 more
END
# A record with each node's shares: one port is slow in one direction, one is down.
{
	sed '/"type":"end"/d' "$work/pairs/pairs.jsonl"
	end_record 12 ',"acceptance":{"nodes":[
{"name":"n1","host":"n1","ports":[{"rail":"single:0","port":"r0","sending":1.0,"receiving":0.98}]},
{"name":"n2","host":"n2","ports":[{"rail":"single:0","port":"r0","sending":0.88,"receiving":0.96}]},
{"name":"n3","host":"n3","ports":[{"rail":"single:0","port":"r0","sending":0,"receiving":null}]}]}' |
		tr -d '\n'
	echo
} >"$work/shares.jsonl"
check --rules rail shares.jsonl
expect "shares: exit code 1" [ $rc -eq 1 ]
expect "shares: the slow direction, the port that is down" is_output <<-END
	FAIL     rail >= 0.95 x median (6 judged)
	           n2 r0: sends 0.88 of the median
	           n3 r0: sends nothing
	           n3 r0: receives nothing
	fail: n2 r0: sends 0.88 of the median, and 2 more
END
refuses "the records have no rows of nodes' rails" --rules rail good
refuses "the records have no rows of a bandwidth of single and stripe" --rules stripe pairs
head -c 700 "$work/good/bw.jsonl" >"$work/torn.jsonl"
refuses "torn.jsonl" --rules stripe torn.jsonl
refuses "nothing.jsonl: No such file" --rules stripe nothing.jsonl

# ---- As at acceptance ----
mkdir "$work/acceptance"
(cd "$work" && "$railgauge" topo --json --xml n1.xml --sysfs sys) >"$work/acceptance/n1.json"
cp "$work/good/bw.jsonl" "$work/acceptance"
check --against acceptance --xml n1.xml --sysfs sys
expect "as then: exit code 0" [ $rc -eq 0 ]
expect "as then: the machine and its counters" is_output <<-END
	pass     topology same (1 judged)
	pass     errors <= 0 (2 judged, 1 not known)
	n1: pass
END
echo 6 >"$sysfs/class/net/ib0/statistics/rx_errors"
sed 's/HostName" value="n3"/HostName" value="n1"/' "$work/n3.xml" >"$work/now.xml"
check --against acceptance --xml now.xml --sysfs sys bad
expect "changed: exit code 1" [ $rc -eq 1 ]
expect "changed: links, counters, medians" is_output <<-END
	FAIL     topology same (1 judged)
	           n1: mlx5_0:1 state: DOWN instead of ACTIVE
	           n1: mlx5_2:1 pcie lanes: 4 instead of 8
	FAIL     errors <= 0 (2 judged, 1 not known)
	           n1 mlx5_0:1: rx_errors has grown by 2
	FAIL     medians within 5% (4 judged)
	           rg_bw, stripe, 4194304 bytes: 1700, at acceptance 1850: worse by 8.1 %
	n1: fail: mlx5_0:1 state: DOWN instead of ACTIVE, and 3 more
END
# Files of a job.
check_of "n1 n2" --rules nodes
# shellcheck disable=SC2016 # of the rank
launch 2 sh -c 'cd "$1" && exec "$2" topo --json --xml "n$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} + 1)).xml"' \
	sh "$work" "$railgauge"
mkdir "$work/job"
cp "$out" "$work/job/topo.json"
check_of "n2 n1" --against job
expect "a job's file: exit code 0" [ $rc -eq 0 ]
expect "a job's file: both nodes" grep -q '^pass     topology same (2 judged)$' "$out"
check_of "n2 n3" --against job
expect "a node that is new: exit code 1" [ $rc -eq 1 ]
expect "a node that is new: is named" grep -q '^           n3: was not there at acceptance$' "$out"
refuses "good: no machine" --against good --xml n1.xml
refuses "nowhere: No such file" --against nowhere --xml n1.xml
mkdir "$work/damaged"
head -c 500 "$work/acceptance/n1.json" >"$work/damaged/n1.json"
refuses "damaged/n1.json: damaged" --against damaged --xml n1.xml

# ---- Rules and wrong use ----
printf 'ports up\nports dwn\n' >"$work/wrong"
refuses "wrong:2: 'ports dwn' is no rule (accepted: ports up; " --rules wrong --xml n1.xml
refuses "none: No such file" --rules none --xml n1.xml
refuses "/dev/null: " --rules /dev/null --xml n1.xml
refuses "rule 'rail >= 0.95 x median' needs records" --rules rail --xml n1.xml
echo 'errors <= 3' >"$work/errors"
refuses "rule 'errors <= 3' needs --node or --against" --rules errors --xml n1.xml
echo 'topology same' >"$work/same"
refuses "rule 'topology same' needs --against" --rules same --xml n1.xml
refuses "nothing to judge by"
refuses "with --against" --node --against acceptance
refuses "no records" --node good
launch 2 "$railgauge" check --rules "$work/wrong"
expect "wrong rules in a job: exit code 3" [ $rc -eq 3 ]
expect "wrong rules in a job: one line" [ "$(ours railgauge)" -eq 1 ]
if [ -w /dev/full ]; then
	"$railgauge" check --node --xml "$work/n1.xml" --state "$work/s" >/dev/full 2>"$err"
	rc=$?
	expect "a full disk is a fault" [ $rc -eq 4 ]
fi
"$railgauge" check --help >"$out" 2>"$err"
expect "help has the rules" grep -q '^  stripe/single >= F x rails ' "$out"
finish
