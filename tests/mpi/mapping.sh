#!/bin/sh
# mapping.sh - receive buffers that peers map (--map-buffers): when, which, and that the program
# sees no difference.
. "$srcdir/tests/run-lib.sh"
[ "$RG_SANITIZE" = no ] || {
	echo "skipped: beside a sanitizer no memory can be watched, so none is mapped"
	exit 77
}

# costs SCHEME: RAILGAUGE_COSTS by which each class has it, and moves cost nothing
costs() {
	{
		echo "costs 1 $processor"
		for size in 16K 32K 64K 128K 256K 512K 1M 2M 0; do
			echo "cell map host all $size $1 plain=9 written=5 halves=5 move=0"
		done
		echo "costs-end 9"
	} >"$work/costs"
	export RAILGAUGE_COSTS="$work/costs"
}

# Costs of another processor are refused with this one's name.
printf 'costs 1 none\ncosts-end 0\n' >"$work/none"
RAILGAUGE_COSTS=$work/none launch 2 src/cli/railgauge exec -- tests/mpi/mapping
processor=$(sed -n "s/.*of another processor, 'none', this is '\(.*\)' (acc.*/\1/p" "$err" | head -n 1)
expect "the processor has a name" [ "$processor" ]

right() {
	[ "$rc" -eq 0 ] && grep -qx 'wrong: 0' "$out"
}

mapping() {
	launch 2 src/cli/railgauge exec --map-buffers --ledger "$@" -- tests/mpi/mapping
	grep -E 'failed|skipped' "$out"
	expect "mapping $*" right
	expect "... the ledger: all bytes over rails, some buffers mapped" counted
}

# The rails' rows have bytes sent in the fourth column and bytes received in the seventh.
counted() {
	grep -q 'receive buffers mapped (--map-buffers): [1-9]' "$err" &&
		awk '/^  all functions/ { all = $3 } /^  soft/ { sent += $4; got += $7 }
		     END { exit !(all > 0 && sent == all && got == all) }' "$err"
}

costs written
mapping --over single --soft ideal
mapping --over stripe --soft ports=2 --rendezvous both
mapping --over stripe --soft ports=2,rate=20GB/s,latency=1us --nodes 2
costs halves
mapping --over single --soft ideal

# reused CASE OPTION...
reused() {
	case=$1
	shift
	launch 2 src/cli/railgauge exec --over single --soft ideal --ledger "$@" -- tests/mpi/mapping_costs "$case"
	expect "$case $*" eval 'right && grep -qx "$case: well" "$out"'
}

# Where plain memory costs less no page moves, and none without the option, whatever the costs are.
costs plain
reused nothing --map-buffers
expect "... the ledger: no buffer" grep -q 'receive buffers mapped (--map-buffers): 0, of 0 bytes' "$err"
expect "... the costs were taken" grep -q '^  learned, rank 1: map [a-z]* all 128K plain .*(given by --costs)$' "$err"
costs written
reused nothing
expect "... nor learned" eval '! grep -q "learned, .*: map " "$err"'
unset RAILGAUGE_COSTS
reused nothing
reused learns --map-buffers
expect "... the ledger has the costs" grep -q \
	"^  learned, rank 1: map [a-z]* all 512K [a-z]* plain=[1-9][0-9]* written=[0-9]* halves=[0-9]* move=[0-9]* (" "$err"
expect "nothing in /dev/shm" shm_is_clean
finish
