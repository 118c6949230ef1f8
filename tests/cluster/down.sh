#!/bin/sh
# down.sh - ports without a carrier, on this node and on the other: one line that names them; and
# a cable that is pulled while ranks wait for each other.
. "$srcdir/tests/run-lib.sh"
bw="pt2pt/rg_bw -m 64K -i 2 -x 1 -W 4"

# port NODE on|off: and until its device says so
port() {
	vc-link "$1" 1 "$2"
	for second in $(seq 60); do
		case $2:$(ssh "node$1" cat /sys/class/infiniband/rxe1/ports/1/state) in
		on:*ACTIVE* | off:*DOWN*) return ;;
		esac
		sleep 1
	done
}
bad() {
	words=$1
	shift
	launch 2 $bw "$@"
	judge_refusal rg_bw 3 4 "$words" "$*"
}

for node in 1 0; do
	port $node off
	bad "--rails: rxe1:1: DOWN on node$node (accepted: all, rxe0:1)" --rails rxe0:1,rxe1:1
	launch 2 $bw -c
	expect "one host with a port fewer: well" [ "$rc" -eq 0 ]
	expect "... with one rail" grep -q '^# fabric: kernel software, RoCE, 1 rail ' "$out"
	expect "... and a line" grep -q "^rg_bw: --rails all: rxe1:1 of node.* rxe1:1 of node$node is DOWN" "$err"
	[ $node = 0 ] || port $node on
done
port 1 off
launch 2 $bw -c
expect "one rail is left on both: well" [ "$rc" -eq 0 ]
expect "... with one rail" grep -q '^# fabric: kernel software, RoCE, 1 rail ' "$out"
port 0 on
port 1 on
launch 2 $bw -c
expect "and two when they are back" grep -q '^# fabric: kernel software, RoCE, 2 rails ' "$out"

# When all wait, the last rank's node loses the cable that MPI itself does not use.
pull() {
	until [ "$(grep -c ': waits$' "$out")" -eq 3 ]; do
		sleep 1
	done
	vc-link 1 1 off
}
RAILGAUGE_OVER=stripe
export RAILGAUGE_OVER

# pulled WORDS ARG...
pulled() {
	words=$1
	shift
	: >"$out"
	pull &
	launch 3 tests/mpi/lost cut "$@"
	kill $! 2>/dev/null
	expect "a cable is pulled while receives wait: exit code 0" [ "$rc" -eq 0 ]
	expect "... each wait has ended" [ "$(grep -c ': as it should be$' "$out")" -eq 3 ]
	expect "... and MPI_Finalize" [ "$(grep -c ': the end$' "$out")" -eq 3 ]
	expect "... and a line says why" grep -q "^lost: peer 2 is lost: $words" "$err"
	port 1 on
}
pulled 'connection lost over rxe1:1 (transport retry'
export RAILGAUGE_RAILS=rxe1:1
for case in $(long unmet); do
	pulled 'no connection over rxe1:1 (' "$case"
done
finish
