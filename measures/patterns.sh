# patterns.sh - a group of measures/run.sh: usual exchanges of MPI programs (patterns.c) under `railgauge
# exec`, beside the MPI library by itself.
#
#	RG_MPICH_BUILD=DIR	a build with MPICH, for the better of two libraries
patterns_rows() {
	ranks=$1
	for k in $(seq "$launches"); do
		once "own.$k" "$ranks" measures/patterns
		once "ours.$k" "$ranks" src/cli/railgauge exec --quiet --over single --soft ideal -- measures/patterns
		# MPICH never yields and pays dearly for more ranks than cores.
		[ -z "${RG_MPICH_BUILD-}" ] || [ "$ranks" -gt "$(nproc)" ] || in_mpich once "mpich.$k" "$ranks" measures/patterns
	done
	while read -r name bytes us; do
		# Where ranks take turns, who begins first decides.
		[ "$name" != compute ] || [ "$ranks" -le "$(nproc)" ] || continue
		for k in $(seq "$launches"); do
			cat "$work/own.$k" "$work/mpich.$k" 2>/dev/null | awk -v n="$name" -v b="$bytes" '
				FNR == NR { if ($1 == n && $2 == b && (!best || $3 < best)) best = $3; next }
				$1 == n && $2 == b { print $3 / best }' - "$work/ours.$k"
		done | measure "$name, $bytes bytes, $ranks ranks: ours / the better library" "x <= 1.0"
	done <"$work/ours.1"
	rm -f "$work"/own.* "$work"/ours.* "$work"/mpich.*
}

patterns() {
	patterns_rows 2
	[ "$(nproc)" -gt 8 ] || patterns_rows $((2 * $(nproc)))
}
