#!/bin/sh
# down.sh - ports without a carrier, on this node and on the other: one line that names them.
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
	bad "peer 1 has a number of rails (--rails) of $((2 - node)), this process $((1 + node))"
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
finish
