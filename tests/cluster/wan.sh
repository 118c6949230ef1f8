#!/bin/sh
# wan.sh - the wide-area experiments on links that netem delays, and that lose packets: data, what
# is told of losses, and that nothing comes sooner than the distance allows.  (How much is carried
# in how much time: `make bench-cluster`.)
. "$srcdir/tests/run-lib.sh"
RG_HW_SOFTWARE=1
. "$srcdir/tests/hw/rails.sh" 2>/dev/null	# drawn, well
limit=200
lat=pt2pt/rg_verbs_lat bw=pt2pt/rg_verbs_bw

on_all_nodes() {
	for node in $(seq 0 $((VC_NODES - 1))); do
		ssh "node$node" "$@"
	done
}

# far US PROGRAM ARG...: right, and no row below so many us
far() {
	least=$1
	shift
	launch 2 "$@" -c -i 5 -x 1 --time-cap 30
	expect "$*" well
	expect "$*: not below $least us" [ "$(awk -v least="$least" '/^[0-9]/ && $2 < least' "$out" | wc -l)" -eq 0 ]
}

# A way, as over 1400 miles; with RG_LONG=1 over 8600 miles, too.
for ms in 13 $(long 81.5); do
	on_all_nodes vc-shape netem delay ${ms}ms limit 20000
	us=$(echo "$ms" | awk '{ print $1 * 1000 }')
	for transport in RC UC UD; do
		drawn 2 "$ms $transport" || continue
		far "$us" $lat --op send --transport $transport -m 4
	done
	far $((2 * ${us%.*})) $lat --op read -m 4
	for options in "--op write" "--op read" "--op send --qps 4" "--op send --transport UC" \
		"--op send --transport UD"; do
		for program in $bw pt2pt/rg_verbs_bibw; do
			drawn 3 "$ms $options $program" || continue
			launch 2 $program $options -m 1K --queue 32 -c -i 5 -x 1 --time-cap 30
			expect "$ms ms, $program $options" well
		done
	done
done

# Lost packets: RC sends them again, the others tell.  (Of a message of several packets UC may lose
# one and stop Soft-RoCE's receiver.)
on_all_nodes vc-shape netem delay 13ms limit 20000 loss 2%
launch 2 $bw --op write -m 16K --queue 16 -c -i 5 -x 1 --time-cap 60
expect "RC under loss is right" well
expect "... and nothing lost" [ "$(grep -c '^# lost' "$out")" -eq 0 ]
for transport in UC UD; do
	launch 2 $bw --op send --transport $transport -m 1K --queue 64 -c -i 40 -x 1 --time-cap 60
	expect "$transport under loss is right" well
	expect "... and tells its share" \
		grep -Eq '^# lost: single, 1024 bytes: [1-9][0-9]* of [0-9]+ messages' "$out"
done
on_all_nodes vc-shape off
finish
