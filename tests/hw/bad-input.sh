#!/bin/sh
# bad-input.sh - bad input on real ports: one line of ours that says what is accepted, an exit
# code of 3 or 4, no hang.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/hw/rails.sh"
limit=${RG_HW_SECONDS:-60}
bw="pt2pt/rg_bw -m 64K -i 2 -x 1 -W 4"

# bad WORDS COMMAND...: on two nodes
bad() {
	words=$1
	shift
	launch 2 "$@"
	# Ports of other people may give reason to warn.
	sed -i '/^rg_bw: warning: /d' "$err"
	judge_refusal rg_bw 3 4 "$words" "$*"
}

a=$first_rail
b=$(sed -n 's/^found [^ ]* //p' tests/hw/found | sort -u | grep -vx "$a" | head -n 1)
other=$(sed -n 's/^found \([^ ]*\) .*/\1/p' tests/hw/found | sort -u | sed -n 2p)
rank1="sh $srcdir/tests/hw/rank1.sh"

bad "--rails $a,$a: $a is listed twice, accepted:" $bw --rails "$a,$a"
bad "--rails: none_9:1: there is no such port on .* (accepted: all, .*$a" $bw --rails none_9:1
bad "--gid-index 255: .* has no such GID (accepted: [0-9]" $bw --gid-index 255
bad "--pkey 0x8123: .* is in no such partition (accepted: 0x" $bw --pkey 0x8123
bad "--threshold: rank 1 has '64K', rank 0 '8K' (accepted: the same" $rank1 RAILGAUGE_THRESHOLD=64K $bw
# The software HCA locks no memory.
[ "${RG_HW_ADAPTERS-}" = 1 ] || bad "cannot .*: .*locked memory\(? see ulimit -l)\|, ulimit -l: 64 KiB)\)" "$srcdir/tests/hw/starved.sh" $bw
if [ "${RG_HW_ADAPTERS-}" = 1 ]; then
	echo "--rails with such names asks for the software HCA itself"
elif [ -n "$b" ] && [ -n "$other" ]; then
	bad "--rails names [12] ports\? on .*, [12] on .* (accepted: as many on each host, or all)" $bw \
		--rails "$a,$b;$other=$a"
	# In one subnet any order will do.
	launch 2 $bw -c --rails "$a,$b;$other=$b,$a"
	if well; then
		echo "$a and $b reach each other: no order is wrong"
	else
		bad "is on another subnet than host .*order the ports by --rails" $bw \
			--rails "$a,$b;$other=$b,$a"
	fi
else
	echo "one rail or one node: nothing to be in disorder"
fi
finish
