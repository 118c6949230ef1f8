#!/bin/sh
# long.sh - of make check-long: the group scheme_choice of make bench runs to its end on 2 and on 4 ranks, with
# this MPI library and with that of RG_MPICH_BUILD.  Each scheme and each algorithm has its rows; what they cost
# is not judged.  LONG_SECONDS: two sizes and one collective.
. "$srcdir/tests/run-lib.sh"
if [ -n "${LONG_SECONDS-}" ]; then
	MEASURE_SIZES=16K:32K MEASURE_COLLECTIVES=allreduce MEASURE_SCHEMES="pt2pt collectives"
	export MEASURE_SIZES MEASURE_COLLECTIVES MEASURE_SCHEMES
fi
MEASURE_ONLY=scheme_choice MEASURE_LAUNCHES=1 MEASURE_PERF=0 MEASURE_VALUES=$work/values
export MEASURE_ONLY MEASURE_LAUNCHES MEASURE_PERF MEASURE_VALUES

# has KIND WAY...: rows of each
has() {
	kind=$1
	shift
	for way do
		grep -q "^$kind [0-9]* $way " "$work/values" || { echo "no $way of $kind"; return 1; }
	done
}

for build in . ${RG_MPICH_BUILD-}; do
	: >"$work/values"
	(unset RG_MPICH_BUILD && ${MAKE:-make} -C "$build" bench) >"$out" 2>"$err"
	rc=$?
	expect "$build: scheme_choice runs to its end" [ $rc -eq 0 ]
	for kind in bw16 bw64 bibw64 latency; do
		expect "$build: $kind: each scheme" has $kind native auto again read write both turns ring \
			ring-short ring-long eager16K eager32K eager64K mapped
	done
	for coll in ${MEASURE_COLLECTIVES:-alltoall allgather bcast allreduce}; do
		for ranks in 2 4; do
			expect "$build: $coll on $ranks ranks: each scheme" \
				has $coll-$ranks native auto again read both eager64K
			expect "$build: $coll on $ranks ranks: algorithms" has $coll-$ranks "$coll=[a-z-]*"
		done
	done
done
finish
