#!/bin/sh
# railgauge topo in a job: one report of all nodes.  Each rank has the saved machine of its turn
# (slot.xml, as a host of another name), or all have this machine.
. "$srcdir/tests/run-lib.sh"

railgauge=$PWD/src/cli/railgauge
# machine HOST [SED-SCRIPT]
machine() {
	sed -e "s/name=\"HostName\" value=\"slot\"/name=\"HostName\" value=\"$1\"/" -e "${2-}" \
		"$srcdir/tests/topo/slot.xml" >"$work/$1.xml"
}
for host in n1 n2 n4 n9; do
	machine $host
done
machine n3 '79s/x8/x4/; 82s/x8/x4/; 26s/value="4"/value="1"/'
machine login 's/mlx5_3/mlx5_7/; s/fe11:2203/fe11:2299/'

# topo_of "HOST..." OPTION...: each rank its host
topo_of() {
	hosts=$1
	shift
	# shellcheck disable=SC2016 # of the rank
	launch "$(echo "$hosts" | wc -w)" sh -c 'cd "$1" && railgauge=$2 hosts=$3 && shift 3
		host=$(echo "$hosts" | cut -d" " -f$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} + 1)))
		exec "$railgauge" topo --xml "$host.xml" "$@"' sh "$work" "$railgauge" "$hosts" "$@"
}
alone() {
	(cd "$work" && "$railgauge" topo "$@") >"$work/alone" 2>&1
}
# is_output: it is what is expected, byte by byte
is_output() {
	cmp -s "$work/expected" "$out" || {
		diff "$work/expected" "$out"
		false
	}
}
# member PYTHON: of the object that was printed
member() {
	python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($1)" "$out"
}

# ---- Text ----
alone --xml n1.xml
{
	printf '3 nodes, all alike: n[1-2,9]\n\n'
	cat "$work/alone"
} >"$work/expected"
topo_of "n1 n9 n2"
expect "alike: exit code 0" [ $rc -eq 0 ]
expect "alike: one group, in the order of numbers, and the tables of the first" is_output

alone --xml n2.xml
{
	printf '4 nodes, 3 alike: n[1-2,4]\n\n'
	cat "$work/alone"
	printf '\nn3: unlike n[1-2,4] in\n'
	printf '  mlx5_0:1 state: DOWN instead of ACTIVE\n  mlx5_2:1 pcie lanes: 4 instead of 8\n'
} >"$work/expected"
topo_of "n3 n2 n1 n4"
expect "an odd one: exit code 0" [ $rc -eq 0 ]
expect "an odd one comes first, and is shown as different from the others" is_output

alone --xml n1.xml
{
	printf '2 nodes, no two alike; first n1\n\n'
	cat "$work/alone"
	printf '\nlogin: unlike n1 in\n  mlx5_3:1: absent\n  mlx5_7:1: additional\n'
} >"$work/expected"
topo_of "n1 login"
expect "another adapter: exit code 0" [ $rc -eq 0 ]
expect "another adapter: is absent and additional, and its paths are not told again" is_output

# ---- JSON ----
topo_of "n1 n2 n3" --json
expect "JSON: exit code 0" [ $rc -eq 0 ]
if command -v python3 >/dev/null; then
	expect "JSON: type" [ "$(member 'd["type"]')" = topo_job ]
	expect "JSON: groups" [ "$(member '[g["nodes"] for g in d["groups"]]')" = "['n[1-2]', 'n3']" ]
	expect "JSON: names" [ "$(member 'd["groups"][0]["names"]')" = "['n1', 'n2']" ]
	expect "JSON: differences" [ "$(member 'd["groups"][1]["differs"][0]')" = \
		"{'at': 'mlx5_0:1 state', 'was': 'ACTIVE', 'is': 'DOWN'}" ]
	expect "JSON: each node's object is what a node prints" \
		[ "$(member '[n["host"] + n["type"] for n in d["nodes"]]')" = "['n1topo', 'n2topo', 'n3topo']" ]
fi

# ---- This machine: its ranks are one node ----
alone --soft ports=2,rate=3GB/s
cp "$work/alone" "$work/expected"
launch 3 "$railgauge" topo --soft ports=2,rate=3GB/s
expect "three ranks of a node: exit code 0" [ $rc -eq 0 ]
expect "three ranks of a node: the node alone" is_output
launch 1 "$railgauge" topo --soft ports=2,rate=3GB/s
expect "a job of one rank: the same" is_output

# ---- Wrong use ----
launch 2 "$railgauge" topo --ranks 0
expect "a wrong option: exit code 3" [ $rc -eq 3 ]
expect "a wrong option: one line" [ "$(ours railgauge)" -eq 1 ]
alone --xml n1.xml
{
	printf '3 nodes, 2 alike: n[1-2]\n\n'
	cat "$work/alone"
	printf '\n%s: unlike n[1-2] in\n  topology: absent\n' "$(uname -n)"
} >"$work/expected"
topo_of "n0 n1 n2"
expect "a node that cannot be read: exit code 3" [ $rc -eq 3 ]
expect "a node that cannot be read: it says so itself, with its name" \
	grep -q "^railgauge: $(uname -n): n0.xml: No such file" "$err"
expect "a node that cannot be read: the others are shown" is_output
# Ranks that the launcher of another MPI library has started are alone.
case $RG_MPI_FLAVOR in
openmpi)
	OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$railgauge" topo --soft ideal >"$out" 2>"$err"
	rc=$?
	expect "alone in a job of two: exit code 3" [ $rc -eq 3 ]
	expect "alone in a job of two: one line" grep -q '^railgauge: this job has 2 ranks, but not for ' "$err"
	other=mpich
	;;
*)
	other=openmpi
	;;
esac
if [ ! -x "src/cli/railgauge-gather-$other" ]; then
	case $other in
	mpich) PMI_RANK=0 PMI_SIZE=2 "$railgauge" topo --soft ideal >"$out" 2>"$err" ;;
	*) OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$railgauge" topo --soft ideal >"$out" 2>"$err" ;;
	esac
	rc=$?
	expect "a job of another MPI library: exit code 3" [ $rc -eq 3 ]
	expect "a job of another MPI library: one line" \
		grep -q "^railgauge: railgauge-gather-$other is not installed: .*--with-mpi=$other" "$err"
	expect "a job of another MPI library: nothing is shown" [ ! -s "$out" ]
fi
finish
