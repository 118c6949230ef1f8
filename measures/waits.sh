# waits.sh - a group of measures/run.sh: waits in one transport that serve the other (waits.c).
#
#	RG_MPICH_BUILD=DIR	a build with MPICH, for its rows and for the better of two libraries
library_waits="fence unlock pscw ibarrier split file inter_recv inter_probe neighbor"
rails_waits="barrier recv wait waitany probe"
waits_exec="src/cli/railgauge exec --over single --soft ideal --"

# waits NAME "COMMAND..." ARG...: lines "MODE FIRST MEDIAN"
waits() {
	kept=$1 by=$2
	shift 2
	# shellcheck disable=SC2086 # words are meant
	launch 2 $by measures/waits "$@"
	[ "$rc" -eq 0 ] || stop "exit code $rc of: $by measures/waits $*"
	sed -n 's/^waits //p' "$out" >"$work/$kept"
}

# served ARG...: all launches, by each library itself and over rails, in turns
served() {
	for k in $(seq "$launches"); do
		waits own.native.$k "" "$@"
		waits own.ours.$k "$waits_exec" "$@"
		[ -n "$waits_mpich" ] || continue
		in_mpich waits mpich.native.$k "" "$@"
		in_mpich waits mpich.ours.$k "$waits_exec" "$@"
	done
}

# allowed BUILD NATIVE COLUMN MS MODE: for each launch, time over rails, over 1.5 times the better native
# one or MS more, whichever is longer; NATIVE: * or a build
allowed() {
	for k in $(seq "$launches"); do
		# shellcheck disable=SC2086 # all that match
		cat "$work"/$2.native.$k | awk -v c="$3" -v ms="$4" -v mode="$5" -v ours="$work/$1.ours.$k" '
			$1 == mode && $c != "never" && (!native || $c < native) { native = $c }
			END {
				allowed = 1.5 * native
				if (ms && allowed < native + 1000 * ms)
					allowed = native + 1000 * ms
				while (native && (getline <ours) > 0)
					if ($1 == mode)
						print ($c == "never" ? 1e9 : $c) / allowed
			}'
	done
}

# served_rows TEXT better|own COLUMN MS "MODE...": against the better library, or each against itself.
# Of the modes, the one whose median over launches is highest.
served_rows() {
	for build in own $waits_mpich; do
		flavor=$([ $build = own ] && echo "$RG_MPI_FLAVOR" || echo mpich)
		native=$([ $2 = own ] && echo $build || echo '*')
		worst=$(for mode in $5; do
			echo "$(allowed $build "$native" "$3" "$4" $mode | summary) $mode"
		done | sort -g | tail -n 1)
		allowed $build "$native" "$3" "$4" "${worst##* }" | measure "$1, worst: ${worst##* }, $flavor" "x <= 1.0"
	done
	rm -f "$work"/own.* "$work"/mpich.*
}

serving() {
	waits_mpich=
	[ ! -x "${RG_MPICH_BUILD-}/measures/waits" ] || waits_mpich=mpich
	for bytes in 64 8192; do
		for count in 1000 10000; do
			# shellcheck disable=SC2086
			served -b $bytes -n $count $library_waits
			served_rows "$count unasked messages of $bytes bytes" \
				better 3 2 "$library_waits"
		done
	done
	for mode in fence ibarrier; do
		served -s 1 $mode
		served_rows "... 1000 of 64 bytes, with the connection, $mode" better 2 2 $mode
	done
	for window in create allocate; do
		modes=$(for wait in $rails_waits; do echo $window-$wait; done | tr '\n' ' ')
		# shellcheck disable=SC2086
		served $modes
		served_rows "1000 one-sided updates, MPI_Win_$window" own 3 0 "$modes"
	done
	for mode in idle flood; do
		served -s 2 $mode
		for build in own $waits_mpich; do
			for k in $(seq "$launches"); do
				awk '{ print $3 }' "$work/$build.ours.$k"
			done | measure "a rank that computes ($mode), $([ $build = own ] && echo "$RG_MPI_FLAVOR" ||
				echo mpich): per cent taken" "x <= 1.0"
		done
		rm -f "$work"/own.* "$work"/mpich.*
	done
	[ -n "$waits_mpich" ] || echo "  MPICH: not measured (RG_MPICH_BUILD=DIR: a build with it, and make check TESTS= there)"
}
